"""Every kind of event becomes messages that the shipped schemas accept; a repeat is the same message."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from tenure.core.events import KINDS
from tenure.core.records import DeadLetter, Task
from tenure.sinks import envelope, fields, names
from tenure.sinks.envelope import Facts, messages_of
from tenure.testing.samples import event_of as event
from tenure.testing.samples import row_of
from tests.sinks.messages import errors_of, faults_of

SAMPLES: dict[str, Any] = {
    "text": "x", "integer": 7, "number": 1.5, "flag": True, "instant": 1_700_000_000_000_000, "texts": ["x", "y"],
    "object": {"deadline": 1_700_000_000_000_000}, "any": [], "instants": {"task_1": 1_700_000_000_000_000},
}  # fmt: skip


def task(**fields: Any) -> Task:
    return row_of(Task, **fields)


def details_of(kind: str, *, whole: bool) -> dict[str, Any]:
    """Details as the engine writes them: under their own names, instants as numbers."""
    former = {name: own for own, name in fields.RENAMED.get(kind, {}).items()}
    return {
        former.get(field.name, field.name): SAMPLES[field.type]
        for field in fields.fields_of(fields.EVENTS[kind])
        if whole or not field.is_optional
    }


def test_the_table_has_a_row_for_every_kind_and_no_other() -> None:
    assert fields.EVENTS.keys() == KINDS.keys()


@pytest.mark.parametrize("whole", [True, False])
def test_the_messages_of_every_kind_are_valid(whole: bool) -> None:
    row = task(id="t", state="ready")
    for kind in KINDS:
        about = {"task": "t", "key": "A-1", "generation": 2, "version": 3} if kind.startswith("task.") else {}
        told = event(kind=kind, message="why", details=details_of(kind, whole=whole), **about)
        assert faults_of([told], {"t": row}, {}) == []


def test_a_message_without_a_field_of_its_kind_is_not_valid() -> None:
    told = event(kind="task.claimed", task="t", details={"previous_generation": 1})
    (message, *_) = messages_of(told, Facts("local", task=task(id="t")))
    assert errors_of(message)


def test_details_that_a_payload_has_another_name_for_are_not_lost() -> None:
    cases = {
        "message.sent": (
            {"message": "m-1", "type": "chat", "to": "@all", "recipients": []},
            {"mail_id": "m-1", "mail_type": "chat", "type": None},
        ),
        "key.created": ({"key": "k-1", "name": "n", "role": "agent", "by": "x"}, {"key_id": "k-1", "key": None}),
        "task.artifact": (
            {"digest": "d", "name": "a", "size": 1, "type": "text/plain"},
            {"media_type": "text/plain", "type": "code"},
        ),
        "task.retry_scheduled": (
            {"retry_at": 1_700_000_000_000_000, "backoff_ms": 5, "error_class": "task"},
            {"next_attempt_at": "2023-11-14T22:13:20.000000Z"},
        ),
    }
    for kind, (details, expected) in cases.items():
        facts = Facts("local", task=task(id="t", type="code") if kind.startswith("task.") else None)
        payload = msgspec.json.decode(messages_of(event(kind=kind, details=details), facts)[0].body)["payload"]
        assert {name: payload[name] for name in expected} == expected


# Numbers that are no durations: how many, how large, how much, or which.
NUMBERS = {
    "allocated", "amount", "attempts", "count", "current_generation", "earlier", "from", "keys", "lines", "more",
    "move", "moved", "percent", "pid", "previous_generation", "result_size", "run", "sequence", "size",
    "submitted_generation", "tasks", "term", "threshold", "to", "tokens", "tries", "try", "after", "brief", "cost",
}  # fmt: skip


def test_details_are_shown_by_the_types_of_their_fields() -> None:
    """Every kind: an instant as text, a duration with its unit in its name, what an author wrote as it is."""
    text, number = "2023-11-14T22:13:20.000000Z", SAMPLES["instant"]
    wanted = SAMPLES | {"instant": text, "instants": {"task_1": text}, "object": {"deadline": text}}
    given = SAMPLES | {"any": {"at": number}}
    for kind in KINDS:
        rows = fields.fields_of(fields.EVENTS[kind])
        own = {fields.former_name(kind, field.name): field.type for field in rows}
        shown = fields.told(kind, {name: given[of_type] for name, of_type in own.items()})
        assert shown == {name: (wanted | {"any": {"at": number}})[of_type] for name, of_type in own.items()}, kind
        unnamed = {field.name for field in rows if field.type in ("integer", "number")} - NUMBERS
        assert {name for name in unnamed if not name.endswith("_ms")} == set(), kind
    assert fields.told("task.result_refused", {"processing_time": 7}) == {"processing_ms": 7}
    assert fields.told("clock.accepted", {"back": 7_000_000, "moved": 1}) == {"back_ms": 7000, "moved": 1}


def test_instants_are_text_at_every_depth() -> None:
    told = event(
        kind="task.retried", task="t", details={"run": 2, "before": {"dead_lettered_at": 1_700_000_000_000_000}}
    )
    payload = msgspec.json.decode(messages_of(told, Facts("local"))[0].body)["payload"]
    assert payload["before"] == {"dead_lettered_at": "2023-11-14T22:13:20.000000Z"}
    told = event(kind="schedule.failed", details={"schedule": "s", "tick": 1_700_000_000_000_000, "next_at": None})
    payload = msgspec.json.decode(messages_of(told, Facts("local"))[0].body)["payload"]
    assert (payload["tick"], payload["next_at"]) == ("2023-11-14T22:13:20.000000Z", None)


def test_a_long_payload_is_cut_to_its_ids_and_stays_valid() -> None:
    told = event(kind="task.noted", task="t", key="A-1", message="x" * envelope.LONGEST)
    (message,) = messages_of(told, Facts("local", task=task(id="t", type="code")))
    assert len(message.body) < 1000
    payload = msgspec.json.decode(message.body)["payload"]
    assert (payload["truncated"], payload["task_id"], payload["key"], payload["type"]) == (True, "t", "A-1", "code")
    assert errors_of(message) == []


def test_a_dead_letter_goes_out_in_full_and_under_a_short_name() -> None:
    letter = DeadLetter(
        project="p", id="t#1", task="t", run=1, dag="d", error_class="task", error="broken",
        history=({"attempt": 1, "error": "broken"},), dead_lettered_at=1_700_000_000_000_000,
    )  # fmt: skip
    told = event(kind="task.dead_lettered", task="t", details=details_of("task.dead_lettered", whole=True))
    messages = messages_of(told, Facts("local", task=task(id="t", type="a b"), letter=letter), short_names=True)
    assert [m.name for m in messages] == [
        "evt.task.dead_lettered.v1", "evt.task.dead.v1", "dlq.task.a~20b.v1"
    ]  # fmt: skip
    assert [error for m in messages for error in errors_of(m)] == []
    assert msgspec.json.decode(messages[2].body)["payload"]["history"] == [{"attempt": 1, "error": "broken"}]
    assert len({m.id for m in messages}) == 3


def test_a_ready_task_is_offered_with_the_same_id_by_its_event_and_by_the_sweep() -> None:
    row = task(id="t", key="A-1", type="code")
    told = event(
        kind="task.ready", task="t", key="A-1", version=4, previous_state="pending", new_state="ready", sequence=9
    )
    _, command = messages_of(told, Facts("local", task=row, target="coder"))
    swept = envelope.execute(Facts("local", target="coder"), row, 4, envelope.ANNOUNCED_AGAIN, now=5)
    assert (command.name, command.id, command.sequence) == (names.EXECUTE, swept.id, 9)
    assert errors_of(command) == errors_of(swept) == []
    payload = msgspec.json.decode(command.body)["payload"]
    assert payload == {"task_id": "t", "key": "A-1", "target_agent_type": "coder", "reason": "new_task", "version": 4}
