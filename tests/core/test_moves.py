"""Every change of state is one constructor: nothing of the left state survives, and no other field changes."""

import ast
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import astuple

import tenure
from tenure.core import moves, settle
from tenure.core.lifecycle import HELD, STATES, Cancelled, PauseCause
from tenure.core.records import LastError, Task, replace
from tenure.stores.postgres.schema import migrations
from tenure.testing.samples import row_of

NOW = 1000
TASK = replace(row_of(Task), unmet=0, not_before=None)
BEFORE = {"run": 1, "attempts": 2, "given_back": 1, "failures": ["ann"], "completed_at": 5, "work_product": "wp",
          "dead_lettered_at": 6}  # fmt: skip
FREE = tuple(state for state in STATES if state not in HELD)

# constructor → the states that it is called in, and a call of it
CALLS: dict[str, tuple[tuple[str, ...], Callable[[Task], Task]]] = {
    "waiting": (("created", "pending", "ready", "retrying"), lambda t: moves.waiting(t, NOW)),
    "granted": (
        ("ready",),
        lambda t: moves.granted(t, agent="bo", session="s2", lease=60, at=NOW, epoch="2", counts=True),
    ),
    "started": (HELD, lambda t: moves.started(t, NOW)),
    "freed": (HELD, lambda t: moves.freed(t, NOW, attempts=0, given_back=1, late_submit_open=True)),
    "paused": (
        ("pending", "ready", "retrying", "paused", "validating"),
        lambda t: moves.paused(t, PauseCause(cause="budget", reason="new", at=NOW, until=NOW + 9)),
    ),
    "lifted": (("paused", "validating", *HELD), lambda t: moves.lifted(t, lambda pause: True, NOW)),
    "retrying": (("pending", "ready", "paused"), lambda t: moves.retrying(t, NOW + 5)),
    "dead_lettered": (("pending", "ready", "paused"), lambda t: moves.dead_lettered(t, NOW)),
    "validating": (("pending", "ready", "retrying", "paused"), lambda t: moves.validating(t, NOW)),
    "refused": (
        ("validating", "paused"),
        lambda t: moves.refused(t, NOW, LastError(error_class="invalid_output", message="no", generation=1, at=NOW)),
    ),
    "withdrawn": (("validating", "paused"), lambda t: moves.withdrawn(t, NOW, attempts=0)),
    "completed": (
        ("pending", "ready", "retrying", "paused", "validating", "dead_lettered"),
        lambda t: moves.completed(t, NOW, "wp-1"),
    ),
    "cancelled": (
        ("created", "pending", "ready", "retrying", "paused", "validating", "dead_lettered"),
        lambda t: moves.cancelled(t, Cancelled(cause="person", reason="no")),
    ),
    "uncancelled": (("cancelled",), lambda t: moves.uncancelled(t, NOW)),
    "new_run": (("completed", "dead_lettered"), lambda t: moves.new_run(t, NOW)),
    "reset_undone": (("pending", "ready"), lambda t: moves.reset_undone(t, BEFORE)),
    "retry_undone": (("pending", "ready"), lambda t: moves.retry_undone(t, BEFORE)),
}

_SOME = {
    "agent": "ann", "session": "s", "claimed_at": 1, "lease": 60, "lease_until": 2000, "renewals": 3,
    "presented_at": 5, "claim_epoch": "1", "wanted": "pause", "done_by": 7, "warned_at": 8, "funded": True,
    "reserved": True, "unseen_since": 1, "offer_to": "bo", "offer_until": 3000, "offer_term": 2, "set_aside_for": "x",
    "price": 5, "retry_at": 4000,
    "pauses": (PauseCause(cause="person", reason="x"), PauseCause(cause="drain", reason="y")),
    "state_before": "retrying", "cancelled": Cancelled(cause="person", reason="z"), "completed_at": 9,
    "work_product": "wp", "dead_lettered_at": 10, "archived_at": 11,
}  # fmt: skip
assert set(_SOME) == set(moves.BOUND)


@st.composite
def tasks(draw: st.DrawFn, state: str) -> Task:
    """A task in that state with any of what belongs to it, and any of what belongs to no state."""
    kept = {name: draw(st.sampled_from([rest, _SOME[name]])) for name, rest in moves.BOUND.items()
            if name in moves.KEPT[state]}  # fmt: skip
    if state == "paused":
        kept["pauses"] = draw(st.sampled_from([_SOME["pauses"], _SOME["pauses"][:1]]))
        kept["state_before"] = draw(st.sampled_from(["ready", "retrying", "validating"]))
    if state == "cancelled":
        kept["cancelled"] = draw(st.sampled_from([_SOME["cancelled"], Cancelled(cause="undo", pauses=_SOME["pauses"])]))
        kept["state_before"] = draw(st.sampled_from([s for s in FREE if s not in ("completed", "cancelled")]))
    return replace(
        TASK, state=state, **{**moves.BOUND, **kept}, unmet=draw(st.integers(0, 1)), attempts=draw(st.integers(0, 3)),
        not_before=draw(st.sampled_from([None, NOW - 1, NOW + 1])), percent=draw(st.sampled_from([None, 40])),
        late_submit_open=draw(st.booleans()), started_at=draw(st.sampled_from([None, 3])), failures=("ann",), step="x",
    )  # fmt: skip


def changed(before: Task, after: Task) -> set[str]:
    return {
        name
        for name, old, new in zip(Task.__struct_fields__, astuple(before), astuple(after), strict=True)
        if old != new
    }


def test_every_constructor_is_tried_and_declared() -> None:
    assert set(CALLS) == set(moves.FIELDS)


@pytest.mark.parametrize(("name", "state"), [(name, state) for name, (states, _) in CALLS.items() for state in states])
@given(data=st.data())
def test_a_move_changes_what_it_declares_and_leaves_nothing_of_the_left_state(
    name: str, state: str, data: st.DataObject
) -> None:
    before = data.draw(tasks(state))
    after = CALLS[name][1](before)
    assert changed(before, after) <= moves.FIELDS[name]
    for field, rest in moves.BOUND.items():
        if field not in moves.KEPT[after.state]:
            assert getattr(after, field) == rest, field
    assert (after.state == "paused") <= bool(after.pauses)
    assert (after.state == "cancelled") == (after.cancelled is not None)


CLOSING = [name for name, fields in moves.FIELDS.items() if "late_submit_open" in fields and name != "freed"]


@pytest.mark.parametrize(("name", "state"), [(name, state) for name in CLOSING for state in CALLS[name][0]])
@given(data=st.data())
def test_a_move_that_closes_the_late_window_does_so_whatever_was_before(
    name: str, state: str, data: st.DataObject
) -> None:
    before = replace(data.draw(tasks(state)), late_submit_open=True)
    assert not CALLS[name][1](before).late_submit_open


@given(data=st.data())
def test_completed_is_the_same_wherever_it_comes_from(data: st.DataObject) -> None:
    states = CALLS["completed"][0]
    one, other = (moves.completed(data.draw(tasks(data.draw(st.sampled_from(states)))), NOW, "wp") for _ in range(2))
    free = {"unmet", "attempts", "not_before", "started_at"}
    assert changed(one, other) <= free


def test_nothing_else_sets_the_state_of_a_task() -> None:
    """A `state=` in a call of `replace` or of `Task` is a move that has no constructor."""
    root = Path(tenure.__file__).parent
    # rows of other kinds that have a state of their own
    others = {"core/webhook_delivery.py": 4, "core/pools.py": 2,
              "core/claims.py": 1, "core/validation.py": 2, "engine/checks/validation_verbs.py": 1,
              "agents/result_checker.py": 1, "engine/runtime/fast_path/held_claims.py": 1}  # fmt: skip
    found: dict[str, int] = {}
    for path in [*(root / "core").rglob("*.py"), *(root / "engine").rglob("*.py"), *(root / "agents").rglob("*.py")]:
        name = str(path.relative_to(root))
        if name == "core/moves.py":
            continue
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "replace":
                is_state = any(word.arg == "state" for word in node.keywords)
                is_answer = "Outcome" in ast.unparse(node) or "answer" in ast.unparse(node.args[0])
                if is_state and not is_answer:
                    found[name] = found.get(name, 0) + 1
    refusals = {"engine/verbs/holder_verbs.py": 1}  # of an outcome
    assert found == others | refusals


# --- the fused verbs ----------------------------------------------------------------------------------------

_STAMPED = {"updated_at", "version", "lane", "due_at", "plain", "rank", "band"}


def written(statement: str) -> set[str]:
    """The columns that a function of the PostgreSQL store sets on a task, besides those of the claim."""
    bodies = [
        text
        for step in migrations()
        for text in re.findall(rf"FUNCTION {statement}\(.*?\nEND \$\$", step.text, re.DOTALL)
    ]
    (assignments,) = re.findall(r"UPDATE task_hot AS t SET(.*?)\n        FROM", bodies[-1], re.DOTALL)
    own = {"nonce", "claim_user", "granted", "grant_event"}
    return set(re.findall(r"(?:^|,)\s*(\w+) = ", assignments)) - _STAMPED - own


def plain_task(data: st.DataObject, state: str) -> Task:
    """One that core marks as plain, with anything that such a one may have."""
    task = replace(
        TASK, state=state, **moves.BOUND, checked=False, metered=False, artifacts=0, capped=False, guarded=False,
        models=(), fallback_models=(), waits_on=0, deadline=None, max_duration=None, unmet=0, not_before=None,
    )  # fmt: skip
    for name in (
        *moves.BOUND,
        "generation",
        "attempts",
        "late_submit_open",
        "percent",
        "step",
        "progress_at",
        "started_at",
    ):
        some = _SOME.get(name, 1)
        tried = replace(task, **{name: data.draw(st.sampled_from([getattr(task, name), some]))})
        if settle.is_plain(tried) and (name in moves.KEPT[state] or name not in moves.BOUND):
            task = tried
    return task


@given(data=st.data())
def test_the_fused_claim_writes_what_the_constructor_does(data: st.DataObject) -> None:
    fresh = {"generation": 0, "attempts": 0, "late_submit_open": False, "percent": None, "step": None,
             "progress_at": None, "cool_offs": {}, "renewals": 0}  # fmt: skip
    before = replace(plain_task(data, "ready"), **fresh)
    if not settle.is_plain(before) or {before.offer_to, before.set_aside_for, before.price} != {None}:
        return  # not in a lane
    after = CALLS["granted"][1](before)
    assert changed(before, after) <= written("claim_tasks") <= moves.FIELDS["granted"]


@given(data=st.data())
def test_the_fused_result_writes_what_the_constructors_do(data: st.DataObject) -> None:
    before = plain_task(data, data.draw(st.sampled_from(HELD)))
    free = moves.freed(
        before, NOW, attempts=before.attempts, given_back=before.given_back, late_submit_open=False, rests=False
    )  # fmt: skip
    after = moves.completed(free, NOW, "wp")
    # a held row has no late submit open: a claim closes it
    assert changed(before, after) - {"late_submit_open"} <= written("submit_results")
    assert written("submit_results") <= moves.FIELDS["freed"] | moves.FIELDS["completed"]


def test_the_fused_renewal_writes_what_the_constructor_does() -> None:
    assert written("renew_claims") == moves.FIELDS["started"] | {
        "lease",
        "lease_until",
        "renewals",
        "presented_at",
    }
