"""The forecast of a project: rows are read in one transaction, and played after it. Nothing is written.

A plan that is not applied yet is applied here, by the handler of `plan`, to rows that are never saved.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from tenure.core import budgets as budget_rules
from tenure.core import commands, forecast, inputs, lifecycle, limits, models, money, priority, team
from tenure.core import queries as q
from tenure.core.commands import OWNER, NewTask, NewTrack
from tenure.core.errors import InvalidInput, NotFound, TooLarge
from tenure.core.forecast import ExpectedJob, FinishedTask, Samples
from tenure.core.pools import agent_type
from tenure.core.records import (
    Agent,
    Brief,
    Budget,
    Claim,
    Dag,
    Edge,
    Pool,
    Project,
    Reservation,
    Row,
    Task,
    Usage,
    replace,
)
from tenure.core.simulation import LOST, Attempt, Crew, Job, Played, Scene, Worker, play
from tenure.engine.models.estimates import estimate_of
from tenure.engine.runtime.rows import project_of
from tenure.engine.runtime.unit_of_work import Deferred, Reads, UnitOfWork
from tenure.engine.verbs.claim_rules import patterns_of

if TYPE_CHECKING:
    from tenure.core import views as v

R = TypeVar("R", bound=Row)
SECOND = 1_000_000
PAGE = 500
SHOWN = 20  # of the tasks that are left out
MOST_AGENTS = limits.FORECAST_AGENTS
COMPARED = 50  # runs with one agent more: the same draws, so that few show the difference
# Dead letters and drafts are open, but only a person moves them.
_PLAYED = tuple(s for s in lifecycle.OPEN if s not in (lifecycle.CREATED, lifecycle.DEAD_LETTERED))


class Staff(NamedTuple):
    workers: list[Worker]
    found: str  # how: as `agents_are` of the view
    more: Worker  # the one more


class ForecastQuestion(NamedTuple):
    """Everything that the runs need; read in one transaction."""

    scene: Scene
    expected: list[ExpectedJob]
    staff: Staff
    about: frozenset[int] | None  # the jobs that it is about; None: all
    budgets: list[tuple[Budget, frozenset[int] | None]]
    finished: int
    open_tasks: int  # of those that it is about
    left_out: list[v.LeftOutView]


def read_forecast(
    work: UnitOfWork,
    project: str,
    *,
    agents: int | None = None,
    pool: str | None = None,
    dag: str | None = None,
    runs: int = 200,
    seed: int = 0,
    tasks: tuple[NewTask, ...] = (),
    tracks: tuple[NewTrack, ...] = (),
    name: str | None = None,
    budget: str | None = None,
) -> Deferred:
    row = project_of(work, project)
    _check(agents, pool, runs, dag, tasks)
    if tasks:
        planned = commands.Plan(project=project, tasks=tasks, tracks=tracks, name=name, budget=budget)
        dag = _with_plan(work, planned)
    elif dag is not None:
        dag = _dag_named(work, project, dag)
    question = question_of(work, row, agents, pool, dag)
    return Deferred(lambda: _answer(question, runs, seed))


def _check(agents: int | None, pool: str | None, runs: int, dag: str | None, tasks: Sequence[NewTask]) -> None:
    if agents is not None and not 1 <= agents <= MOST_AGENTS:
        raise InvalidInput(f"agents must be from 1 to {MOST_AGENTS} (got {agents})")
    if agents is not None and pool is not None:
        raise InvalidInput("agents and pool are both given", "give one of them")
    if not 1 <= runs <= limits.FORECAST_RUNS:
        raise InvalidInput(f"runs must be from 1 to {limits.FORECAST_RUNS} (got {runs})")
    if dag is not None and tasks:
        raise InvalidInput("dag and tasks are both given", "a forecast is about a dag or about a plan's tasks")


def _with_plan(work: UnitOfWork, planned: commands.Plan) -> str:
    """Apply the plan to the rows of this unit of work, which are never saved; return its dag."""
    from tenure.engine.verbs.plan import plan  # most forecasts have none

    work.begin_command(OWNER, None)  # nothing is written, so nobody's role is needed
    outcome = plan(work, inputs.validated(planned).command)
    if planned.name is not None:
        return work.find(Dag, {"project": planned.project, "plan": planned.name}, limit=1)[0].id
    return str((outcome.tasks or ())[0]["dag"])


def _dag_named(work: UnitOfWork, project: str, name: str) -> str:
    """A dag's id, or a plan's name."""
    found = work.find(Dag, {"project": project, "plan": name}, limit=1)
    if not found and not work.find(Task, {"project": project, "dag": name}, limit=1):
        raise NotFound(f"no dag or plan {name[:80]!r} in project {project}", "`tenure plan graph` shows what there is")
    return found[0].id if found else name


# --- rows -----------------------------------------------------------------------------------------------------


def question_of(
    work: UnitOfWork, project: Project, agents: int | None, pool: str | None, dag: str | None
) -> ForecastQuestion:
    where = {"project": project.id, "state": lifecycle.OPEN}
    open_ = work.find(Task, where, limit=limits.FORECAST_TASKS + 1)
    if len(open_) > limits.FORECAST_TASKS:
        raise TooLarge(f"a forecast may have at most {limits.FORECAST_TASKS} open tasks")
    tasks = [replace(t, offer_to=None, offer_until=None) for t in open_ if t.state in _PLAYED]
    briefs = work.get_many(Brief, project.id, [t.id for t in tasks])
    jobs = [Job(t, briefs[t.id], patterns_of(briefs[t.id]) if t.guarded else ()) for t in tasks]
    edges = list(_of_tasks(work, Edge, project.id, [t.id for t in tasks if t.unmet]))
    held = work.find(Reservation, {"project": project.id})
    most = work.limits_of(project).get("max_concurrent_claims")
    scene = Scene(jobs, edges, work.now, held=held, most=most)
    history = _history(work, project.id, open_)
    samples = Samples(history)
    spent = _spent(work, project.id, [t for t in tasks if t.state in lifecycle.HELD])
    expected = [_expected(work, samples, job, spent) for job in jobs]
    about = None if dag is None else frozenset(n for n, t in enumerate(tasks) if t.dag == dag)
    staff = _staff(work, project, jobs, agents, pool)
    left_out = _left_out(open_, scene, staff, dag)
    budgets, count = _budgets(work, project.id, tasks), sum(dag in (None, t.dag) for t in open_)
    return ForecastQuestion(scene, expected, staff, about, budgets, len(history), count, left_out)


def _of_tasks(work: UnitOfWork, kind: type[R], project: str, ids: Sequence[str]) -> Iterator[R]:
    for at in range(0, len(ids), PAGE):
        yield from work.find(kind, {"project": project, "task": tuple(ids[at : at + PAGE])})


def _history(work: UnitOfWork, project: str, open_: Sequence[Task]) -> list[FinishedTask]:
    """Ended attempts, the newest tasks first: of completed tasks, and failed ones of tasks that are still open."""
    where = {"project": project, "state": lifecycle.COMPLETED}
    done = work.find(Task, where, order="-id", limit=limits.FORECAST_HISTORY)
    tried = [task for task in open_ if task.generation]
    tasks = {task.id: task for task in (*done, *tried)}
    briefs = work.get_many(Brief, project, tasks)
    usage: dict[tuple[str, int], list[Usage]] = {}
    for row in _of_tasks(work, Usage, project, [t.id for t in tasks.values() if t.metered]):
        usage.setdefault((row.task, row.generation), []).append(row)
    ended: dict[str, list[Claim]] = {}
    for claim in _of_tasks(work, Claim, project, list(tasks)):
        ended.setdefault(claim.task, []).append(claim)
    found = []
    for id, task in tasks.items():
        constraints = briefs[id].constraints
        estimate = constraints.get("estimated_duration")
        size = models.size_of(constraints)
        for claim in ended.get(id, ()):
            attempt = _attempt(task, claim, usage.get((id, claim.generation), ()))
            if attempt is not None:
                found.append(FinishedTask(task.type, size, attempt, round(estimate * SECOND) if estimate else None))
    return found


def _attempt(task: Task, claim: Claim, spent: Iterable[Usage]) -> Attempt | None:
    """The attempt of an ended claim; None where its end does not depend on the task: a release, a pause, a person."""
    if claim.released_at is None:
        return None
    error_class, check = None, 0
    is_last = claim.generation == task.generation and task.state == lifecycle.COMPLETED
    if claim.reason == lifecycle.SUBMITTED_BY.reason:
        error_class = None if is_last else "invalid_output"
        check = max(0, (task.completed_at or 0) - claim.released_at) if is_last else 0
    elif claim.reason == lifecycle.FAILED_COUNTING.reason:
        error_class = claim.error_class
    elif claim.reason == lifecycle.EXPIRED_BY.reason:
        error_class = None if claim.result_accepted else LOST
    elif claim.reason == lifecycle.ABORTED_BY.reason and claim.error_class is not None:
        error_class = claim.error_class
    elif claim.reason != lifecycle.COMPLETED_BY.reason:
        return None
    rows = [row for row in spent if not row.late]
    costs = [row.cost for row in rows]
    cost = None if not rows or None in costs else sum(c or 0 for c in costs)
    tokens = sum(models.tokens_of(row) for row in rows) if rows else None
    return Attempt(max(1, claim.released_at - claim.acquired_at), error_class, check, cost, tokens)


def _spent(work: UnitOfWork, project: str, held: Sequence[Task]) -> dict[str, list[Usage]]:
    """What live claims have spent so far."""
    now = {task.id: task.generation for task in held if task.metered}
    found: dict[str, list[Usage]] = {}
    for row in _of_tasks(work, Usage, project, list(now)):
        if row.generation == now[row.task] and not row.late:
            found.setdefault(row.task, []).append(row)
    return found


def _expected(work: UnitOfWork, samples: Samples, job: Job, spent: dict[str, list[Usage]]) -> ExpectedJob:
    task, brief = job.task, job.brief
    sample = samples.of(task.type, brief.constraints)
    cost = tokens = elapsed = None
    if sample.attempts[0].cost is None or sample.attempts[0].tokens is None:
        estimate = estimate_of(work, task, brief)
        cost, tokens = estimate.cost, estimate.tokens
    if task.state in lifecycle.HELD:
        elapsed = work.now - (task.claimed_at or work.now)
    rows = spent.get(task.id, ())
    return ExpectedJob(
        sample, cost, tokens, elapsed, sum(r.cost or 0 for r in rows), sum(models.tokens_of(r) for r in rows)
    )  # fmt: skip


def _staff(work: UnitOfWork, project: Project, jobs: Sequence[Job], agents: int | None, pool: str | None) -> Staff:
    if pool is not None:
        return _of_pool(work, project, pool)
    holds = Counter(job.task.agent for job in jobs if job.task.state in lifecycle.HELD)
    live = [
        agent
        for agent in work.find(Agent, {"project": project.id})
        if team.status(agent, holds[agent.id], work.now) in ("active", "idle")
    ]
    live.sort(key=lambda agent: (not holds[agent.id], agent.id))
    found = "given" if agents is not None else "active now" if live else "assumed"
    count = agents if agents is not None else max(1, len(live))
    known = [Worker(a, priority.profile_of(a, project.stopped)) for a in live[:count]]
    imagined = [_imagined(project, n) for n in range(len(known), count + 1)]
    return Staff([*known, *imagined[:-1]], found, imagined[-1])


def _of_pool(work: UnitOfWork, project: Project, name: str) -> Staff:
    """As many agents as the pool has places, each with what the pool takes; the one more is another place."""
    pool = work.get(Pool, project.id, name)
    if pool is None:
        raise NotFound(f"no pool {name[:80]!r} in project {project.id}", "`tenure pool list` names them")
    workers = []
    for number in range(pool.size + 1):
        row = Agent(
            project=project.id, id=f"{name}-{number + 1}", type=agent_type(pool.program),
            capabilities=pool.capabilities, tracks=pool.tracks, models=pool.models, registered_at=0, last_seen=0,
        )  # fmt: skip
        workers.append(Worker(row, replace(priority.profile_of(row, project.stopped), types=pool.types)))
    return Staff(workers[:-1], "pool", workers[-1])


def _imagined(project: Project, number: int) -> Worker:
    row = Agent(project=project.id, id=f"+{number + 1}", registered_at=0, last_seen=0)
    return Worker(row, priority.profile_of(row, project.stopped), is_imagined=True)


def _budgets(work: UnitOfWork, project: str, tasks: Sequence[Task]) -> list[tuple[Budget, frozenset[int] | None]]:
    """The budgets that these tasks spend from; those of agents and single tasks are left to `projection`."""
    found: list[tuple[Budget, frozenset[int] | None]] = []
    for row in (*work.find(Budget, {"project": project}), *work.find(Budget, {"project": ""})):
        scope, name = budget_rules.split_scope(row.id)
        if scope == budget_rules.DAG:
            found.append((row, frozenset(n for n, task in enumerate(tasks) if task.dag == name)))
        elif scope in (budget_rules.PROJECT, budget_rules.TENANT):
            found.append((row, None))
    return found


_DRAFT, _DEAD, _PAUSED = "is a draft", "is a dead letter", "is paused"
_NOBODYS, _BEHIND = "no agent of the forecast may take it", "waits for a task that does not end"
_CAUSES = {_DRAFT: "drafts", _DEAD: "dead letters", _PAUSED: "paused",
           _NOBODYS: "no agent of the forecast may take them", _BEHIND: "behind a task that does not end"}  # fmt: skip


def _left_out(open_: Sequence[Task], scene: Scene, staff: Staff, dag: str | None) -> list[v.LeftOutView]:
    """Open tasks that no run can end, with the first reason of each."""
    blocked: dict[str, str] = {}
    for task in open_:
        if task.state not in _PLAYED:
            blocked[task.id] = _DRAFT if task.state == lifecycle.CREATED else _DEAD
        elif scene.opens[scene.index[task.id]] is None and task.state not in lifecycle.HELD:
            blocked[task.id] = f"{_PAUSED}: {task.reason}" if task.reason else _PAUSED
        elif not _may_be_taken(task, staff):
            blocked[task.id] = _NOBODYS
    keys = {task.id: task.key for task in open_}
    met = _met(scene, frozenset(blocked))
    for task in open_:
        if task.id not in blocked and task.id in scene.index and scene.index[task.id] not in met:
            blocked[task.id] = _BEHIND
    return [{"key": keys[t.id], "why": blocked[t.id]} for t in open_ if t.id in blocked and dag in (None, t.dag)]


def _may_be_taken(task: Task, staff: Staff) -> bool:
    if task.state in lifecycle.HELD:
        return True
    lane = priority.lane_of_task(task)
    return any(worker.may_take(lane) for worker in staff.workers)


def _met(scene: Scene, blocked: frozenset[str]) -> frozenset[int]:
    """The jobs that end if every attempt succeeds."""
    unmet = list(scene.unmet)
    todo = [n for n, job in enumerate(scene.jobs) if not unmet[n] and job.task.id not in blocked]
    done = set(todo)
    while todo:
        for other, _ in scene.dependents[todo.pop()]:
            unmet[other] -= 1
            if unmet[other] == 0 and scene.jobs[other].task.id not in blocked:
                done.add(other)
                todo.append(other)
    return frozenset(done)


# --- runs -----------------------------------------------------------------------------------------------------


def _answer(question: ForecastQuestion, runs: int, seed: int) -> v.ForecastView:
    scene, about, staff = question.scene, question.about, question.staff
    now = scene.now
    ends: list[int] = []
    sooner: list[int] = []
    played: list[tuple[int, Played]] = []
    money_spent: list[int] = []
    unknown: set[int] = set()
    out: list[list[int | None]] = [[] for _ in question.budgets]
    on_path: Counter[int] = Counter()
    dead = 0
    crew, larger = Crew(scene, staff.workers), Crew(scene, [*staff.workers, staff.more])
    for run in range(runs):
        draws = forecast.draws_of(question.expected, seed, run)
        one = play(scene, crew, draws)
        end = one.end(about)
        if end is None:
            continue
        ends.append(end - now)
        played.append((end, one))
        if run < COMPARED:
            sooner.append(max(0, end - (play(scene, larger, draws).end(about) or end)))
        spent = forecast.spending(one, draws, about)
        money_spent.append(spent.cost)
        unknown |= spent.unknown
        dead += any(about is None or n in about for n in (*one.dead, *one.retried))
        on_path.update(step.job for step in forecast.deciding_path(one, about))
        for n, (budget, jobs) in enumerate(question.budgets):
            out[n].append(forecast.runs_out(budget, one, draws, jobs, now))
    finish = forecast.percentiles(ends)
    wanted = [n for n in range(len(scene.jobs)) if about is None or n in about]
    return {
        "now": now,
        "tasks": question.open_tasks,
        "agents": len(staff.workers),
        "agents_are": staff.found,
        "runs": runs,
        "seed": seed,
        "finish": _finish(finish, now),
        "cost": _cost(money_spent, unknown, wanted),
        "path": _path(question, played, on_path, runs),
        "one_more": _one_more(finish, sooner, len(staff.workers)),
        "budgets": [_lasts(b, out[n], now) for n, (b, _) in enumerate(question.budgets)],
        "dead_letters": dead / runs,
        "sources": dict(Counter(question.expected[n].sample.source for n in wanted)),
        "guessed": _guessed([question.expected[n] for n in wanted]),
        "finished": question.finished,
        "left_out": question.left_out[:SHOWN],
        "left_out_count": len(question.left_out),
        "left_out_why": dict(Counter(_CAUSES[x["why"].partition(": ")[0]] for x in question.left_out).most_common()),
    }


def _seconds(micros: int) -> float:
    return round(micros / SECOND, 3)


def _finish(found: forecast.Percentiles | None, now: int) -> v.FinishView | None:
    if found is None:
        return None
    return {
        "p10": _seconds(found.p10), "p50": _seconds(found.p50), "p90": _seconds(found.p90),
        "p10_at": now + found.p10, "p50_at": now + found.p50, "p90_at": now + found.p90,
    }  # fmt: skip


def _cost(spent: Sequence[int], unknown: set[int], wanted: Sequence[int]) -> v.CostView | None:
    found = forecast.percentiles(spent)
    if found is None or (unknown and len(unknown) == len(wanted)):
        return None
    text = money.usd_text
    cents = [text(round(amount, -7)) for amount in found]  # nano-dollars to whole cents: it is a forecast
    return {"p10": cents[0], "p50": cents[1], "p90": cents[2], "unknown": len(unknown)}


def _path(
    question: ForecastQuestion, played: list[tuple[int, Played]], on_path: Counter[int], runs: int
) -> list[v.PathView]:
    """The path of the run in the middle."""
    if not played:
        return []
    scene = question.scene
    _, middle = sorted(played, key=lambda pair: pair[0])[len(played) // 2]
    began: dict[int, int] = {}
    for span in middle.spans:
        began.setdefault(span.job, span.began)
    ends = {**middle.completed, **middle.dead}
    return [
        {
            "key": scene.jobs[step.job].task.key,
            "title": scene.jobs[step.job].brief.title,
            "begins": _seconds(max(0, began.get(step.job, scene.now) - scene.now)),
            "ends": _seconds(ends[step.job] - scene.now),
            "why": step.why,
            "share": on_path[step.job] / runs,
        }
        for step in forecast.deciding_path(middle, question.about)
        if step.job in ends
    ]


def _one_more(finish: forecast.Percentiles | None, sooner: Sequence[int], agents: int) -> v.MoreView | None:
    saved = forecast.percentiles(sooner)
    if finish is None or saved is None:
        return None
    return {"agents": agents + 1, "p50": _seconds(max(0, finish.p50 - saved.p50)), "saves": _seconds(saved.p50)}


def _lasts(budget: Budget, out: Sequence[int | None], now: int) -> v.LastsView:
    row = budget_rules.settled(budget, now)
    left = row.allocated - row.consumed
    spent_at = [at for at in out if at is not None]
    return {
        "id": row.id,
        "currency": row.currency,
        "left": money.usd_text(left) if row.currency == budget_rules.USD else left,
        "lasts": 1 - len(spent_at) / len(out) if out else 1.0,
        "ends_at": models.median(spent_at) if spent_at else None,
    }


def _guessed(expected: Sequence[ExpectedJob]) -> float:
    """The share of the expected work whose duration comes from no finished task of its type."""
    whole = guessed = 0
    for one in expected:
        mean = sum(a.duration for a in one.sample.attempts) // len(one.sample.attempts)
        whole += mean
        guessed += 0 if one.sample.source in forecast.MEASURED else mean
    return round(guessed / whole, 4) if whole else 0.0


READS: Reads = {q.Forecast: read_forecast}
