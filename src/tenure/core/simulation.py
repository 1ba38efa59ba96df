"""One run of a forecast: the remaining tasks, played to their end with drawn attempts and a clock that jumps.

A run decides nothing by itself. Which task an agent takes is decided by `priority`, when a task may start by `moves`
and `graph`, what follows a failure by `claims`, `settle` and `retry`, which tasks exclude each other by `reservations`:
the functions that the engine calls. Rows are made only where a rule needs one, after a failure; a task that succeeds
needs none, which is why a run of a thousand tasks takes milliseconds. The engine's suite plays the same draws on a
store and compares every claim (`testing/engine/forecasts.py`).

A dead letter is retried at once, up to three times, unless an edge defines what its failure means to its dependents: a
forecast that ended with the first failure would call a blocked plan finished.

Not played: budgets that stop claims (`forecast.py` reports whether they last), rate-limited models, offers that end,
subtasks that holders will create, and people.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from heapq import heapify, heappop, heappush
from typing import NamedTuple

from tenure.core import claims, graph, lifecycle, limits, moves, priority, reservations, retry, settle
from tenure.core.priority import Lane, Profile
from tenure.core.records import Agent, Brief, Claim, Edge, Reservation, Task, replace

LOST = "lease_expired"  # the class of an attempt that ended without the holder
_ENDS, _CHECKED, _OPENS, _RANKS, _RESTS, _LOOKS = range(6)  # kinds of events; the last changes nothing but the time


_IN_NO_QUEUE = -2  # the version of a held job: no entry has it


class Attempt(NamedTuple):
    """One attempt, as it went or as it may go."""

    duration: int  # microseconds
    error_class: str | None = None  # None: its result is accepted
    check: int = 0  # microseconds from its submission to its verdict
    cost: int | None = None  # nano-dollars
    tokens: int | None = None


class Draws(NamedTuple):
    """What happens in one run, the same however it is scheduled: the k-th attempt at a job is always the same one."""

    first: Sequence[Attempt]  # each job's
    later: Callable[[int, int], Attempt]  # job, number of the attempt from 1
    fraction: Callable[[int, int], float]  # of the delay after that attempt

    def attempt(self, job: int, number: int) -> Attempt:
        return self.later(job, number) if number else self.first[job]


class Job(NamedTuple):
    """A task that is not finished, with what the rules need of it."""

    task: Task
    brief: Brief
    patterns: tuple[str, ...] = ()  # reserved by its claim


class Scene:
    """The jobs and their order, prepared once for all runs."""

    def __init__(
        self,
        jobs: Sequence[Job],
        edges: Sequence[Edge],
        now: int,
        *,
        held: Sequence[Reservation] = (),
        most: int | None = None,
    ) -> None:
        """`held`: standalone reservations; `most`: how many claims the project allows at once."""
        self.jobs, self.now, self.most = jobs, now, most
        self.standalone = tuple(r for r in held if r.task is None)
        self.index = {job.task.id: n for n, job in enumerate(jobs)}
        self.dependents: list[list[tuple[int, Edge]]] = [[] for _ in jobs]
        for edge in edges:
            if edge.task in self.index and edge.needs in self.index:
                self.dependents[self.index[edge.needs]].append((self.index[edge.task], edge))
        self.unmet = [job.task.unmet for job in jobs]
        self.starts = [job.task.not_before for job in jobs]
        # Entries of queues; with a deadline a place in the order changes with time.
        self.keys = [
            None if job.task.deadline is not None else (*_place(job.task, now), n, 0) for n, job in enumerate(jobs)
        ]
        self.opens = [_opens_at(job.task, now) for job in jobs]
        self.opened = [(n, at) for n, at in enumerate(self.opens) if at is not None]
        self.is_special = [bool(job.task.cool_offs or job.task.guarded) for job in jobs]
        self.says_what_follows = [
            any(edge.on_failure != "block" for _, edge in dependents) for dependents in self.dependents
        ]
        self.held = [n for n, job in enumerate(jobs) if claims.is_held(job.task)]
        self._conflicts: dict[tuple[int, int], bool] = {}

    def conflict(self, one: int, other: int) -> bool:
        """Whether the reservations of two jobs overlap."""
        pair = (one, other) if one < other else (other, one)
        found = self._conflicts.get(pair)
        if found is None:
            found = self._conflicts[pair] = self._meets(one, self._taken(other))
        return found

    def is_barred(self, one: int, now: int) -> bool:
        """Whether a reservation that no task holds is in its way."""
        live = [r for r in self.standalone if r.until is None or r.until > now]
        return bool(live) and self._meets(one, live)

    def _meets(self, one: int, held: Sequence[Reservation]) -> bool:
        task, patterns = self.jobs[one].task, self.jobs[one].patterns
        return reservations.in_the_way(patterns, "exclusive", held, task=task.id, session="", now=self.now) is not None

    def _taken(self, job: int) -> list[Reservation]:
        task = self.jobs[job].task
        return [
            Reservation(
                project=task.project, id=task.id, pattern=pattern, task=task.id, agent="", session="", created_at=0
            )
            for pattern in self.jobs[job].patterns
        ]


def _place(task: Task, now: int) -> tuple[int, int, int, str]:
    """Its place among ready tasks of the same boost, as `priority.place` has it."""
    return priority.band_of(task), priority.rank(task, now), task.sequence, task.id


def _opens_at(task: Task, now: int) -> int | None:
    """When it may be claimed or wait for its dependencies only; None: not without a person."""
    if task.state == lifecycle.RETRYING:
        return task.retry_at
    if task.state == lifecycle.PAUSED:
        ends = [pause.until for pause in task.pauses]
        return None if None in ends or not ends else max(end for end in ends if end is not None)
    if task.state in (lifecycle.PENDING, lifecycle.READY, lifecycle.VALIDATING):
        return now
    return None  # a draft, a dead letter; a held task is not opened but ends


class Worker(NamedTuple):
    """An agent of the forecast; an imagined one may take every task."""

    row: Agent
    profile: Profile
    is_imagined: bool = False

    def may_take(self, lane: Lane) -> bool:
        return self.is_imagined or next(priority.lane_obstacles(self.profile, lane), None) is None

    def set_back(self, lane: Lane) -> int:
        return 0 if self.is_imagined else priority.set_back(self.profile, lane)


class Crew:
    """The agents of a forecast, and who takes what; prepared once for all runs.

    All lanes that the same agents take and that age alike are one queue. A job that no agent may take has the queue -1.
    """

    def __init__(self, scene: Scene, workers: Sequence[Worker]) -> None:
        self.agents = [worker.row for worker in workers]
        self.profiles = [worker.profile for worker in workers]
        numbers: dict[
            tuple[int, tuple[tuple[int, int], ...]], int
        ] = {}  # boost; agents, and how far back it is for each
        of_lane: dict[str, int] = {}
        self.queue_of: list[int] = []
        for job in scene.jobs:
            name = priority.lane_of(job.task)
            if name not in of_lane:
                lane = priority.lane_of_task(job.task)
                able = tuple((n, one.set_back(lane)) for n, one in enumerate(workers) if one.may_take(lane))
                of_lane[name] = numbers.setdefault((lane.boost, able), len(numbers)) if able else -1
            self.queue_of.append(of_lane[name])
        self.queues = len(numbers)
        # agent → boost and number of its queues, and how far back each is for it
        self.takes: list[list[tuple[int, int, int]]] = [[] for _ in workers]
        for (boost, able), n in numbers.items():
            for agent, back in able:
                self.takes[agent].append((boost, n, back))


class Span(NamedTuple):
    """One attempt in a run."""

    job: int
    number: int  # of the attempt at this job, from 0
    agent: int  # index of the agent; -1: a holder beyond the agents of the forecast
    began: int
    ended: int
    error_class: str | None


class Played(NamedTuple):
    """A run: its attempts in the order of their ends, and when each job was completed or given up."""

    spans: Sequence[Span]
    completed: Mapping[int, int]  # job → when
    dead: Mapping[int, int]  # job → when it became a dead letter and stayed one
    retried: Mapping[int, int]  # job → how often a person had to retry it
    reasons: Mapping[int, tuple[str, int]]  # job → why it did not begin earlier, and the job that it waited for

    def end(self, jobs: frozenset[int] | None = None) -> int | None:
        """When the last of these jobs ended; None where none did."""
        ends = [at for part in (self.completed, self.dead) for n, at in part.items() if jobs is None or n in jobs]
        return max(ends, default=None)


DEPENDENCY, AGENT, TIME, START = "dependency", "agent", "time", "start"  # why a job did not begin earlier
MOST_RETRIES = limits.FORECAST_RETRIES  # of one dead letter by a person


def play(scene: Scene, crew: Crew, draws: Draws) -> Played:
    """Play one run: every agent holds one task at a time and claims the best one as soon as it is free.

    A dead letter is retried at once, as by a person, unless an edge defines what its failure means to its dependents.
    """
    return _Run(scene, crew, draws).play()


class _Run:
    def __init__(self, scene: Scene, crew: Crew, draws: Draws) -> None:
        self.scene, self.crew, self.draws = scene, crew, draws
        self.agents = list(crew.agents)
        self.now = scene.now
        self.events: list[tuple[int, int, int, int, int]] = []  # time, kind, order, job, agent
        self.order = 0
        self.unmet = list(scene.unmet)
        self.rows: dict[int, Task] = {}  # jobs that are no longer as they were at the start
        self.numbers = [0] * len(scene.jobs)  # attempts that ended
        self.over: set[int] = set()  # completed, dead or cancelled
        self.busy: dict[int, tuple[int, int]] = {}  # held job → agent, when claimed
        self.aside: dict[int, list[int]] = {}  # held job → jobs that wait for its reservations
        self.free = list(range(len(self.agents)))
        self.looks: set[int] = set()
        self.versions: dict[int, int] = {}  # job → its newest entry in a queue, where it has had several
        self.queues: list[list[tuple[int, int, int, str, int, int]]] = [[] for _ in range(crew.queues)]
        self.last_of: dict[int, int] = {}  # agent → the job it held last
        self.freed: dict[int, tuple[int, str, int]] = {}  # job → when it became ready, and why then
        self.spans: list[Span] = []
        self.completed: dict[int, int] = {}
        self.dead: dict[int, int] = {}
        self.retried: dict[int, int] = {}
        self.reasons: dict[int, tuple[str, int]] = {}

    def play(self) -> Played:
        self._begin()
        self._claim()
        events = self.events
        while events:
            self.now = events[0][0]
            while events and events[0][0] == self.now:
                _, kind, order, job, agent = heappop(events)
                if kind == _ENDS:
                    self._ended(job, agent)
                elif kind == _OPENS:
                    self._open(job, TIME, job)
                elif kind == _RANKS:
                    if self.versions.get(job) == order:
                        self._queue(job)
                elif kind == _RESTS:
                    heappush(self.free, agent)
                elif kind == _CHECKED and job not in self.over:
                    self._complete(job)
            self._claim()
        return Played(self.spans, self.completed, self.dead, self.retried, self.reasons)

    def _begin(self) -> None:
        scene = self.scene
        names = {agent.id: n for n, agent in enumerate(self.agents)}
        for job in scene.held:
            task = scene.jobs[job].task
            place = names.get(task.agent or "", -1)
            if place not in self.free:
                place = self.free[-1] if self.free else -1
            if place >= 0:
                self.free.remove(place)
            self._hold(job, place, task.claimed_at or scene.now)
            self.reasons[job] = (START, job)
        heapify(self.free)
        for reservation in scene.standalone:
            if reservation.until is not None and reservation.until > scene.now:
                self._look_at(reservation.until)
        for job, at in scene.opened:
            if scene.jobs[job].task.state == lifecycle.VALIDATING:
                self._push(at + self.draws.first[job].check, _CHECKED, job, -1)
            elif at > scene.now:
                self._push(at, _OPENS, job, -1)
            else:
                self._open(job, START, job)

    def _push(self, at: int, kind: int, job: int, agent: int) -> int:
        self.order += 1
        heappush(self.events, (at, kind, self.order, job, agent))
        return self.order

    # --- ready ---

    def _open(self, job: int, why: str, by: int) -> None:
        """Nobody holds it and nothing delays it but its plan."""
        if job in self.over or job in self.busy:
            return
        not_before = self.scene.starts[job]
        if not moves.is_startable(self.unmet[job], not_before, self.now):
            if self.unmet[job] <= 0 and not_before is not None:
                self._push(not_before, _OPENS, job, -1)
            return
        self.freed[job] = (self.now, why, by)
        self._queue(job)

    def _queue(self, job: int) -> None:
        queue = self.crew.queue_of[job]
        if queue < 0:
            return
        key = self.scene.keys[job]
        if key is not None and job not in self.rows:
            heappush(self.queues[queue], key)
            return
        row = self.rows.get(job) or self.scene.jobs[job].task
        order = 0
        if row.deadline is not None:
            change = priority.next_urgency(row.deadline, self.now)
            order = self._push(change, _RANKS, job, -1) if change is not None else -1
            self.versions[job] = order
        heappush(self.queues[queue], (*_place(row, self.now), job, order))

    # --- claims ---

    def _claim(self) -> None:
        """Let every free agent claim, in their order."""
        waiting: list[int] = []
        free, most = self.free, self.scene.most
        while free and any(self.queues) and (most is None or len(self.busy) < most):
            agent = heappop(free)
            job = self._best(agent)
            if job is None:
                waiting.append(agent)
                continue
            if job not in self.reasons:
                since, why, by = self.freed[job]
                waited = since < self.now and agent in self.last_of
                self.reasons[job] = (AGENT, self.last_of[agent]) if waited else (why, by)
            self._hold(job, agent, self.now)
        for agent in waiting:
            heappush(free, agent)

    def _best(self, agent: int) -> int | None:
        """The best task that the agent may take now; it is taken out of its queue."""
        passed: list[tuple[int, tuple[int, int, int, str, int, int]]] = []
        found = None
        while found is None:
            best = None
            for boost, n, back in self.crew.takes[agent]:
                queue = self.queues[n]
                while queue and not self._is_current(queue[0]):
                    heappop(queue)
                if queue:
                    band, rank, sequence, id, _, _ = queue[0]
                    place = (band, rank - boost * self.now + back, sequence, id, n)
                    if best is None or place < best:
                        best = place
            if best is None:
                break
            entry = heappop(self.queues[best[4]])
            job = entry[4]
            if (job in self.rows or self.scene.is_special[job]) and self._is_barred(job, agent):
                passed.append((best[4], entry))
            elif not self.scene.jobs[job].patterns or not self._is_set_aside(job):
                found = job
        for n, entry in passed:
            heappush(self.queues[n], entry)
        return found

    def _is_current(self, entry: tuple[int, int, int, str, int, int]) -> bool:
        job = entry[4]
        return job not in self.over and job not in self.busy and self.versions.get(job, entry[5]) == entry[5]

    def _is_barred(self, job: int, agent: int) -> bool:
        task = self.rows.get(job) or self.scene.jobs[job].task
        obstacles = priority.task_obstacles(self.crew.profiles[agent], task, self.now, lambda _: False)
        if next(obstacles, None) is None:
            return task.guarded and self.scene.is_barred(job, self.now)
        ends = task.cool_offs.get(self.agents[agent].id, 0)
        if ends > self.now:
            self._look_at(ends)
        return True

    def _look_at(self, at: int) -> None:
        """Let the agents claim again then."""
        if at not in self.looks:
            self.looks.add(at)
            self._push(at, _LOOKS, -1, -1)

    def _is_set_aside(self, job: int) -> bool:
        """Whether a held task's reservations are in its way: it waits for the end of that claim."""
        other = next((held for held in self.busy if held != job and self.scene.conflict(job, held)), None)
        if other is not None:
            self.aside.setdefault(other, []).append(job)
        return other is not None

    def _hold(self, job: int, agent: int, began: int) -> None:
        self.busy[job] = (agent, began)
        if job in self.versions:
            self.versions[job] = _IN_NO_QUEUE
        duration = self.draws.attempt(job, self.numbers[job]).duration
        self._push(max(self.now, began + duration), _ENDS, job, agent)
        if agent >= 0:
            self.last_of[agent] = job

    # --- ends ---

    def _ended(self, job: int, agent: int) -> None:
        if job not in self.busy:
            return  # cancelled meanwhile
        number = self.numbers[job]
        self.numbers[job] = number + 1
        attempt = self.draws.attempt(job, number)
        _, began = self.busy.pop(job)
        self.spans.append(Span(job, number, agent, began, self.now, attempt.error_class))
        if attempt.error_class is not None:
            self._failed(job, agent, began, attempt.error_class, number)
        elif attempt.check:
            self._push(self.now + attempt.check, _CHECKED, job, -1)
        else:
            self._complete(job)
        if self.aside:
            for waiting in self.aside.pop(job, ()):
                self._queue(waiting)
        if agent >= 0:
            if attempt.error_class is None and self.agents[agent].troubles:
                self.agents[agent] = retry.agent_succeeded(self.agents[agent])
            self._let_go(agent)

    def _let_go(self, agent: int) -> None:
        cools = self.agents[agent].cool_until
        if cools is not None and cools > self.now:
            self._push(cools, _RESTS, -1, agent)
        else:
            heappush(self.free, agent)

    def _complete(self, job: int) -> None:
        self.over.add(job)
        self.completed[job] = self.now
        self._spread(job, lifecycle.COMPLETED)

    def _spread(self, job: int, state: str) -> None:
        """The effects on its dependents."""
        for other, edge in self.scene.dependents[job]:
            if graph.is_met(edge, state):
                self.unmet[other] -= 1
                if not self.unmet[other] and self.scene.opens[other] is not None:
                    self._open(other, DEPENDENCY, job)
            elif graph.cascades(edge, state) and other not in self.over:
                self.over.add(other)
                held = self.busy.pop(other, None)
                if held is not None and held[0] >= 0:
                    self._let_go(held[0])
                self._spread(other, lifecycle.CANCELLED)

    def _failed(self, job: int, agent: int, began: int, error_class: str, number: int) -> None:
        """What the rules make of the failure: a later attempt, or a dead letter."""
        brief = self.scene.jobs[job].brief
        row, claim = self._held_row(job, agent, began, number)
        chance = self.draws.fraction(job, number)
        if error_class == LOST:
            free = settle.gone(row, claim, brief, self.now, chance).task
        else:
            free, _ = claims.failed(row, claim, brief.retry, error_class, "", self.now, chance)
            if error_class in retry.AGENT_TROUBLE and agent >= 0:
                self.agents[agent] = retry.agent_troubled(self.agents[agent], self.now)
        if free.state == lifecycle.DEAD_LETTERED:
            times = self.retried.get(job, 0)
            if self.scene.says_what_follows[job] or times == MOST_RETRIES:
                self.over.add(job)
                self.dead[job] = self.now
                self._spread(job, lifecycle.DEAD_LETTERED)
                return
            self.retried[job] = times + 1
            free = moves.new_run(free, self.now)
        self.rows[job] = free
        if free.state == lifecycle.RETRYING and free.retry_at is not None:
            self._push(free.retry_at, _OPENS, job, -1)
        elif free.state == lifecycle.READY:
            self._open(job, TIME, job)

    def _held_row(self, job: int, agent: int, began: int, number: int) -> tuple[Task, Claim]:
        """Task and claim as the grant left them. Each attempt has its own session: a lost process does not return."""
        task = self.rows.get(job) or replace(self.scene.jobs[job].task, unmet=0)
        if claims.is_held(task):
            claim = Claim(
                project=task.project, id=claims.claim_id(task.id, task.generation), task=task.id,
                generation=task.generation, run=task.run, attempt=task.attempts, nonce=b"", epoch="",
                agent=task.agent or "", session=task.session or "", acquired_at=began, lease=task.lease or 0,
            )  # fmt: skip
            return task, claim
        ready = moves.waiting(task, began)
        name = self.agents[agent].id if agent >= 0 else ""
        return claims.granted(
            ready, None, agent=name, session=f"{name}.{number}", user=None, lease=0, now=began, nonce=b"", epoch="",
        )  # fmt: skip
