"""The contract of a validator: settings and an output in, a verdict out.

A verdict is about the output. Every other problem (an unknown command, an unavailable judge, an unreadable answer) is
`Undecided`, and does not send an agent's work back. The suite in
`tenure.testing.suites.validators` proves every sentence.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Any, NamedTuple, Protocol

import msgspec

from tenure.core import limits
from tenure.core.errors import InvalidInput, TenureError
from tenure.core.inputs import suggestion

MOST_REASONS = limits.REASONS
LONGEST_REASON = limits.REASON
LARGEST_DETAILS = limits.DETAILS_BYTES


class Undecided(TenureError):
    """No verdict is possible. `again`: it may be possible later, in `retry_after` seconds at the earliest."""

    code = "UNDECIDED"

    def __init__(
        self, message: str, hint: str | None = None, *, again: bool = False, retry_after: float | None = None
    ) -> None:
        super().__init__(message, hint)
        self.again = again
        self.retry_after = retry_after


class Verdict(msgspec.Struct, frozen=True):
    """Whether the output is valid; if not, the reasons, so that its author can fix it.

    `details` is small JSON for the record. Too much is cut, never refused: a verdict must count.
    """

    ok: bool
    reasons: tuple[str, ...] = ()
    details: dict[str, Any] = {}

    def __post_init__(self) -> None:
        reasons = tuple(cut(str(reason)) for reason in self.reasons[:MOST_REASONS])
        msgspec.structs.force_setattr(self, "reasons", reasons)
        size = len(msgspec.json.encode(self.details))
        if size > LARGEST_DETAILS:
            msgspec.structs.force_setattr(self, "details", {"left_out": f"{size} bytes of details"})


def refused(reasons: Iterable[str], /, **details: Any) -> Verdict:
    return Verdict(False, tuple(reasons), details)


def cut(text: str, most: int = LONGEST_REASON) -> str:
    return text if len(text) <= most else text[: most - 2] + " …"


class About(NamedTuple):
    """The task of the output, for validators that read it."""

    key: str = ""
    title: str = ""
    description: str = ""
    generation: int = 0


class Output:
    """A submitted result. `folder`: the folder of the work, for validators that check files."""

    def __init__(self, data: Any, summary: str = "", *, about: About | None = None, folder: str | None = None) -> None:
        self.data = data
        self.summary = summary
        self.about = about or About()
        self.folder = folder

    @cached_property
    def encoded(self) -> bytes:
        """The data as JSON."""
        return msgspec.json.encode(self.data)

    def is_over(self, most: int) -> bool:
        """Has its JSON more bytes than that? A longer text is not encoded, which would take long."""
        return (isinstance(self.data, str) and len(self.data) > most) or len(self.encoded) > most

    @property
    def text(self) -> str:
        """The data where it is a text, else its JSON."""
        return self.data if isinstance(self.data, str) else self.encoded.decode()


class Validator(Protocol):
    """Safe to use from several threads at once."""

    name: str
    is_quick: bool  # ends within about a second. Ours run before the submit's transaction, a plug-in after it

    def check_settings(self, settings: Mapping[str, Any]) -> None:
        """Raise InvalidInput, with the fix, for settings that are not valid.

        Called once, when a task gets its contract, so that no agent works for a contract that cannot be met.
        """

    def judge(self, settings: Mapping[str, Any], output: Output) -> Verdict:
        """The verdict; raises Undecided where there is none. `settings` have passed `check_settings`."""


def setting(
    settings: Mapping[str, Any], name: str, wanted: tuple[type, ...], known: Iterable[str], default: Any = ...
) -> Any:
    """One of a contract's settings; raises InvalidInput where any of them is unknown."""
    known = tuple(known)
    for given in settings:
        if given not in known:
            raise InvalidInput(
                f"output.settings.{given[:60]}: unknown{suggestion(given, known) or '; known: ' + ', '.join(known)}"
            )
    if name not in settings and default is not ...:
        return default
    value = settings.get(name)
    if not isinstance(value, wanted) or (isinstance(value, bool) and bool not in wanted):
        words = " or ".join(kind.__name__ for kind in wanted)
        raise InvalidInput(f"output.settings.{name} must be {words} (got {value!r:.60})")
    return value
