"""A page of the log for one sink, with the facts that its envelopes need, read in one transaction."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from tenure.core.events import Event
from tenure.core.records import Agent, Brief, Claim, DeadLetter, Message, Row, Sink, Task, Usage
from tenure.sinks.envelope import Facts, made_ready

if TYPE_CHECKING:
    from tenure.engine.runtime.engine import Engine
    from tenure.stores.port import Transaction

R = TypeVar("R", bound=Row)
PAGE = 1000  # events that one step of a relay reads
Keys = Iterable[tuple[str, str]]


class Page(NamedTuple):
    row: Sink
    now: int
    events: Sequence[tuple[Event, Facts]]  # those for this sink
    end: int  # the sequence of the last event read, for this sink or not
    is_full: bool


def read_page(engine: Engine, name: str, kinds: frozenset[str], limit: int, *, after: int = 0) -> Page | None:
    """The next events after the sink's place, or `after`; None where the sink has no row. No kinds: all of them."""

    def ask(tx: Transaction) -> Page | None:
        rows = tx.load(Sink, (("", name),))
        if not rows:
            return None
        (row,) = rows
        start = max(after, row.sequence)
        events = tx.events({}, after=start, limit=limit)
        ours = [
            e for e in events if row.reads(e.project) and (not kinds or e.kind in kinds) and not _is_own_gap(e, name)
        ]
        end = events[-1].sequence if events else start
        return Page(row, tx.now, facts_of(tx, engine.tenant, ours), end, len(events) == limit)

    return engine.read(ask, follows=True)


def _is_own_gap(event: Event, name: str) -> bool:
    """The relay sends `sink.gap` itself, before anything else."""
    return event.kind == "sink.gap" and event.details.get("sink") == name


def facts_of(tx: Transaction, tenant: str, events: Sequence[Event]) -> list[tuple[Event, Facts]]:
    """A handful of reads by key for the whole page."""
    tasks = _loaded(tx, Task, ((e.project, e.task) for e in events if e.task is not None))
    briefs = _loaded(tx, Brief, ((e.project, e.task) for e in events if e.task is not None and made_ready(e)))
    agents = _loaded(tx, Agent, ((e.project, e.agent) for e in events if e.agent and e.kind.startswith("agent.")))
    claims = _loaded(tx, Claim, (key for e in events if (key := _previous_claim(e)) is not None))
    mail = _loaded(tx, Message, (key for e in events for key in _mail(e)))
    letters = _loaded(tx, DeadLetter, (key for e in events if (key := _letter(e)) is not None))
    costs = _costs(tx, events)
    found = []
    for event in events:
        about = (event.project, event.task or "")
        brief, agent = briefs.get(about), agents.get((event.project, event.agent or ""))
        before, letter = claims.get(_previous_claim(event) or ("", "")), letters.get(_letter(event) or ("", ""))
        facts = Facts(
            tenant,
            task=tasks.get(about),
            agent_type=agent.type if agent is not None else None,
            target=brief.constraints.get("agent_type") if brief is not None else None,
            previous_claim=before.state if before is not None else None,
            cost=costs.get(about) if event.kind == "task.completed" else None,
            letter=letter,
            mail=[mail[key] for key in _mail(event) if key in mail],
        )
        found.append((event, facts))
    return found


def _loaded(tx: Transaction, kind: type[R], keys: Keys) -> dict[tuple[str, str], R]:
    wanted = set(keys)
    return {(row.project, row.id): row for row in tx.load(kind, wanted)} if wanted else {}


def _previous_claim(event: Event) -> tuple[str, str] | None:
    generation = event.details.get("previous_generation") if event.kind == "task.claimed" else None
    return (event.project, f"{event.task}@{generation}") if generation else None


def _letter(event: Event) -> tuple[str, str] | None:
    if event.kind != "task.dead_lettered":
        return None
    return next(((event.project, id) for table, id, _ in event.patch if table == "dead_letter"), None)


def _mail(event: Event) -> list[tuple[str, str]]:
    if event.kind != "message.sent":
        return []
    return [(event.project, f"{event.details['message']}:{name}") for name in event.details["recipients"]]


def _costs(tx: Transaction, events: Sequence[Event]) -> dict[tuple[str, str], int]:
    """Project and task → nano-dollars, of completed tasks that reported a cost."""
    done: dict[str, set[str]] = {}
    for event in events:
        if event.kind == "task.completed" and event.task is not None:
            done.setdefault(event.project, set()).add(event.task)
    found = {}
    for project, tasks in done.items():
        for task, (cost,) in tx.sums(Usage, {"project": project, "task": tuple(tasks)}, "task", ("cost",)).items():
            if cost is not None:
                found[project, task] = cost
    return found
