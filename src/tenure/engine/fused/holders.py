"""Results and renewals, handed over as runs; what follows from a result is worked out as after any other."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any, NamedTuple

import msgspec

from tenure.core import commands, graph, inputs, lifecycle, retry, roles, team
from tenure.core.bodies import is_reference
from tenure.core.commands import Principal
from tenure.core.errors import Bug, TenureError
from tenure.core.outcomes import Outcome
from tenure.core.receipts import Receipt, parse_receipt
from tenure.core.records import Agent, Claim, Project, Result, Session, Task, replace
from tenure.engine import handing, people
from tenure.engine.effects import spread
from tenure.engine.fused.runs import Allowed, Done, Run, members
from tenure.engine.work import OUR_FAULTS, Later, Work
from tenure.stores.fused import Completed, Completion, Fused, Renewal, Renewed

_json = msgspec.json.encode
Place = tuple[str, str]  # project and ref
Asking = tuple[Principal, str | None, str]  # who asks, with which trace and command id
Given = tuple[Place, Asking]


class Handed(NamedTuple):
    """A result as it is stored, worked out before the transaction."""

    receipt: Receipt
    encoded: bytes
    digest: str
    said: str  # JSON: members of what Completion says, but for the id


def handed(command: commands.Submit) -> Handed | None:
    """None where it must be decided."""
    encoded = _json(command.data)
    if command.usage or command.artifacts is not None or len(encoded) > handing.INLINE or is_reference(command.data):
        return None
    receipt = presented(command)
    if receipt is None or len(command.summary) > inputs.LARGEST_TEXT // 4:
        return None
    digest = hashlib.sha256(encoded).hexdigest()[:32]
    row: dict[str, Any] = {"project": command.project, "size": len(encoded), "digest": digest}
    if command.data is not None:
        row["data"] = msgspec.Raw(encoded)
    if command.summary:
        row["summary"] = command.summary
    if command.request_id is not None:
        row["request_id"] = command.request_id
    return Handed(receipt, encoded, digest, members(row))


def presented(command: Any) -> Receipt | None:
    try:
        return parse_receipt(command.receipt)
    except TenureError:
        return None


class _Holders:
    """Which commands of a run can be handed over: those of callers who may, each task once."""

    def __init__(self, work: Work) -> None:
        self._epoch = work.epoch
        self._allowed = Allowed(work)
        self._seen: set[Place] = set()

    def project(self, command: Any, principal: Principal, receipt: Receipt) -> Project | None:
        place = (command.project, receipt.name)
        if receipt.epoch != self._epoch or place in self._seen:
            return None
        self._seen.add(place)
        return self._allowed.project(command, principal)


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
    holders = _Holders(work)
    for command, principal, ready in run:
        project = None if ready is None else holders.project(command, principal, ready.receipt)
        if project is None or (completion := _completion(work, command, principal, ready, project)) is None:
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
        if d.dependents or d.children or d.dag != graph.lone_dag(d.task):
            outcomes.append(partial(_followed, work, d, completion, asked))
        else:
            outcomes.append(Later(partial(_accepted, d, completion)))
    return outcomes


def _accepted(done: Completed, completion: Completion) -> Outcome:
    return Outcome(
        outcome="ACCEPTED", message=f"{done.key}: accepted as {done.work_product}", work_product=done.work_product,
        result=completion.result, generation=completion.generation, current_generation=completion.generation,
        work_lost=False, state=lifecycle.COMPLETED, version=done.version,
    )  # fmt: skip


def _completion(
    work: Work, command: commands.Submit, principal: Principal, ready: Handed, project: Project
) -> Completion | None:
    receipt, encoded, digest, row = ready
    most = project.limits.get("max_result_size")
    if project.limited or "tokens_per_line" in project.limits or (most is not None and len(encoded) > most):
        return None
    work.begin_command(principal, command.trace_id)
    result, event = work.new_id("result"), work.new_id("evt")
    return Completion(
        command.project, receipt.name, receipt.generation, receipt.nonce, result,
        None if command.data is None else encoded.decode(), command.summary, len(encoded), digest, command.request_id,
        event, work.command_id, command.trace_id, principal.user, principal.address,
        f'{{"id":"{result}"{row}}}',
    )  # fmt: skip


def _asking(run: Run, given: Sequence[Completion | Renewal]) -> list[Given]:
    return [
        ((g.project, g.ref), (principal, g.trace_id, g.command))
        for (_, principal, _), g in zip(run, given, strict=False)
    ]


def _followed(work: Work, done: Completed, completion: Completion, asked: Asking) -> Outcome:
    """The outcome, after what the move means for others: as after any other, and when its turn has come."""
    work.begin_command(*asked)
    try:
        after = work.get(Task, done.project, done.task)
        assert after is not None, done.key
        work.moved.append((replace(after, state=done.state_before), after))
        spread(work)
    except OUR_FAULTS as error:  # the result is written already: the whole batch has to be taken back with it
        raise Bug(f"submit: {type(error).__name__}: {error}", "nothing was done; please report this") from error
    return _accepted(done, completion)


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
    holders = _Holders(work)
    for command, principal, receipt in run:
        if command.background or receipt is None:
            break
        project = holders.project(command, principal, receipt)
        if project is None or project.funded:  # a budget may have a word for the holder
            break
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
    renewed = {(r.project, r.ref): r for r in tx.renew(given, people.MOST_MAIL)}
    work.forget(Task)
    asking = _asking(run, given)
    _check_holders(asking, renewed)
    _signs_of_life(work, asking, renewed)
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
                mail=r.mail,
            )
        )  # fmt: skip
    return outcomes
