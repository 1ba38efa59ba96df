"""Each kind of event has one sentence, and the sentence stays on one line whatever the event contains."""

from __future__ import annotations

import string

import pytest

from tenure.core.errors import InvalidInput
from tenure.core.event_text import TEXTS, event_text
from tenure.core.events import KINDS, Event, kinds_of

WORDS = {"who", "holder", "task", "generation", "dag"}


def event(kind: str, **fields: object) -> Event:
    return Event(id="e1", time=0, kind=kind, **fields)  # type: ignore[arg-type]


def test_every_kind_has_a_sentence_and_no_other_has() -> None:
    assert list(TEXTS) == [kind for kind in TEXTS if kind in KINDS]
    assert set(TEXTS) == set(KINDS)


@pytest.mark.parametrize("kind", KINDS)
def test_a_sentence_of_an_event_without_any_field_can_be_read(kind: str) -> None:
    text = event_text(event(kind))
    assert text
    assert "None" not in text
    assert "{" not in text


def test_a_task_s_sentence_names_the_task_so_that_a_page_can_link_it() -> None:
    for kind, text in TEXTS.items():
        fields = [name for _, name, _, _ in string.Formatter().parse(text) if name]
        assert ("task" in fields) == kind.startswith("task."), kind


@pytest.mark.parametrize(
    ("given", "text"),
    [
        (event("task.claimed", agent="ann", key="C-001", generation=2), "ann claims C-001, generation 2"),
        (event("task.created", user="mia", key="C-001", message="C-001"), "mia adds C-001"),
        (event("task.progress", agent="ann", key="C-1", details={"percent": 0}), "ann works on C-1: 0 %"),
        (
            event("task.progress", agent="ann", key="C-1", details={"percent": 40, "step": "tests"}),
            "ann works on C-1: 40 %, tests",
        ),
        (
            event("task.result_refused", agent="ann", key="C-1", generation=1, details={"reason": "STALE"}),
            "ann's result for C-1 with generation 1 is refused: STALE",
        ),
        (event("task.offered", key="B-3", user="mia", details={"agent": "ann"}), "B-3 is offered to agent ann by mia"),
        (event("task.edited", agent="root", user="root", key="C-1", details={"holder": "ann"}), "root edits C-1"),
        (event("task.cancelled", agent="root", user="root", key="C-1"), "C-1 is cancelled by root"),
        (event("task.paused", agent="ann", key="C-1", message="budget"), "C-1 is paused: budget"),
        (event("task.aborted", agent="ann", key="C-1"), "ann's claim on C-1 is aborted"),
        (event("task.aborted", user="mia", key="C-1", details={"holder": "ann"}),
         "ann's claim on C-1 is aborted by mia"),
        (event("task.completed", user="mia", key="C-1", details={"holder": "ann"}),
         "ann completes C-1, accepted by mia"),
        (event("agent.terminated", agent="ann", user="mia", details={"by": "human:mia"}), "ann is terminated by mia"),
        (event("agent.draining", agent="ann", user="mia"), "ann drains: it claims nothing more"),
        (event("task.failed", agent="ann", key="C-1", details={"error": "x"}), "ann's attempt at C-1 fails: x"),
        (event("project.stopped", user="mia", details={"scope": "project:"}), "mia stops all claiming in project"),
        (event("project.started", user="mia", details={"scope": "track:B"}), "mia allows claiming in track:B again"),
        (event("dag.completed", details={"dag": "d1", "title": "Accounts"}), "dag Accounts is completed"),
        (event("dag.reopened", details={"dag": "d1"}), "dag d1 is open again"),
        (event("message.sent", agent="ann", message="psst", details={"to": "@all"}), "ann sends a message to @all"),
        (event("reservation.taken", agent="ann", details={"patterns": list("abcde")}), "ann reserves a, b, c, 2 more"),
        (event("schedule.fired", details={"schedule": "nightly"}), "schedule nightly creates tasks"),
        (event("trigger.fired", details={"trigger": "on-push"}), "trigger on-push creates tasks"),
        (event("key.revoked", details={"key": "k1", "by": "mia"}), "mia revokes API key k1"),
        (event("budget.alert", message="budget project: $9 of $10", details={"threshold": 90}),
         "a budget reaches 90 %: budget project: $9 of $10"),
        (event("task.of_a_later_release", key="C-1"), "task.of_a_later_release: C-1"),
    ],
)  # fmt: skip
def test_sentences_read_well(given: Event, text: str) -> None:
    assert event_text(given) == text


def test_text_of_others_stays_on_one_line_and_is_never_a_template() -> None:
    noted = event("task.noted", agent="ann", key="C-1", message="{who}\n\x1b[31mred\u202e")
    assert event_text(noted) == "ann adds a note to C-1: {who} [31mred"


def test_a_noun_names_all_kinds_of_it_and_a_kind_itself() -> None:
    assert kinds_of(["task.claimed"]) == ("task.claimed",)
    assert set(kinds_of(["leader", "key"])) == {
        "leader.elected", "leader.lost", "key.created", "key.rotated", "key.revoked",
    }  # fmt: skip
    with pytest.raises(InvalidInput, match=r"task\.claimd"):
        kinds_of(["task.claimd"])
