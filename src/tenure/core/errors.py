"""The one error tree.

    TenureError
    ├── InvalidInput            bad value, unknown name or wrong size in the input
    │   ├── TooLarge            a text or a batch over its limit
    │   ├── UnsupportedType     a body of another media type than JSON
    │   ├── Cycle               edges that would close a cycle; the message shows it
    │   └── RequestIdReused     the same request id with another content
    ├── NotFound                no such task, agent, dag … in this project
    │   ├── Ambiguous           a prefix of several; the message names them
    │   └── HistoryPruned       a moment of the past whose tasks retention has deleted
    ├── NotSignedIn             no key or token, or an unknown one
    ├── AuthUnavailable         the caller cannot be authenticated now: cannot fetch the issuer's keys
    ├── NotAllowed              the role may not do this
    ├── LimitReached            a configured limit; the message names it and how to raise it
    ├── SecretsOff              no master key: a secret can be neither sealed nor opened, and is never stored plain
    ├── SecretUnreadable        sealed with another master key, or damaged
    ├── CopyRefused             a project cannot be copied now, or not there; nothing was copied
    ├── MoveRefused             a tenant cannot be moved now, or not there; it stays where it is
    ├── TenantMoving            the tenant is being moved to another store; nothing was done: send again in a moment
    ├── NotHome                 the tenant's home is in another region; nothing was done: send it there
    ├── AnswerRefused           a server's answer is larger, or lasts longer, than a client takes
    ├── RateLimited             too many requests of one caller; nothing was done: reports when to send again
    ├── Overloaded              too many commands are waiting; nothing was done: send again in a moment
    ├── StoreError              the store failed
    │   ├── Conflict            rows changed under the batch; the engine runs it again
    │   ├── StoreUnavailable    cannot be reached or opened; nothing was done
    │   │   └── NoStore         there is none at that path or URL
    │   ├── ClockJump           the host's clock jumped ahead; nothing was done
    │   ├── OutcomeUnknown      the answer to a commit was lost: send again with the same request id
    │   ├── SchemaMismatch      the file was made by another version
    │   ├── StoreCorrupt        the integrity check failed
    │   └── UnsafeRole          row-level security is on, and does not restrict this database role
    └── Bug                     one of our rules was broken; nothing was done

Refusals of a holder ("stale", "denied") are outcomes, not errors: see outcomes.py.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import TypeVar

T = TypeVar("T")


class TenureError(Exception):
    """Has a stable `code`, is `definite` (no effect) or not, and may carry a `hint`: what to do."""

    code = "ERROR"
    definite = True

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message} ({self.hint})" if self.hint else self.message


class InvalidInput(TenureError):
    code = "INVALID_INPUT"


class TooLarge(InvalidInput):
    code = "TOO_LARGE"


class UnsupportedType(InvalidInput):
    code = "UNSUPPORTED_TYPE"


class Cycle(InvalidInput):
    code = "CYCLE"
    circle: tuple[str, ...] = ()  # its nodes, where known


class RequestIdReused(InvalidInput):
    code = "REQUEST_ID_REUSED"


class NotFound(TenureError):
    code = "NOT_FOUND"


class Ambiguous(NotFound):
    code = "AMBIGUOUS"


class HistoryPruned(NotFound):
    code = "HISTORY_PRUNED"


class NotSignedIn(TenureError):
    code = "NOT_SIGNED_IN"


class AuthUnavailable(TenureError):
    code = "AUTH_UNAVAILABLE"


class NotAllowed(TenureError):
    code = "NOT_ALLOWED"


class LimitReached(TenureError):
    code = "LIMIT_REACHED"


class SecretsOff(TenureError):
    code = "SECRETS_OFF"


class SecretUnreadable(TenureError):
    code = "SECRET_UNREADABLE"


class CopyRefused(TenureError):
    code = "COPY_REFUSED"


class MoveRefused(TenureError):
    code = "MOVE_REFUSED"


class TenantMoving(TenureError):
    code = "TENANT_MOVING"


class NotHome(TenureError):
    code = "NOT_HOME"

    def __init__(
        self, message: str, hint: str | None = None, *, region: str | None = None, home: str | None = None
    ) -> None:
        super().__init__(message, hint)
        self.region, self.home = region, home  # the home's name, and its address where the server knows it


class AnswerRefused(TenureError):
    code = "ANSWER_REFUSED"


class RateLimited(TenureError):
    code = "RATE_LIMITED"

    def __init__(self, message: str, hint: str | None = None, *, retry_after: float = 1.0) -> None:
        super().__init__(message, hint)
        self.retry_after = retry_after  # seconds


class Overloaded(TenureError):
    code = "OVERLOADED"


class StoreError(TenureError):
    code = "STORE_ERROR"


class Conflict(StoreError):
    code = "CONFLICT"


class StoreUnavailable(StoreError):
    code = "STORE_UNAVAILABLE"


class NoStore(StoreUnavailable):
    code = "NO_STORE"

    @classmethod
    def at(cls, place: str) -> NoStore:
        """Where a store was named, and is not."""
        return cls(
            f"there is no store {place}", "Check the URL; `tenure init` creates a store, in Python `create=True`."
        )


class ClockJump(StoreError):
    code = "CLOCK_JUMP"


class OutcomeUnknown(StoreError):
    code = "OUTCOME_UNKNOWN"
    definite = False


class SchemaMismatch(StoreError):
    code = "SCHEMA_MISMATCH"


class StoreCorrupt(StoreError):
    code = "STORE_CORRUPT"


class UnsafeRole(StoreError):
    code = "UNSAFE_ROLE"


# The same request may succeed later: what it asked for is not refused.
PASSING = (StoreError, Overloaded, RateLimited, AuthUnavailable, TenantMoving)


class Bug(TenureError):
    code = "BUG"


def spelled(error: BaseException) -> str:
    """An error as a part of a sentence: ours by its message, another with its type."""
    return error.message if isinstance(error, TenureError) else f"{type(error).__name__}: {error}"


# --- what goes on after an error ---


def close_all(*closes: Callable[[], object]) -> None:
    """Call each of them in this order, whatever the others raise.

    Raises the first error afterwards, with a note for each that followed; an interruption comes before an error.
    """
    first: BaseException | None = None
    for close in closes:
        try:
            close()
        except BaseException as error:  # noqa: BLE001 - raised below
            if first is None:
                first = error
                continue
            if isinstance(first, Exception) and not isinstance(error, Exception):
                first, error = error, first
            first.add_note(f"also, while the rest was closed: {type(error).__name__}: {error}")
    if first is not None:
        raise first


def popped(items: list[T] | deque[T]) -> Iterator[T]:
    """Each of them, taken out of the list. Other threads may take some meanwhile, or add more."""
    while items:
        with suppress(IndexError):
            yield items.pop()
