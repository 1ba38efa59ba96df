"""What a caller reads of a failure: the words of a store have addresses, roles and names of databases in it.

The deployment's owner and the log get its own words. Everybody else gets a fixed sentence, and who has not signed in
the same one for every failure of a store, so that it says nothing about a name that was guessed. A probe names nobody,
so that it can say which failure it is: see `store_health`.
"""

from __future__ import annotations

from tenure.core.commands import Principal
from tenure.core.errors import (
    AuthUnavailable,
    Bug,
    ClockJump,
    Conflict,
    OutcomeUnknown,
    SchemaMismatch,
    StoreCorrupt,
    StoreError,
    StoreUnavailable,
    TenureError,
    UnsafeRole,
    spelled,
)
from tenure.core.roles import owns_deployment

_AGAIN = "nothing was done; send it again in a moment"
_OPERATOR = "nothing was done; the operator of the server finds the reason in its log"
_AWAY = "the store is unavailable"
_NOT_REMEMBERED = f"{_AWAY}, and this server has not checked these credentials in the last ten minutes"
_UNAVAILABLE: tuple[type[TenureError], str, str] = (StoreUnavailable, _AWAY, _AGAIN)
_UNKNOWN: tuple[type[TenureError], str, str] = (
    OutcomeUnknown, "the store did not answer; whether it was done is not known",
    "send it again with the same request id",
)  # fmt: skip
# By the code; a store's error that is not here reads as unavailable.
_SENTENCES: dict[str, tuple[type[TenureError], str, str]] = {
    OutcomeUnknown.code: _UNKNOWN,
    AuthUnavailable.code: (AuthUnavailable, "who sends this cannot be found out now", _AGAIN),
    Bug.code: (Bug, "an error inside the server", "its operator finds it in the log, under the trace of this answer"),
    Conflict.code: (Conflict, "others changed the same rows at the same time", _AGAIN),
    ClockJump.code: (ClockJump, "the clock of the server's host has jumped", _OPERATOR),
    SchemaMismatch.code: (SchemaMismatch, "the store and the server have different versions", _OPERATOR),
    StoreCorrupt.code: (StoreCorrupt, "the store is damaged", _OPERATOR),
    UnsafeRole.code: (UnsafeRole, "the store's settings are not safe", _OPERATOR),
}
_TO_STRANGERS = frozenset({OutcomeUnknown.code, AuthUnavailable.code, Bug.code})


def not_remembered() -> StoreUnavailable:
    """At the metrics: the same for each credential that is not remembered, right or wrong."""
    return StoreUnavailable(
        _NOT_REMEMBERED,
        "send the token of the setting serve.metrics_token, which needs no store, or try again once the store is back",
    )


def for_caller(error: TenureError, who: Principal | None) -> TenureError:
    """The error as this caller may read it; None: a caller who has not signed in."""
    is_open = error.message == _NOT_REMEMBERED or not isinstance(error, (StoreError, AuthUnavailable, Bug))
    if is_open or (who is not None and owns_deployment(who)):
        return error
    return in_fixed_words(error if who is not None or error.code in _TO_STRANGERS else StoreUnavailable(_AWAY))


def in_fixed_words(error: TenureError) -> TenureError:
    """The store's error without its own words."""
    kind, message, hint = _SENTENCES.get(error.code, _UNAVAILABLE)
    return kind(message, hint)


def in_full(error: TenureError) -> str:
    """The words of an error and of its cause, for the log."""
    cause = error.__cause__
    return error.message if cause is None else f"{error.message}: {spelled(cause)}"
