"""Digests of requests: what counts, what does not, and what was kept by an earlier version."""

from __future__ import annotations

import hashlib
from typing import Any

import msgspec
import pytest

from tenure.core import commands as c
from tenure.core import roles
from tenure.core.commands import NewTask
from tenure.core.commands.command import FORM, Command, digest_of, is_same
from tenure.core.commands.first_form import FIELDS
from tenure.testing.engine.operators import some_command


class Note(Command, frozen=True, kw_only=True, tag="note"):
    """As c.Note, in a version that knows one field more."""

    task: str
    text: str
    tone: str = "plain"


def test_a_field_that_has_its_default_does_not_count() -> None:
    note = c.Note(project="p", task="A-001", text="x", request_id="r")
    newer = Note(project="p", task="A-001", text="x", request_id="r")
    assert digest_of(newer) == digest_of(note)
    assert digest_of(msgspec.structs.replace(newer, tone="loud")) != digest_of(note)
    assert digest_of(note).startswith(FORM)


def test_neither_the_request_id_nor_the_trace_counts_and_all_else_does() -> None:
    one = c.Add(project="p", task=NewTask(title="x", metadata={"a": 1, "b": [2]}), request_id="r", trace_id="t")
    assert digest_of(msgspec.structs.replace(one, request_id="s", trace_id=None)) == digest_of(one)
    for other in (
        c.Add(project="q", task=one.task),
        c.Add(project="p", task=NewTask(title="y", metadata=one.task.metadata)),
        c.Add(project="p", task=NewTask(title="x", metadata={"a": 1, "b": [3]})),
        c.Plan(project="p", tasks=(one.task,)),
    ):
        assert digest_of(other) != digest_of(one)
    same = c.Add(project="p", task=NewTask(title="x", metadata={"b": [2], "a": 1}))
    assert digest_of(same) == digest_of(one)  # the order of an object's members says nothing


def as_then(value: Any) -> Any:
    """As the first version encoded it: retry policies and new tasks had only the fields of that time."""
    if isinstance(value, dict):
        kind = "NewTask" if "touches" in value else "RetryPolicy" if "multiplier" in value else None
        names = FIELDS[kind].split() if kind else value
        then = {"priority": 50, "max_attempts": 3, "on_lost": "retry"} if kind == "NewTask" else {}  # now None
        return {name: as_then(then.get(name) if value[name] is None else value[name]) for name in names}
    return [as_then(item) for item in value] if isinstance(value, (list, tuple)) else value


@pytest.mark.parametrize("kind", roles.NEEDS, ids=lambda kind: kind.__name__)
def test_what_an_earlier_version_kept_still_matches(kind: type[Command]) -> None:
    command = msgspec.structs.replace(some_command(kind, "A-001"), request_id="r")
    known = {*FIELDS.get(kind.__name__, "").split(), "project", "request_id", "trace_id"}
    if not known.issuperset(kind.__struct_fields__):
        return  # a command or a field that there was not: its first digest is of the second form
    first = hashlib.sha256(msgspec.json.encode(as_then(msgspec.to_builtins(command)))).hexdigest()[:32]
    assert is_same(first, command)
    assert is_same(first, msgspec.structs.replace(command, trace_id="other"))
    assert not is_same(first, msgspec.structs.replace(command, project="elsewhere"))


def test_a_field_that_was_added_since_does_not_make_an_earlier_request_another() -> None:
    kept = hashlib.sha256(
        b'{"command":"note","project":"p","request_id":"r","trace_id":null,"task":"A-001","text":"x"}'
    ).hexdigest()[:32]
    assert is_same(kept, Note(project="p", task="A-001", text="x", request_id="r"))
    assert not is_same(kept, Note(project="p", task="A-001", text="x", request_id="r", tone="loud"))
