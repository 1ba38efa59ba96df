"""What each recipe writes, what it leaves alone, and what it says about gates."""

from __future__ import annotations

import json
import os
import stat
import sys
import tomllib
from pathlib import Path

import pytest

from tenure.agents.identity import KNOWN
from tenure.agents.recipes import NAMES, by_name, found_agents, installation, start_command
from tenure.agents.recipes.pieces import ACTIVE, EDITED, OUTDATED
from tenure.agents.recipes.recipe import SetupTarget
from tenure.agents.recipes.setup_record import SetupRecord


def set_up(place: SetupTarget, *agents: str, force: bool = False) -> list[installation.Change]:
    changes = installation.prepare(place, agents, agents, SetupRecord(), force=force)
    installation.carry_out(place, changes, agents, SetupRecord())
    return changes


def states(place: SetupTarget, agent: str) -> dict[str, str]:
    return {os.path.relpath(s.path, place.root): s.state for s in installation.standings(place, [agent])}


def write(place: SetupTarget, name: str, text: str) -> Path:
    path = Path(place.root, name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode())
    return path


def read(place: SetupTarget, name: str) -> str:
    return Path(place.root, name).read_text(encoding="utf-8")


def test_every_known_agent_has_a_recipe() -> None:
    assert set(NAMES) == set(KNOWN)
    assert [by_name(name).name for name in NAMES] == list(NAMES)


def test_claude_gets_instructions_a_skill_mcp_and_hooks(place: SetupTarget) -> None:
    set_up(place, "claude")
    assert "@AGENTS.md\n" in read(place, "CLAUDE.md")
    assert "tenure claim" in read(place, "AGENTS.md")
    assert read(place, ".claude/skills/tenure/SKILL.md").startswith("---\nname: tenure\n")
    assert json.loads(read(place, ".mcp.json"))["mcpServers"]["tenure"] == {
        "type": "stdio",
        "command": "tenure",
        "args": ["mcp"],
        "alwaysLoad": True,
    }
    hooks = json.loads(read(place, ".claude/settings.json"))["hooks"]
    assert set(hooks) == {"SessionStart", "PreToolUse", "PostToolUse", "Stop", "SessionEnd"}
    assert hooks["Stop"][0]["hooks"][0]["command"] == "tenure hook || true"


def test_codex_gets_its_own_files(place: SetupTarget) -> None:
    set_up(place, "codex")
    assert tomllib.loads(read(place, ".codex/config.toml"))["mcp_servers"]["tenure"] == {
        "command": "tenure",
        "args": ["mcp"],
    }
    hooks = json.loads(read(place, ".codex/hooks.json"))
    assert set(hooks) == {"hooks"}  # it refuses files with other keys
    assert hooks["hooks"]["SessionEnd"][0]["hooks"][0]["command"] == "tenure hook --from codex || true"
    assert Path(place.root, ".agents/skills/tenure/SKILL.md").exists()


def test_opencode_gets_a_plugin_with_the_command_in_it(place: SetupTarget) -> None:
    set_up(place._replace(command=("/opt/my py/bin/python", "-m", "tenure")), "opencode")
    plugin = read(place, ".opencode/plugin/tenure.ts")
    assert 'const COMMAND = ["/opt/my py/bin/python", "-m", "tenure", "hook", "--from", "opencode"]' in plugin
    entry = json.loads(read(place, "opencode.json"))["mcp"]["tenure"]
    assert entry == {"type": "local", "command": ["/opt/my py/bin/python", "-m", "tenure", "mcp"], "enabled": True}


def test_opencode_finds_nothing_to_add_to_its_settings(place: SetupTarget) -> None:
    set_up(place, "opencode")
    assert json.loads(read(place, "opencode.json"))["$schema"] == "https://opencode.ai/config.json"


def test_settings_of_opencode_from_before_get_their_schema_when_set_up_again(place: SetupTarget) -> None:
    entry = {"type": "local", "command": [*place.command, "mcp"], "enabled": True}
    path = Path(place.root, "opencode.json")
    path.write_text(json.dumps({"theme": "mine", "mcp": {"tenure": entry}}))
    assert states(place, "opencode")["opencode.json"] == OUTDATED
    set_up(place, "opencode")
    kept = json.loads(path.read_text())
    assert kept["$schema"] == "https://opencode.ai/config.json"
    assert (kept["theme"], kept["mcp"]["tenure"]) == ("mine", entry)


def test_another_schema_in_the_settings_of_opencode_stays(place: SetupTarget) -> None:
    path = Path(place.root, "opencode.json")
    path.write_text('{"$schema": "https://example.org/own.json"}')
    set_up(place, "opencode")
    assert json.loads(path.read_text())["$schema"] == "https://example.org/own.json"


def test_a_path_with_spaces_is_quoted_for_the_shell(place: SetupTarget) -> None:
    assert place._replace(command=("/a b/py", "-m", "tenure")).hook() == "'/a b/py' -m tenure hook || true"


# --- instructions -------------------------------------------------------------------------------------------


def test_a_claude_md_that_imports_agents_md_is_not_touched(place: SetupTarget) -> None:
    write(place, "CLAUDE.md", "# Rules\n@AGENTS.md\n")
    set_up(place, "claude")
    assert read(place, "CLAUDE.md") == "# Rules\n@AGENTS.md\n"
    assert "tenure claim" in read(place, "AGENTS.md")


def test_a_claude_md_of_ones_own_gets_the_section_itself(place: SetupTarget) -> None:
    """An import would bring in whatever else is in AGENTS.md."""
    write(place, "CLAUDE.md", "# Rules\n")
    write(place, "AGENTS.md", "# For Codex\n")
    set_up(place, "claude")
    assert read(place, "CLAUDE.md").startswith("# Rules\n\n<!-- tenure:begin")
    assert "tenure claim" in read(place, "CLAUDE.md")
    assert read(place, "AGENTS.md") == "# For Codex\n"


def test_a_link_from_one_to_the_other_stays_a_link_and_gets_one_section(place: SetupTarget) -> None:
    write(place, "AGENTS.md", "# Rules\n")
    Path(place.root, "CLAUDE.md").symlink_to("AGENTS.md")
    set_up(place, "claude", "codex")
    assert Path(place.root, "CLAUDE.md").is_symlink()
    assert read(place, "CLAUDE.md").count("tenure:begin") == 1


@pytest.mark.parametrize(
    ("settings", "file"),
    [
        (None, "GEMINI.md"),
        ({"context": {"fileName": "CTX.md"}}, "CTX.md"),
        ({"context": {"fileName": ["X.md", "AGENTS.md"]}}, "AGENTS.md"),
    ],
)
def test_gemini_gets_it_in_the_file_that_it_reads(place: SetupTarget, settings: object, file: str) -> None:
    if settings:
        write(place, ".gemini/settings.json", json.dumps(settings))
    set_up(place, "gemini")
    assert "tenure:begin" in read(place, file)
    assert "tenure claim" in read(place, "AGENTS.md")


def test_gemini_follows_the_users_own_settings(place: SetupTarget) -> None:
    write(place._replace(root=place.home), ".gemini/settings.json", '{"context": {"fileName": "AGENTS.md"}}')
    set_up(place, "gemini")
    assert not Path(place.root, "GEMINI.md").exists()


# --- what people have changed -------------------------------------------------------------------------------


def test_a_section_edited_by_hand_is_kept_and_reported_unless_forced(place: SetupTarget) -> None:
    set_up(place, "codex")
    path = write(place, "AGENTS.md", read(place, "AGENTS.md").replace("## Shared tasks", "## Our tasks"))
    edited = path.read_bytes()

    changes = {Path(c.path).name: c for c in set_up(place, "codex")}
    assert path.read_bytes() == edited
    assert changes["AGENTS.md"].kept == ["instructions"]
    assert states(place, "codex")["AGENTS.md"] == EDITED

    set_up(place, "codex", force=True)
    assert states(place, "codex")["AGENTS.md"] == ACTIVE


def test_an_edited_section_is_not_taken_out_either(place: SetupTarget) -> None:
    set_up(place, "codex")
    path = write(place, "AGENTS.md", read(place, "AGENTS.md").replace("## Shared tasks", "## Our tasks"))
    changes = installation.prepare(place, ["codex"], [], SetupRecord())
    installation.carry_out(place, changes, [], SetupRecord())
    assert "## Our tasks" in path.read_text()
    assert not Path(place.root, ".codex/hooks.json").exists()


def test_an_older_section_is_replaced_where_it_stands_in_the_way(place: SetupTarget) -> None:
    old = "<!-- tenure:begin v1 sha256=c2ef98e1d5f4b5a4 -->\nold words\n<!-- tenure:end -->\n"
    import hashlib

    old = old.replace("c2ef98e1d5f4b5a4", hashlib.sha256(b"old words\n").hexdigest()[:16])
    write(place, "AGENTS.md", "# Project\n\n" + old)
    set_up(place, "codex")
    text = read(place, "AGENTS.md")
    assert text.startswith("# Project\n\n<!-- tenure:begin")
    assert "old words" not in text
    assert text.count("tenure:begin") == 1


def test_somebodys_own_file_at_our_place_is_kept(place: SetupTarget) -> None:
    write(place, ".agents/skills/tenure/SKILL.md", "# mine\n")
    changes = set_up(place, "codex")
    assert read(place, ".agents/skills/tenure/SKILL.md") == "# mine\n"
    assert [c.kept for c in changes if c.path.endswith("SKILL.md")] == [["skill"]]


def test_an_mcp_entry_with_more_in_it_is_kept(place: SetupTarget) -> None:
    text = '{"mcpServers": {"tenure": {"type": "stdio", "command": "tenure", "args": ["mcp"], "env": {"A": "1"}}}}'
    write(place, ".mcp.json", text)
    set_up(place, "claude")
    assert read(place, ".mcp.json") == text


# --- files that cannot be edited ----------------------------------------------------------------------------


def test_settings_with_comments_are_left_alone_and_the_missing_text_is_shown(place: SetupTarget) -> None:
    text = '{\n  // mine\n  "theme": "x",\n}\n'
    write(place, ".gemini/settings.json", text)
    changes = set_up(place, "gemini")
    problem = next(c for c in changes if c.problem)
    assert read(place, ".gemini/settings.json") == text
    assert "comments" in (problem.problem or "")
    added = json.loads(problem.by_hand)
    assert set(added) == {"mcpServers", "hooks"}

    # A user who has added it gets no further message.
    write(place, ".gemini/settings.json", "// mine\n" + problem.by_hand)
    assert [c.problem for c in set_up(place, "gemini") if c.problem] == []
    assert set(states(place, "gemini").values()) == {ACTIVE}


@pytest.mark.parametrize("content", [b"\xff\xfe\x00", b'{"a": '])
def test_a_file_that_is_not_text_or_not_json_is_left_alone(place: SetupTarget, content: bytes) -> None:
    path = write(place, ".mcp.json", "")
    path.write_bytes(content)
    changes = set_up(place, "claude")
    assert [Path(c.path).name for c in changes if c.problem] == [".mcp.json"]
    assert path.read_bytes() == content
    assert states(place, "claude")[".claude/settings.json"] == ACTIVE  # the rest is done


def test_a_link_that_leads_out_of_the_repository_is_refused(place: SetupTarget) -> None:
    outside = Path(place.home, "shared.md")
    outside.write_text("# of others\n")
    Path(place.root, "AGENTS.md").symlink_to(outside)
    changes = set_up(place, "codex")
    assert outside.read_text() == "# of others\n"
    assert "outside" in str([c.problem for c in changes if c.problem])


def test_a_folder_that_leads_out_of_the_repository_is_refused_too(place: SetupTarget) -> None:
    outside = Path(place.home, "claude-of-all")
    outside.mkdir()
    Path(place.root, ".claude").symlink_to(outside)
    set_up(place, "claude")
    assert list(outside.iterdir()) == []


def test_a_file_in_place_of_a_folder_is_reported_and_the_rest_is_done(place: SetupTarget) -> None:
    write(place, ".codex", "a file\n")
    changes = set_up(place, "codex")
    assert {Path(c.path).name for c in changes if "a folder on its path is a file" in (c.problem or "")} == {
        "config.toml",
        "hooks.json",
    }
    assert read(place, ".codex") == "a file\n"
    assert states(place, "codex")["AGENTS.md"] == ACTIVE


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_may_not_be_written_is_reported(place: SetupTarget) -> None:
    folder = Path(place.root, ".claude")
    folder.mkdir(mode=0o500)
    changes = set_up(place, "claude")
    assert any("cannot be written" in (c.problem or "") for c in changes)


def test_a_file_that_changes_while_we_look_is_not_overwritten(place: SetupTarget) -> None:
    path = write(place, "AGENTS.md", "# Project\n")
    changes = installation.prepare(place, ["codex"], ["codex"], SetupRecord())
    path.write_text("# Project, changed\n")
    installation.carry_out(place, changes, ["codex"], SetupRecord())
    assert path.read_text() == "# Project, changed\n"
    assert "run it again" in str([c.problem for c in changes if c.problem])


def test_modes_of_files_are_kept(place: SetupTarget) -> None:
    path = write(place, ".mcp.json", "{}")
    path.chmod(0o640)
    set_up(place, "claude")
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


# --- which agents -------------------------------------------------------------------------------------------


def test_agents_are_found_by_folders_programs_and_homes(place: SetupTarget, tmp_path: Path) -> None:
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "gemini").write_text("#!/bin/sh\n")
    (programs / "gemini").chmod(0o755)
    write(place, "CLAUDE.md", "x")
    Path(place.home, ".copilot").mkdir()
    found = found_agents(place.root, {"PATH": str(programs), "HOME": place.home})
    assert found == {"claude": "CLAUDE.md", "gemini": "`gemini` on the PATH", "copilot": "~/.copilot"}
    assert found_agents(place.home + "/nothing", {"PATH": "", "HOME": place.root}) != found


def test_tenure_is_started_by_name_where_that_lasts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "prefix", sys.base_prefix)
    program = tmp_path / "bin" / "tenure"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    path = str(program.parent)
    for environ in ({"PATH": path}, {"PATH": "/nowhere"}, {"PATH": path, "VIRTUAL_ENV": str(tmp_path)}):
        assert start_command(environ) == ("tenure",)  # in a repository, whose files others read too
    assert start_command({"PATH": path}, is_global=True) == ("tenure",)
    here = (sys.executable, "-m", "tenure")
    assert start_command({"PATH": "/nowhere"}, is_global=True) == here
    # An active virtual environment's folder leaves the PATH with it.
    assert start_command({"PATH": path, "VIRTUAL_ENV": str(tmp_path)}, is_global=True) == here


def test_copilot_has_its_own_hooks_only_without_those_of_claude(place: SetupTarget) -> None:
    set_up(place, "copilot")
    own = Path(place.root, ".github/hooks/tenure.json")
    assert json.loads(own.read_text())["version"] == 1
    set_up(place, "claude", "copilot")
    assert not own.exists()
    served = installation.standings(place, ["copilot"], among=["claude", "copilot"])
    assert {os.path.relpath(s.path, place.root): s.state for s in served} == {
        "AGENTS.md": ACTIVE,
        ".agents/skills/tenure/SKILL.md": ACTIVE,
        ".mcp.json": ACTIVE,
        ".claude/settings.json": ACTIVE,
    }


# --- gates --------------------------------------------------------------------------------------------------


def gates(place: SetupTarget, agent: str) -> dict[str, bool | None]:
    return {gate.text: gate.is_open for gate in by_name(agent).gates(place)}


def home_file(place: SetupTarget, name: str, content: str) -> None:
    write(place._replace(root=place.home), name, content)


def test_gates_are_closed_in_a_new_home(place: SetupTarget) -> None:
    assert set(gates(place, "claude").values()) == {False}
    assert list(gates(place, "gemini").values()) == [False]
    assert list(gates(place, "copilot").values()) == [False]
    assert gates(place, "opencode") == {}
    assert [is_open for text, is_open in gates(place, "codex").items() if "trust" in text] == [False, False]


def test_gates_that_the_user_has_opened_are_seen(place: SetupTarget) -> None:
    root = os.path.realpath(place.root)
    home_file(
        place,
        ".claude.json",
        json.dumps({"projects": {root: {"hasTrustDialogAccepted": True, "enabledMcpjsonServers": ["tenure"]}}}),
    )
    home_file(place, ".gemini/trustedFolders.json", json.dumps({str(Path(root).parent): "TRUST_FOLDER"}))
    home_file(place, ".copilot/config.json", json.dumps({"trusted_folders": [root]}))
    events = ("session_start", "pre_tool_use", "post_tool_use", "stop", "session_end")
    trusted = "".join(
        f'[hooks.state."{place.root}/.codex/hooks.json:{event}:0:0"]\ntrusted_hash = "sha256:0"\n' for event in events
    )
    home_file(place, ".codex/config.toml", f'[projects."{root}"]\ntrust_level = "trusted"\n{trusted}')
    for agent in ("claude", "gemini", "copilot"):
        assert set(gates(place, agent).values()) == {True}
    assert [is_open for text, is_open in gates(place, "codex").items() if "trust" in text] == [True, True]


@pytest.mark.parametrize("content", ["[", '{"projects": 3}', '{"projects": {"x": 1}}', ""])
def test_a_home_with_strange_settings_does_not_fail(place: SetupTarget, content: str) -> None:
    for name in (".claude.json", ".gemini/trustedFolders.json", ".copilot/config.json", ".codex/config.toml"):
        home_file(place, name, content)
    for agent in NAMES:
        assert not any(is_open for text, is_open in gates(place, agent).items() if "trust" in text)
