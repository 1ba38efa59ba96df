"""The contract of a validator: settings and an output in, a verdict out.

A verdict is about the output. Whatever is about something else (no such command, a judge that is away, an answer that
nobody can read) is `Undecided`: it is no reason to send an agent's work back. The suite in
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
    """Nothing can be said of the output. `again`: later it may, in `retry_after` seconds at the soonest."""

    code = "UNDECIDED"

    def __init__(
        self, message: str, hint: str | None = None, *, again: bool = False, retry_after: float | None = None
    ) -> None:
        super().__init__(message, hint)
        self.again = again
        self.retry_after = retry_after


class Verdict(msgspec.Struct, frozen=True):
    """Whether the output is good; if not, why: for the one who made it, so that it can be mended.

    `details` is for the record: small JSON. What is too much is cut, never refused: a verdict must count.
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
    """What the output is of, in words: for validators that read it."""

    key: str = ""
    title: str = ""
    description: str = ""
    generation: int = 0


class Output:
    """What was handed in. `folder`: where the work was done, for validators that look at files."""

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
        """Has its JSON more bytes than that? A text that is longer is not encoded to find out: that takes its time."""
        return (isinstance(self.data, str) and len(self.data) > most) or len(self.encoded) > most

    @property
    def text(self) -> str:
        """The data where it is a text, else its JSON."""
        return self.data if isinstance(self.data, str) else self.encoded.decode()


class Validator(Protocol):
    """Safe to use from several threads at once."""

    name: str
    is_quick: bool  # ends within a second or so. Ours run before the submission's transaction; a plug-in after it

    def check_settings(self, settings: Mapping[str, Any]) -> None:
        """Raise InvalidInput, saying what to mend, for settings that no output could be judged by.

        Asked once, when a task gets its contract, so that no agent works for a contract that cannot be met.
        """

    def judge(self, settings: Mapping[str, Any], output: Output) -> Verdict:
        """The verdict; raises Undecided where there can be none. `settings` are those that passed `check_settings`."""


def setting(
    settings: Mapping[str, Any], name: str, wanted: tuple[type, ...], known: Iterable[str], default: Any = ...
) -> Any:
    """One of a contract's settings, after a look at whether all of them are known."""
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
        raise InvalidInput(f"output.settings.{name}: {value!r:.60} is not {words}")
    return value
