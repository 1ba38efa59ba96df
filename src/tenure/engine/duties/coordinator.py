"""The coordinator: a thread that stands for election and, while it leads, runs the duties of the whole store.

`election.py` shows why no two of them do the same work. This is the loop: query, renew or stand, run due duties, wait
until the next due time or the next write. No error in a cycle ends it. The leader serves the store's other tenants in
the same thread: see `tenant_rounds.py`.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Mapping
from functools import partial
from typing import NamedTuple, TypeVar

from tenure.core import limits, team
from tenure.core.errors import OutcomeUnknown, StoreUnavailable, TenantMoving, TenureError, spelled
from tenure.core.outcomes import Outcome
from tenure.core.records import Cycles, replace
from tenure.core.redaction import without_secrets
from tenure.core.tenant_records import HOME
from tenure.engine.duties import election
from tenure.engine.duties.election import DUTIES, DueView, Duty, LeaderEngine
from tenure.engine.duties.tenant_rounds import AHEAD, TenantRounds, Watched
from tenure.engine.runtime.engine import Engine
from tenure.engine.runtime.tenancy import TenantEngines
from tenure.engine.runtime.unit_of_work import Refused

T = TypeVar("T")
LEASE = limits.LEADER_LEASE
RENEWED = 0.4  # of the lease: when it is renewed, ± a tenth
GIVEN_UP = 2 / 3  # of the lease: when a leader that cannot renew stops by itself
CYCLE_EVERY = 2.0  # seconds between cycles unless something is due earlier
SOONEST = 0.1  # between cycles, however much is written
CHECK_EVERY = 0.2  # between checks whether the thread must end
CHECK_RARELY = 1.0  # with many tenants
MANY = 50  # tenants
ROUND = 0.5  # seconds for other tenants in one cycle: then the home tenant, and the lease, come first again
REFUSED = 5.0  # seconds until a tenant that another process leads is tried again
LONGEST_BACK_OFF = limits.LEADER_BACK_OFF
KEPT = limits.COORDINATOR_NOTES


class Note(NamedTuple):
    """A note of a cycle, about this process alone."""

    time: int  # the store's, as last read
    level: str
    message: str
    tenant: str = HOME


class Cycle(NamedTuple):
    """The result of one cycle."""

    seconds: float
    settled: int  # rows
    failed: int  # rows that could not be settled
    ok: bool  # False: it was aborted
    error: TenureError | None = None  # that of the store which aborted it


class Coordinator:
    """Safe to query from any thread; `step` is for the one thread that coordinates."""

    def __init__(
        self,
        engine: Engine,
        instance: str,
        monotonic: Callable[[], float],
        *,
        lease: float = LEASE,
        looks: float = CYCLE_EVERY,
        duties: Mapping[str, Duty] = DUTIES,
        tell: Callable[[Note], None] = lambda _: None,
        cycled: Callable[[Cycle], None] = lambda _: None,
        engines: TenantEngines | None = None,
        news: Callable[[str, int], None] = lambda *_: None,
    ) -> None:
        """`instance` names this process and no other, ever.

        `engines`: of the store's other tenants, which it serves too; `news` gets each that has new events, and the mark
        before them.

        `tell` receives errors and changes of leadership; `cycled` receives every cycle, whether this process leads or
        not.
        """
        self.engine, self.instance = engine, instance
        self.notes: deque[Note] = deque(maxlen=KEPT)
        self._monotonic, self._lease, self._looks, self._duties = monotonic, lease, looks, duties
        self._tell, self._cycled = tell, cycled
        self._settled = self._failed = 0  # in this cycle
        self._led: LeaderEngine | None = None
        self._renew_at = self._good_until = 0.0
        self._cycles = Cycles()
        self._now = 0
        self._mark = 0
        self._idle_at: dict[str, int] = {}  # duty → the store's time when it last had nothing to do
        self._troubles = 0  # cycles in a row in which the store was unavailable
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None
        self._tenant = engine.tenant  # whose duty runs now
        self.tenants: TenantRounds | None = None
        if engines is not None and engines.keeps_tenants:
            self.tenants = TenantRounds(engines, instance, monotonic, lambda: self.term, news)

    # --- from outside ---

    @property
    def term(self) -> int | None:
        """The term that this process leads with, as far as it can know."""
        led = self._led
        return led.term if led is not None and self._monotonic() < self._good_until else None

    def led(self) -> LeaderEngine | None:
        """The engine of the current term, for other threads of this process: it never renews the lease.

        None where this process does not lead, or cannot know whether it still does.
        """
        term = self.term
        return None if term is None else LeaderEngine(self.engine, self.instance, term, partial(self._check_term, term))

    def led_of(self, tenant: str) -> LeaderEngine | None:
        """As `led`, in one of the store's tenants."""
        if tenant == self.engine.tenant:
            return self.led()
        return None if self.tenants is None else self.tenants.leader_of(tenant)

    def _check_term(self, term: int) -> None:
        if self.term != term:
            raise Refused(Outcome(outcome="STALE_TERM", message=f"term {term} is over, or may be"))

    @property
    def cycles(self) -> Cycles:
        return self._cycles

    def start(self) -> None:
        # A daemon thread: a process that does not stop it must still exit, and the lease expires.
        self._thread = threading.Thread(target=self._run, name="tenure-coordinator", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End after the current cycle, and step down at once, so that another may lead."""
        self._ended.set()
        if self._thread is not None:
            self._thread.join()
        self.resign()

    def resign(self) -> None:
        led, self._led = self._led, None
        if led is None:
            return
        try:
            election.resign(self.engine, self.instance, led.term)
        except Exception as error:  # noqa: BLE001 - the lease will expire: nothing may keep the store from being closed
            level = "info" if isinstance(error, TenantMoving) else "warning"  # nobody leads where it was before
            self._note(level, f"could not step down: {spelled(error)}")

    # --- the thread ---

    def _run(self) -> None:
        while not self._ended.is_set():
            self._wait(self.step())

    def _wait(self, seconds: float) -> None:
        """Wait until then, or until a write; an unavailable store has no news."""
        until = self._monotonic() + seconds
        if self._ended.wait(min(seconds, SOONEST)):
            return
        while not self._ended.is_set():
            left = until - self._monotonic()
            if left <= 0 or self._has_news(min(left, self._check_every())):
                return

    def _check_every(self) -> float:
        """A wait for many tenants costs more to begin: it is longer then."""
        return CHECK_EVERY if self.tenants is None or len(self.tenants) < MANY else CHECK_RARELY

    def _has_news(self, seconds: float) -> bool:
        if self._troubles:
            self._ended.wait(seconds)
            return False
        marks = {self.engine.tenant: self._mark}
        if self._led is not None and self.tenants is not None:
            marks |= self.tenants.marks()
        try:
            changed = self.engine.store.wait(marks, seconds)
            if self.tenants is not None:
                self.tenants.heard(changed)
            return bool(changed)
        except TenureError:
            return True  # the next cycle reports the error

    # --- a cycle ---

    def step(self) -> float:
        """Run one cycle; return the seconds until the next."""
        began = self._monotonic()
        self._settled = self._failed = 0
        self._aborted_by: TenureError | None = None
        pause = self._step()
        cycle = Cycle(
            self._monotonic() - began, self._settled, self._failed, not self._troubles, self._aborted_by
        )  # fmt: skip
        self._cycled(cycle)
        return pause

    def _step(self) -> float:
        try:
            self._mark = self.engine.mark()  # before the query: any later write wakes us
            seen = election.read_due(self.engine, round(self._looks * 1e6), self._duties)
            self._now = seen.now
            self._check_lead(seen)
            if self._led is not None:
                for name, duty in self._duties.items():
                    if not self._was_idle(name, duty, seen.now):
                        self._do(self._led, name, duty, seen)
                self._serve_tenants()
                self._cycles = replace(self._cycles, count=self._cycles.count + 1, last_at=seen.now)
            self._troubles = 0
            return self._pause(seen)
        except Refused as refusal:
            self._lose(refusal.outcome.message)
            return SOONEST
        except Exception as error:  # noqa: BLE001 - a bug, or an unavailable store, must not end the thread for good
            self._fail(spelled(error))
            self._aborted_by = error if isinstance(error, TenureError) else None
        self._troubles += 1
        back_off = min(LONGEST_BACK_OFF, 0.5 * 2.0 ** min(self._troubles, 10))
        return back_off * (0.5 + self.engine.random.fraction())

    def _was_idle(self, name: str, duty: Duty, now: int) -> bool:
        """Whether the duty had nothing to do a moment ago and is not prompt: writes do not make it look more often."""
        looked_at = self._idle_at.get(name)
        is_prompt = duty.due is not None or duty.on_events
        return not is_prompt and looked_at is not None and 0 <= now - looked_at < self._looks * 1e6

    # --- the other tenants ---

    def _serve_tenants(self) -> None:
        if self.tenants is None:
            return
        self.tenants.list_again(self._now, self.engine.random.fraction)
        until = self._monotonic() + ROUND
        for one in self.tenants.due():
            if self._ended.is_set() or self._monotonic() >= until:
                return
            self._keep_up()
            self._tenant = one.engine.tenant
            try:
                self._serve(self.tenants, one)
            except Refused as refusal:
                self._keep_up()  # raises where the store's lease is lost, and not only this tenant
                self._note("info", f"not led from here: {refusal.outcome.message}")
                one.looked(self._monotonic(), is_slow=False, due_in=REFUSED)
            except (StoreUnavailable, OutcomeUnknown):
                raise
            except Exception as error:  # noqa: BLE001 - whatever it is, the other tenants are served
                self._fail(spelled(error))
                one.looked(self._monotonic(), is_slow=False, due_in=REFUSED)
            finally:
                self._tenant = self.engine.tenant

    def _serve(self, tenants: TenantRounds, one: Watched) -> None:
        """Run the duties of one tenant: prompt ones, those that new events need, and at times all."""
        is_new = one.is_new
        one.mark = one.engine.mark()  # before the query: any later write is news
        is_slow, before = self._monotonic() >= one.slow_at, self._settled
        has_news, led = one.has_news, tenants.leader(one)
        seen = election.read_due(one.engine, AHEAD, self._duties)
        for name, duty in self._duties.items():
            if duty.due is not None or is_slow or (duty.on_events and has_news):
                self._do(led, name, duty, seen)
        due_in = min(((at - seen.now) / 1e6 for at in seen.due.values()), default=None)
        if due_in is not None and due_in <= 0:  # settled rows may bring about more; others can wait
            due_in = SOONEST if self._settled > before else self._looks
        one.looked(self._monotonic(), is_slow=is_slow, due_in=due_in)
        if is_new:
            tenants.tell(one.engine.tenant)

    def _check_lead(self, seen: DueView) -> None:
        """Renew the leadership, or stand for election where nobody leads."""
        if self._led is not None:
            self._keep_up()
            return
        leader = seen.leader
        is_free = leader is None or leader.until <= seen.now
        if is_free and self._stand(None).outcome == "ELECTED" and self.tenants is not None:
            self.tenants.begin(leader)

    def _stand(self, term: int | None) -> Outcome:
        began = self._monotonic()
        outcome = election.stand(self.engine, self.instance, self._lease, term, self._cycles if term else Cycles())
        if outcome.ok:
            assert outcome.term is not None
            self._renew_at = began + self._lease * RENEWED * (0.9 + 0.2 * self.engine.random.fraction())
            self._good_until = began + self._lease * GIVEN_UP
        if outcome.outcome == "ELECTED":
            assert outcome.term is not None
            self._cycles, self._idle_at = Cycles(), {}
            self._led = LeaderEngine(self.engine, self.instance, outcome.term, self._keep_up)
            self._note("info", f"leads with term {outcome.term}")
        return outcome

    def _keep_up(self) -> None:
        """Renew in time. Raises Refused once the leader cannot know whether it still leads: another may by then."""
        led = self._led
        assert led is not None
        if self._monotonic() >= self._good_until:
            raise Refused(Outcome(outcome="STALE_TERM", message=f"could not renew term {led.term} in time"))
        if self._monotonic() >= self._renew_at:
            outcome = self._stand(led.term)
            if outcome.outcome != "RENEWED":
                raise Refused(Outcome(outcome="STALE_TERM", message=outcome.message or f"term {led.term} is over"))

    def _do(self, led: LeaderEngine, name: str, duty: Duty, seen: DueView) -> None:
        """Run this tick of the duty, unless it was already taken, in each project that has something to do."""
        if duty.due is not None and seen.due.get(name, seen.now + 1) > seen.now:
            return  # this cycle's read has found nothing due
        tick = election.tick_of(name, duty, seen)
        if seen.leader is not None and not team.is_new_start(seen.leader, name, tick, seen.now):
            return
        projects = self._apart(name, lambda: duty.find(led, seen.now))
        if projects is not None and not projects and self._tenant == self.engine.tenant:
            self._idle_at[name] = seen.now
        if not projects or not led.begin_tick(name, tick):
            return
        for project in projects:
            if self._ended.is_set():
                return
            report = self._apart(f"{name} of {project}", partial(duty.run, led, project))
            if report is None:
                continue
            self._settled += report.settled
            self._failed += len(report.failed)
            for row, what in report.failed.items():
                self._fail(f"{name} of {project}: {row}: {what}")

    def _apart(self, what: str, run: Callable[[], T]) -> T | None:
        """Confine an error to its project and duty."""
        try:
            return run()
        except (Refused, StoreUnavailable, OutcomeUnknown):
            raise
        except Exception as error:  # noqa: BLE001 - whatever it is: see `step`
            self._fail(f"{what}: {spelled(error)}")
            return None

    def _pause(self, seen: DueView) -> float:
        """Seconds until the next known due time."""
        leader = seen.leader
        if self._led is None:
            left = self._looks if leader is None else max(SOONEST, (leader.until - seen.now) / 1e6)
            # Spread out, so that not all stand at once when the lease of a dead leader expires.
            return min(self._lease, left) + SOONEST * self.engine.random.fraction()
        pauses = [self._looks, max(0.0, self._renew_at - self._monotonic())]
        if self.tenants is not None and (next_in := self.tenants.next_in()) is not None:
            pauses.append(next_in)
        pauses += [(at - seen.now) / 1e6 for at in seen.due.values() if at > seen.now]
        return max(SOONEST, min(pauses))

    # --- notes ---

    def _lose(self, why: str) -> None:
        led, self._led = self._led, None
        if self.tenants is not None:
            self.tenants.forget()
        if led is not None:
            self._note("warning", f"no longer leads with term {led.term}: {why}")

    def _fail(self, message: str) -> None:
        message = without_secrets(message)
        where = "" if self._tenant == self.engine.tenant else f"tenant {self._tenant}: "
        self._cycles = replace(self._cycles, error=where + message, error_at=self._now or None)
        self._note("error", message)

    def _note(self, level: str, message: str) -> None:
        note = Note(self._now, level, message, self._tenant)
        self.notes.append(note)
        self._tell(note)
