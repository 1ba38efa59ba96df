"""Set up and taken out again, every file is as it was before: bytes, modes, folders. Others' edits are kept."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from tenure.agents.recipes import NAMES, installation
from tenure.agents.recipes.pieces import ACTIVE
from tenure.agents.recipes.recipe import SetupTarget
from tenure.agents.recipes.setup_record import SetupRecord
from tests.agents_setup.test_json_text import documents, values
from tests.sampling import few

FAST = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None  # every write is synced; in memory that costs nothing
JSON_FILES = (".mcp.json", ".claude/settings.json", ".codex/hooks.json", ".gemini/settings.json", "opencode.json")
TEXT_FILES = ("AGENTS.md", "CLAUDE.md", "GEMINI.md")
TOML = [
    "", "# mine\n", 'model = "o3" # why', "[mcp_servers.x]\ncommand = 'y'\n\n", "mcp_servers = {x = {command = 'y'}}\n",
    "[projects.'/a']\r\ntrust_level = 'trusted'\r\n",
]  # fmt: skip

hook = st.fixed_dictionaries({"type": st.just("command"), "command": st.sampled_from(["lint", "say done", "x hook"])})
group = st.fixed_dictionaries({"hooks": st.lists(hook, min_size=1, max_size=2)})
hooks = st.dictionaries(
    st.sampled_from(["Stop", "SessionStart", "AfterTool", "Notification"]), st.lists(group, max_size=2)
)
servers = st.dictionaries(st.sampled_from(["other", "x"]), st.just({"command": "y", "env": {"TOKEN": "secret"}}))
configured = st.fixed_dictionaries(
    {}, optional={"hooks": hooks, "mcpServers": servers, "mcp": servers, "theme": values, "z": values}
)
texts = st.sampled_from(
    ["", "\n", " \n", "# Project\n", "# Project", "a\n\nb\n\n", "@AGENTS.md\n", "x\r\ny\r\n", "é — ü\n"]
)
repositories = st.fixed_dictionaries(
    {},
    optional={
        **dict.fromkeys(JSON_FILES, documents(configured)),
        **dict.fromkeys(TEXT_FILES, texts),
        ".codex/config.toml": st.sampled_from(TOML),
    },
)
some = st.sets(st.sampled_from(NAMES), min_size=1)


@contextmanager
def repository(files: dict[str, str]) -> Iterator[SetupTarget]:
    with tempfile.TemporaryDirectory(dir=FAST) as folder:
        root, home = Path(folder, "repo"), Path(folder, "home")
        root.mkdir()
        home.mkdir()
        for number, (name, text) in enumerate(files.items()):
            path = root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(text.encode())
            path.chmod([0o644, 0o600, 0o755][number % 3])
        yield SetupTarget(str(root), str(home), False, ("tenure",), {})


def snapshot(place: SetupTarget) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for path in sorted(Path(place.root).rglob("*")):
        name = str(path.relative_to(place.root))
        found[name] = "folder" if path.is_dir() else (path.read_bytes(), path.stat().st_mode & 0o7777)
    return found


def set_up(place: SetupTarget, agents: set[str], memory: SetupRecord) -> SetupRecord:
    there = set(installation.set_up(place, memory)) | agents
    changes = installation.prepare(place, sorted(agents), there, memory)
    assert [c.problem for c in changes if c.problem] == []
    return installation.carry_out(place, changes, there, memory)


def take_out(place: SetupTarget, agents: set[str], memory: SetupRecord) -> SetupRecord:
    left = set(installation.set_up(place, memory)) - agents
    changes = installation.prepare(place, sorted(agents), left, memory)
    assert [c.problem for c in changes if c.problem] == []
    return installation.carry_out(place, changes, left, memory)


@settings(max_examples=few(15))
@given(repositories, some)
def test_set_up_and_taken_out_every_file_is_as_before(files: dict[str, str], agents: set[str]) -> None:
    with repository(files) as place:
        before = snapshot(place)
        memory = set_up(place, agents, SetupRecord())
        assert {s.state for s in installation.standings(place, sorted(agents))} == {ACTIVE}
        memory = take_out(place, agents, memory)
        assert snapshot(place) == before
        assert memory == SetupRecord()


@settings(max_examples=few(15))
@given(repositories, some, some)
def test_agents_come_and_go_in_any_order(files: dict[str, str], first: set[str], second: set[str]) -> None:
    with repository(files) as place:
        before = snapshot(place)
        memory = set_up(place, first, SetupRecord())
        memory = set_up(place, second, memory)
        memory = take_out(place, first, memory)
        left = sorted(second - first)
        assert {s.state for s in installation.standings(place, left)} <= {ACTIVE}
        memory = take_out(place, second, memory)
        assert snapshot(place) == before


@settings(max_examples=few(15))
@given(repositories, some)
def test_set_up_again_changes_nothing(files: dict[str, str], agents: set[str]) -> None:
    with repository(files) as place:
        memory = set_up(place, agents, SetupRecord())
        once = snapshot(place)
        assert set_up(place, agents, memory) == memory
        assert snapshot(place) == once
        assert installation.prepare(place, [], [], memory) == []


@settings(max_examples=few(15))
@given(repositories, some)
def test_what_somebody_adds_in_between_stays_and_ours_goes(files: dict[str, str], agents: set[str]) -> None:
    """The memory is of no use then: ours are found by their marks."""
    with repository(files) as place:
        before = snapshot(place)
        memory = set_up(place, agents, SetupRecord())
        for name in (*JSON_FILES, *TEXT_FILES):
            path = Path(place.root, name)
            if path.exists():
                path.write_bytes(with_an_edit(name, path.read_bytes()))
        take_out(place, agents, memory)
        for name in (*JSON_FILES, *TEXT_FILES):
            path = Path(place.root, name)
            if name in before and name in TEXT_FILES and before[name][0].strip():
                assert path.read_bytes().rstrip() == with_an_edit(name, before[name][0]).rstrip()
            elif name in before and name in JSON_FILES:
                wanted = json.loads(with_an_edit(name, before[name][0]).decode("utf-8-sig"))
                left = without_schema(json.loads(path.read_bytes().decode("utf-8-sig")))
                assert without_empty(left) == without_empty(wanted)
                assert list(left) == [key for key in wanted if key in left]
            elif path.exists():
                assert b"tenure" not in path.read_bytes()


def with_an_edit(name: str, text: bytes) -> bytes:
    if name in TEXT_FILES:
        return b"Mine, first.\n" + text
    at = text.index(b"{") + 1
    is_empty = not json.loads(text.decode("utf-8-sig"))
    return text[:at] + b'"mine": 1' + (b"" if is_empty else b", ") + text[at:]


def without_schema(value: Any) -> Any:
    """The member that OpenCode would add itself may stay: whether it was there before us is not known any more."""
    return {key: part for key, part in value.items() if key != "$schema"} if isinstance(value, dict) else value


def without_empty(value: Any) -> Any:
    """Objects and arrays that hold nothing do not count: whether they were there before us is not known any more."""
    if not isinstance(value, dict):
        return value
    kept = {key: without_empty(part) for key, part in value.items()}
    return {key: part for key, part in kept.items() if part not in ({}, [])}


@settings(max_examples=few(15))
@given(repositories, some)
def test_another_clone_can_take_it_out_too(files: dict[str, str], agents: set[str]) -> None:
    with repository(files) as place:
        before = snapshot(place)
        set_up(place, agents, SetupRecord())
        take_out(place, agents, SetupRecord(agents=sorted(agents)))
        after = snapshot(place)
        assert not [name for name, kept in after.items() if kept != "folder" and b"tenure" in kept[0]]
        for name, kept in before.items():
            if name in TEXT_FILES and kept[0].strip():
                assert after[name][0].rstrip() == kept[0].rstrip()
            elif name in JSON_FILES and without_empty(json.loads(kept[0].decode("utf-8-sig"))):
                left = without_schema(json.loads(after[name][0].decode("utf-8-sig")))
                assert without_empty(left) == without_empty(json.loads(kept[0].decode("utf-8-sig")))


def test_a_memory_keeps_no_word_of_anybodys_settings() -> None:
    import msgspec

    with repository(
        {".mcp.json": '{"mcpServers": {"x": {"env": {"TOKEN": "s3cret"}}}}', "AGENTS.md": "private\n"}
    ) as place:
        memory = set_up(place, set(NAMES), SetupRecord())
        kept = msgspec.json.encode(memory)
    assert b"s3cret" not in kept
    assert b"private" not in kept


def test_no_temporary_file_is_left_behind() -> None:
    with repository({}) as place:
        set_up(place, set(NAMES), SetupRecord())
        assert not [name for name in snapshot(place) if Path(name).name.startswith(".tenure-")]
