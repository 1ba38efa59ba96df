"""One attempt: a function called with a claimed task, until its result is submitted."""

from __future__ import annotations

import asyncio
import logging
import os
import threading
import traceback
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import msgspec
from msgspec import structs

from tenure.client import outbox
from tenure.client.client import Client
from tenure.client.worker.context import AsyncContext, Context
from tenure.client.worker.failures import Cancelled, Failure, Suspended
from tenure.client.worker.functions import BadArguments, Handler, arguments_of
from tenure.client.worker.held_claim import LONGEST, SHORTEST, HeldClaim, Renewer
from tenure.client.worker.watcher import Watcher
from tenure.core import commands as c
from tenure.core import limits
from tenure.core.errors import InvalidInput, NotAllowed, TenureError
from tenure.core.outcomes import Outcome
from tenure.core.retry import PERMANENT

log = logging.getLogger("tenure.worker")


Final = c.Submit | c.Fail | c.Release


def trace_of(error: BaseException) -> str:
    """The stack trace from the function on."""
    here = error.__traceback__
    return "".join(traceback.format_exception(error.with_traceback(here.tb_next if here else None)))


class Attempt:
    def __init__(
        self,
        client: Client,
        granted: Outcome,
        lease: float | str,
        keepers: Sequence[Renewer | Watcher],
        loop: asyncio.AbstractEventLoop | None,
    ) -> None:
        """`loop` is where an async function runs."""
        self._client, self._granted, self._keepers, self._loop = client, granted, keepers, loop
        self.claim = HeldClaim(client, granted, lease, self._cancel)
        self._running: asyncio.Task[Any] | None = None  # the async function
        self._is_stopped = False
        self.abandoned = threading.Event()  # the worker no longer waits for the submit
        self._kept: tuple[str, str] | None = None  # the receipt in the outbox, and its file

    def run(self, handler: Handler) -> None:
        """Call the function and submit its result. Never raises the function's exceptions."""
        for keeper in self._keepers:
            keeper.add(self.claim)
        timer = self._timer()
        try:
            command = self._called(handler)
            if timer is not None:
                timer.cancel()
            self._submit(command)
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
        self._is_stopped = True
        self.claim.stop("the worker was stopped")

    def _cancel(self) -> None:
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._cancel_running)

    def _cancel_running(self) -> None:
        if self._running is not None:
            self._running.cancel()

    def _called(self, handler: Handler) -> Final | None:
        """The command that ends the claim; None where the function has ended it, or lost it."""
        claim = self.claim
        context: Context | AsyncContext
        try:
            if handler.is_async:
                context = AsyncContext(claim, self._granted)
                data = self._awaited(partial(handler.function, **arguments_of(handler, claim.task)), context)
            else:
                context = Context(claim, self._granted)
                data = handler.function(context, **arguments_of(handler, claim.task))
        except Suspended:
            return None
        except (Cancelled, asyncio.CancelledError) as error:
            if claim.is_timed_out:  # refused where the store has ended the claim already
                return self._fail(str(claim.why), "timeout")
            if claim.is_cancelled and not self._is_stopped:
                return None  # the claim has ended already
            why = "the worker was stopped" if self._is_stopped else str(error) or "cancelled"
            return self._release(why)
        except Failure as failure:
            return self._fail(str(failure), failure.error_class, failure.retry_after)
        except BadArguments as error:  # no other attempt would succeed
            return self._fail(str(error), PERMANENT)
        except TimeoutError as error:
            return self._fail(f"TimeoutError: {error}", "timeout", trace=trace_of(error))
        except Exception as error:
            log.warning("%s failed", claim.key, exc_info=True)
            return self._fail(f"{type(error).__name__}: {error}", "task", trace=trace_of(error))
        except BaseException as error:  # noqa: BLE001 the end of the program, raised inside a function
            log.warning("%s: %s ends the attempt", claim.key, type(error).__name__)
            return self._release(type(error).__name__)
        usage = context.usage_totals.totals()
        return c.Submit(**self._named, data=data, summary=context.summary, usage=usage, seen=claim.seen)

    @property
    def _named(self) -> dict[str, Any]:
        return {"project": self._client.project, "receipt": self.claim.receipt}

    def _release(self, reason: str) -> c.Release:
        return c.Release(**self._named, reason=reason)

    def _awaited(self, function: Callable[[Any], Any], context: AsyncContext) -> Any:
        """The async function's result. A cancelled function may clean up first, or still return."""
        assert self._loop is not None
        ended = threading.Event()

        def begin() -> None:
            assert self._loop is not None
            self._running = self._loop.create_task(function(context))
            self._running.add_done_callback(lambda _: ended.set())
            if self.claim.is_cancelled:  # cancelled before it began
                self._running.cancel()

        self._loop.call_soon_threadsafe(begin)
        ended.wait()
        assert self._running is not None
        return self._running.result()

    def _fail(self, message: str, error_class: str, retry_after: float | None = None, trace: str = "") -> c.Fail:
        message = message[: limits.WORKER_ERROR]
        return c.Fail(**self._named, message=message, error_class=error_class, retry_after=retry_after, trace=trace)

    def _submit(self, command: Final | None) -> None:
        """Send the command until the store answers: a restarting server must not lose an hour of work."""
        pause = SHORTEST
        while command is not None:
            command = structs.replace(command, receipt=self.claim.receipt)  # it may have been claimed again since
            try:
                outcome = self._client.do(command)
            except (InvalidInput, NotAllowed) as error:
                log.warning("%s: %s", self.claim.key, error.message)
                command = self._replacement(command, error)
            except TenureError as error:
                self._keep(command)
                log.warning("%s: cannot be submitted yet: %s", self.claim.key, error.message)
                if self.abandoned.wait(pause):
                    return
                pause = min(LONGEST, pause * 2)
            else:
                command = self._next(command, outcome)
                self._forget()

    def _keep(self, command: Final) -> None:
        """Write it to the outbox: the next worker or runner of this store sends it if this process ends."""
        if self._kept is not None and self._kept[0] == command.receipt:
            return
        self._forget()
        try:
            self._kept = command.receipt, self._outbox.put(outbox.of_command(command, self.claim.key))
        except (OSError, TypeError, msgspec.MsgspecError) as error:
            log.warning("%s: cannot be written to the outbox: %s", self.claim.key, error)

    def _forget(self) -> None:
        if self._kept is not None:
            self._outbox.answered(self._kept[1])
            self._kept = None

    @property
    def _outbox(self) -> outbox.Outbox:
        return outbox.Outbox(self._client.transport.url, os.environ)

    def _replacement(self, command: Final, error: TenureError) -> Final | None:
        """The command to send instead of a refused result or failure."""
        if isinstance(command, c.Submit):
            return self._fail(f"the result: {error.message}", "invalid_output")
        if isinstance(command, c.Fail) and command.error_class != "task":  # a class that the server does not know
            return self._fail(f"{command.error_class}: {command.message}", "task")
        return None

    def _next(self, command: Final, outcome: Outcome) -> Final | None:
        if outcome.outcome == "INVALID_OUTPUT":
            return self._fail(outcome.message, "invalid_output")
        if outcome.outcome == "CHANGED":  # the function has not read it: the next attempt gets the new text
            log.warning("%s: %s", self.claim.key, outcome.message)
            return self._release("the description was changed during the attempt")
        if outcome.outcome == "ALREADY_EXPIRED":  # storing a large result needs a live claim
            self.claim.lost(command.receipt, outcome)
        if not outcome.ok and command.receipt != self.claim.receipt:
            return command
        level = logging.INFO if outcome.ok else logging.WARNING
        log.log(
            level, "%s: %s: %s %s", self.claim.key, type(command).__name__.lower(), outcome.outcome, outcome.message
        )
        return None
