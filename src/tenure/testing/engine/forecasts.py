"""Forecasts: a run is the engine's own schedule, and the figures are what they say."""

from __future__ import annotations

import heapq
import random
from typing import Any

import pytest

from tenure.core import commands as c
from tenure.core import retry
from tenure.core.commands import Dependency, NewTask
from tenure.core.commands.holder_commands import Process, Totals
from tenure.core.errors import InvalidInput, NotFound
from tenure.core.queries import Forecast
from tenure.core.records import Project, RetryWords
from tenure.core.simulation import LOST, MOST_RETRIES, Attempt, Crew, Draws, Played, play
from tenure.engine.reads.forecast import ForecastQuestion, question_of
from tenure.engine.reads.query_table import read_query
from tenure.testing.engine.stage import Stage
from tenure.testing.factories import PROJECT, Scene

MINUTE = 60_000_000
HOUR = 60 * MINUTE
Line = tuple[str, str, int, int, str | None]  # key, agent, from, until, class of the failure


def seen(scene: Scene, **fields: Any) -> dict[str, Any]:
    found: dict[str, Any] = read_query(scene.engine, Forecast(project=PROJECT, **fields))
    return found


def asked(scene: Scene, agents: int | None = None) -> ForecastQuestion:
    project = scene.row(Project, PROJECT)
    return scene.engine.read_settled((PROJECT,), lambda work: question_of(work, project, agents, None, None))


def finished(scene: Scene, minutes: float, *, agent: str = "ann", usd: str | None = None, **fields: Any) -> None:
    """A task of the history that took so long."""
    receipt = scene.take(scene.add("past", **fields), agent, lease=1e6)
    scene.pass_time(minutes=minutes)
    usage = (Totals(model="opus", output=1000, cost_usd=usd),) if usd else ()
    scene.submit(receipt, usage=usage)


class Day:
    """The engine with agents that work as drawn: each claims when it is free, and ends its attempt in time."""

    def __init__(self, scene: Scene, question: ForecastQuestion, draws: Draws) -> None:
        self.scene, self.draws, self.question = scene, draws, question
        self.agents = [worker.row.id.replace("+", "imagined-") for worker in question.staff.workers]
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
            outcome = self.scene.next(name, session=f"{name}.{self.order}", lease=1e6, process=process)
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
    return int(session.rpartition(".")[2])


def lines_of(question: ForecastQuestion, played: Played) -> list[Line]:
    jobs, workers = question.scene.jobs, question.staff.workers
    return sorted(
        (jobs[s.job].task.key, workers[s.agent].row.id, s.began, s.ended, s.error_class) for s in played.spans
    )  # fmt: skip


def drawn(seed: int, jobs: int, troubles: bool) -> Draws:
    """Attempts in whole minutes, so that many things happen at once."""
    chance = random.Random(seed)  # noqa: S311  # tests
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
                max_attempts=chance.randint(1, 4), on_lost=chance.choice(["retry", "back_off"]),
                touches=(f"src/{chance.randint(1, 3)}/**",) * (chance.random() < 0.3),
                retry=RetryWords(strategy=chance.choice(["exponential", "fixed", "immediate"]), initial_delay=60.0),
                constraints={"required_capabilities": ["gpu"]} if chance.random() < 0.2 else {},
            )
        )  # fmt: skip
    return tasks


class Forecasts(Stage):
    @pytest.mark.sampled
    @pytest.mark.parametrize("seed", range(12))
    def test_a_run_is_the_schedule_of_the_engine(self, scene: Scene, seed: int) -> None:
        chance = random.Random(seed)  # noqa: S311  # tests
        for code in "AB":
            scene.do(c.DefineTrack, code=code, name=code)
        for n in range(chance.randint(1, 4)):
            skills, tracks = ("gpu",) * (n % 2 == 0), ("A",) * (n == 2)
            scene.do(c.Register, agent=f"agent{n}", capabilities=skills, tracks=tracks, stale_after=86400.0)
        scene.do(c.Plan, tasks=tuple(planned(chance, 30, scene.now)))
        question = asked(scene)
        draws = drawn(seed, len(question.scene.jobs), troubles=seed % 2 == 0)
        played = play(question.scene, Crew(question.scene, question.staff.workers), draws)
        assert lines_of(question, played) == Day(scene, question, draws).play()
        assert len(played.spans) >= 5

    def test_a_task_that_two_failures_cancel_counts_once_for_its_dependents(self, scene: Scene) -> None:
        scene.do(c.Register, agent="ann", stale_after=86400.0)
        scene.do(c.Register, agent="bo", stale_after=86400.0)
        cancels = (Dependency(task="one", on_failure="cancel"), Dependency(task="two", on_failure="cancel"))
        scene.plan(
            NewTask(title="one", name="one", priority=5),
            NewTask(title="two", name="two", priority=5),
            NewTask(title="cancelled", name="cancelled", depends_on=cancels),
            NewTask(title="long", name="long"),
            NewTask(
                title="last", depends_on=(Dependency(task="cancelled", on_failure="ignore"), Dependency(task="long"))
            ),
        )
        question = asked(scene)
        fails = {n for n, job in enumerate(question.scene.jobs) if job.brief.title in ("one", "two")}

        def attempt(job: int, _number: int) -> Attempt:
            return Attempt(10 * MINUTE, "permanent" if job in fails else None)

        draws = Draws([attempt(n, 0) for n in range(5)], attempt, lambda _job, _number: 0.5)
        played = play(question.scene, Crew(question.scene, question.staff.workers), draws)
        lines = lines_of(question, played)
        assert lines == Day(scene, question, draws).play()
        assert max(line[3] for line in lines) == question.scene.now + 30 * MINUTE

    def test_the_same_seed_gives_the_same_forecast_and_writes_nothing(self, scene: Scene) -> None:
        for minutes in (10, 12, 9, 30, 11, 8):
            finished(scene, minutes)
        scene.plan(*(NewTask(title=f"t{n}", name=f"t{n}") for n in range(20)))
        before = scene.tables()
        first = seen(scene, agents=2, runs=50, seed=7)
        assert seen(scene, agents=2, runs=50, seed=7) == first
        assert seen(scene, agents=2, runs=50, seed=8)["finish"] != first["finish"]
        assert scene.tables() == before

    def test_durations_come_from_finished_tasks_of_the_type_and_size(self, scene: Scene) -> None:
        for _ in range(5):
            finished(scene, 10, type="code", constraints={"complexity": 1})
            finished(scene, 60, type="code", constraints={"complexity": 8})
        scene.add("small", type="code", constraints={"complexity": 1})
        view = seen(scene, agents=1, runs=20)
        assert (view["finish"]["p10"], view["finish"]["p90"], view["guessed"]) == (600.0, 600.0, 0.0)
        scene.add("large", type="code", constraints={"complexity": 8})
        view = seen(scene, agents=1, runs=20)
        assert (view["finish"]["p50"], view["sources"]) == (4200.0, {"like tasks": 2})
        assert view["one_more"] == {"agents": 2, "p50": 3600.0, "saves": 600.0}

    def test_without_finished_tasks_an_estimate_is_spread_and_called_a_guess(self, scene: Scene) -> None:
        scene.add("new", constraints={"estimated_duration": 600})
        view = seen(scene, agents=1)
        assert (view["guessed"], view["sources"], view["finished"]) == (1.0, {"estimate": 1}, 0)
        assert view["finish"]["p10"] < 600 < view["finish"]["p90"]

    def test_failures_of_like_tasks_are_drawn_and_cost_time(self, scene: Scene) -> None:
        for _ in range(6):
            finished(scene, 10, type="sure")
            key = scene.add("past", type="risky")
            receipt = scene.take(key, lease=1e6)
            scene.pass_time(minutes=10)
            scene.fail(receipt, retry_after=0)
            receipt = scene.take(key, lease=1e6)
            scene.pass_time(minutes=10)
            scene.submit(receipt)
        scene.add("next", type="sure")
        sure = seen(scene, agents=1, runs=100)
        scene.add("next", type="risky", retry=RetryWords(strategy="immediate"))
        view = seen(scene, agents=2, runs=100)
        assert sure["finish"]["p90"] == 600.0
        assert view["finish"]["p50"] == 600.0 < view["finish"]["p90"]

    def test_the_cost_and_whether_the_budget_lasts(self, scene: Scene) -> None:
        for _ in range(6):
            finished(scene, 10, usd="0.50")
        scene.do(c.SetBudget, scope="project", usd="4.20")
        scene.plan(*(NewTask(title=f"t{n}") for n in range(4)))
        view = seen(scene, agents=1, runs=20)
        assert view["cost"] == {"p10": "2.00", "p50": "2.00", "p90": "2.00", "unknown": 0}
        assert [(b["id"], b["lasts"]) for b in view["budgets"]] == [("project", 1.0)]
        scene.do(c.SetBudget, scope="project", usd="1.20")
        (budget,) = seen(scene, agents=1, runs=20)["budgets"]
        assert (budget["left"], budget["lasts"], budget["ends_at"]) == ("1.20", 0.0, scene.now + 30 * MINUTE)

    def test_a_task_without_a_known_cost_is_counted_and_never_free(self, scene: Scene) -> None:
        for _ in range(6):
            finished(scene, 10, usd="0.50", type="paid")
            finished(scene, 10, type="unknown")
        scene.add("a", type="paid")
        scene.add("b", type="unknown")
        assert seen(scene, runs=10)["cost"] == {"p10": "0.50", "p50": "0.50", "p90": "0.50", "unknown": 1}

    def test_the_path_that_decides_and_why_each_task_waits(self, scene: Scene) -> None:
        for _ in range(5):
            finished(scene, 10)
            finished(scene, 30, type="long")
        first, second, _ = scene.plan(
            NewTask(title="first", name="a", type="long"),
            NewTask(title="second", name="b", depends_on=("a",)),
            NewTask(title="aside", name="c"),
        )
        path = seen(scene, agents=2, runs=10)["path"]
        assert [(p["key"], p["why"], p["ends"], p["share"]) for p in path] == [
            (first, "start", 1800.0, 1.0),
            (second, "dependency", 2400.0, 1.0),
        ]
        alone = seen(scene, agents=1, runs=10)["path"]
        assert [p["title"] for p in alone] == ["first", "second", "aside"]
        assert alone[-1]["why"] == "agent"

    def test_a_held_task_takes_what_is_left_of_longer_ones(self, scene: Scene) -> None:
        for minutes in (10, 10, 10, 40, 40, 40):
            finished(scene, minutes)
        scene.take(scene.add("now"), "ann", lease=1e6)
        scene.pass_time(minutes=15)
        view = seen(scene, agents=1, runs=20)
        assert (view["finish"]["p10"], view["finish"]["p90"]) == (1500.0, 1500.0)

    def test_tasks_that_wait_for_a_person_are_left_out_and_named(self, scene: Scene) -> None:
        draft = scene.add("draft", draft=True)
        paused, behind, free = scene.plan(
            NewTask(title="paused", name="a"), NewTask(title="behind", name="b", depends_on=("a",)), NewTask(title="c")
        )
        scene.do(c.Pause, task=paused, reason="later")
        view = seen(scene, agents=1, runs=5)
        assert {one["key"]: one["why"] for one in view["left_out"]} == {
            draft: "is a draft",
            paused: "is paused: later",
            behind: "waits for a task that does not end",
        }
        assert [p["key"] for p in view["path"]] == [free]
        assert (view["tasks"], view["left_out_count"]) == (4, 3)
        assert view["left_out_why"] == {"drafts": 1, "paused": 1, "behind a task that does not end": 1}

    def test_a_plan_is_forecast_without_being_applied(self, scene: Scene) -> None:
        for _ in range(5):
            finished(scene, 10)
        scene.add("open already")
        before = scene.tables()
        tasks = (NewTask(title="one", name="a"), NewTask(title="two", name="b", depends_on=("a",)))
        view = seen(scene, agents=1, runs=10, tasks=tasks, name="p")
        assert (view["tasks"], view["finish"]["p50"]) == (2, 1800.0)  # behind the task that is open already
        assert scene.tables() == before
        with pytest.raises(InvalidInput):
            seen(scene, tasks=(NewTask(title="loop", name="a", depends_on=("a",)),))

    def test_agents_that_work_now_are_counted_and_keep_their_limits(self, scene: Scene) -> None:
        scene.do(c.Register, agent="ann", tracks=("A",))
        scene.do(c.DefineTrack, code="B", name="other")
        other = scene.add("for nobody", track="B")
        scene.add("mine")
        view = seen(scene, runs=5)
        assert (view["agents"], view["agents_are"]) == (1, "active now")
        assert view["left_out"] == [{"key": other, "why": "no agent of the forecast may take it"}]
        assert seen(scene, agents=2, runs=5)["left_out"] == []
        scene.pass_time(hours=2)
        assert (seen(scene, runs=5)["agents"], seen(scene, runs=5)["agents_are"]) == (1, "assumed")

    @pytest.mark.parametrize(
        "fields", [{"agents": 0}, {"agents": 1001}, {"runs": 0}, {"runs": 1001}, {"agents": 1, "pool": "x"}]
    )
    def test_bad_numbers_are_refused(self, scene: Scene, fields: dict[str, Any]) -> None:
        with pytest.raises(InvalidInput):
            seen(scene, **fields)

    def test_an_unknown_dag_or_pool_is_named(self, scene: Scene) -> None:
        for fields in ({"dag": "nope"}, {"pool": "nope"}):
            with pytest.raises(NotFound, match="nope"):
                seen(scene, **fields)

    def test_a_pool_gives_as_many_agents_as_it_has_places_for_what_it_takes(self, scene: Scene) -> None:
        for _ in range(5):
            finished(scene, 10)
        scene.do(c.SetPool, pool="coders", program="claude", size=2, types=("code",))
        scene.plan(*(NewTask(title=f"t{n}") for n in range(4)))
        other = scene.add("not theirs", type="review")
        view = seen(scene, pool="coders", runs=5)
        assert (view["agents"], view["agents_are"], view["finish"]["p50"]) == (2, "pool", 1200.0)
        assert view["left_out"] == [{"key": other, "why": "no agent of the forecast may take it"}]
        assert view["one_more"] == {"agents": 3, "p50": 1200.0, "saves": 0.0}
