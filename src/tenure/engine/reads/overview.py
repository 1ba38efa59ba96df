"""The flow of work: what finished when, tasks by state over time, how long tasks wait, who is busy.

Read only from the end of the log, so that it costs the same with a hundred tasks and a million: at most MOST_WALKED
events back, and of those at most MOST_READ that move a task. Where that does not go back as far as requested,
`since` gives the time from which the numbers hold. Writes nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from tenure.core import claims, inputs, lifecycle, limits
from tenure.core import queries as q
from tenure.core.errors import InvalidInput
from tenure.core.events import KINDS, Event
from tenure.core.filters import Present, Range
from tenure.core.records import Task
from tenure.engine.reads import task_counts
from tenure.engine.runtime.unit_of_work import Reads, UnitOfWork

MOST_WALKED = limits.OVERVIEW_EVENTS
MOST_READ = limits.OVERVIEW_MOVES
STEPS = 60
LONGEST = limits.OVERVIEW_MINUTES
MINUTE = 60 * inputs.SECOND
MOST_HELD = limits.OVERVIEW_HELD

# The groups of a chart: fewer lines than there are states.
GROUPS = {
    "waiting": (lifecycle.CREATED, lifecycle.PENDING, lifecycle.RETRYING),
    "ready": (lifecycle.READY,),
    "held": (*lifecycle.HELD, lifecycle.VALIDATING),
    "paused": (lifecycle.PAUSED,),
    "dead": (lifecycle.DEAD_LETTERED,),
}
_GROUP = {state: group for group, states in GROUPS.items() for state in states}
# Frequent, and no move out of its group: not read, so that the log is read further back.
_STILL = ("task.progress", "task.checkpoint", "task.started", "task.landing", "task.noted", "task.edited")
_MOVES = tuple(kind for kind in KINDS if kind.startswith("task.") and kind not in _STILL)
_COUNTED = {
    "task.created": "created", "task.claimed": "claimed", "task.completed": "completed", "task.failed": "failed",
    "task.dead_lettered": "dead_lettered", "task.lease_expired": "lost", "task.process_gone": "lost",
}  # fmt: skip


def overview(work: UnitOfWork, project: str, *, minutes: int = 60) -> dict[str, Any]:
    """The last `minutes` of a project in STEPS steps, and the present state."""
    if not 1 <= minutes <= LONGEST:
        raise InvalidInput(f"minutes must be from 1 to {LONGEST} (got {minutes})")
    by_state = task_counts.by_state(work, project)
    counts = {state: sum(tracks.values()) for state, tracks in by_state.items()}
    tail = _tail(work, project, work.now - minutes * MINUTE)
    since = tail.since
    step = max(1, (work.now - since + STEPS - 1) // STEPS)
    held = [t for t in work.find(Task, _held_tasks(project), limit=MOST_HELD) if claims.is_held(t)]
    spans = _spans(tail.events, held, since, work.now)
    return {
        "project": project,
        "now": work.now,
        "since": since,
        "is_whole": tail.is_whole,
        "step": step / inputs.SECOND,
        "steps": _steps(tail.events, counts, since, step, work.now),
        "waits": _spread(_waits(work, project, tail.events)),
        "durations": _spread([s.length for s in spans if s.completed]),
        "oldest": _oldest(work, project, counts),
        "agents": _agents(tail.events, spans, work.now - since),
    }


class _Tail(NamedTuple):
    events: list[Event]  # moves of tasks, oldest first
    since: int
    is_whole: bool


def _tail(work: UnitOfWork, project: str, since: int) -> _Tail:
    """The moves from `since` on, or from where reading them would cost too much."""
    last = work.tx.events({"project": project}, limit=1, last=True)
    floor = max(0, last[0].sequence - MOST_WALKED) if last else 0
    where = {"project": project, "kind": _MOVES, "time": Range(since)}
    events = work.tx.events(where, after=floor, limit=MOST_READ, last=True)
    first = work.tx.events({"project": project}, after=floor, limit=1) if floor else []
    is_whole = len(events) < MOST_READ and not (first and first[0].time > since)
    if not is_whole:
        since = events[0].time if len(events) == MOST_READ else first[0].time
    # Moves that are due and that no command has written yet.
    return _Tail([*events, *(e for e in work.events if e.project == project and e.kind in _MOVES)], since, is_whole)


def _steps(events: Sequence[Event], counts: dict[str, int], since: int, step: int, now: int) -> list[dict[str, Any]]:
    """One entry per step, oldest first: what happened in it, and the tasks by state at its end.

    States are computed backwards from now, by undoing each move.
    """
    standing = Counter[str]()
    for state, count in counts.items():
        if state in _GROUP:
            standing[_GROUP[state]] += count
    entries: list[dict[str, Any]] = []
    remaining = list(events)
    for index in reversed(range(STEPS)):
        start, end = since + index * step, min(now, since + (index + 1) * step)
        happened = Counter[str](dict.fromkeys(_COUNTED.values(), 0))
        entry: dict[str, Any] = {"at": end, "depth": {group: max(0, standing[group]) for group in GROUPS}}
        while remaining and (remaining[-1].time >= start or index == 0):
            event = remaining.pop()
            if event.kind in _COUNTED:
                happened[_COUNTED[event.kind]] += 1
            _undo(standing, event)
        entries.append(entry | happened)
    return entries[::-1]


def _undo(standing: Counter[str], event: Event) -> None:
    if event.new_state in _GROUP:
        standing[_GROUP[event.new_state]] -= 1
    if event.previous_state in _GROUP:
        standing[_GROUP[event.previous_state]] += 1


class _Span(NamedTuple):
    """One claim, as far as it lies between `since` and now."""

    agent: str
    length: int
    completed: bool


def _spans(events: Iterable[Event], held: Iterable[Task], since: int, now: int) -> list[_Span]:
    began: dict[tuple[str, int], tuple[str, int]] = {}
    spans = []
    for event in events:
        if event.task is None or event.generation is None:
            continue
        claim = (event.task, event.generation)
        if event.kind == "task.claimed" and event.agent:
            began[claim] = (event.agent, event.time)
        elif event.previous_state in lifecycle.HELD and event.new_state not in lifecycle.HELD:
            agent, start = began.pop(claim, (None, since))
            if agent is not None:
                spans.append(_Span(agent, event.time - start, event.kind == "task.completed"))
    spans += [_Span(t.agent, now - max(since, t.claimed_at or since), False) for t in held if t.agent]
    return spans


def busy_agents(work: UnitOfWork, project: str, minutes: int) -> dict[str, float]:
    """Each agent of the last `minutes`, and how many tasks it held on average."""
    tail = _tail(work, project, work.now - minutes * MINUTE)
    held = [t for t in work.find(Task, _held_tasks(project), limit=MOST_HELD) if claims.is_held(t)]
    length = Counter[str]()
    for span in _spans(tail.events, held, tail.since, work.now):
        length[span.agent] += span.length
    return {agent: spent / max(1, work.now - tail.since) for agent, spent in length.items()}


def _held_tasks(project: str) -> dict[str, Any]:
    return {"project": project, "agent": Present(), "state": lifecycle.HELD}


def _agents(events: Iterable[Event], spans: Iterable[_Span], window: int) -> list[dict[str, Any]]:
    """What each agent did; `busy` is the average number of tasks held: 1.0 is never idle, with one task at a time."""
    did: dict[str, Counter[str]] = {}
    for event in events:
        if event.agent and event.kind in _COUNTED and event.kind != "task.created":
            did.setdefault(event.agent, Counter())[_COUNTED[event.kind]] += 1
    length = Counter[str]()
    for span in spans:
        length[span.agent] += span.length
    return [
        {
            "agent": agent,
            "busy": round(length[agent] / max(1, window), 4),
            **{name: did.get(agent, Counter())[name] for name in ("claimed", "completed", "failed", "lost")},
        }
        for agent in sorted(did.keys() | length.keys())
    ]


MOST_SAMPLED = limits.OVERVIEW_SAMPLED


def _waits(work: UnitOfWork, project: str, events: Sequence[Event]) -> list[int]:
    """How long the tasks of the last claims had been ready."""
    claimed = [(e.task, e.time) for e in events if e.kind == "task.claimed" and e.task is not None][-MOST_SAMPLED:]
    tasks = work.get_many(Task, project, {id for id, _ in claimed})
    waits = []
    for id, time in claimed:
        ready_at = tasks[id].ready_at if id in tasks else None
        if ready_at is not None and ready_at <= time:  # else it became ready again since
            waits.append(time - ready_at)
    return waits


def _spread(lengths: Sequence[int]) -> dict[str, Any] | None:
    """Seconds: median, 95th percentile and maximum."""
    if not lengths:
        return None
    ordered = [length / inputs.SECOND for length in sorted(lengths)]
    return {
        "count": len(ordered),
        "median": ordered[len(ordered) // 2],
        "p95": ordered[min(len(ordered) - 1, len(ordered) * 95 // 100)],
        "longest": ordered[-1],
    }


def _oldest(work: UnitOfWork, project: str, counts: dict[str, int]) -> list[dict[str, Any]]:
    """The oldest task of each state in which tasks wait or work: ids grow with time."""
    oldest = []
    for state in lifecycle.OPEN:
        found = work.find(Task, {"project": project, "state": state}, limit=1) if counts.get(state) else []
        oldest += [{"state": state, "key": t.key, "created_at": t.created_at, "since": _since(t)} for t in found]
    return oldest


def _since(task: Task) -> int:
    """Since when it has been in that state, as far as the row shows."""
    if claims.is_held(task):
        return task.claimed_at or task.updated_at
    return (task.ready_at if task.state == lifecycle.READY else task.dead_lettered_at) or task.updated_at


READS: Reads = {q.Overview: overview}
