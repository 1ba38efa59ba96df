"""`init`, `setup`, `prime`, `hook`, `checkpoint`: the verbs around agents."""

from __future__ import annotations

import json
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tenure.client import Client
from tenure.core.records import Agent
from tenure.stores.port import Change
from tests.cli.conftest import Tenure

AGENT = {"CLAUDECODE": "1", "CLAUDE_CODE_SESSION_ID": "abcd-1234"}


def git(folder: Path, *words: str) -> str:
    name = ["-c", "user.name=ann", "-c", "user.email=ann@example.org", "-c", "init.defaultBranch=main"]
    done = subprocess.run(["git", *name, *words], cwd=folder, capture_output=True, text=True, check=True)
    return done.stdout


@pytest.fixture
def repository(bare: Tenure) -> Tenure:
    """A git repository with one commit and no store."""
    git(bare.folder, "init", "-q")
    (bare.folder / "README.md").write_text("# Project\n")
    git(bare.folder, "add", ".")
    git(bare.folder, "commit", "-qm", "first")
    return bare


def names_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def elsewhere(tenure: Tenure, folder: Path) -> Tenure:
    return Tenure(folder, tenure.environ)


# --- init ---------------------------------------------------------------------------------------------------


def test_init_makes_a_private_store_that_git_ignores(repository: Tenure) -> None:
    said = repository("init")
    assert said.code == 0
    folder = repository.folder / ".tenure"
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert (folder / "tenure.db").is_file()
    assert git(repository.folder, "status", "--porcelain") == ""
    assert repository("add", "one").code == 0


def test_init_says_what_to_do_next_in_few_lines(bare: Tenure) -> None:
    said = bare("init").out
    assert 'tenure add "a first task"' in said
    assert len(said.splitlines()) <= 7


def test_init_again_changes_nothing(repository: Tenure) -> None:
    repository("init")
    repository("add", "one")
    folder = repository.folder / ".tenure"
    before = {path.name: path.read_bytes() for path in folder.iterdir() if path.suffix != ".db-shm"}
    again = repository("init", "--json")
    assert again.code == 0
    assert again.json["made_store"] is False
    assert again.json["made_project"] is False
    after = {path.name: path.read_bytes() for path in folder.iterdir() if path.suffix != ".db-shm"}
    assert after == before
    assert "Already here" in repository("init").out


def test_init_in_a_folder_of_a_repository_serves_the_whole_of_it(repository: Tenure) -> None:
    below = repository.folder / "src" / "api"
    below.mkdir(parents=True)
    assert elsewhere(repository, below)("init").code == 0
    assert (repository.folder / ".tenure" / "tenure.db").exists()
    assert not (below / ".tenure").exists()
    assert elsewhere(repository, below)("add", "one").code == 0


def test_an_empty_folder_that_is_called_git_makes_no_repository(bare: Tenure) -> None:
    below = bare.folder / "project"
    (bare.folder / ".git").mkdir()
    below.mkdir()
    assert elsewhere(bare, below)("init", "--json").json["store"] == str(below / ".tenure" / "tenure.db")


def test_a_linked_worktree_gets_no_store_of_its_own(
    repository: Tenure, tmp_path_factory: pytest.TempPathFactory
) -> None:
    tree = tmp_path_factory.mktemp("trees") / "feature"
    git(repository.folder, "worktree", "add", "-q", str(tree))
    inside = elsewhere(repository, tree)
    assert inside("init", "--json").json["store"] == str(repository.folder / ".tenure" / "tenure.db")
    assert not (tree / ".tenure").exists()
    assert inside("add", "one").code == 0
    assert [task["key"] for task in repository("list", "--json").json] == ["A-001-one"]


def test_a_worktree_beside_a_bare_repository_shares_the_store_above_both(
    repository: Tenure, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("project")
    git(repository.folder, "clone", "-q", "--bare", ".", str(folder / ".bare"))
    git(folder / ".bare", "worktree", "add", "-q", "-b", "feature", "../feature")
    assert elsewhere(repository, folder / "feature")("init").code == 0
    assert (folder / ".tenure" / "tenure.db").exists()
    assert not (folder / ".bare" / ".tenure").exists()
    assert elsewhere(repository, folder / "feature")("add", "one").code == 0


def test_a_worktree_far_from_its_bare_repository_is_told_what_to_set(
    repository: Tenure, tmp_path_factory: pytest.TempPathFactory
) -> None:
    tree, bare = tmp_path_factory.mktemp("far") / "feature", tmp_path_factory.mktemp("srv") / "x.git"
    git(repository.folder, "clone", "-q", "--bare", ".", str(bare))
    git(bare, "worktree", "add", "-q", "-b", "feature", str(tree))
    said = elsewhere(repository, tree)("init")
    assert said.code == 8
    assert "TENURE_URL" in said.err
    assert not (tree / ".tenure").exists()


def test_an_agent_that_makes_a_store_owns_the_making_and_nothing_more(bare: Tenure) -> None:
    assert bare.process("init", **AGENT).code == 0
    assert bare.process("init", **AGENT).code == 0
    denied = bare.process("init", "--project", "second", **AGENT)
    assert denied.code == 7
    assert "needs the role admin" in denied.err
    assert bare("init", "--project", "second").code == 0


def test_a_named_project_is_the_one_that_commands_speak_of(bare: Tenure) -> None:
    assert bare("init", "--project", "my.app").code == 0
    bare("add", "one")
    assert bare("list", "--json").json[0]["key"] == "A-001-one"
    assert bare("whoami", "--json").json["project"] == "my.app"


def test_init_where_a_file_is_in_the_way_says_so(bare: Tenure) -> None:
    (bare.folder / ".tenure").write_text("x")
    said = bare("init")
    assert said.code == 8
    assert "is not a folder" in said.err


def test_init_by_url_makes_that_store_and_nothing_here(bare: Tenure, tmp_path_factory: pytest.TempPathFactory) -> None:
    store = tmp_path_factory.mktemp("elsewhere") / "shared.db"
    assert bare.process("init", TENURE_URL=f"sqlite://{store}").code == 0
    assert store.exists()
    assert list(bare.folder.iterdir()) == []


def test_init_without_agents_touches_nothing_but_tells_of_them(repository: Tenure) -> None:
    (repository.folder / "CLAUDE.md").write_text("# Rules\n")
    said = repository("init")
    assert "claude (CLAUDE.md)" in said.out
    assert "tenure setup claude" in said.out
    assert names_in(repository.folder) == [".git", ".tenure", "CLAUDE.md", "README.md"]


def test_init_with_agents_sets_them_up(repository: Tenure) -> None:
    said = repository("init", "--agents", "claude,codex", "--json")
    assert said.code == 0
    assert said.json["setup"]["agents"] == ["claude", "codex"]
    assert (repository.folder / ".codex" / "hooks.json").exists()
    assert repository("init", "--agents", "none").code == 0
    assert repository("init", "--agents", "clade").code == 2
    assert "did you mean" in repository("init", "--agents", "clade").err.lower()


# --- setup --------------------------------------------------------------------------------------------------


def test_set_up_and_removed_a_repository_is_clean(repository: Tenure) -> None:
    (repository.folder / ".mcp.json").write_text('{"mcpServers": {"x": {"command": "y"}}}')
    git(repository.folder, "add", ".")
    git(repository.folder, "commit", "-qm", "second")
    repository("init")
    assert repository("setup", "all").code == 0
    assert git(repository.folder, "status", "--porcelain") != ""
    assert repository("setup", "all", "--check").code == 0
    removed = repository("setup", "--remove", "--json")
    assert removed.json["agents"] == []
    assert git(repository.folder, "status", "--porcelain") == ""
    assert repository("setup", "--remove").out.startswith("No agent is set up here")


def test_check_looks_and_tells_what_is_missing_and_what_needs_a_click(repository: Tenure) -> None:
    repository("init")
    assert repository("setup", "--check").code == 7
    repository("setup", "claude")
    said = repository("setup", "--check")
    assert said.code == 0
    assert "Still needs you:\n  claude: start `claude` here and trust the folder" in said.out
    (repository.folder / ".mcp.json").unlink()
    missing = repository("setup", "--check", "--json")
    assert missing.code == 7
    states = {Path(piece["path"]).name: piece["state"] for piece in missing.json["pieces"]}
    assert states[".mcp.json"] == "missing"
    assert states["settings.json"] == "active"


def test_copilot_is_checked_by_the_hooks_that_serve_it(repository: Tenure) -> None:
    repository("init", "--agents", "claude,copilot")
    said = repository("setup", "copilot", "--check", "--json")
    assert said.code == 0
    assert [p["path"] for p in said.json["pieces"] if p["what"] == "hooks"] == [
        str(repository.folder / ".claude" / "settings.json")
    ]
    repository("setup", "claude", "--remove")
    assert (repository.folder / ".github" / "hooks" / "tenure.json").exists()
    assert repository("setup", "copilot", "--check").code == 0


def test_print_shows_a_diff_and_writes_nothing(repository: Tenure) -> None:
    repository("init")
    before = names_in(repository.folder)
    said = repository("setup", "codex", "--print")
    assert said.code == 0
    assert "+++ b/.codex/hooks.json" in said.out
    assert "+## Shared tasks: `tenure`" in said.out
    assert names_in(repository.folder) == before
    repository("setup", "codex")
    assert "--- a/AGENTS.md\n+++ /dev/null" in repository("setup", "codex", "--print", "--remove").out
    assert repository("setup", "codex", "--print").out == "Nothing would change.\n"


def test_what_is_printed_can_be_applied_with_git(repository: Tenure) -> None:
    repository("init")
    diff = repository("setup", "gemini", "--print").out
    subprocess.run(["git", "apply", "-"], input=diff, cwd=repository.folder, text=True, check=True)
    assert repository("setup", "gemini", "--check").code == 0


def test_a_file_that_cannot_be_merged_is_told_with_what_to_add(repository: Tenure) -> None:
    repository("init")
    (repository.folder / ".mcp.json").write_text("{} // mine\n")
    said = repository("setup", "claude")
    assert said.code == 8
    assert "left alone  .mcp.json" in said.out
    assert '"mcpServers": {' in said.out
    assert (repository.folder / ".mcp.json").read_text() == "{} // mine\n"


def test_an_edited_section_is_told_and_kept_until_forced(repository: Tenure) -> None:
    repository("init", "--agents", "codex")
    path = repository.folder / "AGENTS.md"
    path.write_text(path.read_text().replace("## Shared tasks", "## Our tasks"))
    said = repository("setup", "codex")
    assert "edited by hand, kept" in said.out
    assert repository("setup", "codex", "--check").code == 7
    assert repository("setup", "codex", "--force").code == 0
    assert "## Shared tasks" in path.read_text()


def test_global_set_up_stays_in_the_home_folder(repository: Tenure) -> None:
    home = Path(repository.environ["HOME"])
    assert repository("setup", "claude", "gemini", "--global").code == 0
    assert names_in(repository.folder) == [".git", "README.md"]
    assert (home / ".claude" / "settings.json").exists()
    assert not (home / "AGENTS.md").exists()  # nobody wants to read of it in every project
    assert repository("setup", "claude", "gemini", "--global", "--check").code == 0
    repository("setup", "--global", "--remove")
    left = [path for path in home.rglob("*") if path.is_file()]
    assert left == []


def test_set_up_without_a_store_or_an_agent_says_what_to_do(bare: Tenure) -> None:
    assert bare("setup", "claude").code == 1
    assert "tenure init" in bare("setup", "claude").err
    assert list(bare.folder.iterdir()) == []
    bare("init")
    assert bare("setup", "nobody").code == 2
    assert bare("setup", "claude", "--check", "--remove").code == 2


def test_files_of_a_repository_name_tenure_and_setup_says_where_it_is_missing(repository: Tenure) -> None:
    repository("init")
    said = repository.process("setup", "codex", PATH="/usr/bin:/bin")
    assert "put `tenure` on the PATH" in said.out
    assert sys.executable not in (repository.folder / ".codex/hooks.json").read_text()
    program = repository.folder.parent / "tenure"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    said = repository.process("setup", "codex", PATH=f"{program.parent}:/usr/bin:/bin")
    assert "put `tenure` on the PATH" not in said.out
    assert json.loads((repository.folder / ".codex/hooks.json").read_text())["hooks"]["Stop"][0]["hooks"][0][
        "command"
    ].startswith("tenure hook")


def test_worktrees_are_set_up_each_for_itself(repository: Tenure, tmp_path_factory: pytest.TempPathFactory) -> None:
    tree = tmp_path_factory.mktemp("trees") / "feature"
    git(repository.folder, "worktree", "add", "-q", str(tree))
    inside = elsewhere(repository, tree)
    inside("init", "--agents", "codex")
    assert (tree / "AGENTS.md").exists()
    assert not (repository.folder / "AGENTS.md").exists()
    inside("setup", "--remove")
    assert git(tree, "status", "--porcelain") == ""


# --- prime, hook --------------------------------------------------------------------------------------------


def test_prime_tells_where_one_stands(tenure: Tenure, add: Callable[..., str]) -> None:
    add("Write the parser")
    said = tenure("prime", "--json")
    assert "A-001 (normal) Write the parser" in said.json["text"]
    assert said.json["tokens"] <= 600
    assert tenure("prime").out == said.json["text"] + "\n"


def test_prime_says_nothing_where_there_is_no_store(bare: Tenure) -> None:
    said = bare("prime")
    assert (said.code, said.out, said.err) == (0, "", "")


def test_a_hook_answers_on_stdout_with_one_json_value(tenure: Tenure) -> None:
    payload = json.dumps({"hook_event_name": "SessionStart", "session_id": "abcd-1234", "cwd": str(tenure.folder)})
    said = tenure.process("hook", stdin=payload, **AGENT)
    assert (said.code, said.err) == (0, "")
    assert said.json["hookSpecificOutput"]["hookEventName"] == "SessionStart"


@pytest.mark.parametrize(
    "payload",
    ["", "no json", "[]", "{", '{"hook_event_name": 3}', '{"hook_event_name": "PostToolUse"}', "\x00\xff", "null"],
)
def test_a_hook_never_fails_whatever_it_is_given(tenure: Tenure, payload: str) -> None:
    said = tenure("hook", stdin=payload)
    assert (said.code, said.out, said.err) == (0, "", "")


def test_what_went_wrong_in_a_hook_is_noted_and_the_note_is_bounded(tenure: Tenure) -> None:
    log = tenure.folder / ".tenure" / "hook.log"
    tenure("hook", stdin="no json")
    assert "hook : DecodeError" in log.read_text()
    assert stat.S_IMODE(log.stat().st_mode) == 0o600
    log.write_text("x" * 70_000)
    tenure("hook", stdin="no json")
    assert not log.exists() or log.stat().st_size < 1000
    tenure("hook", stdin="no json")
    assert log.stat().st_size < 1000


def test_a_hook_with_a_broken_store_or_broken_settings_is_silent(tenure: Tenure) -> None:
    payload = json.dumps({"hook_event_name": "SessionStart", "session_id": "x", "cwd": str(tenure.folder)})
    (tenure.folder / ".tenure" / "config.toml").write_text("nonsense = \n")
    said = tenure.process("hook", stdin=payload, **AGENT)
    assert (said.code, said.out, said.err) == (0, "", "")
    (tenure.folder / ".tenure" / "config.toml").unlink()
    (tenure.folder / ".tenure" / "tenure.db").write_bytes(b"this is no database" * 100)
    said = tenure.process("hook", stdin=payload, **AGENT)
    assert (said.code, said.out, said.err) == (0, "", "")
    assert "hook" in (tenure.folder / ".tenure" / "hook.log").read_text()


@pytest.mark.parametrize(("folder", "project"), [("Größe & Co", "Grosse-Co"), ("$(id)", "id"), ("plain", "plain")])
def test_a_project_gets_a_name_from_its_folder_and_the_sentence_says_so(
    bare: Tenure, folder: str, project: str
) -> None:
    place = bare.folder / folder
    place.mkdir()
    here = Tenure(place, bare.environ)
    said = here("init")
    assert f"project {project}." in said.out
    assert ("Its folder is" in said.out) is (folder != project)
    assert here("add", "a task").code == 0


def test_join_quotes_the_names_that_a_shell_will_read(tenure: Tenure) -> None:
    old = Agent(project="default", id="$(id)", registered_at=1, last_seen=1)
    store = str(tenure.folder / ".tenure" / "tenure.db")
    with Client(store, "default") as client, client.store.begin("local", write=True) as tx:
        tx.save([Change(None, old)])
    assert "export TENURE_AGENT='$(id)'" in tenure("join", "-n", "$(id)").out
    assert tenure("join", "-n", "$(whoami)").code == 8
