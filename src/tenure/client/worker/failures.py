"""What a function raises to say how its attempt ended; any other exception is a failure of the class `task`."""

from __future__ import annotations

from tenure.core.errors import (  # fmt: skip
    AuthUnavailable,
    Overloaded,
    RateLimited,
    SchemaMismatch,
    StoreCorrupt,
    StoreError,
    TenureError,
)
from tenure.core.retry import PERMANENT, RATE_LIMIT


class Failure(Exception):
    """The attempt failed, with a class of core/retry.py."""

    def __init__(self, message: str = "", *, error_class: str = "task", retry_after: float | None = None) -> None:
        super().__init__(message)
        self.error_class, self.retry_after = error_class, retry_after


class RetryLater(Failure):
    """Not now: try again in so many seconds. No attempt is counted, unless three different agents have said so."""

    def __init__(self, seconds: float, message: str = "") -> None:
        super().__init__(message or f"asked for another try in {seconds:g} s", error_class=RATE_LIMIT)
        self.retry_after = seconds


class Permanent(Failure):
    """No other attempt would fare better: the task becomes a dead letter at once, and waits for a person."""

    def __init__(self, message: str) -> None:
        super().__init__(message, error_class=PERMANENT)


class Cancelled(BaseException):
    """The task is no longer this function's: stop. Raised by the context's methods.

    Not an Exception, as asyncio's own: what catches every failure must not go on with work that another has.
    """


class Suspended(BaseException):
    """The function gave its claim back itself (it waits for subtasks, or an answer): nothing is to be handed in."""


def may_pass(error: TenureError) -> bool:
    """Whether the store or server may be back in a moment."""
    if isinstance(error, (SchemaMismatch, StoreCorrupt)):
        return False
    return isinstance(error, (StoreError, Overloaded, RateLimited, AuthUnavailable))
