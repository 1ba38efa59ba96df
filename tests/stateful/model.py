"""What tenure must answer, told a second time and naively: from the specification, sharing no code with it.

A `World` is one project. Every verb first lets the whole world catch up with the clock, one due thing after the
other in the order of their instants; then it looks at everything and changes what the rules say. Nothing is
indexed, counted ahead or cached: what can be derived from the rows is derived when it is asked for.

Times are integer microseconds. A receipt is the tuple (task, generation, nonce, epoch), or None when it is not even
shaped like one. Answers are plain dicts: an outcome with its fields, or {"error": code}.
"""

from __future__ import annotations

from typing import Any

from tests.stateful.model_budgets import BUDGET
from tests.stateful.model_landings import Landings
from tests.stateful.model_rows import ENDED, MINUTE, PERSONS, UNSTARTED, Agent, Answer, Refused, Task


class World(Landings):
    # --- making work --------------------------------------------------------------------------------------

    def add(self, name: str, draft: bool = False, **fields: Any) -> Answer:
        key = fields.get("idempotency_key")
        for task in self.tasks.values():
            if key is not None and task.idempotency_key == key:
                return {"outcome": "EXISTS", "task": task.ref, "again": True}
        needs = dict(fields.pop("needs", ()))
        if parent := fields.get("parent"):
            self._named(parent)
        if not needs.keys() <= self.tasks.keys():
            raise Refused("INVALID_INPUT")
        if parent and self.tasks[parent].state not in ("created", "pending", "ready"):
            return {"outcome": "DENIED_STATE"}
        if parent and any(self._reaches(needed, parent) for needed in needs):
            raise Refused("CYCLE")
        task = self._make(name, needs=needs, **fields)
        if parent:
            self.tasks[parent].needs[name] = "block"
        if not draft:
            self._open(task, self.now)
        self._suffer(task, task.needs)
        self._look_again(self.now)
        return {"outcome": "CREATED", "task": task.ref}

    def link(self, task: str, needs: str, on_failure: str = "block") -> Answer:
        wanted, other = self._named(task), self._named(needs)
        if wanted.needs.get(needs) == on_failure:
            return {"outcome": "UNCHANGED"}
        if wanted.state not in UNSTARTED:
            return {"outcome": "DENIED_STATE"}
        if self._reaches(needs, task):
            raise Refused("CYCLE")
        wanted.needs[other.name] = on_failure
        self._suffer(wanted, [other.name])
        self._look_again(self.now)
        return {"outcome": "UPDATED", "state": wanted.state}

    def unlink(self, task: str, needs: str) -> Answer:
        wanted = self._named(task)
        if self._named(needs).name not in wanted.needs:
            raise Refused("NOT_FOUND")
        if wanted.state not in ("created", "pending", "ready"):
            return {"outcome": "DENIED_STATE"}
        del wanted.needs[needs]
        self._look_again(self.now)
        return {"outcome": "UPDATED", "state": wanted.state}

    def publish(self, task: str) -> Answer:
        wanted = self._named(task)
        if wanted.state != "created":
            return {"outcome": "UNCHANGED"}
        self._open(wanted, self.now)
        return {"outcome": "UPDATED"}

    # --- persons ------------------------------------------------------------------------------------------

    def pause(self, task: str, drain: bool = False) -> Answer:
        wanted = self._named(task)
        if wanted.state in ("created", *ENDED):
            return {"outcome": "DENIED_STATE"}
        if wanted.held and drain:
            answer = "UNCHANGED" if "drain" in wanted.causes else "UPDATED"
            wanted.causes.add("drain")
            return {"outcome": answer, "state": wanted.state}
        if "person" in wanted.causes:
            return {"outcome": "UNCHANGED"}
        if wanted.held:
            self._end(wanted, "PAUSED", free=True)
            self._free(wanted, self.now)
        self._pause(wanted, "person")
        return {"outcome": "UPDATED", "state": "paused"}

    def resume(self, task: str, budget: bool = False) -> Answer:
        """A person lifts what persons have a say in; a budget's cause only where that is asked for."""
        wanted = self._named(task)
        over = wanted.causes & (PERSONS | ({"budget", BUDGET} if budget else set()))
        over = over or (wanted.causes if wanted.causes == {"review"} else set())
        if not wanted.causes or not (wanted.held or wanted.state == "paused"):
            return {"outcome": "DENIED_STATE"}
        if not over:
            return {"outcome": "UNCHANGED"}
        self._lift(wanted, over)
        return {"outcome": "UPDATED", "state": wanted.state}

    def answer(self, task: str) -> Answer:
        wanted = self._named(task)
        if wanted.state != "paused" or "question" not in wanted.causes:
            return {"outcome": "DENIED_STATE"}
        self._lift(wanted, {"question"})
        return {"outcome": "UPDATED", "state": wanted.state}

    def cancel(self, task: str) -> Answer:
        wanted = self._named(task)
        if wanted.state == "completed" or self._has_begun(wanted):
            return {"outcome": "DENIED_STATE"}
        if wanted.state == "cancelled":
            return {"outcome": "UNCHANGED"}
        self._cancel(wanted, self.now, by=None)
        return {"outcome": "UPDATED", "state": "cancelled"}

    def retry(self, task: str) -> Answer:
        wanted = self._named(task)
        if wanted.state not in ("dead_lettered", "cancelled", "retrying"):
            return {"outcome": "DENIED_STATE"}
        was = wanted.state
        if was == "retrying":  # the same run: only its delay ends
            self._open(wanted, self.now)
        else:
            self._start_over(wanted)
        for other in self.tasks.values() if was == "dead_lettered" else ():
            if other.state == "cancelled" and other.cancelled_by == wanted.name:
                self._come_back(other)
        self._look_again(self.now)
        return {"outcome": "UPDATED", "state": wanted.state}

    def reset(self, task: str, cascade: bool = False) -> Answer:
        wanted = self._named(task)
        if wanted.state != "completed":
            return {"outcome": "DENIED_STATE"}
        left = self._reset(wanted, cascade)
        return {"outcome": "UPDATED", "state": wanted.state, "left": {t.ref for t in left}}

    def _reset(self, task: Task, cascade: bool) -> list[Task]:
        self._start_over(task)
        left = [t for t in self.dependents(task) if t.held or t.state == "completed"]
        if not cascade:
            return left
        for dependent in left:
            if dependent.held:
                self._supersede(dependent)
                self._open(dependent, self.now)
            elif dependent.state == "completed":
                self._reset(dependent, cascade)
        return []

    def adopt(self, task: str, supersede: bool = False) -> Answer:
        wanted = self._named(task)
        if wanted.state not in ("pending", "ready", "retrying", "paused", "dead_lettered") and not (
            wanted.held and supersede
        ):
            return {"outcome": "DENIED_STATE"}
        if not wanted.kept:
            raise Refused("NOT_FOUND")
        if wanted.held:
            self._supersede(wanted)
        claim, data = wanted.kept[-1]
        self._complete(wanted, claim, data)
        return {"outcome": "UPDATED", "state": "completed"}

    def archive(self, task: str) -> Answer:
        wanted = self._named(task)
        if wanted.state not in ("completed", "cancelled"):
            return {"outcome": "DENIED_STATE"}
        if wanted.archived:
            return {"outcome": "UNCHANGED"}
        wanted.archived = True
        return {"outcome": "UPDATED"}

    def edit(
        self, task: str, priority: int | None = None, spec: bool = False, text: int = 0, supersede: bool = False
    ) -> Answer:
        """A change of the spec voids an old text's result; a holder is not robbed of its text but on purpose.

        A new description is news for the holder, whose result is not taken until it has seen it.
        """
        wanted = self._named(task)
        if spec and wanted.state in ("completed", "cancelled"):
            return {"outcome": "DENIED_STATE"}
        if spec and wanted.held:
            if not supersede:
                return {"outcome": "DENIED_STATE"}
            self._supersede(wanted)
            self._open(wanted, self.now)
        if spec:
            wanted.late_submit_open, wanted.another_spec = False, True
        if text and text != wanted.description:
            wanted.text, wanted.description = wanted.text + 1, text
            if wanted.held:
                wanted.claims[-1].unseen = True
        if text:
            wanted.late_submit_open = False
        if priority is not None:
            wanted.priority = priority
        return {"outcome": "UPDATED"}

    def assign(self, task: str, agent: str) -> Answer:
        wanted = self._named(task)
        if wanted.state != "ready":
            return {"outcome": "DENIED_STATE"}
        if agent not in self.agents:
            raise Refused("NOT_FOUND")
        wanted.offer = (agent, self.now + MINUTE)
        return {"outcome": "UPDATED"}

    def reassign(self, task: str, agent: str) -> Answer:
        wanted = self._named(task)
        offerable = wanted.state == "ready" or wanted.held
        if not offerable or self.unmet(wanted) or wanted.not_before > self.now:
            return {"outcome": "DENIED_STATE"}
        if agent not in self.agents:
            raise Refused("NOT_FOUND")
        if wanted.held:
            self._supersede(wanted)
            self._open(wanted, self.now)
        wanted.late_submit_open = False
        wanted.offer = (agent, self.now + MINUTE)
        return {"outcome": "UPDATED"}

    def recover(self, task: str) -> Answer:
        wanted = self._named(task)
        if not wanted.held:
            return {"outcome": "DENIED_STATE"}
        self._supersede(wanted)
        self._open(wanted, self.now)
        return {"outcome": "UPDATED", "state": wanted.state}

    def abort(self, task: str) -> Answer:
        wanted = self._named(task)
        if not wanted.held:
            return {"outcome": "DENIED_STATE"}
        self._abort(wanted, self.now)
        return {"outcome": "UPDATED", "state": wanted.state}

    def stop_line(self, scope: str) -> Answer:
        answer = "UNCHANGED" if scope in self.stopped else "UPDATED"
        self.stopped.add(scope)
        return {"outcome": answer}

    def start_line(self, scope: str) -> Answer:
        answer = "UPDATED" if scope in self.stopped else "UNCHANGED"
        self.stopped.discard(scope)
        return {"outcome": answer}

    def register(
        self,
        agent: str,
        capabilities: tuple[str, ...] = (),
        region: str | None = None,
        most: int | None = None,
    ) -> Answer:
        answer = "UPDATED" if agent in self.agents else "CREATED"
        known = self.agents.setdefault(agent, Agent())
        known.capabilities, known.region, known.most = capabilities, region, most
        return {"outcome": answer}

    def drain(self, agent: str) -> Answer:
        if agent not in self.agents:
            raise Refused("NOT_FOUND")
        answer = "UNCHANGED" if self.agents[agent].draining else "UPDATED"
        self.agents[agent].draining = True
        return {"outcome": answer}

    def terminate(self, agent: str, graceful: bool = True) -> Answer:
        """It claims nothing until it is resumed; what it holds ends now, unless that is to finish."""
        if agent not in self.agents:
            raise Refused("NOT_FOUND")
        held = [task for task in self.tasks.values() if task.held and task.claims[-1].agent == agent]
        if self.agents[agent].terminated and (graceful or not held):
            return {"outcome": "UNCHANGED"}
        self.agents[agent].terminated = self.agents[agent].was_terminated = True
        for task in [] if graceful else held:
            self._supersede(task)
            self._open(task, self.now)
        return {"outcome": "UPDATED"}

    def resume_agent(self, agent: str) -> Answer:
        """Lifts what operators have said of it; its own register never does."""
        if agent not in self.agents:
            raise Refused("NOT_FOUND")
        known = self.agents[agent]
        answer = "UPDATED" if known.draining or known.terminated else "UNCHANGED"
        known.draining = known.terminated = False
        return {"outcome": answer}
