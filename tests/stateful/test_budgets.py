"""Histories of budgets against a simple sum: what claims took, what they spent, and nothing else.

The sum shares no code with the engine. It keeps, for each claim, what it took of each budget and what was spent under
it; what is reserved and spent is added up anew after every step.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, rule

from tenure.core import commands as c
from tenure.core.records import Budget
from tenure.stores.memory import Memory
from tenure.stores.sqlite import Sqlite
from tenure.testing.clock import FakeClock
from tenure.testing.factories import PROJECT, Scene, reading
from tests.sampling import few

CENT = 10_000_000
AGENTS = ("ann", "bo")
SCOPES = ("tenant", "project", "agent:ann", "agent:bo")
LEASE = 100


class Sum:
    """One claim, as whoever holds it would write it down."""

    def __init__(self, agent: str, took: dict[str, int], until: int) -> None:
        self.agent, self.took, self.until = agent, took, until
        self.is_live = True
        self.told = 0  # the highest total that was reported, in cents
        self.under = dict.fromkeys(took, 0)  # spent while it lived, in each budget

    def left(self, scope: str) -> int:
        return max(0, self.took[scope] - self.under[scope]) if self.is_live and scope in self.took else 0


class Budgets(RuleBasedStateMachine):
    receipts = Bundle("receipts")

    def __init__(self) -> None:
        super().__init__()
        self.clock = FakeClock()
        self.scene = Scene(self.open(), self.clock)
        self.allocated: dict[str, int] = {}
        self.estimate: dict[str, int] = {}
        self.spent: dict[str, int] = {}
        self.claims: dict[str, Sum] = {}

    def open(self) -> Any:
        return Memory(clock=self.clock)

    def teardown(self) -> None:
        assert self.scene.engine.verify() == []
        self.scene.store.close()

    # --- the sum ---

    def of(self, agent: str) -> list[str]:
        return [scope for scope in self.allocated if scope in ("tenant", "project", f"agent:{agent}")]

    def reserved(self, scope: str) -> int:
        return sum(claim.left(scope) for claim in self.claims.values())

    def lapse(self) -> None:
        for claim in self.claims.values():
            if claim.until <= self.clock.now:
                claim.is_live = False

    # --- steps ---

    @rule(scope=st.sampled_from(SCOPES), cents=st.integers(0, 60), estimate=st.integers(1, 12))
    def set(self, scope: str, cents: int, estimate: int) -> None:
        self.lapse()
        said = {"usd": f"{cents / 100:.2f}", "default_estimate": f"{estimate / 100:.2f}"}
        assert self.scene.do(c.SetBudget, scope=scope, **said).ok
        self.spent.setdefault(scope, 0)
        self.allocated[scope], self.estimate[scope] = cents, estimate

    @rule(scope=st.sampled_from(SCOPES))
    def remove(self, scope: str) -> None:
        self.lapse()
        answer = self.scene.try_to(c.RemoveBudget, scope=scope)
        assert (scope in self.allocated) == (not isinstance(answer, Exception))
        for sums in (self.allocated, self.estimate, self.spent):
            sums.pop(scope, None)
        for claim in self.claims.values():
            claim.took.pop(scope, None)

    @rule(source=st.sampled_from(SCOPES), to=st.sampled_from(SCOPES), cents=st.integers(1, 20))
    def move(self, source: str, to: str, cents: int) -> None:
        self.lapse()
        if source == to or not {source, to} <= self.allocated.keys():
            return
        free = self.allocated[source] - self.spent[source] - self.reserved(source)
        answer = self.scene.do(c.MoveBudget, source=source, target=to, amount=f"{cents / 100:.2f}")
        assert answer.outcome == ("UPDATED" if cents <= free else "DENIED_BUDGET")
        if cents <= free:
            self.allocated[source] -= cents
            self.allocated[to] += cents

    @rule(target=receipts, agent=st.sampled_from(AGENTS), by_name=st.booleans())
    def claim(self, agent: str, by_name: bool) -> str:
        self.lapse()
        key = self.scene.add(priority=0)
        scopes = self.of(agent)
        can = all(
            self.allocated[s] - self.spent[s] - self.reserved(s) >= self.estimate[s]
            and self.allocated[s] > self.spent[s] + self.reserved(s)
            for s in scopes
        )
        if by_name:
            answer = self.scene.claim(key, agent, lease=float(LEASE))
            assert answer.outcome == ("GRANTED" if can else "DENIED_BUDGET")
        else:
            answer = self.scene.next(agent, lease=float(LEASE))
            assert answer.outcome == ("GRANTED" if can else "NO_TASK")
        if not can:
            return ""
        receipt = str(answer.receipt)
        took = {s: self.estimate[s] for s in scopes}
        self.claims[receipt] = Sum(agent, took, self.clock.now + LEASE * 1_000_000)
        return receipt

    @rule(receipt=receipts, cents=st.integers(0, 30))
    def spend(self, receipt: str, cents: int) -> None:
        if not receipt:
            return
        self.lapse()
        claim = self.claims[receipt]
        more = max(0, cents - claim.told)
        claim.told += more
        answer = self.scene.do(c.ReportUsage, receipt=receipt, model="m", cost_usd=f"{cents / 100:.2f}")
        assert answer.outcome == "OK"
        for scope in self.of(claim.agent):
            self.spent[scope] += more
            if claim.is_live and scope in claim.took:
                claim.under[scope] += more
        if claim.is_live:
            claim.until = self.clock.now + LEASE * 1_000_000
            if any(self.spent[s] > self.allocated[s] for s in self.of(claim.agent)):
                assert answer.directive == "pause"
                claim.is_live = False

    @rule(receipt=receipts)
    def renew(self, receipt: str) -> None:
        if not receipt:
            return
        self.lapse()
        claim = self.claims[receipt]
        answer = self.scene.do(c.Renew, receipt=receipt)
        if claim.is_live and any(self.spent[s] > self.allocated[s] for s in self.of(claim.agent)):
            assert (answer.outcome, answer.directive) == ("NO_CLAIM", "pause")
            claim.is_live = False
            return
        assert (answer.outcome == "RENEWED") == claim.is_live
        if claim.is_live:
            claim.until = self.clock.now + LEASE * 1_000_000

    @rule(receipt=consumes(receipts), how=st.sampled_from(("submit", "fail", "release")))
    def end(self, receipt: str, how: str) -> None:
        if not receipt:
            return
        self.lapse()
        kind = {"submit": c.Submit, "fail": c.Fail, "release": c.Release}[how]
        self.scene.do(kind, receipt=receipt)
        self.claims[receipt].is_live = False

    @rule(seconds=st.sampled_from((1, 30, 60, 101)), sweep=st.booleans())
    def pass_time(self, seconds: int, sweep: bool) -> None:
        self.clock.advance(seconds=seconds)
        if sweep:
            self.scene.engine.sweep(PROJECT)

    # --- what must hold ---

    @invariant()
    def the_rows_are_the_sum(self) -> None:
        self.lapse()
        with reading(self.scene.engine, (PROJECT,)) as work:
            rows = {row.id: row for row in work.find(Budget, {})}
        assert rows.keys() == self.allocated.keys()
        for scope, row in rows.items():
            said = (row.allocated // CENT, row.consumed // CENT, row.reserved // CENT)
            assert said == (self.allocated[scope], self.spent[scope], self.reserved(scope)), scope


class OnSqlite(Budgets):
    def open(self) -> Any:
        self.folder = tempfile.TemporaryDirectory(prefix="tenure-budgets-")
        return Sqlite(str(Path(self.folder.name) / "store.db"), clock=self.clock)

    def teardown(self) -> None:
        super().teardown()
        self.folder.cleanup()


TestOnMemory = Budgets.TestCase
TestOnMemory.settings = settings(stateful_step_count=40, suppress_health_check=[HealthCheck.too_slow])
TestOnSqlite = OnSqlite.TestCase
TestOnSqlite.settings = settings(
    max_examples=few(12), stateful_step_count=30, suppress_health_check=[HealthCheck.too_slow]
)  # fmt: skip
