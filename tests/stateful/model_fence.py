"""The model's fence: who may claim, who is chosen, and what the bearer of a receipt may do."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from tests.stateful.model_ground import Ground
from tests.stateful.model_rows import (
    AGENTS_OWN,
    COUNTING,
    HOUR,
    MINUTE,
    MOST_GIVEN_BACK,
    MOST_REFUSED,
    SECOND,
    Agent,
    Answer,
    Claim,
    Receipt,
    Refused,
    Task,
    overlap,
)  # fmt: skip

ENDINGS = ("fail", "budget", "release", "wait", "ask")  # a holder's own words that end its claim
NOBODYS = Claim(0, 0, 0, "", 0, "", "", 0, 0, 0)


class Fence(Ground):
    # --- claiming -----------------------------------------------------------------------------------------

    def _denial(self, task: Task, name: str, capabilities: tuple[str, ...]) -> str | None:
        agent = self.agents[name]
        by_state = {
            "completed": "DENIED_COMPLETED", "cancelled": "DENIED_CANCELLED", "dead_lettered": "DENIED_DEAD_LETTERED",
            "claimed": "DENIED_ACTIVE_CLAIM", "running": "DENIED_ACTIVE_CLAIM", "paused": "DENIED_PAUSED",
            "ready": None,
        }  # fmt: skip
        if denial := by_state.get(task.state, "DENIED_NOT_READY"):
            return denial
        if self.stopped & {"project:", f"track:{task.track}", f"type:{task.type}", f"agent:{name}"}:
            return "DENIED_PAUSED"
        if task.offer[0] != name and task.offer[1] > self.now:
            return "DENIED_OFFERED"
        if not set(task.requires) <= set(capabilities) or task.region not in (None, agent.region):
            return "DENIED_CAPABILITY"
        if self._takes_no_more(name):
            return "DENIED_LIMIT"
        if any(overlap(a, b) for t in self.tasks.values() if t.held for a in t.touches for b in task.touches):
            return "DENIED_CONFLICT"
        return None

    def _takes_no_more(self, name: str) -> bool:
        agent = self.agents[name]
        holds = sum(task.held and task.claims[-1].agent == name for task in self.tasks.values())
        half_open = agent.troubles >= 3
        return agent.draining or holds >= min(agent.most or holds + 1, 1 if half_open else holds + 1)

    def _grant(self, task: Task, agent: str, session: str, lease: int, receipt: str) -> Answer:
        last = task.claims[-1] if task.claims else None
        goes_on = last and last.reason == "EXPIRED" and last.session == session and last.run == task.run
        task.attempts += 0 if goes_on else 1
        task.claims.append(
            Claim(task.generation + 1, task.run, task.attempts, receipt, self.epoch, agent, session, self.now, lease,
                  self.now + lease, continues=bool(goes_on))
        )  # fmt: skip
        task.state, task.answerable, task.offer = "claimed", False, ("", 0)
        self.receipts[receipt] = (task.name, task.generation, receipt, self.epoch)
        return {"outcome": "GRANTED", "task": task.ref, "generation": task.generation, "attempt": task.attempts,
                "lease_until": self.now + lease}  # fmt: skip

    def claim(
        self,
        task: str,
        agent: str,
        session: str,
        receipt: str,
        lease: int = 300 * SECOND,
        request_id: str | None = None,
    ) -> Answer:
        if request_id in self.requests:
            return self.requests[request_id] | {"again": True}
        wanted = self._named(task)
        known = self.agents.setdefault(agent, Agent())
        denial = self._denial(wanted, agent, known.capabilities)
        if denial is None:
            granted = self._grant(wanted, agent, session, lease, receipt)
            if request_id is not None:
                self.requests[request_id] = {k: granted[k] for k in ("outcome", "generation")}
            return granted
        answer: Answer = {"outcome": denial}
        if denial == "DENIED_ACTIVE_CLAIM":
            answer["yours"] = wanted.claims[-1].session == session
            answer["holder"] = wanted.claims[-1].agent
        if wanted.state == "pending" and self.unmet(wanted):
            answer["waits_for"] = {t.ref for t in self.unmet(wanted)}
        return answer

    def claim_next(
        self,
        agent: str,
        session: str,
        receipts: list[str],
        lease: int = 300 * SECOND,
        capabilities: tuple[str, ...] | None = None,
        tracks: tuple[str, ...] = (),
        types: tuple[str, ...] = (),
        tags: tuple[str, ...] = (),
    ) -> Answer:
        known = self.agents.setdefault(agent, Agent())
        has = known.capabilities if capabilities is None else capabilities
        claims: list[Answer] = []
        if self._takes_no_more(agent):
            return {"outcome": "DENIED_LIMIT"}
        for receipt in receipts:
            fit = [
                task
                for task in self.tasks.values()
                if self._denial(task, agent, has) is None
                and task.cool_offs.get(agent, 0) <= self.now
                and known.cool_until <= self.now
                and (not tracks or task.track in tracks)
                and (not types or task.type in types)
                and set(tags) <= set(task.tags)
            ]
            if fit:
                best = min(fit, key=lambda task: self._place(task, agent))
                claims.append(self._grant(best, agent, session, lease, receipt))
        return {"outcome": "GRANTED", "claims": claims} if claims else {"outcome": "NO_TASK"}

    def _place(self, task: Task, agent: str) -> tuple[Any, ...]:
        offered = task.offer[0] == agent and task.offer[1] > self.now
        return not offered, task.priority >= 10, self.effective_priority(task), task.sequence, self._age(task)

    def _age(self, task: Task) -> int:
        return list(self.tasks).index(task.name)

    def effective_priority(self, task: Task) -> Fraction:
        urgency = 0
        if task.deadline is not None:
            left = task.deadline - self.now
            urgency = next(
                (points for hours, points in ((3, 40), (6, 20), (12, 10), (24, 5)) if left <= hours * HOUR), 0
            )
        ageing = Fraction((self.now - task.created_at) * task.boost, 100 * MINUTE)
        return task.priority - ageing - urgency - min(20, 2 * self._longest_path_below(task))

    # --- holders ------------------------------------------------------------------------------------------

    def _check(self, receipt: Receipt, verb: str) -> tuple[Task, Claim, Answer | None]:
        """Whose receipt this is, and the refusal when it may not do that now."""
        if receipt is None:
            raise Refused("INVALID_INPUT")
        name, generation, nonce, epoch = receipt
        task = self.tasks.get(name or "")
        if task is None:
            return Task("", "", "", 0, "", 0), NOBODYS, {"outcome": "NOT_FOUND"}
        claim = task.claims[generation - 1] if 0 < generation <= task.generation else None
        genuine = claim is not None and (claim.nonce, claim.epoch) == (nonce, epoch)
        last = task.claims[-1] if task.claims else None

        code = None
        if epoch != self.epoch:
            code = "STALE_EPOCH"
        elif generation < task.generation:
            code = "STALE_GENERATION"
        elif generation > task.generation:
            code = "FUTURE_GENERATION"
        elif not genuine:
            code = "SESSION_MISMATCH"
        elif verb in ENDINGS and last and last.by == verb:
            return task, last, {"outcome": "OK", "again": True}
        elif task.state == "completed":
            code = "TASK_ALREADY_COMPLETED"
        elif task.state == "cancelled":
            code = "TASK_CANCELLED"
        elif task.held or (verb in ("submit", "checkpoint") and self.is_answerable(task)):
            code = None
        elif verb not in ("submit", "checkpoint") and last and last.reason == "EXPIRED":
            code = "ALREADY_EXPIRED"
        else:
            code = "NO_CLAIM"
        refusal: Answer | None = None
        if code is not None:
            refusal = {"outcome": code, "current_generation": task.generation, "genuine": genuine}
            if code == "TASK_CANCELLED":
                refusal["directive"] = "cancel"
            elif code in ("STALE_EPOCH", "STALE_GENERATION", "FUTURE_GENERATION", "SESSION_MISMATCH"):
                refusal["directive"] = "abort"
            elif task.state == "paused":
                refusal["directive"] = "pause"
        return task, claim or NOBODYS, refusal

    @staticmethod
    def is_answerable(task: Task) -> bool:
        return task.answerable and task.state in ("ready", "retrying", "paused")

    def renew(self, receipt: Receipt, lease: int | None = None) -> Answer:
        task, claim, refusal = self._check(receipt, "renew")
        if refusal:
            return refusal
        task.state = "running"
        claim.lease = lease or claim.lease
        claim.until = self.now + claim.lease
        return {"outcome": "RENEWED", "lease_until": claim.until, "directive": "continue"}

    def start(self, receipt: Receipt) -> Answer:
        return self._touch(receipt, "start")

    def progress(self, receipt: Receipt) -> Answer:
        return self._touch(receipt, "progress")

    def checkpoint(self, receipt: Receipt) -> Answer:
        return self._touch(receipt, "checkpoint")

    def _touch(self, receipt: Receipt, verb: str) -> Answer:
        task, claim, refusal = self._check(receipt, verb)
        if refusal:
            return refusal
        self._go_on(task, claim)
        return {"outcome": "OK"}

    def _go_on(self, task: Task, claim: Claim) -> None:
        if task.held:
            task.state = "running"
            claim.until = max(claim.until, self.now + claim.lease)

    def submit(self, receipt: Receipt, data: Any) -> Answer:
        task, claim, refusal = self._check(receipt, "submit")
        if refusal is None:
            if task.held:
                self._end(task, "COMPLETED")
            self._complete(task, claim, data)
            self.agents[claim.agent].troubles = 0
            self.agents[claim.agent].cool_until = 0
            return {"outcome": "ACCEPTED", "generation": claim.generation}
        if refusal.get("genuine") and data in claim.accepted_data:
            return {"outcome": "ACCEPTED", "generation": claim.generation, "again": True}
        refusal["work_lost"] = refusal.get("genuine", False)
        if refusal["work_lost"]:
            claim.accepted = bool(claim.accepted)
            if claim.refused < MOST_REFUSED and (claim, data) not in task.kept:
                claim.refused += 1
                task.kept.append((claim, data))
        return refusal

    def fail(
        self,
        receipt: Receipt,
        error_class: str = "task",
        retry_after: int | None = None,
    ) -> Answer:
        if error_class not in (*COUNTING, *AGENTS_OWN, "rate_limit", "budget_exceeded"):
            raise Refused("INVALID_INPUT")
        task, claim, refusal = self._check(receipt, "fail" if error_class != "budget_exceeded" else "budget")
        if refusal:
            return refusal
        agent = self.agents[claim.agent]
        if error_class == "budget_exceeded":
            self._end(task, "PAUSED", free=True, by="budget")
            self._pause(task, "budget")
            return {"outcome": "OK", "state": "paused"}
        self._end(task, "FAILED", by="fail")
        counts = error_class in COUNTING
        if error_class in AGENTS_OWN:
            agent.troubles += 1
            if agent.troubles >= 3:
                agent.cool_until = self.now + min(30, 2 ** (agent.troubles - 3)) * MINUTE
        if not counts:
            task.troubled.add(claim.agent)
            counts = task.given_back >= MOST_GIVEN_BACK or len(task.troubled) >= 3
        if not counts:
            self._give_back(task)
            if error_class == "rate_limit":
                task.state, task.retry_at = "retrying", self.now + (retry_after or MINUTE)
                return {"outcome": "OK", "state": "retrying", "retry_at": task.retry_at}
            task.cool_offs[claim.agent] = self.now + 10 * MINUTE
            self._open(task, self.now)
            return {"outcome": "OK", "state": task.state}
        self._failed(task, error_class, self.now, retry_after)
        return {"outcome": "OK", "state": task.state, "retry_at": task.retry_at}

    def release(self, receipt: Receipt) -> Answer:
        task, claim, refusal = self._check(receipt, "release")
        if refusal:
            return refusal
        exhausted = task.given_back >= MOST_GIVEN_BACK and task.attempts >= task.max_attempts
        self._end(task, "VOLUNTARY", back=True, by="release")
        task.cool_offs[claim.agent] = self.now + 5 * MINUTE
        if exhausted:
            self._dead_letter(task, self.now)
        else:
            self._open(task, self.now)
        return {"outcome": "OK", "state": task.state}

    def ask(self, receipt: Receipt) -> Answer:
        task, _, refusal = self._check(receipt, "ask")
        if refusal:
            return refusal
        self._end(task, "PAUSED", free=True, by="ask")
        self._pause(task, "question")
        return {"outcome": "OK", "state": "paused"}

    def wait(self, receipt: Receipt) -> Answer:
        task, _, refusal = self._check(receipt, "wait")
        return refusal or self._wait(task)

    def _spawned(self, task: Task) -> list[Task]:
        return [t for t in self.children(task) if t.local_name and t.parent_run == task.run]

    def _check_may_wait(self, task: Task) -> None:
        if any(self._reaches(child.name, task.name) for child in self._spawned(task)):
            raise Refused("CYCLE")

    def _wait(self, task: Task) -> Answer:
        self._check_may_wait(task)
        spawned = self._spawned(task)
        self._end(task, "WAITING", free=True, by="wait")
        task.needs |= dict.fromkeys((child.name for child in spawned), "ignore")
        self._open(task, self.now)
        return {"outcome": "OK", "state": task.state}

    def spawn(self, receipt: Receipt, names: list[str], wait: bool = False) -> Answer:
        task, claim, refusal = self._check(receipt, "wait" if wait else "spawn")
        if refusal and refusal.get("again"):
            # It is the same spawn once more only if its subtasks are there.
            there = {t.local_name for t in self.children(task) if t.parent_run == task.run}
            return refusal if set(names) <= there else self._check(receipt, "spawn")[2] or {}
        if refusal:
            return refusal
        if wait:
            self._check_may_wait(task)  # a refused command makes no subtask either
        self._go_on(task, claim)
        there = {t.local_name: t for t in self.children(task) if t.parent_run == task.run}
        made = [there.get(name) or self._make_child(task, name) for name in names]
        answer = self._wait(task) if wait else {"outcome": "OK"}
        return answer | {"tasks": [t.ref for t in made]}

    def _make_child(self, parent: Task, local_name: str) -> Task:
        name = f"{parent.name}/{local_name}#{parent.run}"
        child = self._make(name, parent=parent.name, local_name=local_name, parent_run=parent.run)
        self._open(child, self.now)
        return child
