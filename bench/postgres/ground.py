"""The server, a store of ours in a separate schema, and the check of its rows."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from typing import Any

import psycopg

from bench.ground import RESULT, TITLE, WrongAnswer, check, request_id
from bench.postgres.filling import Copier, Model, copy_agents
from tenure.client.caller import SystemRandom
from tenure.core import commands
from tenure.core.commands import NewTask
from tenure.core.outcomes import Outcome
from tenure.core.records import Claim, Result, Task
from tenure.engine import Context, Engine
from tenure.stores.open_store import open_store
from tests.servers.postgres import PostgresServer

BATCH = 500  # commands, and tasks, of one transaction: the engine's own bound


class Ground:
    """One database for everything, so that all sides have the same server, disk and neighbours."""

    def __init__(self, server: PostgresServer) -> None:
        self.server = server
        self.url = server.create(f"bench_{os.getpid()}")
        self._count = 0

    def schema(self) -> str:
        """A name that is not taken."""
        self._count += 1
        return f"bench_{self._count}"

    def board(self, projects: Sequence[str] = ("bench",)) -> Board:
        return Board(self.url, self.schema(), projects)

    def connect(self) -> psycopg.Connection[Any]:
        return psycopg.connect(self.url, autocommit=True)


class Board:
    """One store of ours, the grants and results that it acknowledged, and the comparison with its rows."""

    def __init__(self, url: str, schema: str, projects: Sequence[str]) -> None:
        self.url, self.schema, self.projects = url, schema, projects
        self.engine = Engine(open_store(self.store_url), SystemRandom(), Context(pause=time.sleep))
        self.granted: list[str] = []
        self.accepted: list[str] = []
        self.copier: Copier | None = None
        for project in projects:
            self.engine.do(commands.DefineProject(project=project))

    @property
    def store_url(self) -> str:
        return f"{self.url}?schema={self.schema}"

    def open_as(self, role: str) -> None:
        """Continue with another role of the database."""
        self.engine.store.close()
        url = self.store_url.replace("//tenure@", f"//{role}@")
        self.engine = Engine(open_store(url), SystemRandom(), Context(pause=time.sleep))

    def begin_with(self, *tasks: NewTask) -> None:
        """In each project one task of each sort, made by the engine: what `fill` copies."""
        self.copier = self.copier_of(*tasks)

    def copier_of(self, *tasks: NewTask, finished: bool = False) -> Copier:
        """Of one task of each sort in each project, created by the engine now, and submitted if wanted."""
        models = []
        for project in self.projects:
            made = self.engine.run([commands.Add(project=project, task=task) for task in tasks])
            check(made, "CREATED")
            for outcome in made:
                tokens = self._finish(project) if finished else ()
                models.append(_model(project, outcome, tokens))
        return Copier(self.url, self.schema, models)

    def _finish(self, project: str) -> tuple[str, ...]:
        """Claim and submit the next task; returns the ids of both requests."""
        asked = claim_next(project, "agent-of-old")
        (grant,) = self.claim([asked])
        handed = submit(project, str(grant.receipt))
        check(self.engine.run([handed]), "ACCEPTED")
        self.accepted.append(self.granted[-1])
        return (str(asked.request_id), str(handed.request_id))

    def fill(self, each: int) -> None:
        """`each` more ready tasks of every sort in every project."""
        if self.copier is None:
            self.begin_with(NewTask(title=TITLE))
        assert self.copier is not None
        self.copier.copy(each)
        self.copier.settle()

    def register(self, project: str, count: int, skills: Sequence[Sequence[str]] = ((),)) -> list[str]:
        """At least `count` agents that hold nothing, those with each set of skills in turn; their names."""
        each = -(-count // len(skills))
        for n, own in enumerate(skills):
            known = commands.Register(
                project=project, agent=f"crew{n}", session=f"session-crew{n}", capabilities=tuple(own)
            )  # fmt: skip
            check(self.engine.run([known]), "CREATED")
            copy_agents(self.url, self.schema, project, f"crew{n}", each)
        return [f"crew{n}-{k}" for k in range(1, each + 1) for n in range(len(skills))]

    # --- the commands, in batches ---

    def claim(self, asked: Sequence[commands.ClaimNext]) -> list[Outcome]:
        """One outcome a task; raises WrongAnswer where there was none."""
        answers = self.engine.run(asked)
        check(answers, "GRANTED")
        grants = [one for a in answers if isinstance(a, Outcome) for one in (a.claims or (a,))]
        self.granted += [g.task["id"] for g in grants if g.task is not None]
        return grants

    def renew(self, project: str, receipts: Sequence[str]) -> None:
        check(self.engine.run([commands.Renew(project=project, receipt=r) for r in receipts]), "RENEWED")

    def submit(self, project: str, grants: Sequence[Outcome]) -> None:
        check(self.engine.run([submit(project, str(g.receipt)) for g in grants]), "ACCEPTED")
        self.accepted += [g.task["id"] for g in grants if g.task is not None]

    # --- the check ---

    def verify(self, *, own_only: bool = False) -> None:
        """Each task was claimed once, every accepted result is there once, and nothing else is.

        `own_only`: of the tasks that were granted; the store has others of before.
        """
        claims: list[str] = []
        results: list[str] = []
        completed = 0
        with self.engine.store.begin("local", write=False) as tx:
            for where in self._looks() if own_only else [{"project": project} for project in self.projects]:
                claims += [c.task for c in tx.find(Claim, where)]
                results += [r.task for r in tx.find(Result, {**where, "accepted": True})]
                if not own_only:
                    completed += tx.count(Task, where, "state").get("completed", 0)
        totals = f"{len(self.granted)} granted, {len(self.accepted)} accepted"
        for what, found, wanted in (("claims", claims, self.granted), ("results", results, self.accepted)):
            if len(set(wanted)) != len(wanted):
                raise WrongAnswer(f"{totals}: one of them twice")
            if sorted(found) != sorted(wanted):
                raise WrongAnswer(f"{totals}, but the store has {len(found)} {what} of {len(set(found))} tasks")
        if completed != len(self.accepted) and not own_only:
            raise WrongAnswer(f"{totals}, but the store has {completed} completed tasks")

    def _looks(self) -> list[dict[str, Any]]:
        (project,) = self.projects
        parts = range(0, len(self.granted), BATCH)
        return [{"project": project, "task": tuple(self.granted[n : n + BATCH])} for n in parts]

    def close(self) -> None:
        if self.copier is not None:
            self.copier.close()
        self.engine.store.close()
        with psycopg.connect(self.url, autocommit=True) as link:
            link.execute(f'DROP SCHEMA "{self.schema}" CASCADE'.encode())


def _model(project: str, outcome: Any, tokens: tuple[str, ...]) -> Model:
    task = outcome.task
    return Model(project, task["id"], task["track"], int(task["ref"].rpartition("-")[2]), tokens)


def claim_next(project: str, agent: str, n: int = 1) -> commands.ClaimNext:
    return commands.ClaimNext(
        project=project, agent=agent, session=f"session-{agent}", n=n, request_id=request_id()
    )  # fmt: skip


def submit(project: str, receipt: str) -> commands.Submit:
    return commands.Submit(project=project, receipt=receipt, data=RESULT, summary="done", request_id=request_id())
