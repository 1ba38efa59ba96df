"""A claim held for an agent: a thread renews it, claims the task again where the claim was lost, and stops the agent
where that is denied or a directive asks for it.

The agent may end the claim itself (`tenure done`, `fail`, `release`, `ask`); then nothing is claimed again.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from tenure.agents.receipts import Receipts
from tenure.client import Client
from tenure.client.times import granted_lease
from tenure.core.commands import Process
from tenure.core.errors import PASSING, TenureError
from tenure.core.lifecycle import HELD
from tenure.core.outcomes import Outcome

RENEW_AT = 0.4  # of the lease
JITTER = 0.1
SHORTEST = 0.2  # seconds between two tries, at least
SLOWEST = 5.0  # seconds between tries while the store is unavailable, at most


class OwnEnding(NamedTuple):
    what: str  # as the runner counts it
    sentence: str


# Release reasons that only a holder of the receipt causes, and the runner did not.
OWN_ENDINGS = {
    "COMPLETED": OwnEnding("completed", "submitted with its receipt while the agent ran"),
    "SUBMITTED": OwnEnding("completed", "submitted with its receipt while the agent ran"),
    "FAILED": OwnEnding("failed", "reported as failed while the agent ran"),
    "VOLUNTARY": OwnEnding("released", "released while the agent ran"),
    "STOPPED": OwnEnding("released", "released while the agent ran"),
    "WAITING": OwnEnding("waiting", "waits for subtasks that the agent has made"),
}


class Stop(NamedTuple):
    """Why the agent must stop: the directive (cancel, pause, abort) and its text."""

    directive: str
    why: str


class HeldClaim:
    def __init__(
        self,
        client: Client,
        granted: Outcome,
        *,
        lease: float | str,
        spawn: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        process: Callable[[], Process | None],
        receipts: Receipts,
        stopped: Callable[[Stop], None],
        settled: Callable[[OwnEnding], None],
        moved: Callable[[int], None],
        renewed: Callable[[], None],
        say: Callable[[str], None],
    ) -> None:
        """`metadata` is that of every claim of the task. `process` returns the process whose end proves that the holder
        has ended; None when it has.

        `stopped` is called once, when the agent must stop; `settled` once, when it has ended its claim itself;
        `moved` for each new generation, `renewed` after each renewal, while the receipt cannot change."""
        assert granted.task is not None
        assert granted.receipt is not None
        assert granted.generation is not None
        self.client = client
        self.id: str = granted.task["id"]
        self.key: str = granted.task["key"]
        self.receipt = granted.receipt
        self.generation = granted.generation
        self.stop: Stop | None = None
        self.own_ending: OwnEnding | None = None
        self.mutex = threading.RLock()  # held while the receipt is used, since it may change at any time
        self._asked, self._spawn, self._metadata = lease, spawn, metadata
        self._lease = granted_lease(lease, granted)
        self._is_denied = False
        self._process = process
        self._receipts = receipts
        self._stopped, self._settled, self._moved, self._say = stopped, settled, moved, say
        self._renewed = renewed
        self._over = threading.Event()
        self._look = threading.Event()
        self._version: int | None = None
        self._failures = 0
        self._directive = "continue"
        self._keep(None)
        self._thread = threading.Thread(target=self._run, name=f"lease {self.key}", daemon=True)

    @property
    def is_live(self) -> bool:
        return self.stop is None and self.own_ending is None

    @property
    def is_terminated(self) -> bool:
        """Has an operator terminated the agent?"""
        return self._is_denied or self._directive == "terminated"

    def start(self) -> None:
        self._thread.start()

    def finished(self) -> None:
        """The runner itself has ended the claim, and the caller still has the mutex: no later look takes that end for
        the agent's own."""
        self._over.set()
        self._look.set()

    def close(self) -> None:
        self.finished()
        if self._thread.is_alive():
            self._thread.join()

    def noticed(self, state: Mapping[str, Any]) -> None:
        """Compare with the state of the task; a change is asked about at once, not at the next renewal."""
        version = state.get("version")
        is_changed = self._version is not None and version != self._version
        self._version = version
        if is_changed or state.get("generation") != self.generation or state.get("state") not in HELD:
            self._look.set()

    def look(self) -> None:
        """Renew now, which shows whether the claim is live. The caller has the mutex."""
        if self.is_live:
            self._renew()

    # --- the thread ---

    def _run(self) -> None:
        wait = self._pause()
        while True:
            self._look.wait(wait)
            self._look.clear()
            if self._over.is_set():
                return
            try:
                with self.mutex:
                    if not self._over.is_set():
                        self.look()
                self._failures = 0
            except PASSING as error:
                wait = self._retry_delay(error)
                continue
            except TenureError as error:
                self._say(f"{self.key}: {error.message}")
            if not self.is_live:
                return
            wait = self._pause()

    def _pause(self) -> float:
        return self._lease * RENEW_AT * (1 + random.uniform(-JITTER, JITTER))  # noqa: S311 spreads load, no secret

    def _retry_delay(self, error: TenureError) -> float:
        if self._failures == 0:
            self._say(f"{self.key}: the store is unavailable, so its lease cannot be renewed: {error.message}")
        self._failures += 1
        return float(min(SLOWEST, SHORTEST * 2 ** min(self._failures, 10), self._lease * RENEW_AT))

    def _renew(self) -> None:
        outcome = self.client.renew(self.receipt, self._lease)
        if outcome.outcome != "RENEWED":
            self._lost(outcome)
            return
        directive, self._directive = self._directive, outcome.directive or "continue"
        if self._directive == "warn" and directive != "warn":
            self._say(f"{self.key}: warned: {outcome.directive_text}")
        elif self._directive == "changed" and directive != "changed":
            self._say(f"{self.key}: its description was changed; the agent has not seen that")
        elif self._directive == "terminated" and directive != "terminated":
            self._say(f"{self.key}: {outcome.directive_text}")
        elif self._directive in ("pause", "cancel", "abort"):
            self._stop(Stop(self._directive, outcome.directive_text or f"asked to {self._directive}"))
        self._renewed()

    def _lost(self, refusal: Outcome) -> None:
        if refusal.outcome == "TASK_CANCELLED":
            self._stop(Stop("cancel", refusal.message))
            return
        ending = self._ending()
        own_ending = OWN_ENDINGS.get(ending.get("release_reason") or "")
        if ending.get("error_class") == "invalid_output":
            own_ending = OwnEnding("failed", "submitted while the agent ran, and refused")
        if ending.get("error_class") == "question":
            own_ending = OwnEnding("waiting", "waits for the answer to the agent's question")
        if own_ending is not None:
            self.own_ending = own_ending
            self._settled(own_ending)
            return
        if ending.get("release_reason") == "PAUSED":
            self._stop(Stop("pause", ending.get("error") or refusal.message))
            return
        if ending.get("release_reason") == "SUPERSEDED" and ending.get("error_class") == "timeout":
            # Hung, or over its time limit: the attempt has failed, and this agent must not continue it.
            self._stop(Stop("abort", f"{refusal.message}; {ending.get('error') or 'the claim was ended'}"))
            return
        self._claim_again(refusal)

    def _ending(self) -> dict[str, Any]:
        """How the claim of this generation ended, from the lineage."""
        for entry in reversed(self.client.history(self.id)):
            if entry["generation"] == self.generation:
                return dict(entry)
        return {}

    def _claim_again(self, refusal: Outcome) -> None:
        process = self._process()
        if process is None:
            self._stop(Stop("abort", "the agent's supervisor was killed"))
            return
        outcome = self.client.claim(
            self.id, lease=self._asked, process=process, spawn=self._spawn, metadata=self._metadata
        )
        self._is_denied = outcome.outcome == "DENIED_AGENT"
        if outcome.outcome != "GRANTED" or outcome.receipt is None or outcome.generation is None:
            directive = refusal.directive if refusal.directive in ("pause", "cancel") else "abort"
            self._stop(Stop(directive, f"{refusal.message}; {outcome.message}"))
            return
        lost, self.receipt, self.generation = self.receipt, outcome.receipt, outcome.generation
        self._lease = granted_lease(self._asked, outcome)
        self._keep(lost)
        self._say(f"{self.key}: {refusal.message}; claimed again as generation {self.generation}, the agent continues")
        self._moved(self.generation)

    def _keep(self, lost: str | None) -> None:
        try:
            self._receipts.keep(self.id, self.key, self.receipt, instead_of=lost)
        except OSError as error:  # the runner has the receipt; only commands of the agent itself do not find it
            self._say(f"{self.key}: the receipt could not be kept for the agent's own commands: {error}")

    def _stop(self, stop: Stop) -> None:
        if self.stop is None:
            self.stop = stop
            self._stopped(stop)
