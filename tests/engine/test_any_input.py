"""Any input at all: commands with odd values, and never more than an outcome or a typed error. On real SQLite."""

from typing import Any

import msgspec
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tenure.core import commands as c
from tenure.core import inputs
from tenure.core.commands import ALL, Command, NewTask
from tenure.core.errors import Bug, TenureError
from tenure.core.ids import Receipt
from tenure.core.outcomes import Outcome
from tenure.core.records import Claim, Project, RetryPolicy
from tenure.testing.factories import PROJECT, Scene
from tenure.testing.samples import texts, values

NAN, INFINITE = float("nan"), float("inf")


KEYS = st.integers(1, 15).map(lambda n: f"A-{n:03d}") | st.sampled_from(["A-00", "A-999", "task_", "A-001::1", "dag_x"])
NUMBERS = st.sampled_from([0, 1, -1, 3, 60, 2**31, 2**53, 2**63, 2**64, 0.5, -0.0, 1e300, NAN, INFINITE])
ODD_TEXTS = st.sampled_from(
    ["", " ", "\0", "\ud800", "a", "@all", "@leader", "@track:A", "project:", "track:A", "x" * 300, "task", "crash",
     "rate_limit", "environment", "block", "ignore", "shared", "exclusive", "critical", "retry", "B", "B-001-x", "..",
     "src/**", "env:x", "release", "ann"]
)  # fmt: skip
SCALARS = st.none() | st.booleans() | NUMBERS | ODD_TEXTS | texts() | KEYS
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts(), inner, max_size=3), max_leaves=6
)
FEW = st.integers(0, 5) | st.sampled_from([60, 100, 2**31, 2**53])
PROCESSES = st.builds(c.Process, host=st.just("h"), boot=st.just("b"), pid=st.integers(1, 3), start=st.just(1))
LIKELY: dict[str, st.SearchStrategy[Any]] = {
    "project": st.just(PROJECT),
    "task": KEYS,
    "needs": KEYS,
    "parent": KEYS,
    "agent": st.sampled_from(["ann", "bo"]),
    "session": st.sampled_from(["s-ann", "t"]),
    "sender": st.just("ann"),
    "holder": st.just("ann"),
    "receipt": st.just("RECEIPT"),
    "reply_to": st.none(),
    "scope": st.sampled_from(["project:", "track:A", "agent:ann", "type:code"]),
    "code": st.sampled_from(["Q", "A"]),
    "term": st.integers(1, 5),
    "lease": st.sampled_from([None, 1, 30, 0.5, 3600]),
    "boost": st.sampled_from([None, 0, 0.01, 0.1, 1, 10]),
    "priority": st.integers(0, 100) | st.sampled_from(["critical", "low", "7"]),
    "error_class": st.sampled_from(["task", "crash", "environment", "rate_limit", "budget_exceeded"]),
    "mode": st.sampled_from(["shared", "exclusive"]),
    "on_failure": st.sampled_from(["block", "cancel", "ignore"]),
    "on_lost": st.sampled_from(["retry", "back_off", "hold"]),
    "health": st.just("ok"),
    "type": st.sampled_from(["code", "chat"]),
    "track": st.sampled_from([None, "A", "B"]),
    "key": st.sampled_from([None, "B-007-x", "A-001-x"]),
    "patterns": st.sampled_from([("src/**",), ("env:x", "docs/")]),
    "touches": st.sampled_from([(), ("src/**",), ("a/./b", "port:1")]),
    "depends_on": st.lists(KEYS, max_size=2).map(tuple),
    "constraints": st.dictionaries(st.sampled_from(sorted(inputs.CONSTRAINTS)), SCALARS, max_size=2),
    "output": st.dictionaries(st.sampled_from(sorted(inputs.OUTPUT)), ODD_TEXTS, max_size=1),
    "retry": st.builds(RetryPolicy, initial_delay=FEW, cap=FEW, jitter=st.floats(0, 1)),
    "data": VALUES,
    "changes": st.dictionaries(st.sampled_from(sorted(inputs.EDITABLE)), VALUES, min_size=1, max_size=2),
    "limits": st.dictionaries(st.sampled_from(sorted(inputs.LIMITS)), FEW, max_size=2),
    "command_id": st.just("COMMAND"),
    "request_id": st.sampled_from([None, "r1", "r2"]),
    "model": st.sampled_from(["opus", "haiku", "a/b:c@1"]),
    "cost_usd": st.sampled_from([None, "0", "0.25", "1e-05", "1e99", "x"]),
    "branch": st.sampled_from(["main", "team/x", "-x"]),
    "old": st.sampled_from(["a" * 40, "0" * 40]),
    "new": st.sampled_from(["b" * 40, "c" * 40, "0" * 40]),
    "process": st.none() | PROCESSES,
    "processes": st.lists(PROCESSES, max_size=2).map(tuple),
}


def of_field(field: Any) -> st.SearchStrategy[Any]:
    """Something that fits, something of the right type, or once in a while anything."""
    typed = values(field.type)
    likely = LIKELY.get(field.name, typed)
    return st.integers(0, 19).flatmap(lambda n: VALUES if n == 0 else typed if n < 4 else likely)


@st.composite
def new_tasks(draw: st.DrawFn) -> NewTask:
    fields: dict[str, Any] = {"title": draw(st.just("fuzzed") | ODD_TEXTS)}
    for field in msgspec.structs.fields(NewTask):
        if field.name != "title" and draw(st.integers(0, 7)) == 0:
            fields[field.name] = draw(of_field(field))
    return NewTask(**fields)


@st.composite
def odd_commands(draw: st.DrawFn) -> Command:
    """A command that is right but for a few of its fields."""
    kind = draw(st.sampled_from(sorted(ALL, key=lambda k: k.__name__)))
    fields = {}
    for field in msgspec.structs.fields(kind):
        if field.required or draw(st.integers(0, 3)) == 0:
            if kind is c.Add and field.name == "task":
                fields[field.name] = draw(new_tasks())
            elif field.name == "tasks":
                fields[field.name] = draw(st.lists(new_tasks(), max_size=3).map(tuple))
            elif kind in (c.Lead, c.StepDown) and field.name == "agent":
                fields[field.name] = draw(st.booleans())
            else:
                fields[field.name] = draw(of_field(field))
    return kind(**fields)


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(batch=st.lists(odd_commands(), min_size=1, max_size=8))
def test_any_command_has_an_outcome_or_a_typed_error(scene: Scene, batch: list[Command]) -> None:
    for number, command in enumerate(batch):
        if getattr(command, "receipt", None) == "RECEIPT":
            scene.do(c.DefineProject, router=False)  # a batch before may have turned it on
            receipt = scene.take(scene.add(), f"f{scene.dice.rolls}") if number % 2 else last_receipt(scene)
            batch[number] = msgspec.structs.replace(command, receipt=receipt)  # type: ignore[call-arg]
    for answer in scene.run(*batch):
        assert isinstance(answer, (Outcome, TenureError))
        assert not isinstance(answer, Bug), (answer.message, answer.__cause__)
        if isinstance(answer, TenureError):
            assert answer.code != "CONFLICT", answer.message
            assert answer.definite
    scene.do(c.DefineProject, limits={}, default_track="A")  # a project that can still be worked in
    for scope in scene.rows(Project)[0].stopped:
        scene.do(c.StartLine, scope=scope)
    scene.clock.advance(seconds=7)


def last_receipt(scene: Scene) -> str:
    """The newest that was handed out, as its holder would present it."""
    held: list[Claim] = scene.rows(Claim, order="acquired_at")
    if not held:
        return "A-001@1:" + "0" * 32
    last = held[-1]
    return str(Receipt(scene.task(last.task).ref, last.generation, last.epoch, last.nonce))
