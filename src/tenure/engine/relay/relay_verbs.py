"""Relays: pausing, resuming, rewinding and removing them; their state."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tenure.core import commands, inputs
from tenure.core import queries as q
from tenure.core.errors import InvalidInput, NotFound
from tenure.core.filters import Range
from tenure.core.outcomes import Outcome
from tenure.core.records import STORE, Sink, Webhook, replace
from tenure.engine.archive.log_readers import end_of_log
from tenure.engine.relay.lag import first_unread
from tenure.engine.relay.webhook_verbs import READER
from tenure.engine.runtime.unit_of_work import Handlers, Reads, UnitOfWork

if TYPE_CHECKING:
    from tenure.core.views import RelayView


def pause_relay(work: UnitOfWork, cmd: commands.PauseRelay) -> Outcome:
    row = _named(work, cmd.sink)
    if row.paused_at is not None:
        return _done(work, "UNCHANGED", row, "is already paused")
    row = replace(row, paused_at=work.now, paused_by=work.principal.name)
    work.record("sink.paused", row, project=STORE, details={"sink": row.id})
    return _done(work, "UPDATED", row, "is paused")


def resume_relay(work: UnitOfWork, cmd: commands.ResumeRelay) -> Outcome:
    row = _named(work, cmd.sink)
    if row.paused_at is None:
        return _done(work, "UNCHANGED", row, "is not paused")
    row = replace(row, paused_at=None, paused_by=None)
    work.record("sink.resumed", row, project=STORE, details={"sink": row.id})
    return _done(work, "UPDATED", row, "is resumed")


def rewind_relay(work: UnitOfWork, cmd: commands.RewindRelay) -> Outcome:
    row = _named(work, cmd.sink)
    if (cmd.to is None) == (cmd.since is None):
        raise InvalidInput("give either a sequence or a time to rewind to", "as in --to 1200 or --since 2h")
    to = cmd.to if cmd.to is not None else _sequence_before(work, cmd.since or 0)
    end = end_of_log(work)
    if not 0 <= to <= end:
        raise InvalidInput(f"sequence must be from 0 to {end}, the end of the log (got {to})")
    details = {"sink": row.id, "from": row.sequence, "to": to}
    # Without its identity the relay has the sink accept repeats, also where another process takes over.
    row = replace(row, sequence=to, cut_off_at=None, identity=None)
    work.record("sink.rewound", row, project=STORE, details=details)
    return _done(work, "UPDATED", row, f"continues after sequence {to}")


def _sequence_before(work: UnitOfWork, since: int) -> int:
    first = work.tx.events({"time": Range(low=since)}, limit=1)
    return first[0].sequence - 1 if first else end_of_log(work)


def remove_relay(work: UnitOfWork, cmd: commands.RemoveRelay) -> Outcome:
    row = _named(work, cmd.sink)
    if row.id == READER and work.find(Webhook, {}, limit=1):
        raise InvalidInput(f"{READER} is the reader of all webhooks", "remove or pause the webhooks instead")
    work.remove(row)
    work.record("sink.removed", project=STORE, details={"sink": row.id})
    return _done(work, "UPDATED", row, "is removed")


def _named(work: UnitOfWork, name: str) -> Sink:
    row = work.get(Sink, STORE, name) if len(name) <= inputs.LONGEST_NAME else None
    if row is None:
        known = [row.id for row in work.find(Sink, {"project": STORE})]
        raise NotFound(
            f"no sink {name[:80]!r}{inputs.suggestion(name, known)}",
            "a sink is known once a process that leads has its [sinks.NAME] settings",
        )
    return row


def _done(work: UnitOfWork, outcome: str, row: Sink, what: str) -> Outcome:
    return Outcome(
        outcome=outcome,
        command_id=work.command_id if outcome != "UNCHANGED" else None,
        message=f"the relay to {row.id} {what}",
    )


def relays(work: UnitOfWork, project: str) -> list[RelayView]:
    end = end_of_log(work)
    return [_view(work, row, end) for row in work.find(Sink, {"project": STORE})]


def _view(work: UnitOfWork, row: Sink, end: int) -> RelayView:
    first = first_unread(work.tx, row)
    lag = 0.0 if first is None else max(0.0, (work.now - first.time) / 1e6)
    state = (
        "cut off"
        if row.cut_off_at is not None
        else "paused"
        if row.paused_at is not None
        else "failing"
        if row.error is not None
        else "behind"
        if lag > 60
        else "up to date"
    )
    return {
        "name": row.id, "url": row.url, "state": state, "projects": list(row.projects), "sequence": row.sequence,
        "lag": lag, "lag_events": 0 if first is None else end - row.sequence,
        "max_lag": row.max_lag / 1e6, "sent": row.sent, "sent_at": row.sent_at, "error": row.error,
        "error_at": row.error_at, "paused_at": row.paused_at, "paused_by": row.paused_by, "cut_off_at": row.cut_off_at,
        "created_at": row.created_at,
    }  # fmt: skip


HANDLERS: Handlers = {
    commands.PauseRelay: pause_relay,
    commands.ResumeRelay: resume_relay,
    commands.RewindRelay: rewind_relay,
    commands.RemoveRelay: remove_relay,
}

READS: Reads = {q.Relays: relays}
