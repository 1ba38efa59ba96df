"""The coordinator's transactions: standing for election, taking a tick, and every write of a duty under its term.

Any number of processes stand; one leads. It holds a lease on the store's clock, with a *term* that grows by one at each
change. Three things keep a second process from doing its work:

1. *The term is checked in the write.* A leader's duties run on `LeaderEngine`, whose every transaction begins by
   reading the leader's row, under the lock that an election takes too. A leader deposed while it slept, between two
   transactions or just before the first, is refused with STALE_TERM and has written nothing, whatever it believes and
   whatever its clock shows.
2. *A tick is begun once.* The row keeps the last tick of each duty; it is taken in a transaction under the term, before
   the duty's first write, and passed on from leader to leader. So a (duty, tick) is begun by one leader, in one term;
   if that leader dies in the middle, the next tick does the rest.
3. *A leader that is cut off stops itself*, by its own monotonic clock, at two thirds of the lease since it began to
   request the last renewal: before another can be elected, and without an answer from the store.

A store of many tenants has one election, in the home tenant. The leader takes a tenant when it first has something to
write there: the tenant's own row then names it, and each of its writes proves that row. The term of the store in it
orders leaders: a later one replaces an earlier one at once, an earlier one never a later. So a tenant without work
costs nothing, and a leader that was deposed is refused in each tenant from the first write of its successor on.

Sweeps would be correct without any of this, since they only settle due rows. Schedules and triggers would not:
firing twice would create two tasks, if each firing had no key.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

from tenure.core import commands, limits, team
from tenure.core.outcomes import Outcome
from tenure.core.records import STORE, Cycles, Leader, replace
from tenure.engine.archive import mover
from tenure.engine.artifacts import retention
from tenure.engine.audit import sealer
from tenure.engine.duties import sweep
from tenure.engine.relay import lag
from tenure.engine.runtime.effects import PAGE, Report
from tenure.engine.runtime.engine import Engine
from tenure.engine.runtime.unit_of_work import Refused, UnitOfWork
from tenure.engine.secrets import trigger_secrets
from tenure.engine.sources import failure_watch, schedules, trigger_duty
from tenure.engine.verbs.lead import COORDINATOR, check_term, lead, step_down
from tenure.stores.port import Transaction

T = TypeVar("T")
SECOND = 1_000_000
BRIEFLY = 30.0  # lease in seconds of a leader that runs one duty and steps down
MOST_ROUNDS = limits.TRIGGER_ROUNDS


# --- duties -------------------------------------------------------------------------------------------------


class Duty(NamedTuple):
    """Something that a leader does in one project after another."""

    every: int  # microseconds from tick to tick
    find: Callable[[Engine, int], Sequence[str]]  # projects that have something to do at that time; writes nothing
    run: Callable[[Engine, str], Report]
    # When its next item falls due, if not after that time: it then runs at that instant, not with a tick.
    due: Callable[[Transaction, int], int | None] | None = None
    on_events: bool = False  # it acts on new events of the log; what has neither comes with time alone


def _due(engine: Engine, now: int) -> Sequence[str]:
    page = engine.read(lambda tx: tx.due(None, now, PAGE))
    if len(page) == PAGE:  # it may be full of rows that no rule can settle, with others after them
        return sweep.projects(engine)
    return sorted({task.project for task in page})


def _first_task(tx: Transaction, until: int) -> int | None:
    first = tx.due(None, until, 1)
    return first[0].due_at if first else None


def _untidy(engine: Engine, now: int) -> Sequence[str]:
    return [project for project in sweep.projects(engine) if sweep.is_untidy(engine, project)]


def _idle(engine: Engine, now: int) -> Sequence[str]:
    return [project for project in sweep.projects(engine) if retention.is_due(engine, project)]


def _ended(engine: Engine, now: int) -> Sequence[str]:
    return [project for project in sweep.projects(engine) if mover.is_due(engine, project)]


DUTIES: dict[str, Duty] = {
    "settle": Duty(2 * SECOND, _due, sweep.settle, _first_task),
    "schedules": Duty(SECOND, schedules.projects_due, schedules.fire, schedules.first_due),
    # before the archive drops events
    "triggers": Duty(SECOND, trigger_duty.projects_with_news, trigger_duty.hear, on_events=True),
    "watch": Duty(60 * SECOND, failure_watch.projects_watched, failure_watch.investigate),
    "relays": Duty(60 * SECOND, lag.stores_behind, lag.cut_off),
    # Before the archive, which moves sealed events. Rarely: each commit makes others on a SQLite file read pages again.
    "seal": Duty(5 * SECOND, sealer.projects_to_seal, sealer.seal_project),
    "tidy": Duty(10 * SECOND, _untidy, sweep.tidy),
    "archive": Duty(60 * SECOND, _ended, sweep.archive),
    "secrets": Duty(600 * SECOND, trigger_secrets.projects_with_plain, trigger_secrets.seal_plain),
    "artifacts": Duty(600 * SECOND, _idle, retention.drop),
}


class DueView(NamedTuple):
    """One read of the store."""

    now: int
    leader: Leader | None
    due: Mapping[str, int]  # duty → when its next item falls due, within the time queried


def read_due(engine: Engine, ahead: int, duties: Mapping[str, Duty] = DUTIES) -> DueView:
    """Who leads, and what falls due within `ahead` microseconds, anywhere."""

    def ask(tx: Transaction) -> DueView:
        found = tx.load(Leader, ((STORE, COORDINATOR),))
        prompt = {name: duty.due(tx, tx.now + ahead) for name, duty in duties.items() if duty.due is not None}
        due = {name: at for name, at in prompt.items() if at is not None}
        return DueView(tx.now, found[0] if found else None, due)

    return engine.read(ask)


def tick_of(name: str, duty: Duty, seen: DueView) -> int:
    """The instant that a run of the duty is for: the start of its interval, or when its first item fell due."""
    tick = seen.now - seen.now % duty.every
    due = seen.due.get(name)
    return max(tick, due) if due is not None and due <= seen.now else tick


# --- leading ------------------------------------------------------------------------------------------------


class LeaderEngine(Engine):
    """The engine of one term: each of its write transactions first proves that the term is current.

    Raises Refused with STALE_TERM where it is not. `keep_up` is called before each: it renews the lease in time, and
    refuses once the leader cannot know whether it still leads.
    """

    def __init__(self, engine: Engine, holder: str, term: int, keep_up: Callable[[], None]) -> None:
        super().__init__(engine.store, engine.random, engine.context)
        self.holder, self.term = holder, term
        self._keep_up = keep_up
        self._fast = None  # its calls know of no term

    def keep_up_with(self, keep_up: Callable[[], None]) -> None:
        """As the argument `keep_up`: one that needs this engine."""
        self._keep_up = keep_up

    def transact(self, projects: Sequence[str], decide: Callable[[UnitOfWork], T], **how: Any) -> T:
        self._keep_up()
        return super().transact((STORE, *projects), decide, **how)

    def _begin(self, tx: Transaction) -> UnitOfWork:
        work = super()._begin(tx)
        refusal = check_term(work, STORE, COORDINATOR, self.holder, self.term)
        if refusal is not None:
            raise Refused(refusal)
        return work

    def begin_tick(self, duty: str, tick: int) -> bool:
        """Take this tick of the duty; False where it was taken before."""

        def decide(work: UnitOfWork) -> bool:
            leader = work.require(Leader, STORE, COORDINATOR)
            if not team.is_new_start(leader, duty, tick, work.now):
                return False
            work.put(replace(leader, duties_begun={**leader.duties_begun, duty: tick}))
            return True

        return self.transact((), decide)


def stand(engine: Engine, holder: str, lease: float, term: int | None, cycles: Cycles) -> Outcome:
    """Become the leader, or renew leadership and report progress; DENIED_LEADER where another leads."""
    command = commands.Lead(project=STORE, holder=holder, lease=lease, term=term)

    def decide(work: UnitOfWork) -> Outcome:
        outcome = lead(work, command)
        leader = work.get(Leader, STORE, COORDINATOR)
        if outcome.ok and leader is not None:
            work.put(replace(leader, cycles=cycles))
        return outcome

    return engine.transact((STORE,), decide)


def take(engine: Engine, holder: str, lease: float, term: int | None, store_term: int) -> Outcome:
    """Lead a tenant beside the home tenant, as the leader of its store; DENIED_LEADER where another leads it."""
    command = commands.Lead(project=STORE, holder=holder, lease=lease, term=term)
    return engine.transact((STORE,), lambda work: lead(work, command, store_term))


def resign(engine: Engine, holder: str, term: int) -> Outcome:
    """Step down, so that the next may lead at once."""
    return engine.transact(
        (STORE,), lambda work: step_down(work, commands.StepDown(project=STORE, holder=holder, term=term))
    )


def hear_alone(engine: Engine, project: str, holder: str) -> bool:
    """If nobody leads: fire triggers up to the end of the log, as leader for that long. False: another leads."""
    if project not in trigger_duty.projects_with_news(engine, 0):
        return True
    outcome = stand(engine, holder, BRIEFLY, None, Cycles())
    if not outcome.ok or outcome.term is None:
        return False
    term = outcome.term

    def keep_up() -> None:
        renewed = stand(engine, holder, BRIEFLY, term, Cycles())
        if not renewed.ok:
            raise Refused(renewed)

    led = LeaderEngine(engine, holder, term, keep_up)
    try:
        for _ in range(MOST_ROUNDS):
            trigger_duty.hear(led, project)
            if project not in trigger_duty.projects_with_news(engine, 0):
                break
    finally:
        resign(engine, holder, term)
    return True
