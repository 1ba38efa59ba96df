"""The runner: slots in threads, and one loop that supervises them."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

from tenure.agents.ended_holders import release_ended
from tenure.agents.result_checker import ValidationThread, tools_for
from tenure.agents.runner.activity import Activity
from tenure.agents.runner.outbox import is_unknown
from tenure.agents.runner.shared import Options, Shared
from tenure.agents.runner.slot import Slot, speaking
from tenure.client import Client
from tenure.core import limits
from tenure.core.errors import PASSING, NotFound, TenureError, close_all

GLANCE = 0.1  # seconds between checks of signals and slots
WATCH = 1.0  # seconds between two reports of what the agents do
LOOK = 1.0  # seconds between checks of held tasks: a cancelled one must not run for a whole lease
GONE = 2.0  # seconds between checks of other processes of this host that hold claims
OUTBOX = 5.0
AWAIT = 1.0  # seconds between tries to reach the store, of a process that a pool has started


class Runner:
    def __init__(
        self,
        client: Client,
        options: Options,
        say: Callable[[str], None],
        watch: Callable[[Sequence[Activity]], None] | None = None,
    ) -> None:
        """`watch` is called every second with what each agent does."""
        self.shared = Shared(options, say)
        self.shared.is_watched = watch is not None
        self._watch = watch
        process = self.shared.process
        name = f"run-{process.pid}-{process.start}" if process else "run"
        if options.sign:
            from tenure.client.signed_submits import own_key

            client.signing_key = own_key(options.environ)
        self.client = speaking(client, options.name, name)
        self.slots = [Slot(self.shared, client, number + 1) for number in range(options.slots)]
        self._validating = ValidationThread(
            client,
            lambda: tools_for(options.folder, options.environ),
            say=self.shared.say,
            lander=self.shared.lander(client),
        )
        self._interrupts = 0
        self._is_terminated = False
        self._due: dict[str, float] = {}
        self._refusals: dict[str, str] = {}  # check → the refusal that was logged last
        self._unknown: set[str] = set()  # receipts in the outbox that are of a different store

    # --- signals: handlers only set a flag, since they may run anywhere ---

    def interrupt(self, *_: object) -> None:
        self._interrupts += 1

    def terminate(self, *_: object) -> None:
        self._is_terminated = True

    # --- the loop ---

    def run(self, pause: Callable[[float], None] = time.sleep) -> Shared:
        """Run until no work is left or a signal ends it. Raises unexpected errors of slots."""
        if self.shared.options.spawn is not None:
            self._insist(self._register, pause)
        else:
            self._register()
        self._validating.start()
        for slot in self.slots:
            slot.start()
        obeyed, term_ends = 0, None
        while any(slot.is_alive() for slot in self.slots):
            pause(GLANCE)
            if self._is_terminated and term_ends is None:
                self._drain("SIGTERM")
                term_ends = time.monotonic() + self.shared.options.grace
            if self._interrupts > obeyed:
                obeyed = self._interrupts
                if obeyed == 1:
                    self._drain("no new tasks; running agents may finish. Ctrl-C again ends them")
                elif obeyed >= 3:
                    return self.shared  # the supervisors end their agents when this process ends
            if obeyed >= 2 or (term_ends is not None and time.monotonic() > term_ends):
                self._stop()
            self._look_after()
        close_all(self._validating.stop, *(slot.leave for slot in self.slots), self._send_outbox)
        for slot in self.slots:
            if slot.error is not None:
                raise slot.error
        return self.shared

    def _register(self) -> None:
        self._send_outbox()
        release_ended(self.client, self.shared.say)
        for slot in self.slots:
            slot.register()

    def _insist(self, act: Callable[[], None], pause: Callable[[float], None]) -> None:
        """Wait for a server that was restarted or is busy: it has offered a task to this agent, and still does."""
        give_up = time.monotonic() + limits.SPAWN_OFFER / 1e6
        while not self._is_terminated and not self._interrupts:
            try:
                act()
                return
            except PASSING as error:
                if time.monotonic() > give_up:
                    raise
                self.shared.say(f"the store is unavailable, trying again: {error.message}")
            pause(AWAIT)

    def _drain(self, why: str) -> None:
        if not self.shared.draining.is_set():
            self.shared.say(f"draining: {why}")
            self.shared.draining.set()

    def _stop(self) -> None:
        if not self.shared.stopping.is_set():
            self.shared.say("ending the agents; their tasks are released")
            self.shared.draining.set()
            self.shared.stopping.set()
            for slot in self.slots:
                slot.interrupt()

    # --- periodic checks ---

    def _look_after(self) -> None:
        if self._watch is not None and self._is_due("watch", WATCH):
            self._watch([slot.activity() for slot in self.slots])
        self._check("look", LOOK, self._look_at_tasks)
        self._check("gone", GONE, lambda: release_ended(self.client, self.shared.say))
        self._check("outbox", OUTBOX, self._send_outbox)
        self._check("presence", self.shared.options.heartbeat, self._send_heartbeats)

    def _check(self, what: str, seconds: float, check: Callable[[], object]) -> None:
        """Run a check when it is due. No refusal ends the runner: its agents work, and their results count."""
        if not self._is_due(what, seconds):
            return
        try:
            check()
            self._refusals.pop(what, None)
        except PASSING:
            pass  # the slots report an unavailable store
        except TenureError as error:
            if self._refusals.get(what) != error.message:
                self.shared.say(error.message)
            self._refusals[what] = error.message

    def _send_heartbeats(self) -> None:
        for slot in self.slots:
            if slot.is_alive():
                slot.heartbeat()

    def _is_due(self, what: str, seconds: float) -> bool:
        now = time.monotonic()
        if now < self._due.get(what, 0.0):
            return False
        self._due[what] = now + seconds
        return True

    def _look_at_tasks(self) -> None:
        held = {id: slot for slot in self.slots if (id := slot.claim_id()) is not None}
        if not held:
            return
        for state in self.client.states(held):
            attempt = held[state["name"]].attempt
            if attempt is not None and attempt.claim.id == state["name"]:
                attempt.claim.noticed(state)

    def _send_outbox(self) -> None:
        for sent in self.shared.outbox.flush(self.client):
            finished = sent.finished
            if isinstance(sent.error, NotFound) or (sent.outcome is not None and is_unknown(finished, sent.outcome)):
                if finished.receipt not in self._unknown:
                    self._unknown.add(finished.receipt)
                    self.shared.say(f"{finished.key}: kept in the outbox: this store does not know the claim")
            elif sent.outcome is None:
                why = sent.error.message if sent.error else ""
                self.shared.say(f"{finished.key}: the store refuses the entry of the outbox: {why}")
            elif sent.outcome.ok:
                self.shared.say(f"{finished.key}: {finished.what} from the outbox: {sent.outcome.outcome}")
            else:
                self.shared.say(f"{finished.key}: {finished.what} from the outbox was refused: {sent.outcome.message}")


def summary_of(shared: Shared, seconds: float) -> dict[str, Any]:
    import msgspec

    return {
        "tasks": sum(shared.counts.values()),
        "counts": dict(shared.counts),
        "seconds": round(seconds, 3),
        "ended": [
            {**done._asdict(), "usage": [msgspec.structs.asdict(totals) for totals in done.usage]}
            for done in shared.done
        ],
    }
