"""State of a session's hooks between two events: a small file in `.tenure/hooks`, under a lock.

It decides nothing about claims. If it is lost, a message is repeated, or a lease is renewed once more than needed.
"""

from __future__ import annotations

import fcntl
import os
from contextlib import suppress
from types import TracebackType

import msgspec

from tenure.core import limits

_MOST_SEEN = limits.HOOK_ENTRIES
_SAME = 5.0  # seconds within which an event without an id is the same one, fired by two settings files
_OLD = limits.HOOK_RECORD


class _State(msgspec.Struct, omit_defaults=True):
    renewed: float = 0.0
    mail: int = 0
    told: dict[str, str] = {}  # "B-003@7" → the outcome that was reported last
    losses: list[str] = []  # keys of tasks that were taken from the session
    seen: dict[str, float] = {}
    is_context_lost: bool = False
    asked_to_go_on: bool = False
    registered: bool = False


class HookMemory:
    """A context: reads the file at its start, writes it at its end, and locks it in between."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._handle = -1
        self._kept = _State()
        self._before = b""

    def __enter__(self) -> HookMemory:
        try:
            self._handle = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        except FileNotFoundError:
            os.makedirs(os.path.dirname(self._path), mode=0o700, exist_ok=True)
            self._handle = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        fcntl.flock(self._handle, fcntl.LOCK_EX)
        self._before = os.read(self._handle, 1 << 20)
        with suppress(msgspec.DecodeError):
            self._kept = msgspec.json.decode(self._before or b"{}", type=_State)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            after = msgspec.json.encode(self._kept)
            if after != self._before:
                os.ftruncate(self._handle, 0)
                os.pwrite(self._handle, after, 0)
        finally:
            os.close(self._handle)

    # --- each event once ---

    def is_first(self, event: str, now: float, *, has_id: bool) -> bool:
        """Is this event new? One without an id counts as new again after some seconds."""
        with self:
            seen = self._kept.seen
            is_first = event not in seen or not (has_id or 0 <= now - seen[event] <= _SAME)
            seen.pop(event, None)
            seen[event] = now
            for old in list(seen)[:-_MOST_SEEN]:
                del seen[old]
        return is_first

    def is_unregistered(self) -> bool:
        """True once per session: a later `join` registers more, which must not be overwritten."""
        was, self._kept.registered = self._kept.registered, True
        return not was

    # --- renewals ---

    def is_due(self, now: float, quiet: float) -> bool:
        return not 0 <= now - self._kept.renewed < quiet

    def renewed(self, now: float) -> None:
        self._kept.renewed = now

    # --- messages ---

    def is_news(self, claim: str, outcome: str) -> bool:
        told = self._kept.told
        was = told.pop(claim, None)
        told[claim] = outcome
        for old in list(told)[:-_MOST_SEEN]:
            del told[old]
        return was != outcome

    def is_more_mail(self, count: int) -> bool:
        was, self._kept.mail = self._kept.mail, count
        return count > was

    @property
    def is_context_lost(self) -> bool:
        return self._kept.is_context_lost

    def context_lost(self) -> None:
        self._kept.is_context_lost = True

    def primed(self) -> None:
        self._kept.is_context_lost = False

    # --- lost tasks ---

    @property
    def losses(self) -> list[str]:
        return list(self._kept.losses)

    def lost(self, key: str) -> None:
        if key not in self._kept.losses:
            self._kept.losses.append(key)

    def moved_on(self) -> None:
        self._kept.losses = []

    # --- stop ---

    def may_ask_to_go_on(self) -> bool:
        """True at most every other time, so that no agent loops."""
        self._kept.asked_to_go_on = not self._kept.asked_to_go_on
        return self._kept.asked_to_go_on

    def forget(self) -> None:
        with suppress(FileNotFoundError):
            os.unlink(self._path)


def prune(folder: str, now: float) -> None:
    """Remove the files of sessions that ended without an event."""
    with suppress(OSError):
        for entry in os.scandir(folder):
            if now - entry.stat().st_mtime > _OLD:
                os.unlink(entry.path)
