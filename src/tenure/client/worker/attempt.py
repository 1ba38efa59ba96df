"""One attempt: a function called with a claimed task, until its result is submitted.

Whatever the function raises or returns, the attempt ends with a command, and the worker lives.
"""

from __future__ import annotations

import asyncio
import logging
import os
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any

from msgspec import structs

from tenure.client import outbox
from tenure.client.client import Client
from tenure.client.worker.context import AsyncContext, Context
from tenure.client.worker.failures import Cancelled, Failure, Suspended, class_of, ended, result_of
from tenure.client.worker.functions import BadArguments, Handler, arguments_of
from tenure.client.worker.held_claim import LONGEST, SHORTEST, HeldClaim, Renewer
from tenure.client.worker.watcher import Watcher
from tenure.core import commands as c
from tenure.core import limits
from tenure.core.error_texts import described, text_of, trace_text
from tenure.core.errors import InvalidInput, LimitReached, NotAllowed, SecretsOff, SecretUnreadable, TenureError
from tenure.core.outcomes import Outcome
from tenure.core.retry import PERMANENT
from tenure.core.safe_text import storable
from tenure.core.task_secrets import Hidden

log = logging.getLogger("tenure.worker")

ROUND = 2.0  # seconds for one turn of the event loop
UNTOLD = "the function failed; the store refused the text of its error"
REFUSING = (InvalidInput, NotAllowed, LimitReached, SecretsOff, SecretUnreadable)  # the same command never succeeds

Final = c.Submit | c.Fail | c.Release


def trace_of(error: BaseException) -> str:
    """The stack trace from the function on."""
    try:
        begins = _outside(error.__traceback__)
    except BaseException:  # noqa: BLE001 an exception may have a property there
        begins = None
    return trace_text(error, begins, limits.TRACE)


def _outside(trace: TracebackType | None) -> TracebackType | None:
    """The part of a trace that is not of this module."""
    while trace is not None and Path(trace.tb_frame.f_code.co_filename) == Path(__file__):
        trace = trace.tb_next
    return trace


class Attempt:
    def __init__(
        self,
        client: Client,
        granted: Outcome,
        lease: float | str,
        keepers: Sequence[Renewer | Watcher],
        loop: asyncio.AbstractEventLoop | None,
        stopping: threading.Event,
    ) -> None:
        """`loop` is where an async function runs; `stopping`: the worker stops its functions."""
        self._client, self._granted, self._keepers, self._loop = client, granted, keepers, loop
        self.claim = HeldClaim(client, granted, lease, self._cancel)
        self._running: asyncio.Task[Any] | None = None  # the async function
        self._stopping = stopping
        self.returned = threading.Event()  # the function no longer runs
        self.abandoned = threading.Event()  # the worker no longer waits for the submit
        self._kept: tuple[str, str] | None = None  # the receipt in the outbox, and its file

    def run(self, handler: Handler, earlier: Attempt | None = None) -> None:
        """Call the function once the one of an `earlier` attempt has returned, and submit its result. Never raises."""
        self._end_with(lambda: self._called(handler, earlier))

    def fail(self, error: BaseException, error_class: str) -> None:
        """End the claim without calling the function. Never raises."""
        self._end_with(lambda: (self._fail(described(error, limits.WORKER_ERROR), error_class),))

    def release(self, reason: str, *, stopped: bool) -> None:
        """Give the task back without calling the function. Never raises."""
        self._end_with(lambda: (self._release(reason, stopped=stopped),))

    def _end_with(self, ending: Callable[[], Sequence[Final]]) -> None:
        for keeper in self._keepers:
            keeper.add(self.claim)
        try:
            commands = ending()
            self.returned.set()
            for command in commands:
                self._submit(command)
        except BaseException as error:  # a bug of ours, or a log handler of the program's
            self.returned.set()
            with suppress(BaseException):
                log.exception("%s: the worker goes on after an unexpected error", self.claim.key)
            with suppress(BaseException):
                self._submit(self._fail(described(error, limits.WORKER_ERROR), "task", trace=trace_of(error)))
        finally:
            self.claim.end()
            for keeper in self._keepers:
                keeper.remove(self.claim)

    def _timer(self) -> threading.Timer | None:
        """Stops the function after its max_duration."""
        seconds = (self.claim.task.get("constraints") or {}).get("max_duration")
        if seconds is None:
            return None
        timer = threading.Timer(seconds, self.claim.time_out, (seconds,))
        timer.daemon = True
        timer.start()
        return timer

    def interrupt(self) -> None:
        """Stop the function; its task is released."""
        self.claim.stop("the worker was stopped")

    def _cancel(self) -> None:
        if self._loop is not None:
            with suppress(RuntimeError):  # it is closed, and the function with it
                self._loop.call_soon_threadsafe(self._cancel_running)

    def _cancel_running(self) -> None:
        if self._running is not None and self._running.cancel():
            self.claim.has_noticed = True

    # --- the function ---

    def _called(self, handler: Handler, earlier: Attempt | None) -> Sequence[Final]:
        """The commands that end the claim; none where the function has ended it, or lost it."""
        claim, timer = self.claim, None
        try:
            if earlier is not None:
                earlier.returned.wait()
                claim.check()
            timer = self._timer()
            context, data = self._returned(handler)
            usage = context.usage_totals.totals()
            is_part = claim.has_noticed or claim.is_over
            result = c.Submit(
                **self._named, data=data, summary=context.summary, usage=usage, seen=claim.seen, stopped=is_part
            )
            return (self._timed_out(), result) if is_part and claim.is_timed_out else (result,)
        except Suspended:
            return ()
        except BaseException as error:  # noqa: BLE001 everything that a function raises is how its attempt failed
            return (self._failed(error),)
        finally:
            if timer is not None:
                timer.cancel()

    def _returned(self, handler: Handler) -> tuple[Context | AsyncContext, Any]:
        """The function's context, and what it returned."""
        if handler.is_async:
            waiting = AsyncContext(self.claim, self._granted)
            data = self._awaited(
                partial(handler.function, **arguments_of(handler, self.claim.task, self._granted.secrets or {})),
                waiting,
            )
            return waiting, data
        context = Context(self.claim, self._granted)
        return context, handler.function(context, **arguments_of(handler, self.claim.task, self._granted.secrets or {}))

    def _failed(self, error: BaseException) -> Final:
        claim = self.claim
        if isinstance(error, (Cancelled, asyncio.CancelledError)) and self._is_asked_to_stop():
            if claim.is_timed_out:  # refused where the store has ended the claim already
                return self._timed_out()
            return self._release(claim.why or "the worker was stopped", stopped=True)
        if isinstance(error, Failure):
            error_class, after = class_of(error)
            return self._fail(text_of(error, limits.WORKER_ERROR), error_class, after)
        if isinstance(error, BadArguments):  # no other attempt would succeed
            return self._fail(text_of(error, limits.WORKER_ERROR), PERMANENT)
        with suppress(Exception):  # of a log handler of the program's
            self._log(error)
        error_class = "timeout" if isinstance(error, TimeoutError) else "task"
        return self._fail(described(error, limits.WORKER_ERROR), error_class, trace=trace_of(error))

    def _log(self, error: BaseException) -> None:
        """The worker's log is one more place that secrets of the task do not get into."""
        secrets = (self._granted.secrets or {}).values()
        if secrets:
            log.warning("%s failed\n%s", self.claim.key, Hidden(secrets).text(trace_of(error)))
        else:
            log.warning("%s failed", self.claim.key, exc_info=error)

    def _is_asked_to_stop(self) -> bool:
        """Whether a cancellation is ours, or the end of the program's event loop: that cancels the worker too."""
        if self._loop is not None and not (self.claim.is_cancelled or self._stopping.is_set()):
            turned = threading.Event()
            try:
                self._loop.call_soon_threadsafe(turned.set)
            except RuntimeError:  # it is closed
                return True
            turned.wait(ROUND)
        return self.claim.is_cancelled or self.claim.is_over or self._stopping.is_set()

    @property
    def _named(self) -> dict[str, Any]:
        return {"project": self._client.project, "receipt": self.claim.receipt}

    def _release(self, reason: str, *, stopped: bool) -> c.Release:
        return c.Release(**self._named, reason=storable(reason, limits.WORKER_ERROR), stopped=stopped)

    def _timed_out(self) -> c.Fail:
        return self._fail(str(self.claim.why), "timeout")

    def _fail(self, message: str, error_class: str, retry_after: float | None = None, trace: str = "") -> c.Fail:
        message, error_class = storable(message, limits.WORKER_ERROR), storable(error_class, limits.WORKER_ERROR)
        return c.Fail(**self._named, message=message, error_class=error_class, retry_after=retry_after, trace=trace)

    def _awaited(self, function: Callable[[Any], Any], context: AsyncContext) -> Any:
        """The async function's result. A cancelled function may clean up first, or still return."""
        assert self._loop is not None
        is_done = threading.Event()

        def begin() -> None:
            assert self._loop is not None
            self._running = self._loop.create_task(ended(function(context)))
            self._running.add_done_callback(lambda _: is_done.set())
            if self.claim.is_cancelled:  # cancelled before it began
                self._cancel_running()

        self._loop.call_soon_threadsafe(begin)
        is_done.wait()
        assert self._running is not None
        return result_of(self._running.result())

    # --- the end ---

    def _submit(self, last: Final) -> None:
        """Send the command until the store answers: a restarting server must not lose an hour of work."""
        pause = SHORTEST
        following: Final | None = last
        self.claim.is_ending = True
        while following is not None:
            command = structs.replace(following, receipt=self.claim.receipt)  # it may have been claimed again since
            try:
                following = self._next(command, self._client.do(command))
                self._forget()
            except TenureError as error:
                if isinstance(error, REFUSING) and error.definite:
                    log.warning("%s: %s", self.claim.key, error.message)
                    following = self._replacement(command, error.message)
                    continue
                self._keep(command)
                log.warning("%s: cannot be submitted yet: %s", self.claim.key, error.message)
                if self.abandoned.wait(pause):
                    return
                pause = min(LONGEST, pause * 2)
            except Exception as error:  # noqa: BLE001 of the result itself: its values may be of any class
                why = described(error, limits.WORKER_ERROR)
                log.warning("%s: cannot be sent: %s", self.claim.key, why)
                following = self._replacement(command, why)

    def _keep(self, command: Final) -> None:
        """Write it to the outbox: the next worker or runner of this store sends it if this process ends."""
        if self._kept is not None and self._kept[0] == command.receipt:
            return
        self._forget()
        try:
            self._kept = command.receipt, self._outbox.put(outbox.of_command(command, self.claim.key))
        except Exception as error:  # noqa: BLE001 of the disk, or of the result, whose values may be of any class
            why = described(error, limits.WORKER_ERROR)
            log.warning("%s: cannot be written to the outbox: %s", self.claim.key, why)

    def _forget(self) -> None:
        if self._kept is not None:
            with suppress(OSError):  # it is sent again, and gets the same answer
                self._outbox.answered(self._kept[1])
            self._kept = None

    @property
    def _outbox(self) -> outbox.Outbox:
        return outbox.Outbox(self._client.transport.url, os.environ)

    def _replacement(self, command: Final, why: str) -> Final | None:
        """The command to send instead of a refused one: each has less that could be refused."""
        if isinstance(command, c.Release):
            return structs.replace(command, stopped=False) if command.stopped else None  # an older server
        if isinstance(command, c.Submit):
            stopped = self._release("the worker was stopped", stopped=True)
            return stopped if command.stopped else self._fail(f"the result: {why}", "invalid_output")
        if command.error_class != "task":  # a class that the server does not know
            return self._fail(f"{command.error_class}: {command.message}", "task")
        if command.trace or command.retry_after is not None:
            return self._fail(command.message, "task")
        return self._fail(UNTOLD, "task") if command.message != UNTOLD else None

    def _next(self, command: Final, outcome: Outcome) -> Final | None:
        if outcome.outcome == "INVALID_OUTPUT":
            return self._fail(outcome.message, "invalid_output")
        if outcome.outcome == "CHANGED":  # the function has not read it: the next attempt gets the new text
            log.warning("%s: %s", self.claim.key, outcome.message)
            return self._release("the description was changed during the attempt", stopped=True)
        if outcome.outcome == "ALREADY_EXPIRED":  # storing a large result needs a live claim
            self.claim.lost(command.receipt, outcome)
        if not outcome.ok and not self.claim.end_as(command.receipt):
            return command
        is_expected = outcome.ok or self.claim.is_cancelled
        level = logging.INFO if is_expected else logging.WARNING
        log.log(
            level, "%s: %s: %s %s", self.claim.key, type(command).__name__.lower(), outcome.outcome, outcome.message
        )
        return None
