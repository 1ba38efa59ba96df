"""Rows that the commands of a batch would ask for one by one, read at once: a server answers each question alone."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress

from tenure.core import commands
from tenure.core.claims import claim_id
from tenure.core.commands import Command
from tenure.core.errors import InvalidInput
from tenure.core.receipts import Receipt, parse_receipt
from tenure.core.records import Agent, Brief, Claim, Session, Task
from tenure.engine.work import Work


def read_ahead(work: Work, batch: Sequence[Command]) -> None:
    """Everything below, for a batch of several."""
    if len(batch) > 1:
        read_claimers(work, batch)
        read_holders(work, batch)


def read_claimers(work: Work, batch: Iterable[Command]) -> None:
    """The agents and sessions that want to claim, and which of them hold nothing and were offered nothing."""
    agents: dict[str, dict[str, None]] = {}
    sessions: dict[str, dict[str, None]] = {}
    for command in batch:
        if isinstance(command, (commands.Claim, commands.ClaimNext)):
            agents.setdefault(command.project, {})[command.agent] = None
            sessions.setdefault(command.project, {})[command.session] = None
    for project, names in agents.items():
        work.get_many(Agent, project, names)
        work.learn_absent(Task, project, "offer_to", names.keys())
    for project, names in sessions.items():
        work.get_many(Session, project, names)
        work.learn_absent(Task, project, "session", names.keys())


def read_holders(work: Work, batch: Iterable[Command]) -> None:
    """The tasks and claims of the receipts that are presented, and who holds them. What is no receipt is left alone."""
    presented: dict[str, list[Receipt]] = {}
    for command in batch:
        text = getattr(command, "receipt", None)
        if isinstance(text, str):
            with suppress(InvalidInput):
                presented.setdefault(command.project, []).append(parse_receipt(text))
    for project, receipts in presented.items():
        tasks = {t.ref: t.id for t in work.learn_unique(Task, project, "ref", {r.name for r in receipts})}
        ids = [claim_id(tasks[r.name], r.generation) for r in receipts if r.name in tasks]
        held = work.get_many(Claim, project, ids).values()
        work.get_many(Agent, project, [claim.agent for claim in held])
        work.get_many(Session, project, [claim.session for claim in held])


def read_offered(work: Work, project: str, ids: list[str]) -> None:
    """The tasks next in line, as many as the batch may take, with what is handed out along with them."""
    if work.expected_claims > 1:
        wanted = ids[: work.expected_claims]
        work.get_many(Task, project, wanted)
        work.get_many(Brief, project, wanted)
