"""Results and renewals, as one call each."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from functools import cached_property, partial
from typing import Any, NamedTuple

import msgspec

from tenure.core import commands, inputs, lifecycle
from tenure.core.commands import Principal
from tenure.core.errors import Bug, TenureError
from tenure.core.ids import IdMaker, Receipt, has_dag_row, parse_receipt
from tenure.core.outcomes import Outcome
from tenure.core.records import Dag, Edge, Task, replace
from tenure.core.task_records import is_reference
from tenure.engine.reads import task_view
from tenure.engine.runtime.context import Random
from tenure.engine.runtime.effects import spread
from tenure.engine.runtime.fast_path.command_run import Built, Known, NotFast, Run, column
from tenure.engine.runtime.unit_of_work import OUR_FAULTS, Deferred, Reply, UnitOfWork
from tenure.stores.fast_path import Renewals, Rows, Submits

_json = msgspec.json.encode


def _receipts(known: Known, run: Run) -> list[Receipt]:
    """The receipts of a run, all of one epoch and each of another task; raises NotFast for those of others."""
    found: list[Receipt] = []
    odd: list[int] = []
    seen: set[str] = set()
    for n, (command, principal) in enumerate(run):
        try:
            receipt = parse_receipt(command.receipt)
        except TenureError:
            odd.append(n)
            continue
        if receipt.name in seen or not known.allows(command, principal) or (found and receipt.epoch != found[0].epoch):
            odd.append(n)
        seen.add(receipt.name)
        found.append(receipt)
    if odd:
        raise NotFast(*odd)
    return found


def _holders(run: Run) -> list[str | None] | None:
    """Whose claims alone the calls may use; the ordinary path decides where another presents the receipt."""
    agents: list[str | None] | None = column([p.agent for _, p in run])
    return agents


class _Result(NamedTuple):
    data: str | None
    size: int
    digest: str


def submits(known: Known, run: Run, random: Random) -> Built:
    project = known.project
    if project.limited or project.sealed or "tokens_per_line" in project.limits:
        raise NotFast
    receipts = _receipts(known, run)
    results = [_result(n, command, project.limits.get("max_result_size")) for n, (command, _) in enumerate(run)]
    seed = random.token(IdMaker.RANDOM_BYTES)
    maker, size = IdMaker(0, seed), len(run)
    sent: list[commands.Submit] = [command for command, _ in run]
    senders: list[Principal] = [principal for _, principal in run]
    call = Submits(
        project.id, known.look.seen, receipts[0].epoch, [r.name for r in receipts], [r.generation for r in receipts],
        b"".join([r.nonce for r in receipts]), _holders(run), [maker.tail(2 * size + n) for n in range(1, size + 1)],
        column([r.data for r in results]), [command.summary for command in sent], [r.size for r in results],
        [r.digest for r in results], column([command.request_id for command in sent]),
        column([p.person for p in senders]), column([p.address for p in senders]),
        column([command.trace_id for command in sent]), seed,
    )  # fmt: skip
    return Built(call, partial(_accepted, seed, [r.generation for r in receipts]))


def _result(number: int, command: commands.Submit, most: int | None) -> _Result:
    """As it is stored; raises NotFast where the ordinary path must decide it."""
    if command.seen is not None or command.usage or command.artifacts is not None or command.signature is not None:
        raise NotFast(number)
    if command.stopped or command.land is not None:
        raise NotFast(number)
    encoded = _json(command.data)
    if len(encoded) > task_view.INLINE or is_reference(command.data) or (most is not None and len(encoded) > most):
        raise NotFast(number)
    if len(command.summary) > inputs.LARGEST_TEXT // 4:
        raise NotFast(number)
    data = None if command.data is None else encoded.decode()
    return _Result(data, len(encoded), hashlib.sha256(encoded).hexdigest()[:32])


class _Rows:
    """The rows of a call, by their place from 0 on; read on first use, which is after the commit."""

    def __init__(self, read: Rows) -> None:
        self._read = read

    @cached_property
    def by_place(self) -> dict[int, tuple[Any, ...]]:
        return {row[0] - 1: row for row in self._read()}


def _accepted(seed: bytes, generations: list[int], rows: Rows) -> list[Reply]:
    done = _Rows(rows)
    return [Deferred(partial(_accepted_as, done, n, seed, generations)) for n in range(len(generations))]


def _accepted_as(done: _Rows, number: int, seed: bytes, generations: list[int]) -> Outcome:
    _, now, _, _, key, version, product, *_ = done.by_place[number]
    return Outcome(
        outcome="ACCEPTED",
        message=f"{key}: accepted as {product}",
        work_product=product,
        result=IdMaker(now, seed).nth("result", 2 * len(generations) + number + 1),
        generation=generations[number],
        current_generation=generations[number],
        work_lost=False,
        state=lifecycle.COMPLETED,
        version=version,
    )


# --- what follows for other tasks ---

Turn = Callable[[], Reply]


def in_turn(work: UnitOfWork, run: Run, built: Built, rows: list[tuple[Any, ...]]) -> list[Turn]:
    """For each accepted result what answers it, when the commands before it are done.

    The effects of a move on others are those of the ordinary path; here their rows are only read together.
    """
    call = built.call
    assert isinstance(call, Submits)
    replies = built.replies(lambda: rows)
    following = {row[0] - 1: row[7:] for row in rows if row[7] is not None}
    _read_others(work, call.project, [task for task, _ in following.values()])
    ids = IdMaker(work.now, call.seed)
    turns: list[Turn] = []
    for n, (command, principal) in enumerate(run):
        if n in following:
            who = (principal, command.trace_id, ids.nth("cmd", len(run) + n + 1))
            turns.append(partial(_followed, work, who, (command.project, *following[n]), replies[n]))
        else:
            turns.append(partial(_unchanged, replies[n]))
    return turns


def _unchanged(reply: Reply) -> Reply:
    return reply


def _read_others(work: UnitOfWork, project: str, ids: list[str]) -> None:
    if len(ids) < 2:
        return
    tasks = work.get_many(Task, project, ids).values()
    work.get_many(Dag, project, [task.dag for task in tasks if has_dag_row(task)])
    needed = [task.id for task in tasks if task.dependents]
    if needed:
        work.get_many(Task, project, [edge.task for edge in work.learn(Edge, project, "needs", needed)])


def _followed(
    work: UnitOfWork, who: tuple[Principal, str | None, str], moved: tuple[str, str, str], reply: Reply
) -> Reply:
    work.begin_command(*who)
    project, task, state_before = moved
    try:
        after = work.require(Task, project, task)
        work.moved.append((replace(after, state=state_before), after))
        spread(work)
    except OUR_FAULTS as error:  # the result is already written: the whole batch must roll back
        raise Bug(f"submit: {type(error).__name__}: {error}", "nothing was done; please report this") from error
    return reply


# --- renewals ---


def renewals(known: Known, run: Run, random: Random) -> Built:
    project = known.project
    if project.funded:  # a budget may add a directive for the holder
        raise NotFast
    odd = [n for n, (command, _) in enumerate(run) if command.background or command.worked or command.seen is not None]
    if odd:
        raise NotFast(*odd)
    receipts = _receipts(known, run)
    leases = [_lease(known, n, command) for n, (command, _) in enumerate(run)]
    maker, size = IdMaker(0, random.token(IdMaker.RANDOM_BYTES)), len(run)
    senders: list[Principal] = [principal for _, principal in run]
    call = Renewals(
        project.id, known.look.seen, receipts[0].epoch, [r.name for r in receipts], [r.generation for r in receipts],
        b"".join([r.nonce for r in receipts]), _holders(run), column(leases), column([p.agent for p in senders]),
        column([p.session for p in senders]), column([p.person for p in senders]), column([p.address for p in senders]),
        column([command.trace_id for command, _ in run]), [maker.tail(n) for n in range(1, size + 1)],
        [maker.tail(size + n) for n in range(1, size + 1)],
    )  # fmt: skip
    return Built(call, partial(_renewed, [r.generation for r in receipts]))


def _lease(known: Known, number: int, command: commands.Renew) -> int | None:
    try:
        return None if command.lease is None else inputs.lease_of(command.lease, known.project.limits)
    except TenureError:
        raise NotFast(number) from None


def _renewed(generations: list[int], rows: Rows) -> list[Reply]:
    held = _Rows(rows)
    return [Deferred(partial(_renewed_as, held, n, generation)) for n, generation in enumerate(generations)]


def _renewed_as(held: _Rows, number: int, generation: int) -> Outcome:
    _, now, _, _, until, mail = held.by_place[number]
    return Outcome(
        outcome="RENEWED",
        lease_until=until,
        lease=(until - now) / inputs.SECOND,
        generation=generation,
        state=lifecycle.RUNNING,
        directive="continue",
        mail=mail,
    )
