"""One task in the hands of one function, from the claim to the last word."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable
from typing import Any, NamedTuple

from msgspec import structs

from tenure.client.client import Client
from tenure.client.worker.context import AsyncContext, Context
from tenure.client.worker.failures import Cancelled, Failure, Suspended
from tenure.client.worker.hold import LONGEST, SHORTEST, Hold
from tenure.client.worker.keeper import Keeper
from tenure.core import commands as c
from tenure.core import limits
from tenure.core.errors import InvalidInput, NotAllowed, TenureError
from tenure.core.outcomes import Outcome

log = logging.getLogger("tenure.worker")

LONGEST_ERROR = limits.WORKER_ERROR


LastWord = c.Submit | c.Fail | c.Release


class Handler(NamedTuple):
    function: Callable[[Any], Any]
    is_async: bool


class Work:
    def __init__(
        self, client: Client, granted: Outcome, lease: float, keeper: Keeper, loop: asyncio.AbstractEventLoop | None
    ) -> None:
        """`loop` is where an async function runs."""
        self._client, self._granted, self._keeper, self._loop = client, granted, keeper, loop
        self.hold = Hold(client, granted, lease, self._cancel)
        self._running: asyncio.Task[Any] | None = None  # the async function
        self._is_stopped = False
        self.abandoned = threading.Event()  # nobody waits any more for what is handed in

    def run(self, handler: Handler) -> None:
        """Call the function and hand in what it made. Never raises what the function did."""
        self._keeper.add(self.hold)
        try:
            self._last_word(self._called(handler))
        finally:
            self.hold.end()
            self._keeper.remove(self.hold)

    def interrupt(self) -> None:
        """Stop the function; its task is given back."""
        self._is_stopped = True
        self.hold.stop("the worker was told to stop")

    def _cancel(self) -> None:
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._cancel_running)

    def _cancel_running(self) -> None:
        if self._running is not None:
            self._running.cancel()

    def _called(self, handler: Handler) -> LastWord | None:
        """The command that is the function's last word; None where it has none to say."""
        project, hold = self._client.project, self.hold
        context: Context | AsyncContext
        try:
            if handler.is_async:
                context = AsyncContext(hold, self._granted)
                data = self._awaited(handler.function, context)
            else:
                context = Context(hold, self._granted)
                data = handler.function(context)
        except Suspended:
            return None
        except (Cancelled, asyncio.CancelledError) as error:
            if hold.is_cancelled and not self._is_stopped:
                return None  # the claim is another's, or nobody's
            why = "the worker was told to stop" if self._is_stopped else str(error) or "cancelled"
            return c.Release(project=project, receipt=hold.receipt, reason=why)
        except Failure as failure:
            return self._fail(str(failure), failure.error_class, failure.retry_after)
        except TimeoutError as error:
            return self._fail(f"TimeoutError: {error}", "timeout")
        except Exception as error:
            log.warning("%s failed", hold.key, exc_info=True)
            return self._fail(f"{type(error).__name__}: {error}", "task")
        except BaseException as error:  # noqa: BLE001 the end of the program, raised inside a function
            log.warning("%s: %s ends the attempt", hold.key, type(error).__name__)
            return c.Release(project=project, receipt=hold.receipt, reason=type(error).__name__)
        return c.Submit(
            project=project, receipt=hold.receipt, data=data, summary=context.summary,
            usage=context.spending.totals(), seen=hold.seen,
        )  # fmt: skip

    def _awaited(self, function: Callable[[Any], Any], context: AsyncContext) -> Any:
        """What the async function returns. A cancelled one has its say first: it may tidy up, or return in spite."""
        assert self._loop is not None
        ended = threading.Event()

        def begin() -> None:
            assert self._loop is not None
            self._running = self._loop.create_task(function(context))
            self._running.add_done_callback(lambda _: ended.set())
            if self.hold.is_cancelled:  # before there was anything to cancel
                self._running.cancel()

        self._loop.call_soon_threadsafe(begin)
        ended.wait()
        assert self._running is not None
        return self._running.result()

    def _fail(self, message: str, error_class: str, retry_after: float | None = None) -> c.Fail:
        return c.Fail(
            project=self._client.project, receipt=self.hold.receipt, message=message[:LONGEST_ERROR],
            error_class=error_class, retry_after=retry_after,
        )  # fmt: skip

    def _last_word(self, command: LastWord | None) -> None:
        """Say it until somebody has heard it: an hour of work is not thrown away for a server that restarts."""
        pause = SHORTEST
        while command is not None:
            command = structs.replace(command, receipt=self.hold.receipt)  # it may have been taken again since
            try:
                outcome = self._client.do(command)
            except (InvalidInput, NotAllowed) as error:
                log.warning("%s: %s", self.hold.key, error.message)
                command = self._instead(command, error)
            except TenureError as error:
                log.warning("%s: cannot be handed in yet: %s", self.hold.key, error.message)
                if self.abandoned.wait(pause):
                    return
                pause = min(LONGEST, pause * 2)
            else:
                command = self._heard(command, outcome)

    def _instead(self, command: LastWord, error: TenureError) -> LastWord | None:
        """What can be said of a result or failure that is refused as such."""
        if isinstance(command, c.Submit):
            return self._fail(f"the result: {error.message}", "invalid_output")
        if isinstance(command, c.Fail) and command.error_class != "task":  # a class that is unknown there
            return self._fail(f"{command.error_class}: {command.message}", "task")
        return None

    def _heard(self, command: LastWord, outcome: Outcome) -> LastWord | None:
        if outcome.outcome == "INVALID_OUTPUT":
            return self._fail(outcome.message, "invalid_output")
        if outcome.outcome == "CHANGED":  # the function never looked at it: the next run begins with the new text
            log.warning("%s: %s", self.hold.key, outcome.message)
            reason = "the description was changed while it ran"
            return c.Release(project=self._client.project, receipt=self.hold.receipt, reason=reason)
        if outcome.outcome == "ALREADY_EXPIRED":  # a large result is put first, which needs a live claim
            self.hold.lost(command.receipt, outcome)
        if not outcome.ok and command.receipt != self.hold.receipt:
            return command
        level = logging.INFO if outcome.ok else logging.WARNING
        log.log(level, "%s: %s: %s %s", self.hold.key, type(command).__name__.lower(), outcome.outcome, outcome.message)
        return None
