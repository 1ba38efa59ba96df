"""Exceptions of a worker's function; any other exception is a failure of the class `task`."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Any, NamedTuple

from tenure.core.errors import PASSING, SchemaMismatch, StoreCorrupt, TenureError, UnsafeRole
from tenure.core.retry import PERMANENT, RATE_LIMIT


class Failure(Exception):
    """The attempt failed, with a class of core/retry.py."""

    error_class: str = "task"  # also of a subclass that does not call this constructor
    retry_after: float | None = None

    def __init__(self, message: str = "", *, error_class: str = "task", retry_after: float | None = None) -> None:
        super().__init__(message)
        self.error_class, self.retry_after = error_class, retry_after


class RetryLater(Failure):
    """Try again in so many seconds. Not counted as an attempt, unless three different agents have raised it."""

    def __init__(self, seconds: float, message: str = "") -> None:
        super().__init__(message or f"asked for another try in {seconds:g} s", error_class=RATE_LIMIT)
        self.retry_after = seconds


class Permanent(Failure):
    """No other attempt would succeed: the task becomes a dead letter at once, and waits for a person."""

    def __init__(self, message: str) -> None:
        super().__init__(message, error_class=PERMANENT)


class Cancelled(BaseException):
    """The function no longer holds the task and must stop. Raised by the context's methods.

    Not an Exception, as asyncio's own: code that catches every failure must not continue with another's task.
    """


class Suspended(BaseException):
    """The function ended its own claim (it waits for subtasks, or an answer): there is nothing to submit."""


def class_of(failure: Failure) -> tuple[str, float | None]:
    """Its class and its delay. A subclass may have anything there: then it is a failure of the task."""
    name: Any
    try:
        name, after = failure.error_class, failure.retry_after
    except BaseException:  # noqa: BLE001 a property is anybody's code
        return "task", None
    return name if isinstance(name, str) else "task", after if isinstance(after, (int, float)) else None


class Exit(NamedTuple):
    """What an async function raised to end the program."""

    error: BaseException


async def ended(function: Awaitable[Any]) -> Any:
    """What the function returns, or its Exit: asyncio raises one in the thread of the event loop, and ends it."""
    try:
        return await function
    except (KeyboardInterrupt, SystemExit) as error:
        return Exit(error)


def result_of(end: Any) -> Any:
    """What a function returned; raises its Exit where it was called."""
    if isinstance(end, Exit):
        raise end.error
    return end


def may_pass(error: TenureError) -> bool:
    """Whether the store or server may be available again soon."""
    if isinstance(error, (SchemaMismatch, StoreCorrupt, UnsafeRole)):
        return False
    return isinstance(error, PASSING)
