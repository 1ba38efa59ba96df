"""Errors that every store on a server meets: a failed statement, a lost connection, a value that cannot be stored."""

from __future__ import annotations

from tenure.core.errors import InvalidInput, OutcomeUnknown, StoreUnavailable

# Raised on our side for a value that cannot be stored: a lone surrogate, an integer beyond 64 bits, an odd type.
BAD_VALUES = (UnicodeEncodeError, OverflowError, TypeError)


class Failed(Exception):
    """A statement failed on the server. The transaction can only be rolled back."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message
        self.place = 0  # of the statement among those that were sent together


class Lost(Exception):
    """The connection was lost. A commit without an answer may have been done."""


def lost(error: Lost, url: str) -> StoreUnavailable:
    return StoreUnavailable(f"{url}: the connection was lost before the commit; nothing was done ({error})")


def unknown(why: object, url: str) -> OutcomeUnknown:
    return OutcomeUnknown(f"{url}: {why}; the change may or may not last", "Send it again with the same request id.")


def forked(url: str) -> StoreUnavailable:
    return StoreUnavailable(
        f"{url} was open when this process was forked, and a connection cannot be shared",
        "Start processes with spawn, or close the store before forking.",
    )


def servers_clock(url: str) -> InvalidInput:
    """The answer to `accept_clock`."""
    return InvalidInput(
        f"{url}: its time is the server's, and continues once that has reached the last event's time",
        "Correct the server's clock.",
    )


def bad_value(error: Exception) -> InvalidInput:
    if isinstance(error, UnicodeEncodeError):
        return InvalidInput("text that is not valid UTF-8", "re-encode it, or drop the bytes")
    return InvalidInput(f"a value cannot be stored: {error}")
