"""The model's money: one budget for the project, what claims reserve of it, and what is spent. In cents."""

from __future__ import annotations

from dataclasses import dataclass

from tests.stateful.model_rows import Answer, Claim, Receipt, Task
from tests.stateful.model_team import Team

BUDGET = "budget:project"  # the cause of a pause


@dataclass
class Budget:
    allocated: int
    estimate: int  # what a claim reserves
    spent: int = 0

    @property
    def is_over(self) -> bool:
        return self.spent > self.allocated


class Budgets(Team):
    budget: Budget | None = None

    def set_budget(self, cents: int, estimate: int) -> Answer:
        """Who was paused by it goes on once it has something left."""
        old = self.budget
        self.budget = Budget(cents, estimate, old.spent if old else 0)
        if old == self.budget:
            return {"outcome": "UNCHANGED"}
        paused = [t for t in self.tasks.values() if t.state == "paused" and t.causes & {"budget", BUDGET}]
        paused = [] if self.budget.is_over else paused
        for task in paused:
            self._lift(task, {"budget", BUDGET})
        return {"outcome": "UPDATED" if old else "CREATED", "changed_keys": {task.ref for task in paused}}

    def usage(self, receipt: Receipt, cents: int) -> Answer:
        """Totals of the claim so far. Always booked, since it is paid, also by a genuine receipt that is stale."""
        task, claim, refusal = self._check(receipt, "usage")
        if refusal and not refusal.get("genuine"):
            return refusal
        more = max(0, cents - claim.told)
        claim.told += more
        if self.budget:
            self.budget.spent += more
        task.losses = task.losses if refusal else 0
        if refusal or not task.held:
            return {"outcome": "OK"}
        claim.under += more
        self._go_on(task, claim)
        return self._checked(task, {"outcome": "OK", **self._directive(task, claim)})

    def _reserved(self) -> int:
        live = [task.claims[-1] for task in self.tasks.values() if task.held]
        return sum(max(0, claim.took - claim.under) for claim in live)

    def _cannot_pay(self) -> bool:
        budget = self.budget
        return budget is not None and budget.allocated - budget.spent - self._reserved() < budget.estimate

    def _reserve_money(self, claim: Claim) -> None:
        claim.took = self.budget.estimate if self.budget else 0

    def _has_no_headroom(self, claim: Claim) -> bool:
        budget, own = self.budget, max(0, claim.took - claim.under)
        return budget is not None and budget.allocated - budget.spent - self._reserved() + own <= 0

    def _checked(self, task: Task, answer: Answer) -> Answer:
        """A holder gives a sign of life: from 90 % on it is warned, above 100 % it is paused."""
        if self.budget and self.budget.is_over:
            self._pause_held(task, "budget")
            task.causes = task.causes - {"budget"} | {BUDGET}
            ended = {"outcome": "NO_CLAIM"} if answer["outcome"] == "RENEWED" else {}
            return {"outcome": answer["outcome"], "state": "paused", "directive": "pause"} | ended
        near = self.budget is not None and 100 * self.budget.spent >= 90 * self.budget.allocated
        return answer | {"directive": "warn"} if near and answer["directive"] == "continue" else answer
