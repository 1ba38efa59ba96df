"""Rows that the commands of a batch would read one by one, read at once to save round trips."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress

from tenure.core import commands
from tenure.core.claims import MOST_NAMED, claim_id
from tenure.core.commands import Command
from tenure.core.errors import InvalidInput
from tenure.core.receipts import Receipt, parse_receipt
from tenure.core.records import Agent, Archived, Claim, Project, Session, Task
from tenure.engine.runtime.lanes import queues
from tenure.engine.runtime.unit_of_work import NO_RANDOM, UnitOfWork
from tenure.stores.fast_path import Asking
from tenure.stores.port import Transaction

_FAST_PATH = (commands.Submit, commands.Renew)


def read_ahead(work: UnitOfWork, batch: Sequence[Command], *, uses_fast_path: bool = False) -> None:
    """Everything below, for a batch of several; with `uses_fast_path` without what the fast path reads by itself."""
    if uses_fast_path or len(batch) > 1:
        read_claimers(
            work, [command for command in batch if not (uses_fast_path and type(command) is commands.ClaimNext)]
        )
        read_makers(work, batch)
    if uses_fast_path or len(batch) > 1:
        read_holders(
            work,
            [command for command in batch if not (uses_fast_path and isinstance(command, _FAST_PATH))],
            uses_fast_path=uses_fast_path,
        )


def expected(tx: Transaction, batch: Sequence[Command], *, uses_fast_path: bool) -> None:
    """Announce the reads that the batch is sure to make: a rehearsal on a transaction that only records them."""
    work = UnitOfWork(tx, NO_RANDOM)
    claims: dict[str, int] = {}
    for command in batch:
        claims.setdefault(command.project, 0)
        if isinstance(command, commands.ClaimNext):
            claims[command.project] += command.n
    for project, n in claims.items():
        work.get(Project, project, project)
        if n:
            queues(work, project, n, ahead=False)
    if uses_fast_path:
        first = [command for command in batch if type(command) is commands.ClaimNext]
        for project, numbers in claimants_of(first).items():
            tx.known(project, list(numbers.values()), MOST_NAMED)  # type: ignore[attr-defined]  # the store declares it
        read_holders(work, [command for command in batch if not isinstance(command, _FAST_PATH)], uses_fast_path=True)
    read_claimers(work, [command for command in batch if not (uses_fast_path and type(command) is commands.ClaimNext)])
    read_makers(work, batch)


def claimants_of(run: Iterable[commands.ClaimNext]) -> dict[str, dict[int, Asking]]:
    """The claimants, by project and by their number in the run."""
    found: dict[str, dict[int, Asking]] = {}
    for n, command in enumerate(run):
        found.setdefault(command.project, {})[n] = Asking(command.agent, command.session, command.request_id)
    return found


def read_makers(work: UnitOfWork, batch: Iterable[Command]) -> None:
    """Which of the tasks to create exist already."""
    keys: dict[str, list[str]] = {}
    for command in batch:
        if isinstance(command, commands.Add) and command.task.idempotency_key is not None:
            keys.setdefault(command.project, []).append(command.task.idempotency_key)
    for project, wanted in keys.items():
        work.learn_unique(Task, project, "idempotency_key", wanted)
        work.learn_absent(Archived, project, "idempotency_key", wanted)


def read_claimers(work: UnitOfWork, batch: Iterable[Command]) -> None:
    """The agents and sessions that want to claim, and which of them hold nothing and have no offers."""
    agents: dict[str, dict[str, None]] = {}
    sessions: dict[str, dict[str, None]] = {}
    requests: dict[str, list[str]] = {}
    for command in batch:
        if isinstance(command, (commands.ClaimTask, commands.ClaimNext)):
            agents.setdefault(command.project, {})[command.agent] = None
            sessions.setdefault(command.project, {})[command.session] = None
            if command.request_id is not None:
                requests.setdefault(command.project, []).append(command.request_id)
    for project, ids in requests.items():
        work.learn_absent(Claim, project, "request_id", ids)
    for project, names in agents.items():
        work.get_many(Agent, project, names)
        work.learn_absent(Task, project, "offer_to", names.keys())
    for project, names in sessions.items():
        work.get_many(Session, project, names)
        work.learn_absent(Task, project, "session", names.keys())


def read_holders(work: UnitOfWork, batch: Iterable[Command], *, uses_fast_path: bool) -> None:
    """The tasks, claims and holders of the presented receipts. Malformed receipts are skipped."""
    presented: dict[str, dict[Receipt, None]] = {}
    for command in batch:
        text = getattr(command, "receipt", None)
        if isinstance(text, str):
            with suppress(InvalidInput):
                receipt = parse_receipt(text)
                presented.setdefault(command.project, {})[receipt] = None
    for project, receipts in presented.items():
        if uses_fast_path:
            work.learn_holders(project, receipts)
            continue
        tasks = {t.ref: t.id for t in work.learn_unique(Task, project, "ref", {r.name for r in receipts})}
        ids = [claim_id(tasks[r.name], r.generation) for r in receipts if r.name in tasks]
        held = work.get_many(Claim, project, ids).values()
        work.get_many(Agent, project, [claim.agent for claim in held])
        work.get_many(Session, project, [claim.session for claim in held])
