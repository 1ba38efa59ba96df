"""Sections, whole files, TOML tables, hooks among others' hooks: how they get in, are recognised, and get out."""

from __future__ import annotations

import json
import tomllib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenure.agents.recipes.json_pieces import HookGroups, McpEntry, hook_words
from tenure.agents.recipes.pieces import ACTIVE, EDITED, MISSING, OUTDATED, UNREADABLE, CannotMerge
from tenure.agents.recipes.sections import Section, WholeFile, find
from tenure.agents.recipes.toml_pieces import TomlEntry

SECTION = Section("AGENTS.md", "## Ours\n\n- a line\n")
characters = st.characters(exclude_categories=["Cs"], exclude_characters="\r")
# Hypothesis draws from the constants of our modules too: a mark of a section alone is refused, see below.
markdown = st.text(characters, min_size=1, max_size=60).filter(lambda text: "<!-- tenure:" not in text)


@given(markdown, st.booleans())
def test_a_section_is_appended_and_the_rest_is_not_touched(text: str, has_crlf: bool) -> None:
    text = text.replace("\n", "\r\n") if has_crlf else text
    after = SECTION.steps(text)[-1]
    assert after.startswith(text)
    assert SECTION.state(after) == ACTIVE
    if (text.endswith("\n") and not text.endswith(("\n\n", "\n\r\n"))) or not text.endswith("\n"):
        left = SECTION.take(after)
        assert left is not None
        assert left.removesuffix("\r\n" if "\r\n" in text else "\n") == text.removesuffix("\n").removesuffix("\r")


def test_a_section_in_the_middle_leaves_what_follows() -> None:
    after = SECTION.steps("# Project\n")[-1] + "\n## Later\n"
    assert SECTION.take(after) == "# Project\n\n\n## Later\n"


def test_a_section_of_another_version_is_outdated_and_an_edited_one_is_reported() -> None:
    ours = SECTION.steps(None)[-1]
    assert Section("AGENTS.md", "## New\n").state(ours) == OUTDATED
    assert SECTION.state(ours.replace("a line", "a line of mine")) == EDITED
    assert SECTION.state("# Project\n") == MISSING
    assert SECTION.state(ours.replace("\n", "\r\n")) == ACTIVE  # as git may check it out


@pytest.mark.parametrize(
    "text",
    [
        "<!-- tenure:begin v1 sha256=00 -->\nno end\n",
        "<!-- tenure:end -->\n",
        "<!-- tenure:begin v1 sha256=00 -->\n<!-- tenure:begin v1 sha256=00 -->\n<!-- tenure:end -->\n",
        "<!-- tenure:begin whatever -->\nx\n<!-- tenure:end -->\n",
    ],
)
def test_marks_that_do_not_fit_together_are_refused(text: str) -> None:
    with pytest.raises(CannotMerge, match="unbalanced"):
        find(text)


def test_a_whole_file_is_ours_as_long_as_its_signature_fits() -> None:
    file = WholeFile("SKILL.md", "# Skill\n")
    ours = file.steps(None)[-1]
    assert file.state(ours) == ACTIVE
    assert WholeFile("SKILL.md", "# Other\n").state(ours) == OUTDATED
    assert file.state(ours.replace("Skill", "Mine")) == EDITED
    assert file.state("# Somebody's own\n") == EDITED
    with pytest.raises(CannotMerge):
        file.steps("# Somebody's own\n")


# --- hooks --------------------------------------------------------------------------------------------------

RUN: dict[str, Any] = {"type": "command", "command": "tenure hook --from codex || true", "timeout": 5}
GROUPS: dict[str, Any] = {"Stop": {"hooks": [RUN]}, "PostToolUse": {"matcher": "*", "hooks": [RUN]}}
HOOKS = HookGroups("hooks.json", GROUPS)
THEIRS = {"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "say done"}]}]}, "other": [1, 2]}


def test_hooks_stand_beside_those_of_others() -> None:
    after = HOOKS.steps(json.dumps(THEIRS))[-1]
    hooks = json.loads(after)["hooks"]
    assert hooks["Stop"] == [THEIRS["hooks"]["Stop"][0], GROUPS["Stop"]]  # type: ignore[index]
    assert hooks["PostToolUse"] == [GROUPS["PostToolUse"]]
    assert HOOKS.state(after) == ACTIVE
    assert HOOKS.take(after) == json.dumps(THEIRS)


@pytest.mark.parametrize(
    ("change", "state"),
    [
        (("tenure hook", "/opt/py -m tenure hook"), OUTDATED),  # another way to start it
        (("tenure hook", "'/opt/my py/bin/python' -m tenure hook"), OUTDATED),
        (('"timeout": 5', '"timeout": 60'), EDITED),
        (("tenure hook", "wrapped hook"), MISSING),
    ],
)
def test_hooks_are_recognised_however_tenure_is_started(change: tuple[str, str], state: str) -> None:
    text = HOOKS.steps(None)[-1].replace(*change)
    json.loads(text)
    assert HOOKS.state(text) == state


def test_a_part_of_the_hooks_is_outdated() -> None:
    text = HookGroups("hooks.json", {"Stop": GROUPS["Stop"]}).steps(None)[-1]
    assert HOOKS.state(text) == OUTDATED


@pytest.mark.parametrize(
    "command", ["tenure hook", "tenure hook Stop || true", "/a/b/tenure hook", "/py -m tenure hook"]
)
def test_a_command_of_ours_is_known(command: str) -> None:
    words = hook_words(command)
    assert words is not None
    assert words.startswith("hook")


@pytest.mark.parametrize("command", ["say done", "tenure status", "mytenure hook", "webhook tenure", "", None, 3])
def test_a_command_of_others_is_not_ours(command: object) -> None:
    assert hook_words(command) is None


def test_settings_with_comments_are_read_and_unreadable_ones_are_reported() -> None:
    assert HOOKS.state("// mine\n" + HOOKS.steps(None)[-1]) == ACTIVE
    assert HOOKS.state("{") == UNREADABLE


# --- MCP ----------------------------------------------------------------------------------------------------

VALUE = {"command": "tenure", "args": ["mcp"]}
JSON = McpEntry(".mcp.json", ("mcpServers", "tenure"), VALUE)
TOML = TomlEntry("config.toml", ("mcp_servers", "tenure"), VALUE)


@pytest.mark.parametrize("piece", [JSON, TOML])
def test_an_entry_is_active_outdated_edited_or_missing(piece: McpEntry | TomlEntry) -> None:
    text = piece.steps(None)[-1]
    assert piece.state(text) == ACTIVE
    assert piece.state(None) == MISSING
    other = type(piece)(piece.path, piece.keys, {"command": "/py", "args": ["-m", "tenure", "mcp"]})
    assert other.state(text) == OUTDATED
    assert other.state(text.replace('mcp"]', 'mcp", "-v"]').replace('"mcp"\n', '"mcp", "-v"\n')) == EDITED
    assert piece.take(text) is None


TOMLS = [
    "", 'model = "o3" # why\n', "[mcp_servers.x]\ncommand = 'y'", "# only a comment\n\n", "a.b = 1\r\n[c]\r\nd = 2\r\n",
    "[mcp_servers]\n[mcp_servers.x]\ncommand = 'y'\n\n[z]\nk = [\n  1, # one\n]\n",
    "[[list]]\na = 1\n[[list]]\na = 2\n",
]  # fmt: skip


@pytest.mark.parametrize("text", TOMLS)
def test_a_table_is_added_to_toml_and_comments_stay(text: str) -> None:
    after = TOML.steps(text)[-1]
    assert after.startswith(text)
    assert tomllib.loads(after)["mcp_servers"]["tenure"] == VALUE
    left = TOML.take(after)
    assert tomllib.loads(left or "") == tomllib.loads(text)
    assert (left or "").strip() == text.strip()


def test_a_parent_written_inline_is_extended() -> None:
    text = "mcp_servers = { x = { command = 'y' } } # mine\n"
    after = TOML.steps(text)[-1]
    assert tomllib.loads(after)["mcp_servers"] == {"x": {"command": "y"}, "tenure": VALUE}
    assert "# mine" in after
    assert tomllib.loads(TOML.take(after) or "") == tomllib.loads(text)


def test_a_table_that_others_follow_is_taken_out() -> None:
    text = TOML.steps("a = 1\n")[-1] + "\n[later]\nb = 2 # two\n"
    left = TOML.take(text)
    assert left is not None
    assert tomllib.loads(left) == {"a": 1, "later": {"b": 2}}
    assert "# two" in left


@pytest.mark.parametrize("text", ["a = ", "mcp_servers = 3\n", "[[mcp_servers]]\na = 1\n"])
def test_toml_that_cannot_take_the_table_is_refused(text: str) -> None:
    with pytest.raises(CannotMerge):
        TOML.steps(text)
