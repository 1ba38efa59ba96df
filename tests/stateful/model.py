"""What tenure must answer, told a second time and naively: from the specification, sharing no code with it.

A `World` is one project. Every verb first lets the whole world catch up with the clock, one due thing after the
other in the order of their instants; then it looks at everything and changes what the rules say. Nothing is
indexed, counted ahead or cached: what can be derived from the rows is derived when it is asked for.

Times are integer microseconds. A receipt is the tuple (task, generation, nonce, epoch), or None when it is not even
shaped like one. Answers are plain dicts: an outcome with its fields, or {"error": code}.
"""

from __future__ import annotations

from typing import Any

from tests.stateful.model_fence import Fence
from tests.stateful.model_rows import ENDED, FAILED, MINUTE, Agent, Answer, Refused, Task


class World(Fence):
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
        self._suffer(task)
        self._look_again(self.now)
        return {"outcome": "CREATED", "task": task.ref}

    def _suffer(self, task: Task) -> None:
        """A new edge to what has failed already works as if it failed now."""
        for name, on_failure in task.needs.items():
            other = self.tasks[name]
            if on_failure == "cancel" and other.state in FAILED:
                origin = other.name if other.state == "dead_lettered" else other.cancelled_by
                self._cancel(task, self.now, by=origin)

    def link(self, task: str, needs: str, on_failure: str = "block") -> Answer:
        wanted, other = self._named(task), self._named(needs)
        if needs in wanted.needs:
            return {"outcome": "UNCHANGED"}
        if wanted.state not in ("created", "pending", "ready"):
            return {"outcome": "DENIED_STATE"}
        if self._reaches(needs, task):
            raise Refused("CYCLE")
        wanted.needs[other.name] = on_failure
        self._suffer(wanted)
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

    def pause(self, task: str) -> Answer:
        wanted = self._named(task)
        if wanted.state in ("created", *ENDED):
            return {"outcome": "DENIED_STATE"}
        if wanted.state == "paused" and "person" in wanted.pauses:
            return {"outcome": "UNCHANGED"}
        if wanted.held:
            self._end(wanted, "PAUSED", free=True)
        self._pause(wanted, "person")
        return {"outcome": "UPDATED", "state": "paused"}

    def resume(self, task: str) -> Answer:
        wanted = self._named(task)
        if wanted.state != "paused":
            return {"outcome": "DENIED_STATE"}
        return self._lift(wanted, {"person", "lost"})

    def answer(self, task: str) -> Answer:
        wanted = self._named(task)
        if "question" not in wanted.pauses:
            return {"outcome": "DENIED_STATE"}
        return self._lift(wanted, {"question"})

    def _lift(self, task: Task, causes: set[str]) -> Answer:
        """Without these causes; it goes on when none is left."""
        if not task.pauses & causes:
            return {"outcome": "UNCHANGED", "state": "paused"}
        task.pauses -= causes
        if task.pauses:
            pass
        elif task.before == "retrying" and (task.retry_at or 0) > self.now:
            task.state = "retrying"
        else:
            self._open(task, self.now)
        return {"outcome": "UPDATED", "state": task.state}

    def cancel(self, task: str) -> Answer:
        wanted = self._named(task)
        if wanted.state == "completed":
            return {"outcome": "DENIED_STATE"}
        if wanted.state == "cancelled":
            return {"outcome": "UNCHANGED"}
        self._cancel(wanted, self.now, by=None)
        return {"outcome": "UPDATED", "state": "cancelled"}

    def retry(self, task: str) -> Answer:
        wanted = self._named(task)
        if wanted.state != "dead_lettered":
            return {"outcome": "DENIED_STATE"}
        self._start_over(wanted)
        for other in self.tasks.values():
            if other.state == "cancelled" and other.cancelled_by == wanted.name:
                self._come_back(other)
        self._look_again(self.now)
        return {"outcome": "UPDATED", "state": wanted.state}

    def _come_back(self, task: Task) -> None:
        """To the state before it was cancelled; what was held then has no holder now."""
        task.archived = False
        if task.was in ("created", "paused", "dead_lettered"):
            task.state = task.was
        elif task.was == "retrying" and (task.retry_at or 0) > self.now:
            task.state = "retrying"
        else:
            self._open(task, self.now)

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
                self._end(dependent, "SUPERSEDED", free=True)
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
            self._end(wanted, "SUPERSEDED", free=True)
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

    def edit(self, task: str, priority: int | None = None, spec: bool = False, supersede: bool = False) -> Answer:
        """A change of the spec voids an old text's result; a holder is not robbed of its text but on purpose."""
        wanted = self._named(task)
        if spec and wanted.state in ("completed", "cancelled"):
            return {"outcome": "DENIED_STATE"}
        if spec and wanted.held:
            if not supersede:
                return {"outcome": "DENIED_STATE"}
            self._end(wanted, "SUPERSEDED", free=True)
            self._open(wanted, self.now)
        if spec:
            wanted.answerable = False
        if priority is not None:
            wanted.priority = priority
        return {"outcome": "UPDATED"}

    def assign(self, task: str, agent: str) -> Answer:
        wanted = self._named(task)
        if wanted.state != "ready":
            return {"outcome": "DENIED_STATE"}
        self.agents.setdefault(agent, Agent())
        wanted.offer = (agent, self.now + MINUTE)
        return {"outcome": "UPDATED"}

    def reassign(self, task: str, agent: str) -> Answer:
        wanted = self._named(task)
        offerable = wanted.state == "ready" or wanted.held
        if not offerable or self.unmet(wanted) or wanted.not_before > self.now:
            return {"outcome": "DENIED_STATE"}
        if wanted.held:
            self._end(wanted, "SUPERSEDED", free=True)
            self._open(wanted, self.now)
        wanted.answerable = False
        self.agents.setdefault(agent, Agent())
        wanted.offer = (agent, self.now + MINUTE)
        return {"outcome": "UPDATED"}

    def recover(self, task: str) -> Answer:
        wanted = self._named(task)
        if not wanted.held:
            return {"outcome": "DENIED_STATE"}
        self._end(wanted, "SUPERSEDED", free=True)
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
        known.capabilities, known.region, known.most, known.draining = capabilities, region, most, False
        return {"outcome": answer}

    def drain(self, agent: str) -> Answer:
        if agent not in self.agents:
            raise Refused("NOT_FOUND")
        answer = "UNCHANGED" if self.agents[agent].draining else "UPDATED"
        self.agents[agent].draining = True
        return {"outcome": answer}
