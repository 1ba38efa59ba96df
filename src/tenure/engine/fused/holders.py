"""Results and renewals, handed over as runs; what follows from a result is worked out as after any other."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any

import msgspec

from tenure.core import commands, graph, inputs, lifecycle, retry, roles, team
from tenure.core.bodies import is_reference
from tenure.core.commands import Principal
from tenure.core.errors import Bug, TenureError
from tenure.core.filters import Present
from tenure.core.outcomes import Outcome
from tenure.core.receipts import Receipt, parse_receipt
from tenure.core.records import Agent, Claim, Message, Project, Result, Session, Task, replace
from tenure.engine import handing, people
from tenure.engine.effects import spread
from tenure.engine.fused.runs import Done, Run, is_allowed, members
from tenure.engine.work import OUR_FAULTS, Work
from tenure.stores.fused import Completed, Completion, Fused, Renewal, Renewed

_json = msgspec.json.encode
Place = tuple[str, str]  # project and ref
Asking = tuple[Principal, str | None, str]  # who asks, with which trace and command id
Given = tuple[Place, Asking]


def _receipt(work: Work, command: Any, principal: Principal, seen: set[tuple[str, str]]) -> Receipt | None:
    """The receipt of a holder's command that can be handed over; one task comes once in a run."""
    try:
        receipt = parse_receipt(command.receipt)
    except TenureError:
        return None
    place = (command.project, receipt.name)
    if receipt.epoch != work.epoch or place in seen or not is_allowed(work, command, principal):
        return None
    seen.add(place)
    return receipt


def _check_holders(asking: Iterable[Given], held: dict[Place, Completed] | dict[Place, Renewed]) -> None:
    """The statement goes by the receipt alone; here whose it was is known. Raising takes the whole batch back.

    It is then run in parts, so that the one that is refused is refused alone. Reading the holders first would cost
    every batch a journey, for something that only a thief does.
    """
    for place, (principal, _, _) in asking:
        row = held.get(place)
        if row is not None:
            roles.check_mine(principal, row.agent, f"the claim of {row.ref}")


def complete(work: Work, run: Run) -> list[Done]:
    given: list[Completion] = []
    seen: set[tuple[str, str]] = set()
    for command, principal in run:
        receipt = _receipt(work, command, principal, seen)
        if receipt is None or (completion := _completion(work, command, principal, receipt)) is None:
            break
        given.append(completion)
    if not given:
        return []
    tx: Fused = work.tx  # type: ignore[assignment]  # the store declares it
    done = {(d.project, d.ref): d for d in tx.complete(given)}
    work.forget(Task, Claim, Result)
    asking = _asking(run, given)
    _check_holders(asking, done)
    _signs_of_life(work, asking, done)
    outcomes: list[Done] = []
    for (place, asked), completion in zip(asking, given, strict=True):
        d = done.get(place)
        if d is None:
            outcomes.append(None)
            continue
        outcome = Outcome(
            outcome="ACCEPTED", message=f"{d.key}: accepted as {d.work_product}", work_product=d.work_product,
            result=completion.result, generation=completion.generation, current_generation=completion.generation,
            work_lost=False, state=lifecycle.COMPLETED, version=d.version,
        )  # fmt: skip
        if d.dependents or d.children or d.dag != graph.lone_dag(d.task):
            outcomes.append(partial(_followed, work, d, outcome, asked))
        else:
            outcomes.append(outcome)
    return outcomes


def _completion(work: Work, command: commands.Submit, principal: Principal, receipt: Receipt) -> Completion | None:
    if command.usage:
        return None
    encoded = _json(command.data)
    if len(encoded) > handing.INLINE or is_reference(command.data):
        return None
    project = work.get(Project, command.project, command.project)
    most = None if project is None else project.limits.get("max_result_size")
    if (most is not None and len(encoded) > most) or len(command.summary) > inputs.LARGEST_TEXT // 4:
        return None
    digest = hashlib.sha256(encoded).hexdigest()[:32]
    row: dict[str, Any] = {"project": command.project, "size": len(encoded), "digest": digest}
    if command.data is not None:
        row["data"] = msgspec.Raw(encoded)
    if command.summary:
        row["summary"] = command.summary
    if command.request_id is not None:
        row["request_id"] = command.request_id
    work.begin_command(principal, command.trace_id)
    result, event = work.new_id("result"), work.new_id("evt")
    return Completion(
        command.project, receipt.name, receipt.generation, receipt.nonce, result,
        None if command.data is None else encoded.decode(), command.summary, len(encoded), digest, command.request_id,
        event, work.command_id, command.trace_id, principal.user, principal.address, members(row),
    )  # fmt: skip


def _asking(run: Run, given: Sequence[Completion | Renewal]) -> list[Given]:
    return [
        ((g.project, g.ref), (principal, g.trace_id, g.command)) for (_, principal), g in zip(run, given, strict=False)
    ]


def _followed(work: Work, done: Completed, outcome: Outcome, asked: Asking) -> Outcome:
    """The outcome, after what the move means for others: as after any other, and when its turn has come."""
    work.begin_command(*asked)
    try:
        after = work.get(Task, done.project, done.task)
        assert after is not None, done.key
        work.moved.append((replace(after, state=done.state_before), after))
        spread(work)
    except OUR_FAULTS as error:  # the result is written already: the whole batch has to be taken back with it
        raise Bug(f"submit: {type(error).__name__}: {error}", "nothing was done; please report this") from error
    return outcome


def _signs_of_life(work: Work, given: Iterable[Given], held: dict[Place, Completed] | dict[Place, Renewed]) -> None:
    """The holders were heard of; a success clears an agent's troubles. Most were heard of a moment ago."""
    agents: dict[tuple[str, str], tuple[bool, Asking]] = {}
    sessions: dict[tuple[str, str], None] = {}
    before = work.now - team.PRESENCE
    for place, asking in given:
        row = held.get(place)
        if row is None:
            continue
        if row.agent_seen is not None and (row.agent_is_odd or row.agent_seen <= before):
            agents.setdefault((row.project, row.agent), (isinstance(row, Completed), asking))
        if row.session_seen is not None and row.session_seen <= before:
            sessions[row.project, row.session] = None
    for (project, name), (succeeded, asking) in agents.items():
        work.begin_command(*asking)  # that it is heard of again is told in the name of whoever spoke for it
        agent = work.get(Agent, project, name)
        if agent is not None:
            known = people.seen(work, agent)
            if succeeded and known.troubles:
                work.put(retry.agent_succeeded(known))
    for project, name in sessions:
        session = work.get(Session, project, name)
        if session is not None:
            people.active(work, session, held=True)


def renew(work: Work, run: Run) -> list[Done]:
    given: list[Renewal] = []
    seen: set[tuple[str, str]] = set()
    for command, principal in run:
        receipt = None if command.background else _receipt(work, command, principal, seen)
        if receipt is None:
            break
        project = work.get(Project, command.project, command.project)
        assert project is not None
        try:
            lease = None if command.lease is None else inputs.lease_of(command.lease, project)
        except TenureError:
            break
        work.begin_command(principal, command.trace_id)
        given.append(
            Renewal(
                command.project, receipt.name, receipt.generation, receipt.nonce, lease, work.new_id("evt"),
                work.command_id, command.trace_id, principal.agent, principal.session, principal.user,
                principal.address,
            )
        )  # fmt: skip
    if not given:
        return []
    tx: Fused = work.tx  # type: ignore[assignment]  # the store declares it
    renewed = {(r.project, r.ref): r for r in tx.renew(given)}
    work.forget(Task)
    asking = _asking(run, given)
    _check_holders(asking, renewed)
    _signs_of_life(work, asking, renewed)
    mail = _mail(work, renewed.values())
    outcomes: list[Done] = []
    for renewal in given:
        r = renewed.get((renewal.project, renewal.ref))
        if r is None:
            outcomes.append(None)
            continue
        outcomes.append(
            Outcome(
                outcome="RENEWED", lease_until=r.lease_until, lease=(r.lease_until - work.now) / inputs.SECOND,
                generation=renewal.generation, state=lifecycle.RUNNING, directive="continue",
                mail=mail.get((r.project, r.agent), 0),
            )
        )  # fmt: skip
    return outcomes


def _mail(work: Work, renewed: Iterable[Renewed]) -> dict[tuple[str, str], int]:
    agents: dict[str, dict[str, None]] = {}
    for r in renewed:
        agents.setdefault(r.project, {})[r.agent] = None
    counts = {}
    for project, names in agents.items():
        where = {"project": project, "recipient": tuple(names), "read_at": Present(False)}
        for agent, count in work.count(Message, where, "recipient").items():
            counts[project, agent] = min(people.MOST_MAIL, count)
    return counts
