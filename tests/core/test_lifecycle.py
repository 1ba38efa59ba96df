"""The one table of moves and the table of endings, written out again by hand from the spec."""

import pytest

from tenure.core import lifecycle
from tenure.core.errors import Bug
from tenure.core.lifecycle import ALLOWED, ENDINGS, STATES, check_move

# from → to, row by row of the spec's table.
SPEC: dict[tuple[str, ...], tuple[str, ...]] = {
    ("created",): ("pending", "ready"),
    ("pending",): ("ready",),
    ("ready",): ("pending", "claimed"),
    ("claimed",): ("running",),
    ("claimed", "running"): ("ready", "retrying", "dead_lettered"),
    ("running",): ("pending",),
    ("claimed", "running", "ready", "retrying", "paused"): ("validating", "completed"),
    ("validating",): ("completed", "retrying", "dead_lettered"),
    ("retrying",): ("ready",),
    ("pending", "ready", "claimed", "running", "retrying", "validating"): ("paused",),
    ("paused",): ("pending", "ready", "retrying", "validating"),
    ("dead_lettered",): ("pending", "ready"),
    ("pending", "ready", "retrying", "paused", "dead_lettered"): ("completed",),
    ("completed",): ("pending", "ready"),
    ("created", "pending", "ready", "claimed", "running", "paused", "validating", "retrying", "dead_lettered"): (
        "cancelled",
    ),
    # "the state before": what a task can have been when it was cancelled, a claim aside
    ("cancelled",): ("created", "pending", "ready", "retrying", "paused", "validating", "dead_lettered"),
}
# What follows from other rules of the spec, each with its rule.
FOLLOWS = {
    ("claimed", "pending"): "the holder of a claimed task waits; or a claim ends while a dependency was reset",
    ("retrying", "pending"): "the delay is over while a dependency was reset, or before not_before",
    ("validating", "pending"): "edit with supersede, as of a held task: what was handed in is of an older text",
    ("validating", "ready"): "edit with supersede, as of a held task: what was handed in is of an older text",
    ("ready", "dead_lettered"): "limits reached (generations) dead-letter",
    ("pending", "dead_lettered"): "undo of retry",
    ("ready", "completed"): "undo of reset (submit has it too)",
    ("pending", "completed"): "undo of reset (adopt has it too)",
    ("paused", "dead_lettered"): "a verdict against a result on which nobody could decide",
}


def test_the_table_of_moves_is_the_specs() -> None:
    spec = {(source, target) for sources, targets in SPEC.items() for source in sources for target in targets}
    assert spec | set(FOLLOWS) == ALLOWED


def test_no_other_move_is_possible() -> None:
    for source in STATES:
        for target in STATES:
            if source == target or (source, target) in ALLOWED:
                check_move("A-001", source, target)
            else:
                with pytest.raises(Bug, match=f"A-001: no move from {source} to {target}"):
                    check_move("A-001", source, target)


def test_a_finished_task_changes_only_by_a_reset_or_an_undo() -> None:
    assert {t for s, t in ALLOWED if s == "completed"} == {"pending", "ready"}
    assert not any(s == "cancelled" and t in ("claimed", "running", "completed") for s, t in ALLOWED)


def test_only_a_ready_task_is_claimed() -> None:
    assert [s for s, t in ALLOWED if t == "claimed"] == ["ready"]


def test_every_state_can_be_left_and_reached() -> None:
    assert {s for s, _ in ALLOWED} == set(STATES)
    assert {t for _, t in ALLOWED} == set(STATES)


# reason, claim's state, what becomes of the attempt, may still hand in
ENDS = [
    ("COMPLETED", "released", "counts", False),
    ("SUBMITTED", "released", "counts", False),
    ("FAILED", "error", "counts", False),
    ("FAILED", "error", "given back", False),
    ("EXPIRED", "expired", "counts", True),
    ("VOLUNTARY", "released", "given back", False),
    ("STOPPED", "released", "given back", False),  # as a release, and nobody cools off
    ("PAUSED", "released", "free", True),
    ("WAITING", "released", "free", False),
    ("CANCELLED", "released", "free", False),  # the spec leaves it open: a person's verb, and it may be undone
    ("SUPERSEDED", "superseded", "counts", False),
    ("SUPERSEDED", "superseded", "free", False),
    ("ERROR", "error", "given back", False),
]


def test_the_table_of_endings_is_the_specs() -> None:
    assert [(e.reason, e.state, e.attempt, e.late_submit) for e in ENDINGS] == ENDS
    assert lifecycle.MOST_GIVEN_BACK == 10


def test_groups_of_states() -> None:
    assert lifecycle.HELD == ("claimed", "running")
    assert set(lifecycle.LATE_SUBMIT_STATES) == {"ready", "retrying", "paused"}
    assert set(lifecycle.ENDED) == {"completed", "cancelled", "dead_lettered"}
