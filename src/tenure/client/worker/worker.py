"""The worker: claims tasks for its functions, `concurrency` at a time, until it is stopped."""

from __future__ import annotations

import asyncio
import inspect
import logging
import os
import signal
import threading
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeVar

from tenure.client import outbox
from tenure.client.caller import SystemRandom
from tenure.client.client import Client
from tenure.client.times import AUTO, seconds_of
from tenure.client.worker.attempt import Attempt
from tenure.client.worker.failures import may_pass
from tenure.client.worker.functions import Handler, Registration
from tenure.client.worker.held_claim import Heir, Renewer
from tenure.client.worker.last_tasks import LastTasks
from tenure.client.worker.mail_commands import MAIL_EVERY, CommandContext, MailCommands
from tenure.client.worker.watcher import Watcher
from tenure.core import limits
from tenure.core.commands import ClaimNext, ClaimTask
from tenure.core.errors import InvalidInput, NotFound, TenureError, close_all
from tenure.core.ids import fitted_name
from tenure.core.inputs import MOST_LISTED
from tenure.core.outcomes import Outcome
from tenure.core.records import replace
from tenure.process_table import call
from tenure.sinks.event_loop import EventLoop

if TYPE_CHECKING:
    from tenure.client.times import Duration
    from tenure.client.worker.message_source import ClaimRequest, MessageSource

    C = TypeVar("C", bound=Callable[[CommandContext], Any])
else:
    C = TypeVar("C")

log = logging.getLogger("tenure.worker")

End = Literal["never", "idle", "empty"]
DENIED = 1.0  # seconds until a worker that is drained or at a limit asks again
SLOWEST = 15.0  # seconds between tries while the store is unavailable
GLANCE = 0.2  # seconds between checks of what a signal handler has set
GATHERED = 4  # from this concurrency on, batching the commands of a local store pays off


class Worker:
    """Functions for tasks. `url`, `project`, `key`, `agent`, `user` and `create` are as for Client.

    It runs `concurrency` tasks at once. It claims tasks of the types that have a function, limited by `capabilities`,
    `tracks` and `tags`. After SIGINT or SIGTERM running functions may finish; a second signal stops them.

    With `source`, the URL of a broker, messages wake it up instead of the store: `tls://…`, `amqps://…`,
    `rediss+stream://…`, on this machine also `nats://…`, `amqp://…`, `redis+stream://…`. Workers with the same `pool`
    share them. `take="next"` claims the best task for each message, `take="task"` the task that the message names.
    `agent_type` is the type that it registers: see `constraints.agent_type`, and commands to `@type:…`. The lease
    `"auto"` is chosen for each claim: by the task's estimate, else by how long completed tasks of its type took. With
    `sign` it signs its results, with the user's key on this machine. `heartbeat`: seconds between its signs of life.
    """

    def __init__(
        self,
        url: str | os.PathLike[str] | None = None,
        project: str | None = None,
        *,
        key: str | None = None,
        agent: str = "worker",
        user: str | None = None,
        concurrency: int = 1,
        capabilities: Iterable[str] = (),
        tracks: Iterable[str] = (),
        tags: Iterable[str] = (),
        region: str | None = None,
        lease: Duration = limits.LEASE,
        grace: Duration = limits.WORKER_GRACE,
        heartbeat: Duration = limits.AGENT_HEARTBEAT,
        create: bool = False,
        agent_type: str = "sdk",
        source: str | None = None,
        pool: str = "workers",
        take: str = "next",
        sign: bool = False,
    ) -> None:
        if concurrency < 1:
            raise InvalidInput(f"concurrency must be at least 1 (got {concurrency})")
        self._random = SystemRandom()
        # Identity is per process and worker, never per name: two of one name may work at once.
        session = f"{fitted_name(agent, 'worker')}-{os.getpid()}-{self._random.token(4).hex()}"
        who: dict[str, Any] = {"key": key, "agent": agent, "session": session, "role": "agent", "user": user}
        self._client_of = partial(Client, **who, gather=concurrency >= GATHERED)
        self._open: Callable[[], Client] = partial(self._client_of, url, project, create=create)
        self._client: Client | None = None
        self._opening = threading.Lock()
        self.lease: float | str = AUTO if lease == AUTO else seconds_of(lease, "lease")
        self.concurrency, self.grace = concurrency, seconds_of(grace, "grace")
        self.heartbeat = seconds_of(heartbeat, "heartbeat")
        self._capabilities, self._agent_type, self._signs = tuple(capabilities), agent_type, sign
        self._source_url, self._pool, self._take = source, pool, take
        self._source: MessageSource | None = None
        self._who: dict[str, Any] = {"agent": agent, "session": session, "user": user, "lease": self.lease}
        self._filters: dict[str, Any] = {"tracks": tuple(tracks), "tags": tuple(tags), "region": region}
        self._handlers: dict[str, Handler] = {}
        self._anything: Handler | None = None
        self._commands: dict[str, Handler] = {}
        self._mail: MailCommands
        self._running_commands = 0
        self._draining, self._stopping = threading.Event(), threading.Event()
        self._attempts: set[Attempt] = set()
        self._keepers: tuple[Renewer, Watcher]
        self._changed = threading.Condition()
        self._error: BaseException | None = None

    @property
    def client(self) -> Client:
        """The worker's client, opened when it is first needed: a program may import its worker without a store."""
        with self._opening:
            if self._client is None:
                call("worker")
                self._client = self._open()
            return self._client

    def use(self, url: str | os.PathLike[str], project: str | None = None, *, create: bool = False) -> None:
        """Work at another store or server from now on: a test's, for a worker that a module defines."""
        self.close()
        self._open = partial(self._client_of, url, project, create=create)

    def task(self, *types: str) -> Registration:
        """Register the function for tasks of these types; without types, for every task that has no other function.

        The function gets a context; further parameters are the arguments of `enqueue`, which creates such a task.
        """

        def register(handler: Handler) -> None:
            if not types:
                self._anything = handler
            self._handlers |= dict.fromkeys(types, handler)

        return Registration(lambda: self.client, types, register)

    def command(self, *actions: str) -> Callable[[C], C]:
        """Register the function for commands with these actions, to this agent or to its type.

        They come from the source, or from the agent's mail. A command is run once by one process that finds its mail
        unread; an error is the reply to its sender.
        """

        def register(function: C) -> C:
            self._commands |= dict.fromkeys(actions, Handler(function, inspect.iscoroutinefunction(function)))
            return function

        return register

    # --- running ---

    def run(self, *, until_empty: bool = False, until_idle: bool = False) -> None:
        """Run until `stop` or a signal.

        With `until_empty` until all tasks that it has functions for have ended: it waits for retries, and for tasks
        that others hold; not for people, nor for start times. With `until_idle` only until none is claimable now.
        """
        loop = EventLoop("the worker") if self._has_async() else None
        handlers = self._on_signals() if threading.current_thread() is threading.main_thread() else {}
        try:
            claimer = self._start(_end_of(until_empty, until_idle), loop.running() if loop else None)
            while claimer.is_alive():
                claimer.join(GLANCE)  # a signal just before an endless wait would be noticed only after it
        finally:
            for number, before in handlers.items():
                signal.signal(number, before)
            if loop is not None:
                loop.close(timeout=limits.WORKER_GRACE)
        self._raise()

    async def arun(self, *, until_empty: bool = False, until_idle: bool = False) -> None:
        """As `run`, in an event loop: async functions run in it, others in threads. Stops at once when cancelled."""
        loop = asyncio.get_running_loop()
        on_signals = [number for number in (signal.SIGINT, signal.SIGTERM) if self._adds_handler(loop, number)]
        ended = asyncio.Event()

        def notify() -> None:
            claimer.join()
            loop.call_soon_threadsafe(ended.set)

        try:
            claimer = self._start(_end_of(until_empty, until_idle), loop)
            threading.Thread(target=notify, name="tenure-worker-end", daemon=True).start()
            try:
                await ended.wait()
            except asyncio.CancelledError:
                self.stop(now=True)
                await ended.wait()
                raise
        finally:
            for number in on_signals:
                loop.remove_signal_handler(number)
        self._raise()

    def stop(self, *, now: bool = False) -> None:
        """Claim nothing more and end after the running functions; `now` stops them too and releases their tasks."""
        self._draining.set()
        if now:
            self._stopping.set()
        with self._changed:
            self._changed.notify_all()

    def close(self) -> None:
        """Close the connection to the store or server; it is opened again when it is needed."""
        with self._opening:
            client, self._client = self._client, None
        if client is not None:
            client.close()

    def _has_async(self) -> bool:
        known = [*self._handlers.values(), *([self._anything] if self._anything else [])]
        if not known:
            raise InvalidInput("the worker has no function to call", "decorate one with @worker.task(…)")
        return any(handler.is_async for handler in (*known, *self._commands.values()))

    def _raise(self) -> None:
        if self._error is not None:
            raise self._error

    # --- signals ---

    def _on_signals(self) -> dict[int, Any]:
        return {number: signal.signal(number, self._signalled) for number in (signal.SIGINT, signal.SIGTERM)}

    def _adds_handler(self, loop: asyncio.AbstractEventLoop, number: int) -> bool:
        try:
            loop.add_signal_handler(number, self._signalled)
        except (NotImplementedError, RuntimeError, ValueError):  # not in the main thread: signals belong to the program
            return False
        return True

    def _signalled(self, *_: object) -> None:
        # Only set a flag: a handler may run while this thread has the lock.
        (self._stopping if self._draining.is_set() else self._draining).set()

    # --- the claimer ---

    def _start(self, end: End, loop: asyncio.AbstractEventLoop | None) -> threading.Thread:
        self._has_async()
        self._draining.clear()
        self._stopping.clear()
        self._error = None
        self._mail = MailCommands(self.client, self._commands)
        self._source = self._open_source()
        region = self._filters["region"]
        if self._signs:
            from tenure.client.signed_submits import own_key

            self.client.signing_key = own_key(os.environ)
        self.client.register(
            type=self._agent_type,
            capabilities=self._capabilities,
            region=region,
            heartbeat=self.heartbeat,
            managed=True,
        )
        for sent in outbox.Outbox(self.client.transport.url, os.environ).flush(self.client):
            outcome = sent.outcome.outcome if sent.outcome else sent.error
            log.info("%s: from the outbox, sent again: %s", sent.finished.key, outcome)
        claimer = threading.Thread(target=self._claim_all, args=(end, loop), name="tenure-claimer", daemon=True)
        claimer.start()
        return claimer

    def _claim_all(self, end: End, loop: asyncio.AbstractEventLoop | None) -> None:
        renewer = Renewer(self.client, self.heartbeat)
        watcher = Watcher(self.client, renewer.renew_now)
        self._keepers = (renewer, watcher)
        for keeper in self._keepers:
            keeper.start()
        try:
            self._claim_on(end, loop)
        except BaseException as error:  # noqa: BLE001 raised where the worker was started
            self._error = error
        finally:
            first = [] if self._source is None else [self._source.close]
            keepers = [keeper.close for keeper in reversed(self._keepers)]
            try:
                close_all(*first, self._finish, *keepers, self._leave)
            except BaseException as error:  # noqa: BLE001 raised where the worker was started
                self._error = self._error or error

    def _leave(self) -> None:
        with suppress(TenureError):
            self.client.leave()

    def _claim_on(self, end: End, loop: asyncio.AbstractEventLoop | None) -> None:
        pause = 0.0
        last = LastTasks(self.client, None if self._anything else tuple(self._handlers), self._filters)
        unanswered: _Claim | None = None  # sent again unchanged, also for its `n`: its id stands for its content
        while (free := self._free()) is not None:
            is_last = end != "never" and free == self.concurrency  # nothing runs: end where there is no task either
            try:
                mark = self.client.mark() if is_last and end == "empty" else 0  # before the claim: later events count
                if self._commands and self._start_command(loop):
                    continue
                claim = unanswered = unanswered or self._asked_for(free, is_last)
                if claim is None:  # no message
                    pause = 0.0
                    continue
                outcome = self._claimed(claim, free, is_last, end)
                pause = 0.0
            except TenureError as error:
                if not (may_pass(error) or self._is_of_source(error)):
                    raise
                pause = min(SLOWEST, pause * 2 or 0.5)
                log.warning("no task can be claimed now: %s", error.message)
                self._draining.wait(pause)
                continue
            unanswered = None
            if outcome.outcome == "DENIED_AGENT":
                log.warning("%s: this worker ends", outcome.message)
                self.stop()
                return
            self._settle(claim, outcome)
            for granted in outcome.claims or ((outcome,) if outcome.receipt else ()):
                self._begin(granted, loop)
            if is_last and claim.request is None and not outcome.ok:
                if end == "idle" or not last.may_come(outcome):
                    return
                last.wait(mark, outcome, self._draining)

    def _asked_for(self, free: int, is_last: bool) -> _Claim | None:
        """The next claim to make. With a source a message asks for it, and None means that there is none now."""
        if self._source is None:
            return _Claim(self._next_claim(free))
        request = self._source.next_request(min(free, limits.CLAIMS_AT_ONCE))
        if request is None:
            return _Claim(self._next_claim(free)) if is_last and not self._source.commands else None
        if request.task is None:
            claim: ClaimNext | ClaimTask = self._next_claim(len(request.messages) or free)
        else:
            claim = self._claim_of(request.task)
        return _Claim(replace(claim, caused_by=request.causes), request)

    def _claimed(self, claim: _Claim, free: int, is_last: bool, end: End) -> Outcome:
        command = claim.command
        if isinstance(command, ClaimNext):
            wait = 0.0 if is_last or claim.request else MAIL_EVERY if self._commands else limits.WORKER_POLL
            return self.client.claim_or_wait(command, wait, is_wanted=self._is_wanted(command, free, end))
        try:
            lack = self._lacks_function(command.task)
            return Outcome(outcome="DENIED_CAPABILITY", message=lack) if lack else self.client.do(command)
        except (NotFound, InvalidInput) as error:  # whatever a message names
            return Outcome(outcome="NOT_FOUND", message=error.message)

    def _settle(self, claim: _Claim, outcome: Outcome) -> None:
        if claim.request is not None:
            assert self._source is not None
            self._source.settle(claim.request, outcome)
        elif not outcome.ok and outcome.outcome != "NO_TASK":
            self._draining.wait(DENIED)

    def _claim_of(self, task: str) -> ClaimTask:
        request_id = self._random.token(16).hex()
        return ClaimTask(project=self.client.project, **self._who, task=task, request_id=request_id)

    def _lacks_function(self, task: str) -> str | None:
        """Why this worker does not claim the task that a message names. Raises NotFound."""
        about, tracks, tags = self.client.show(task), self._filters["tracks"], self._filters["tags"]
        if self._anything is None and about["type"] not in self._handlers:
            return f"no function is for tasks of type {about['type']}"
        if (tracks and about["track"] not in tracks) or not set(tags) <= set(about.get("tags", ())):
            return f"{about['key']} has another track or other tags than this worker takes"
        return None

    # --- the source, and commands ---

    def _open_source(self) -> MessageSource | None:
        if self._source_url is None:
            return None
        from tenure.client.worker.message_source import MessageSource, check_take
        from tenure.sinks.subscriptions import Subscription

        own = (self._agent_type, self.client.agent) if self._commands else (None, None)
        subscription = Subscription(self._pool, self.concurrency, *own).checked()
        return MessageSource(self._source_url, subscription, self.client.project, check_take(self._take))

    def _is_of_source(self, error: TenureError) -> bool:
        return self._source is not None and error.code == "SINK_UNAVAILABLE"

    def _start_command(self, loop: asyncio.AbstractEventLoop | None) -> bool:
        """Start a command that waits; whether there was one."""
        context = self._mail.next(self._source)
        if context is None:
            return False

        def run() -> None:
            try:
                self._mail.run(context, loop)
            finally:
                with self._changed:
                    self._running_commands -= 1
                    self._changed.notify_all()

        with self._changed:
            self._running_commands += 1
        threading.Thread(target=run, name=f"command {context.action}", daemon=True).start()
        return True

    def _next_claim(self, n: int) -> ClaimNext:
        types = () if self._anything else tuple(self._handlers)
        filters = self._filters | {"types": types, "capabilities": self._capabilities or None}
        filters["without"] = self._still_running()
        request_id = self._random.token(16).hex()
        most = min(n, limits.CLAIMS_AT_ONCE)
        return ClaimNext(project=self.client.project, **self._who, n=most, request_id=request_id, **filters)

    def _is_wanted(self, command: ClaimNext, free: int, end: End) -> Callable[[], bool]:
        """A waiting claim ends when the worker stops, or when it could claim more tasks than it asked for."""

        def is_wanted() -> bool:
            if self._draining.is_set() or set(command.without) - set(self._still_running()):
                return False
            return end == "never" or self.concurrency - self._busy == free

        return is_wanted

    def _free(self) -> int | None:
        """Wait for a free slot and return their number; None when the worker stops."""
        with self._changed:
            while not self._draining.is_set() and self._busy >= self.concurrency:
                self._changed.wait(GLANCE)  # a signal only sets a flag
            return None if self._draining.is_set() else self.concurrency - self._busy

    @property
    def _busy(self) -> int:
        return len(self._attempts) + self._running_commands

    def _begin(self, granted: Outcome, loop: asyncio.AbstractEventLoop | None) -> None:
        assert granted.task is not None
        earlier = self._attempt_of(granted.task["id"])
        heir = "next" if earlier is None else self._heir(earlier, granted)
        if heir == "continues":
            return
        attempt = Attempt(self.client, granted, self.lease, self._keepers, loop, self._stopping)
        handler = self._handlers.get(granted.task["type"]) or self._anything
        if heir == "refused":
            why = "a function for an earlier claim of it still runs in this worker"
            run = partial(attempt.release, why, stopped=True)
        elif handler is None:  # its type was edited after a message named it
            run = partial(attempt.release, f"no function is for tasks of type {granted.task['type']}", stopped=False)
        else:
            run = partial(attempt.run, handler, earlier)
        with self._changed:
            self._attempts.add(attempt)
        try:
            threading.Thread(
                target=self._run_attempt, args=(attempt, run), name=f"task {attempt.claim.key}", daemon=True
            ).start()
        except RuntimeError as error:  # this machine has no thread left
            log.warning("%s: %s", attempt.claim.key, error)
            self._run_attempt(attempt, partial(attempt.fail, error, "environment"))

    def _attempt_of(self, task: str) -> Attempt | None:
        """The last attempt at this task that has not left; two functions for one task never run here."""
        with self._changed:
            running = [one for one in self._attempts if one.claim.task["id"] == task]
        return max(running, key=lambda one: one.claim.generation, default=None)

    @staticmethod
    def _heir(earlier: Attempt, granted: Outcome) -> Heir:
        try:
            return earlier.claim.take_over(granted, has_returned=earlier.returned.is_set())
        except TenureError as error:
            log.warning("%s: waits for its earlier attempt: %s", earlier.claim.key, error.message)
            return "next"

    def _still_running(self) -> tuple[str, ...]:
        """The tasks that others may claim although a function for them still runs here."""
        with self._changed:
            running = [one.claim for one in self._attempts if not one.returned.is_set()]
        return tuple(claim.task["id"] for claim in running if claim.is_cancelled or claim.is_over)[:MOST_LISTED]

    def _run_attempt(self, attempt: Attempt, run: Callable[[], None]) -> None:
        try:
            run()
        finally:
            with self._changed:
                self._attempts.discard(attempt)
                self._changed.notify_all()

    def _finish(self) -> None:
        """Wait for the running attempts; after `stop(now=True)` no longer than the grace period."""
        with self._changed:
            while self._busy and not self._stopping.is_set():
                self._changed.wait(GLANCE)
            running = list(self._attempts)
        for attempt in running:
            attempt.interrupt()
        with self._changed:
            self._changed.wait_for(lambda: not self._busy, self.grace)
            left = list(self._attempts)
        for attempt in left:
            attempt.abandoned.set()
            if attempt.returned.is_set():  # its result is in the outbox
                continue
            attempt.claim.end()  # a thread cannot be ended: its task is released without it
            with suppress(TenureError):
                self.client.release(attempt.claim.receipt, "the worker was stopped", stopped=True)


def _end_of(until_empty: bool, until_idle: bool) -> End:
    return "empty" if until_empty else "idle" if until_idle else "never"


class _Claim(NamedTuple):
    command: ClaimNext | ClaimTask
    request: ClaimRequest | None = None  # the messages that asked for it
