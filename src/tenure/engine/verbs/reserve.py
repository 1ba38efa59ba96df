"""Reservations of things other than tasks: with a claim, until it ends; or standalone, on a lease."""

from __future__ import annotations

import hmac
from collections.abc import Iterable, Mapping
from typing import Any

from tenure.core import commands, inputs, limits, reservations, roles
from tenure.core.errors import InvalidInput
from tenure.core.filters import Prefix
from tenure.core.ids import NONCE_BYTES, Receipt, parse_receipt
from tenure.core.outcomes import CODES, Outcome
from tenure.core.records import Reservation, Task, replace
from tenure.engine.runtime.rows import fields_of, project_of
from tenure.engine.runtime.unit_of_work import Handlers, Refused, UnitOfWork
from tenure.engine.verbs import agents
from tenure.engine.verbs.holder_verbs import held, keep_started

DEFAULT_LEASE = limits.RESERVATION_LEASE
GROUP = "hold_"  # prefix of a standalone receipt's name


def reserve(work: UnitOfWork, cmd: commands.Reserve) -> Outcome:
    """Reserve all patterns or none. With a task's receipt they belong to that claim; otherwise they get a receipt.

    A pattern that this receipt already holds changes to the requested mode, checked against the rows of all others: to
    exclusive only where nobody else shares it, to shared always.
    """
    project = project_of(work, cmd.project)
    inputs.check_choice(cmd.mode, reservations.MODES, "mode")
    if not cmd.patterns:
        raise InvalidInput("reserve needs at least one pattern")
    patterns = [reservations.normalised(p) for p in inputs.check_list(cmd.patterns, "pattern")]
    task: Task | None = None
    group: list[Reservation] = []
    session = cmd.session
    receipt = None if cmd.receipt is None else parse_receipt(cmd.receipt)
    if receipt is not None and receipt.name.startswith(GROUP):
        group = _group(work, cmd.project, receipt)
        session = group[0].session
    elif cmd.receipt is not None:
        hold = held(work, cmd.project, cmd.receipt)
        task, session = hold.task, hold.claim.session
    else:
        agents.known_agent(work, cmd.project, cmd.agent)
        agents.known_session(work, project, session, cmd.agent, None)
    others = living(work, work.find(Reservation, {"project": cmd.project}))
    other = reservations.in_the_way(
        patterns, cmd.mode, others, task=task.id if task else None, session=session, now=work.now
    )
    if other is not None:
        message = f"{other.pattern} is held by agent {other.agent}"
        return Outcome(outcome="DENIED_CONFLICT", conflict=other.pattern, holder=other.agent, message=message)
    if task is not None:
        return _with_claim(work, cmd, task, patterns)
    if receipt is not None:
        return _regrouped(work, cmd, receipt, group, patterns)
    return _alone(work, cmd, inputs.lease_of(cmd.lease, work.limits_of(project), DEFAULT_LEASE), patterns)


def _with_claim(work: UnitOfWork, cmd: commands.Reserve, task: Task, patterns: list[str]) -> Outcome:
    mine = {r.pattern: r for r in work.find(Reservation, {"project": task.project, "task": task.id})}
    more = reserved_for(work, task, [p for p in patterns if p not in mine], mode=cmd.mode)
    rows = _in_mode(mine, patterns, cmd.mode) + more
    kept = keep_started(work, task)
    if rows:
        details, reserved = {"patterns": patterns, "mode": cmd.mode}, replace(kept, reserved=True)
        kept = work.record("reservation.taken", *rows, task=reserved, details=details)
    return Outcome(outcome="GRANTED", generation=kept.generation, lease_until=kept.lease_until, changed=tuple(patterns))


def _in_mode(mine: Mapping[str, Reservation], patterns: Iterable[str], mode: str) -> list[Reservation]:
    """The patterns already held in the other mode, as they will be."""
    return [replace(mine[p], mode=mode) for p in dict.fromkeys(patterns) if p in mine and mine[p].mode != mode]


def _regrouped(
    work: UnitOfWork, cmd: commands.Reserve, receipt: Receipt, group: list[Reservation], patterns: list[str]
) -> Outcome:
    """Extend a standalone reservation with other modes or more patterns; receipt and lease stay."""
    first, mine = group[0], {row.pattern: row for row in group}
    number = 1 + max(int(row.id.rpartition("-")[2]) for row in group)
    more = [p for p in dict.fromkeys(patterns) if p not in mine]
    rows = _in_mode(mine, patterns, cmd.mode) + [
        replace(first, id=f"{receipt.name}-{number + n}", pattern=pattern, mode=cmd.mode, created_at=work.now)
        for n, pattern in enumerate(more)
    ]
    if rows:
        details = {"patterns": patterns, "mode": cmd.mode}
        work.record("reservation.taken", *rows, project=cmd.project, holder=first, details=details)
    return _granted(work, receipt, patterns, first.until)


def _alone(work: UnitOfWork, cmd: commands.Reserve, lease: int, patterns: list[str]) -> Outcome:
    group = work.new_id("hold")
    nonce = work.random.token(NONCE_BYTES)
    fields = fields_of(cmd, "project mode agent session") | {"nonce": nonce, "epoch": work.epoch}
    fields |= {"created_at": work.now, "lease": lease, "until": work.now + lease}
    rows = [Reservation(id=f"{group}-{n}", pattern=pattern, **fields) for n, pattern in enumerate(patterns)]
    details = {"patterns": patterns, "mode": cmd.mode}
    work.record("reservation.taken", *rows, project=cmd.project, holder=rows[0], details=details)
    return _granted(work, Receipt(group, 1, work.epoch, nonce), patterns, work.now + lease)


def _granted(work: UnitOfWork, receipt: Receipt, patterns: list[str], until: int | None) -> Outcome:
    leased, text = work.leased_until(until), str(receipt)
    return Outcome(outcome="GRANTED", receipt=text, generation=receipt.generation, changed=tuple(patterns), **leased)


def reserved_for(work: UnitOfWork, task: Task, patterns: Iterable[str], **more: Any) -> list[Reservation]:
    """Reservations that last as long as the task's claim."""
    fields = fields_of(task, "project generation agent session") | {"task": task.id, "epoch": work.epoch, **more}
    return [Reservation(id=work.new_id("hold"), pattern=p, created_at=work.now, **fields) for p in patterns]


def _group(work: UnitOfWork, project: str, receipt: Receipt) -> list[Reservation]:
    """The rows behind a standalone receipt, judged like a claim's; raises Refused where they belong to another."""
    found = work.find(Reservation, {"project": project, "id": Prefix(receipt.name + "-")})
    rows = [r for r in found if (r.until or 0) > work.now]  # expired rows are gone, swept or not
    if not rows:
        message = f"no reservation {receipt.name} in project {project}, or its lease expired"
        raise Refused(Outcome(outcome="NOT_FOUND", message=message, hint="reserve again"))
    code = None
    if receipt.epoch != work.epoch:
        code = "STALE_EPOCH"
    elif receipt.generation != rows[0].generation:
        code = "STALE_GENERATION" if receipt.generation < rows[0].generation else "FUTURE_GENERATION"
    elif not hmac.compare_digest(rows[0].nonce, receipt.nonce):
        code = "SESSION_MISMATCH"
    roles.check_mine(work.principal, rows[0].agent, f"reservation {receipt.name}")
    if code is not None:
        raise Refused(Outcome(outcome=code, directive="abort", message=CODES[code].meaning, hint="reserve again"))
    work.presented = rows[0]
    return rows


def check_holds(work: UnitOfWork, project: str, receipt: str) -> None:
    """Raise Refused where a standalone reservation is no longer held."""
    _group(work, project, parse_receipt(receipt))


def renew_reservation(work: UnitOfWork, cmd: commands.RenewReservation) -> Outcome:
    project = project_of(work, cmd.project)
    rows = _group(work, cmd.project, parse_receipt(cmd.receipt))
    lease = rows[0].lease or 0
    if cmd.lease is not None:
        lease = inputs.lease_of(cmd.lease, work.limits_of(project))
    for row in rows:
        work.put(replace(row, lease=lease, until=work.now + lease))
    return Outcome(outcome="RENEWED", lease_until=work.now + lease, lease=lease / inputs.SECOND)


def unreserve(work: UnitOfWork, cmd: commands.Unreserve) -> Outcome:
    rows = _group(work, cmd.project, parse_receipt(cmd.receipt))
    release_reservations(work, cmd.project, rows)
    return Outcome(outcome="OK", changed=tuple(r.pattern for r in rows))


# --- the end of reservations ---------------------------------------------------------------------------------


def free_unless_needed(work: UnitOfWork, task: Task) -> None:
    """The claim is over; where its result is to be landed, what it touches stays reserved until then."""
    from tenure.engine.checks.validation_reads import is_reserving

    if not is_reserving(work, task):
        free_reservations(work, task)


def free_reservations(work: UnitOfWork, task: Task) -> None:
    """The claim is over: free its reservations, and put back the tasks set aside for it."""
    held = work.find(Reservation, {"project": task.project, "task": task.id})
    release_reservations(work, task.project, held)
    for waiting in work.find(Task, {"project": task.project, "set_aside_for": task.id}):
        work.put(replace(waiting, set_aside_for=None))


def living(work: UnitOfWork, rows: list[Reservation]) -> list[Reservation]:
    """Reservations except those of claims that are over. 0.1 left such rows behind; they block nobody."""
    return [row for row in rows if row.task is None or _is_claimed(work, row)]


def _is_claimed(work: UnitOfWork, row: Reservation) -> bool:
    from tenure.engine.checks.validation_reads import is_reserving

    task = work.get(Task, row.project, row.task or "")
    return task is not None and task.generation == row.generation and is_reserving(work, task)


def drop_left_over(work: UnitOfWork, project: str) -> None:
    """Free the reservations of claims that are over."""
    rows = work.find(Reservation, {"project": project})
    alive = {row.id for row in living(work, rows)}
    release_reservations(work, project, [row for row in rows if row.id not in alive])


def release_reservations(work: UnitOfWork, project: str, held: list[Reservation]) -> None:
    if held:
        details = {"patterns": [r.pattern for r in held]}
        work.record("reservation.released", project=project, removed=held, holder=held[0], details=details)


HANDLERS: Handlers = {
    commands.Reserve: reserve,
    commands.RenewReservation: renew_reservation,
    commands.Unreserve: unreserve,
}
