"""Forecasts: a run is the engine's own schedule, and the figures are what they say."""

from __future__ import annotations

import heapq
import random
from typing import Any

import pytest

from tenure.core import commands as c
from tenure.core import retry
from tenure.core.commands import Dependency, NewTask
from tenure.core.commands.holder_commands import Process
from tenure.core.errors import InvalidInput, NotFound
from tenure.core.queries import Forecast
from tenure.core.records import Project, RetryWords
from tenure.core.simulation import LOST, MOST_RETRIES, Attempt, Crew, Draws, Played, play
from tenure.engine.reads.forecast import Question, question_of
from tenure.engine.reads.query_table import read_query
from tenure.testing.engine.stage import Stage
from tenure.testing.factories import PROJECT, Scene

MINUTE = 60_000_000
HOUR = 60 * MINUTE
Line = tuple[str, str, int, int, str | None]  # key, agent, from, until, class of the failure


def seen(scene: Scene, **fields: Any) -> dict[str, Any]:
    found: dict[str, Any] = read_query(scene.engine, Forecast(project=PROJECT, **fields))
    return found


def asked(scene: Scene, agents: int | None = None) -> Question:
    with scene.engine.reading((PROJECT,)) as work:
        return question_of(work, work.require(Project, PROJECT, PROJECT), agents, None, None)


def finished(scene: Scene, minutes: float, *, agent: str = "ann", usd: str | None = None, **fields: Any) -> None:
    """A task of the history that took so long."""
    receipt = scene.take(scene.add("past", **fields), agent, lease=1e6)
    scene.pass_time(minutes=minutes)
    usage = (c.UsageReport(model="claude-opus-4-6", output_tokens=1000, cost_usd=usd),) if usd else ()
    scene.submit(receipt, usage=usage)


class _Day:
    """The engine with agents that work as drawn: each claims when it is free, and ends its attempt in time."""

    def __init__(self, scene: Scene, question: Question, draws: Draws) -> None:
        self.scene, self.draws, self.question = scene, draws, question
        self.agents = [worker.row.id for worker in question.staff.workers]
        self.ends: list[tuple[int, int, int, int, str]] = []  # time, order, job, agent, receipt
        self.began: dict[int, int] = {}
        self.numbers: dict[int, int] = {}
        self.retried: dict[int, int] = {}
        self.order = 0
        self.lines: list[Line] = []

    def play(self) -> list[Line]:
        free = set(range(len(self.agents)))
        while True:
            wake = self._claim(free)
            times = [at for at in (wake, self.ends[0][0] if self.ends else None) if at is not None]
            if not times:
                return sorted(self.lines)
            self.scene.clock.now = min(times)
            while self.ends and self.ends[0][0] <= self.scene.now:
                _, _, job, agent, receipt = heapq.heappop(self.ends)
                self._end(job, agent, receipt)
                free.add(agent)

    def _claim(self, free: set[int]) -> int | None:
        """Let the free agents claim, in their order; when to look again if nothing ends before."""
        wake: list[int] = []
        for agent in sorted(free):
            self.order += 1
            name = self.agents[agent]
            process = Process(host="h", boot="b", pid=self.order, start=1)
            outcome = self.scene.next(name, session=f"{name}#{self.order}", lease=1e6, process=process)
            if outcome.task is None:
                if outcome.retry_at is not None and outcome.retry_at > self.scene.now:
                    wake.append(outcome.retry_at)
                continue
            free.discard(agent)
            job = self.question.scene.index[outcome.task["id"]]
            self.began[job] = self.scene.now
            drawn = self.draws.attempt(job, self.numbers.get(job, 0))
            heapq.heappush(self.ends, (self.scene.now + drawn.duration, self.order, job, agent, str(outcome.receipt)))
        return min(wake, default=None)

    def _end(self, job: int, agent: int, receipt: str) -> None:
        number = self.numbers.get(job, 0)
        self.numbers[job] = number + 1
        task = self.question.scene.jobs[job].task
        error_class = self.draws.attempt(job, number).error_class
        claim = self.scene.last_claim(task.id)
        if claim.state != "active":
            return  # cancelled with the task that it depends on
        self.lines.append((task.key, self.agents[agent], self.began[job], self.scene.now, error_class))
        if error_class is None:
            assert self.scene.submit(receipt).outcome == "ACCEPTED"
        elif error_class == LOST:
            self.scene.do(c.Gone, processes=(Process(host="h", boot="b", pid=_pid(claim.session), start=1),))
        else:
            self.scene.fail(receipt, error_class)
        if self.scene.state(task.id) == "dead_lettered" and self._is_retried(job):
            self.scene.do(c.Retry, task=task.id)

    def _is_retried(self, job: int) -> bool:
        times = self.retried.get(job, 0)
        if self.question.scene.says_what_follows[job] or times == MOST_RETRIES:
            return False
        self.retried[job] = times + 1
        return True


def _pid(session: str) -> int:
    return int(session.rpartition("#")[2])


def lines_of(question: Question, played: Played) -> list[Line]:
    jobs, workers = question.scene.jobs, question.staff.workers
    return sorted(
        (jobs[s.job].task.key, workers[s.agent].row.id, s.began, s.ended, s.error_class) for s in played.spans
    )  # fmt: skip


def drawn(seed: int, jobs: int, troubles: bool) -> Draws:
    """Attempts in whole minutes, so that many things happen at once."""
    chance = random.Random(seed)
    classes = ["task", "crash", "permanent", LOST, retry.RATE_LIMIT]
    classes += ["environment", "upstream_timeout"] if troubles else []

    def attempt(_job: int, _number: int) -> Attempt:
        error_class = chance.choice(classes) if chance.random() < 0.3 else None
        return Attempt(chance.randint(1, 45) * MINUTE, error_class)

    made = {(job, number): attempt(job, number) for job in range(jobs) for number in range(60)}
    return Draws([made[job, 0] for job in range(jobs)], lambda job, n: made[job, n], lambda _job, _number: 0.5)


def planned(chance: random.Random, count: int, now: int) -> list[NewTask]:
    """A graph with everything that decides who takes what when."""
    tasks = []
    for n in range(count):
        needs = {chance.randrange(n) for _ in range(chance.randint(0, 3))} if n else set()
        follows = chance.choices(["block", "ignore", "cancel"], (8, 1, 1))[0]
        tasks.append(
            NewTask(
                title=f"task {n}", name=f"t{n}", track=chance.choice("AB"), type=chance.choice(["code", "review"]),
                depends_on=tuple(Dependency(task=f"t{m}", on_failure=follows) for m in sorted(needs)),
                priority=chance.choice([5, 20, 50, 50, 90]), boost=chance.choice([None, None, 1.0, 10.0]),
                deadline=now + chance.randint(1, 40) * HOUR if chance.random() < 0.3 else None,
                not_before=now + chance.randint(1, 300) * MINUTE if chance.random() < 0.2 else None,
                max_attempts=chance.randint(1, 4), touches=(f"src/{chance.randint(1, 3)}/**",) * (chance.random() < 0.3),
                on_lost=chance.choice(["retry", "back_off"]),
                retry=RetryWords(strategy=chance.choice(["exponential", "fixed", "immediate"]), initial_delay=60.0),
                constraints={"required_capabilities": ["gpu"]} if chance.random() < 0.2 else {},
            )
        )  # fmt: skip
    return tasks


class Forecasts(Stage):
    @pytest.mark.sampled
    @pytest.mark.parametrize("seed", range(12))
    def test_a_run_is_the_schedule_of_the_engine(self, scene: Scene, seed: int) -> None:
        chance = random.Random(seed)
        for code in "AB":
            scene.do(c.DefineTrack, code=code, name=code)
        for n in range(chance.randint(1, 4)):
            skills, tracks = ("gpu",) * (n % 2 == 0), ("A",) * (n == 2)
            scene.do(c.Register, agent=f"agent{n}", capabilities=skills, tracks=tracks, stale_after=86400.0)
        scene.do(c.Plan, tasks=tuple(planned(chance, 30, scene.now)))
        question = asked(scene)
        draws = drawn(seed, len(question.scene.jobs), troubles=seed % 2 == 0)
        played = play(question.scene, Crew(question.scene, question.staff.workers), draws)
        assert lines_of(question, played) == _Day(scene, question, draws).play()
        assert len(played.spans) >= 10
