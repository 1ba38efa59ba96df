"""Results and renewals as runs; the effects of a result are applied as on the slow path."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property, partial
from typing import Any, Generic, NamedTuple, TypeVar

import msgspec

from tenure.core import commands, ids, inputs, lifecycle, retry, roles, team
from tenure.core.commands import Principal
from tenure.core.errors import Bug, TenureError
from tenure.core.ids import Receipt, parse_receipt
from tenure.core.outcomes import Outcome
from tenure.core.records import Agent, Claim, Project, Result, Session, Task, replace
from tenure.core.task_records import is_reference
from tenure.engine.reads import task_view
from tenure.engine.runtime.effects import end_agent, spread
from tenure.engine.runtime.fast_path.command_run import Allowed, Run, may_be_last, members
from tenure.engine.runtime.unit_of_work import OUR_FAULTS, Deferred, Reply, RunAgain, UnitOfWork
from tenure.engine.verbs.agents import MOST_MAIL, active, seen
from tenure.stores.fast_path import Completed, Completion, FastPath, Renewal, Renewed

H = TypeVar("H", Completed, Renewed)
_json = msgspec.json.encode
TaskRef = tuple[str, str]  # project and ref
Sender = tuple[Principal, str | None, str]  # principal, trace id, command id
Given = tuple[TaskRef, Sender]


class Handed(NamedTuple):
    """A result as stored, computed before the transaction."""

    receipt: Receipt
    encoded: bytes
    digest: str
    said: str  # JSON members of the Completion, without its id


def prepared(command: commands.Submit) -> Handed | None:
    """None where the slow path must decide it."""
    encoded = _json(command.data)
    if command.seen is not None or command.usage or command.artifacts is not None:
        return None
    if len(encoded) > task_view.INLINE or is_reference(command.data):
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
    """The commands of a run that can take the fast path: those of callers who may, each task once."""

    def __init__(self, work: UnitOfWork) -> None:
        self._epoch = work.epoch
        self._allowed = Allowed(work)
        self._seen: set[TaskRef] = set()

    def project(self, command: Any, principal: Principal, receipt: Receipt) -> Project | None:
        place = (command.project, receipt.name)
        if receipt.epoch != self._epoch or place in self._seen:
            return None
        self._seen.add(place)
        return self._allowed.project(command, principal)


class _Held(Generic[H]):
    """The statement's rows, by their subject; read on first use, which may be after the commit."""

    def __init__(self, read: Callable[[], list[H]]) -> None:
        self._read: Callable[[], list[H]] = read

    @cached_property
    def by_place(self) -> dict[TaskRef, H]:
        return {(held.project, held.ref): held for held in self._read()}


def _may_be_last(work: UnitOfWork, asking: Iterable[Given], given: Sequence[Any]) -> bool:
    """As `may_be_last`, where in addition no caller has to prove whose claim it was."""
    return not any(principal.is_proven for _, (principal, _, _) in asking) and may_be_last(work, given)


def _check_holders(asking: Iterable[Given], held: dict[TaskRef, Completed] | dict[TaskRef, Renewed]) -> None:
    """The statement checks the receipt alone; here its owner is known. Raising rolls the whole batch back.

    The batch then runs in parts, so that only the offending command is refused. Reading the holders first would cost
    every batch a round trip, to catch only a stolen receipt.
    """
    for place, (principal, _, _) in asking:
        row = held.get(place)
        if row is not None:
            roles.check_mine(principal, row.agent, f"the claim of {row.ref}")


def complete(work: UnitOfWork, run: Run, is_rest: bool) -> list[Reply]:
    """`is_rest`: the batch has nothing after this run."""
    given: list[Completion] = []
    holders = _Holders(work)
    for command, principal, ready in run:
        project = None if ready is None else holders.project(command, principal, ready.receipt)
        if project is None or (completion := _completion(work, command, principal, ready, project)) is None:
            break
        given.append(completion)
    if not given:
        return []
    tx: FastPath = work.tx  # type: ignore[assignment]  # the store declares it
    asking = _senders(run, given)
    last = is_rest and len(given) == len(run) and _may_be_last(work, asking, given)
    completed = _Held(tx.complete(given, work.now - team.PRESENCE, last=last))
    work.forget(Task, Claim, Result)
    if last:
        return [
            Deferred(partial(_accepted_later, completed, place, one))
            for (place, _), one in zip(asking, given, strict=True)
        ]
    done = completed.by_place
    _check_holders(asking, done)
    _signs_of_life(work, asking, done)
    outcomes: list[Reply] = []
    for (place, asked), completion in zip(asking, given, strict=True):
        d = done.get(place)
        if d is None:
            outcomes.append(RunAgain())
            continue
        if d.dependents or d.children or d.dag != ids.lone_dag(d.task):
            outcomes.append(Deferred(partial(_followed, work, d, completion, asked), in_turn=True))
        else:
            outcomes.append(Deferred(partial(_accepted, d, completion)))
    return outcomes


def _accepted_later(completed: _Held[Completed], place: TaskRef, completion: Completion) -> Outcome:
    return _accepted(completed.by_place[place], completion)


def _accepted(done: Completed, completion: Completion) -> Outcome:
    return Outcome(
        outcome="ACCEPTED",
        message=f"{done.key}: accepted as {done.work_product}",
        work_product=done.work_product,
        result=completion.result,
        generation=completion.generation,
        current_generation=completion.generation,
        work_lost=False,
        state=lifecycle.COMPLETED,
        version=done.version,
    )


def _completion(
    work: UnitOfWork, command: commands.Submit, principal: Principal, ready: Handed, project: Project
) -> Completion | None:
    receipt, encoded, digest, row = ready
    most = project.limits.get("max_result_size")
    if project.limited or "tokens_per_line" in project.limits or (most is not None and len(encoded) > most):
        return None
    work.begin_command(principal, command.trace_id)
    result, event = work.new_id("result"), work.new_id("evt")
    return Completion(
        command.project,
        receipt.name,
        receipt.generation,
        receipt.nonce,
        result,
        None if command.data is None else encoded.decode(),
        command.summary,
        len(encoded),
        digest,
        command.request_id,
        event,
        work.command_id,
        command.trace_id,
        principal.user,
        principal.address,
        f'{{"id":"{result}"{row}}}',
    )


def _senders(run: Run, given: Sequence[Completion | Renewal]) -> list[Given]:
    return [
        ((g.project, g.ref), (principal, g.trace_id, g.command))
        for (_, principal, _), g in zip(run, given, strict=False)
    ]


def _followed(work: UnitOfWork, done: Completed, completion: Completion, asked: Sender) -> Outcome:
    """The outcome, once the effects of the move on others are applied in its turn."""
    work.begin_command(*asked)
    try:
        after = work.require(Task, done.project, done.task)
        work.moved.append((replace(after, state=done.state_before), after))
        spread(work)
    except OUR_FAULTS as error:  # the result is already written: the whole batch must roll back
        raise Bug(f"submit: {type(error).__name__}: {error}", "nothing was done; please report this") from error
    return _accepted(done, completion)


def _signs_of_life(
    work: UnitOfWork, given: Iterable[Given], held: dict[TaskRef, Completed] | dict[TaskRef, Renewed]
) -> None:
    """Record the holders' signs of life; a success clears an agent's failures. Most were heard from a moment ago."""
    agents: dict[tuple[str, str], tuple[bool, Sender]] = {}
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
        work.begin_command(*asking)  # the event carries the principal that acted for the agent
        agent = work.get(Agent, project, name)
        if agent is not None:
            known = seen(work, agent)
            if succeeded and known.troubles:
                known = work.put(retry.agent_succeeded(known))
            if succeeded:
                end_agent(work, known)
    for project, name in sessions:
        session = work.get(Session, project, name)
        if session is not None:
            active(work, session, held=True)


def renew(work: UnitOfWork, run: Run, is_rest: bool) -> list[Reply]:
    """`is_rest`: the batch has nothing after this run."""
    given: list[Renewal] = []
    holders = _Holders(work)
    for command, principal, receipt in run:
        if command.background or command.seen is not None or receipt is None:
            break
        project = holders.project(command, principal, receipt)
        if project is None or project.funded:  # a budget may add a directive for the holder
            break
        try:
            lease = None if command.lease is None else inputs.lease_of(command.lease, project)
        except TenureError:
            break
        work.begin_command(principal, command.trace_id)
        given.append(
            Renewal(
                command.project,
                receipt.name,
                receipt.generation,
                receipt.nonce,
                lease,
                work.new_id("evt"),
                work.command_id,
                command.trace_id,
                principal.agent,
                principal.session,
                principal.user,
                principal.address,
            )
        )
    if not given:
        return []
    tx: FastPath = work.tx  # type: ignore[assignment]  # the store declares it
    asking = _senders(run, given)
    last = is_rest and len(given) == len(run) and _may_be_last(work, asking, given)
    renewed = _Held(tx.renew(given, MOST_MAIL, work.now - team.PRESENCE, last=last))
    work.forget(Task)
    if not last:
        _check_holders(asking, renewed.by_place)
        _signs_of_life(work, asking, renewed.by_place)
    return [
        Deferred(partial(_renewed, renewed, place, renewal, work.now))
        if last or place in renewed.by_place
        else RunAgain()
        for (place, _), renewal in zip(asking, given, strict=True)
    ]


def _renewed(held: _Held[Renewed], place: TaskRef, renewal: Renewal, now: int) -> Outcome:
    r = held.by_place[place]
    return Outcome(
        outcome="RENEWED",
        lease_until=r.lease_until,
        lease=(r.lease_until - now) / inputs.SECOND,
        generation=renewal.generation,
        state=lifecycle.RUNNING,
        directive="continue",
        mail=r.mail,
    )
