"""The runner: slots in threads, and one loop that looks after them all."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from tenure.agents.examining import tools_for
from tenure.agents.gone import tell_of_gone
from tenure.agents.running.ground import Ground, Options
from tenure.agents.running.outbox import is_unknown
from tenure.agents.running.slot import Slot, speaking
from tenure.agents.validating import Validating
from tenure.client import Client
from tenure.core import limits
from tenure.core.errors import NotFound, StoreError

GLANCE = 0.1  # seconds between looks at signals and slots
LOOK = 1.0  # at the tasks that are held: a cancelled one must not cost a whole lease
GONE = 2.0  # at other processes of this host that hold claims
OUTBOX = 5.0
PRESENCE = limits.PRESENCE_OF_WORKERS


class Runner:
    def __init__(self, client: Client, options: Options, say: Callable[[str], None]) -> None:
        self.ground = Ground(options, say)
        process = self.ground.process
        name = f"run-{process.pid}-{process.start}" if process else "run"
        self.client = speaking(client, options.name, name)
        self.slots = [Slot(self.ground, client, number + 1) for number in range(options.slots)]
        self._validating = Validating(client, lambda: tools_for(options.folder, options.environ), say=self.ground.say)
        self._interrupts = 0
        self._is_terminated = False
        self._due: dict[str, float] = {}
        self._unknown: set[str] = set()  # receipts in the outbox that another store must have given

    # --- signals: only remembered here, since a handler may run anywhere ---

    def interrupt(self, *_: object) -> None:
        self._interrupts += 1

    def terminate(self, *_: object) -> None:
        self._is_terminated = True

    # --- the loop ---

    def run(self, pause: Callable[[float], None] = time.sleep) -> Ground:
        """Work until there is nothing left to do, or it is told to end. Raises what a slot did not foresee."""
        self._send_outbox()
        tell_of_gone(self.client, self.ground.say)
        for slot in self.slots:
            slot.register()
        self._validating.start()
        for slot in self.slots:
            slot.start()
        obeyed, term_ends = 0, None
        while any(slot.is_alive() for slot in self.slots):
            pause(GLANCE)
            if self._is_terminated and term_ends is None:
                self._drain("told to end")
                term_ends = time.monotonic() + self.ground.options.grace
            if self._interrupts > obeyed:
                obeyed = self._interrupts
                if obeyed == 1:
                    self._drain("no new tasks; what runs may finish. Once more to end it now")
                elif obeyed >= 3:
                    return self.ground  # the keepers end their agents when this process is gone
            if obeyed >= 2 or (term_ends is not None and time.monotonic() > term_ends):
                self._stop()
            self._look_after()
        self._validating.stop()
        for slot in self.slots:
            slot.leave()
        self._send_outbox()
        for slot in self.slots:
            if slot.error is not None:
                raise slot.error
        return self.ground

    def _drain(self, why: str) -> None:
        if not self.ground.draining.is_set():
            self.ground.say(f"draining: {why}")
            self.ground.draining.set()

    def _stop(self) -> None:
        if not self.ground.stopping.is_set():
            self.ground.say("ending the agents; their tasks are given back")
            self.ground.draining.set()
            self.ground.stopping.set()
            for slot in self.slots:
                slot.interrupt()

    # --- what is looked after ---

    def _look_after(self) -> None:
        with suppress(StoreError):  # the slots tell of a store that is away
            if self._is_due("look", LOOK):
                self._look_at_tasks()
            if self._is_due("gone", GONE):
                tell_of_gone(self.client, self.ground.say)
            if self._is_due("outbox", OUTBOX):
                self._send_outbox()
            if self._is_due("presence", PRESENCE):
                for slot in self.slots:
                    if slot.is_alive():
                        slot.client.heartbeat()

    def _is_due(self, what: str, seconds: float) -> bool:
        now = time.monotonic()
        if now < self._due.get(what, 0.0):
            return False
        self._due[what] = now + seconds
        return True

    def _look_at_tasks(self) -> None:
        held = {id: slot for slot in self.slots if (id := slot.hold_id()) is not None}
        if not held:
            return
        for state in self.client.states(held):
            work = held[state["name"]].work
            if work is not None and work.hold.id == state["name"]:
                work.hold.noticed(state)

    def _send_outbox(self) -> None:
        for sent in self.ground.outbox.flush(self.client):
            finished = sent.finished
            if isinstance(sent.error, NotFound) or (sent.outcome is not None and is_unknown(finished, sent.outcome)):
                if finished.receipt not in self._unknown:
                    self._unknown.add(finished.receipt)
                    self.ground.say(f"{finished.key}: kept in the outbox: this store does not know its claim")
            elif sent.outcome is None:
                why = sent.error.message if sent.error else ""
                self.ground.say(f"{finished.key}: the store will not take what was kept in the outbox: {why}")
            elif sent.outcome.ok:
                self.ground.say(f"{finished.key}: {finished.what} from the outbox: {sent.outcome.outcome}")
            else:
                self.ground.say(f"{finished.key}: {finished.what} from the outbox was refused: {sent.outcome.message}")


def summary_of(ground: Ground, seconds: float) -> dict[str, Any]:
    """What a run comes to, for --json."""
    import msgspec

    return {
        "tasks": sum(ground.counts.values()),
        "counts": dict(ground.counts),
        "seconds": round(seconds, 3),
        "ended": [
            {**done._asdict(), "usage": [msgspec.structs.asdict(totals) for totals in done.usage]}
            for done in ground.done
        ],
    }
