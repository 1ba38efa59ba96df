"""A slot: one agent at a time, one task after another, until the runner drains or there is nothing left."""

from __future__ import annotations

import copy
import os
import secrets
import threading
from collections.abc import Collection, Mapping
from contextlib import suppress
from typing import Any

from tenure.agents.result_checker import ResultChecker, tools_for
from tenure.agents.runner.activity import Activity, Wait, wait_of
from tenure.agents.runner.attempt import Attempt
from tenure.agents.runner.shared import ONCE, UNTIL_EMPTY, AttemptEnd, Options, Shared
from tenure.client import Client
from tenure.core import lifecycle, limits, runners
from tenure.core.commands import Principal
from tenure.core.errors import PASSING, TenureError
from tenure.core.ids import fitted_name
from tenure.core.land_request import JUDGE
from tenure.core.outcomes import Outcome
from tenure.process_table import described
from tenure.processes.supervisor import Supervisor
from tenure.processes.tree_usage import TreeMeter

GLANCE = 0.2  # seconds between checks of the flags while waiting
POLL = 15.0  # seconds after which an idle slot asks again without a notification
SLOWEST = 30.0  # seconds between tries while the store is unavailable
UNSETTLED = ("claimed", "running", "retrying")
TEMPORARY = ("cooling", "model_cooling", "offered", "conflicting")  # temporary reasons why a ready task was passed over


class Slot(threading.Thread):
    """Runs one agent at a time. `session` is the slot's presence; each attempt has a session below it.

    One session per attempt, because receipts are kept by session: a leftover of an earlier agent must not find the
    receipt of the next task.
    """

    def __init__(self, shared: Shared, client: Client, number: int) -> None:
        super().__init__(name=f"slot {number}", daemon=True)
        self.shared, self.options = shared, shared.options
        process = shared.process
        run = (
            f"run-{fitted_name(process.host, 'host')[:40]}-{process.pid}-{process.start}"
            if process
            else f"run-{id(shared)}"
        )
        self.agent = shared.options.agent(number)
        self.session = f"{run}-{number}"
        self.client = speaking(client, self.agent, self.session)
        self.checker = client  # verdicts are of the user who started the runner, not of its agents
        self.attempt: Attempt | None = None
        self.error: BaseException | None = None
        self._meter = TreeMeter()
        self._has_ticket = False
        self._count = 0
        self._next: Client | None = None
        self._chosen = self.options  # of the next attempt
        self._beside: str | None = None  # who else works in this checkout
        self._word = ""  # of the next attempt: its agent does not know it
        self._waits: Wait | None = None  # why the last claim got no task

    def run(self) -> None:
        try:
            self._go_on()
        except BaseException as error:  # noqa: BLE001 the runner raises it in the main thread
            self.error = error
            self.shared.draining.set()

    def interrupt(self) -> None:
        attempt = self.attempt
        if attempt is not None:
            attempt.interrupt()

    # --- claiming ---

    def _go_on(self) -> None:
        supervisor: Supervisor | None = None
        pause = 0.0
        try:
            while self._may_begin():
                if supervisor is not None and described(supervisor.pid) is None:  # killed while it was idle
                    supervisor.close()
                    supervisor = None
                supervisor = supervisor or Supervisor()
                try:
                    client = self._next_client()
                    mark = client.mark()
                    outcome = client.claim(
                        self.options.task,
                        lease=self.options.lease,
                        process=described(supervisor.pid),
                        request_id=client.session,
                        spawn=self.options.spawn,
                        metadata=runners.mark(self._word, submits=bool(self._chosen.land)),
                        **self.options.filters,
                    )
                    if outcome.outcome == "GRANTED":
                        self._work(client, outcome, supervisor)
                        supervisor = self._next = None
                        self._has_ticket = False
                    else:
                        if outcome.shortage is not None:
                            self._log_wait(outcome)  # also where it ends here
                        if self._is_over(outcome):
                            return
                        self._log_wait(outcome)
                        self._idle(mark, outcome)
                        if self._options_now() != self._chosen:
                            self._next = None
                    pause = 0.0
                except PASSING as error:
                    if not pause:
                        self.shared.say(f"{self.agent}: the store is unavailable: {error.message}")
                    pause = min(SLOWEST, pause * 2 or 0.5)
                    self.shared.draining.wait(pause)
        finally:
            if supervisor is not None:
                supervisor.close()

    def _may_begin(self) -> bool:
        """Wait until this slot may claim; False when it must end."""
        if not self._has_ticket:
            self._has_ticket = self.shared.take_ticket()
        while self._has_ticket and not self.shared.draining.is_set():
            if self.shared.may_claim(self.agent):
                return True
            self.shared.draining.wait(GLANCE)
        return False

    def _next_client(self) -> Client:
        if self._next is None:
            self._count += 1
            self._next = speaking(self.client, self.agent, f"{self.session}.{self._count}")
            self._chosen = self._options_now()
            self._word = secrets.token_hex(16)
            if self.options.sign:  # before its first claim
                self.register(self._next)
        return self._next

    def _options_now(self) -> Options:
        """Those of the next attempt: in a worktree that is landed, while somebody else works in this checkout."""
        options = self.options
        if options.checkout is None:
            return options
        from tenure.agents import git
        from tenure.agents.runner.neighbours import holder_inside

        who = holder_inside(self.client, options.checkout, options.home.folder)
        onto = git.branch_here(options.folder) if who is not None else None
        if who != self._beside and who is not None:
            place = (
                f"a git worktree, landed on {onto}" if onto else "the checkout all the same: no branch is checked out"
            )
            self.shared.say(f"{self.agent}: {who}: the next task gets {place}")
        self._beside = who
        return options if onto is None else options._replace(worktree=True, land=True, onto=onto)

    def _is_over(self, outcome: Outcome) -> bool:
        if outcome.outcome == "DENIED_AGENT":
            self.shared.say(f"{self.agent}: {outcome.message}")
            self.shared.terminated.append(self.agent)
            return True
        if outcome.outcome == "DENIED_SPAWN":
            self.shared.say(f"{self.agent}: {outcome.message}")
            self.shared.denied = outcome
            return True
        if self.options.task is not None:
            self.shared.say(f"{self.agent}: {outcome.message}")
            return True  # its one task cannot be claimed
        if outcome.outcome != "NO_TASK":
            return self._is_drained()
        if self.options.mode == ONCE:
            return True
        if self.options.mode != UNTIL_EMPTY or outcome.counts is None:
            return False
        if outcome.shortage is not None and outcome.shortage.get("throttled"):
            return False  # throttled, not exhausted
        status = self.client.status()
        states: dict[str, int] = status["tasks"]
        if any(_counted(states, names) != outcome.counts.get(what, 0) for what, names in lifecycle.PASSED_OVER.items()):
            return False  # others have changed something since the claim: it is asked again
        if states.get("validating") and (
            self._is_checked_here(status["validations"]) or self.shared.lander(self.checker).waits()
        ):
            return False
        if any(states.get(state) for state in UNSETTLED) or any(map(outcome.counts.get, TEMPORARY)):
            return False
        return not (states.get("pending") and outcome.counts.get("ready_for_others") and self._has_others(status))

    def _has_others(self, status: Mapping[str, Any]) -> bool:
        """Whether other runners or workers are there: a task that only they may take can make the next ones ready."""
        ours = {self.options.agent(number + 1) for number in range(self.options.slots)}
        agents = [one for one in status["agents"] if one["managed"] and one["name"] not in ours]
        return any(one["status"] in ("active", "idle") for one in agents)

    def _is_checked_here(self, validations: Mapping[str, Any]) -> bool:
        """Will this runner get the verdict itself? It does not wait for a person or another machine."""
        if any(counts["running"] for counts in validations.values()):
            return True
        if self.checker.principal.role == "agent":
            return False  # a runner started from an agent's session gives no verdicts
        checker = ResultChecker(self.checker, tools_for(self.options.folder, self.options.environ))
        waiting = (one for one in self.client.validations(limits.LISTED) if one["phase"] == JUDGE)
        return any(checker.obstacle(one) is None for one in waiting)

    def _is_drained(self) -> bool:
        return any(a["name"] == self.agent and a["status"] == "draining" for a in self.client.agents())

    def _log_wait(self, outcome: Outcome) -> None:
        """Once for each reason: an agent without a task must not look like one that hangs."""
        before, self._waits = self._waits, wait_of(outcome)
        is_shown = self.shared.is_watched and outcome.shortage is None
        if not is_shown and (before is None or before.kind != self._waits.kind):
            hint = f"; {outcome.hint}" if outcome.hint else ""
            self.shared.say(f"{self.agent} waits for a task: {self._waits.text}{hint}")

    def activity(self) -> Activity:
        attempt, waits = self.attempt, self._waits
        if attempt is not None:
            return attempt.activity()
        return Activity(self.agent, waits=waits.text if waits else "")

    def _idle(self, mark: int, outcome: Outcome) -> None:
        """Wait until something was written, something is due, or the poll interval is over."""
        wait = POLL
        if outcome.retry_in is not None:
            wait = min(wait, max(GLANCE, outcome.retry_in))
        self.client.wait_for_news(mark, wait, is_wanted=lambda: not self.shared.draining.is_set())

    # --- working ---

    def _work(self, client: Client, granted: Outcome, supervisor: Supervisor) -> None:
        self._waits = None
        try:
            self.attempt = Attempt(self.shared, client, granted, supervisor, self.checker, self._word, self._chosen)
        except OSError as error:  # a transcript or a receipt cannot be written
            supervisor.close()
            self.shared.say(f"{self.agent}: {error}")
            key = (granted.task or {}).get("key", "")
            self.shared.ended(AttemptEnd(self.agent, key, granted.generation or 0, "failed", str(error), "environment"))
            client.fail(granted.receipt or "", str(error), "environment")
            return
        if self.shared.stopping.is_set():
            self.attempt.interrupt()
        try:
            done = self.attempt.run()
        finally:
            claim, self.attempt = self.attempt.claim, None
        if claim.is_terminated and self.options.mode == ONCE:  # there is no next claim that would be denied
            self.shared.terminated.append(self.agent)
        self.shared.ended(done)
        with suppress(TenureError):
            client.leave()

    def claim_id(self) -> str | None:
        attempt = self.attempt
        return attempt.claim.id if attempt is not None and attempt.claim.is_live else None

    # --- presence ---

    def register(self, client: Client | None = None) -> None:
        """Be known as an agent of this kind; what a person registered it with before is kept.

        `client` is that of another session, if it registers a key.
        """
        known: Mapping[str, Any] = next((a for a in self.client.agents() if a["name"] == self.agent), {})
        kept: dict[str, Any] = {n: known[n] for n in ("capabilities", "tracks", "region") if known.get(n)}
        if self.options.filters.get("capabilities"):  # a task that is taken again is asked for by name
            kept["capabilities"] = self.options.filters["capabilities"]
        model, process = self.options.model, self.shared.process
        if process is not None:
            kept |= {"host": process.host, "boot": process.boot, "pid": process.pid, "pid_start": process.start}
        (client or self.client).register(
            type=self.options.cli.type,
            models=(model,) if model else tuple(known.get("models") or ()),
            max_concurrent_tasks=known.get("max_concurrent_tasks"),
            heartbeat=self.options.heartbeat,
            stale_after=1800.0,
            managed=True,
            **kept,
        )

    def heartbeat(self) -> None:
        """A sign of life, with what its agent uses: the tree of its command, or this process while it waits."""
        attempt = self.attempt
        fields: dict[str, Any] = {"task": attempt.claim.id} if attempt is not None and attempt.claim.is_live else {}
        used = self._meter.measure(attempt.supervisor.pid if attempt is not None else os.getpid())
        if used is not None:
            fields |= used._asdict()
        self.client.heartbeat(**fields)

    def leave(self) -> None:
        for client in (self._next, self.client):
            if client is not None:
                with suppress(TenureError):
                    client.leave()


def _counted(states: Mapping[str, int], names: Collection[str]) -> int:
    return min(limits.PASSED_OVER, sum(states.get(name, 0) for name in names))


def speaking(client: Client, agent: str, session: str) -> Client:
    """A client of the same store that acts as this agent, whatever the role of the person who started the runner."""
    other = copy.copy(client)
    other.agent, other.session = agent, session
    other.principal = Principal(role="agent", user=client.user, agent=agent, session=session)
    return other
