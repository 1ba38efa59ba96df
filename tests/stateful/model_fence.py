"""The model's fence: who may claim, who is chosen, and what the bearer of a receipt may do."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from typing import Any

from tests.stateful.model_ground import Ground
from tests.stateful.model_rows import (
    AGENTS_OWN,
    COUNTING,
    HOUR,
    LOSSES,
    MINUTE,
    MOST_GENERATIONS,
    MOST_GIVEN_BACK,
    MOST_REFUSED,
    NO_OFFER,
    SECOND,
    Agent,
    Answer,
    Claim,
    Receipt,
    Refused,
    Task,
    overlap,
)  # fmt: skip

ENDINGS = ("fail", "budget", "release", "release, stopped", "wait", "ask")  # a holder's own words that end its claim
WORN_OUT = "claimed too often in this run"
NOBODYS = Claim(0, 0, 0, "", 0, "", "", 0, 0, 0)


class Fence(Ground):
    most_generations = MOST_GENERATIONS

    def limit_generations(self, most: int) -> Answer:
        """Of one task in one run: what never counts is bounded by it."""
        self.most_generations = most
        return {}

    # --- claiming -----------------------------------------------------------------------------------------

    def _denial(self, task: Task, name: str, capabilities: tuple[str, ...], session: str) -> str | None:
        agent = self.agents[name]
        if agent.terminated:
            return "DENIED_AGENT"
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
        if sum(claim.run == task.run for claim in task.claims) >= self.most_generations:
            return WORN_OUT
        if self._in_the_way(task.touches, "exclusive", task, session):
            return "DENIED_CONFLICT"
        return "DENIED_BUDGET" if self._cannot_pay() else None

    def _cannot_pay(self) -> bool:
        return False

    def _reserve_money(self, claim: Claim) -> None:
        pass

    def _has_no_headroom(self, claim: Claim) -> bool:
        return False

    def _checked(self, task: Task, answer: Answer) -> Answer:
        return answer

    def _in_the_way(self, patterns: Iterable[str], mode: str, task: Task | None, session: str) -> bool:
        """Whether somebody else holds what overlaps; two who share do not mind, nor does a session mind its own."""
        held = [t.claims[-1].holds for t in self.tasks.values() if t.held and t is not task]
        held += [hold.holds for hold in self.alone.values() if hold.until > self.now and hold.session != session]
        return any(
            overlap(pattern, other)
            for pattern in patterns
            for holds in held
            for other, how in holds.items()
            if (mode, how) != ("shared", "shared")
        )

    def _takes_no_more(self, name: str) -> bool:
        agent = self.agents[name]
        holds = sum(task.held and task.claims[-1].agent == name for task in self.tasks.values())
        half_open = agent.troubles >= 3
        return agent.draining or holds >= min(agent.most or holds + 1, 1 if half_open else holds + 1)

    def _grant(self, task: Task, agent: str, session: str, lease: int, receipt: str) -> Answer:
        last = task.claims[-1] if task.claims else None
        again = last and last.reason == "EXPIRED" and (last.agent, last.session, last.run) == (agent, session, task.run)
        task.losses = task.losses if again else 0
        goes_on = again and task.losses < LOSSES
        task.attempts += 0 if goes_on else 1
        task.claims.append(
            Claim(task.generation + 1, task.run, task.attempts, receipt, self.epoch, agent, session, self.now, lease,
                  self.now + lease, goes_on=bool(goes_on), holds=dict.fromkeys(task.touches, "exclusive"))
        )  # fmt: skip
        self._reserve_money(task.claims[-1])
        task.state, task.late_submit_open, task.offer = "claimed", False, NO_OFFER
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
        denial = self._denial(wanted, agent, known.capabilities, session)
        if denial is None:
            granted = self._grant(wanted, agent, session, lease, receipt)
            if request_id is not None:
                self.requests[request_id] = {k: granted[k] for k in ("outcome", "generation")}
            return granted
        if denial == WORN_OUT:
            self._dead_letter(wanted, self.now)
            return {"outcome": "DENIED_LIMIT", "state": "dead_lettered"}
        answer: Answer = {"outcome": denial}
        if denial == "DENIED_AGENT":
            return answer | {"directive": "terminated"}
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
        if known.terminated:
            return {"outcome": "DENIED_AGENT"}
        if self._takes_no_more(agent):
            return {"outcome": "DENIED_LIMIT"}
        for receipt in receipts:
            fit = [
                task
                for task in self.tasks.values()
                if self._denial(task, agent, has, session) is None
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
        elif task.held or (verb in ("submit", "checkpoint", "usage") and self.is_late_submit_open(task)):
            code = None
        elif verb not in ("submit", "checkpoint", "usage") and last and last.reason == "EXPIRED":
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
    def is_late_submit_open(task: Task) -> bool:
        return task.late_submit_open and task.state in ("ready", "retrying", "paused")

    def renew(self, receipt: Receipt, lease: int | None = None) -> Answer:
        task, claim, refusal = self._check(receipt, "renew")
        if refusal:
            return refusal
        task.state = "running"
        claim.lease = lease or claim.lease
        claim.until = self.now + claim.lease
        mail = sum(claim.agent in mail.unread_by for mail in self.mail)
        answer = {"outcome": "RENEWED", "lease_until": claim.until, **self._directive(task, claim)}
        return self._checked(task, answer | {"mail": mail})

    def _directive(self, task: Task, claim: Claim) -> Answer:
        if "drain" in task.causes:
            return {"directive": "pause"}
        if claim.unseen:
            return {"directive": "changed"}
        return {"directive": "terminated" if self.agents[claim.agent].terminated else "continue"}

    def start(self, receipt: Receipt) -> Answer:
        return self._touch(receipt, "start")

    def progress(self, receipt: Receipt) -> Answer:
        task, claim, refusal = self._check(receipt, "progress")
        if refusal:
            return refusal
        task.losses = 0
        self._go_on(task, claim)
        return self._checked(task, {"outcome": "OK", **self._directive(task, claim)})

    def checkpoint(self, receipt: Receipt) -> Answer:
        return self._touch(receipt, "checkpoint", is_work=True)

    def _touch(self, receipt: Receipt, verb: str, is_work: bool = False) -> Answer:
        task, claim, refusal = self._check(receipt, verb)
        if refusal:
            return refusal
        task.losses = 0 if is_work else task.losses
        self._go_on(task, claim)
        return {"outcome": "OK"}

    def _go_on(self, task: Task, claim: Claim) -> None:
        if task.held:
            task.state = "running"
            claim.until = max(claim.until, self.now + claim.lease)

    def submit(self, receipt: Receipt, data: Any, seen: int | None = None) -> Answer:
        """`seen`: the number of the description that the result is for."""
        task, claim, refusal = self._check(receipt, "submit")
        if refusal is None and seen is not None and not 1 <= seen <= task.text:
            raise Refused("INVALID_INPUT")
        if refusal is None and seen == task.text:
            claim.unseen = False
        if refusal is None and task.held and claim.unseen:
            self._go_on(task, claim)
            return {"outcome": "CHANGED", "work_lost": False, "state": "running"}
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
        if error_class == "budget_exceeded":
            return self._pause_held(task, "budget")
        agent = self.agents[claim.agent]
        counts = error_class in COUNTING
        if error_class in AGENTS_OWN:
            agent.troubles += 1
            if agent.troubles >= 3:
                agent.cool_until = self.now + min(30, 2 ** (agent.troubles - 3)) * MINUTE
        if not counts:
            task.troubled.add(claim.agent)
            is_named = error_class in task.retry.get("retry_on", ())
            counts = is_named or task.given_back >= MOST_GIVEN_BACK or len(task.troubled) >= 3
        self._end(task, "FAILED", by="fail")
        if counts:
            self._failed(task, error_class, self.now, retry_after)
            retry_at = task.retry_at if task.state in ("retrying", "paused") else None
            return {"outcome": "OK", "state": task.state} | ({"retry_at": retry_at} if retry_at else {})
        self._give_back(task)
        if not self._is_retried(task, error_class):
            self._dead_letter(task, self.now)
            return {"outcome": "OK", "state": task.state}
        self._free(task, self.now)
        if error_class == "rate_limit":
            self._retry_at(task, self.now + (retry_after or MINUTE))
            return {"outcome": "OK", "state": task.state, "retry_at": task.retry_at}
        task.cool_offs[claim.agent] = self.now + 10 * MINUTE
        return {"outcome": "OK", "state": task.state}

    def _pause_held(self, task: Task, cause: str) -> Answer:
        self._end(task, "PAUSED", free=True, by="ask" if cause == "question" else cause)
        self._free(task, self.now)
        self._pause(task, cause)
        task.before = "ready"
        return {"outcome": "OK", "state": "paused"}

    def release(self, receipt: Receipt, stopped: bool = False) -> Answer:
        """`stopped`: the holder had to stop, and has not judged the task."""
        how = "release, stopped" if stopped else "release"
        task, claim, refusal = self._check(receipt, how)
        if refusal:
            return refusal
        if not stopped:
            task.cool_offs[claim.agent] = self.now + 5 * MINUTE
        if not self._end_given_back(task, "STOPPED" if stopped else "VOLUNTARY", by=how):
            self._free(task, self.now)
        return {"outcome": "OK", "state": task.state}

    def ask(self, receipt: Receipt) -> Answer:
        task, _, refusal = self._check(receipt, "ask")
        return refusal or self._pause_held(task, "question")

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
        self._free(task, self.now)
        return {"outcome": "OK", "state": task.state}

    def spawn(self, receipt: Receipt, names: list[str], wait: bool = False) -> Answer:
        task, claim, refusal = self._check(receipt, "wait" if wait else "spawn")
        if refusal and refusal.get("again"):
            # It is the same spawn once more only if its subtasks are there.
            there = {t.local_name for t in self.children(task) if t.parent_run == task.run}
            return refusal if set(names) <= there else self._check(receipt, "spawn")[2] or {}
        if refusal:
            return refusal
        if self._has_no_headroom(claim):
            return {"outcome": "DENIED_BUDGET"}
        if wait:
            self._check_may_wait(task)  # a refused command makes no subtask either
        task.losses = 0
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
