"""State of a session's hooks between two events: a small file in `.tenure/hooks`, under a lock.

It decides nothing about claims. If it is lost, a message is repeated, or a lease is renewed once more than needed.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import msgspec

from tenure.core import limits
from tenure.user_state import safe_name

_MOST_SEEN = limits.HOOK_ENTRIES
_SAME = 5.0  # seconds within which an event without an id is the same one, fired by two settings files
_OLD = limits.HOOK_RECORD


class HookState(msgspec.Struct, omit_defaults=True):
    renewed: float = 0.0
    mail: int = 0
    reported: dict[str, str] = msgspec.field(default_factory=dict, name="told")  # "B-003@7" → its last outcome
    losses: list[str] = []  # keys of tasks that were taken from the session
    seen: dict[str, float] = {}
    is_context_lost: bool = False
    asked_to_go_on: bool = False
    registered: bool = False
    transcript: str = ""  # the one that the agent named last

    def is_first(self, event: str, now: float, *, has_id: bool) -> bool:
        """Is this event new? One without an id counts as new again after some seconds."""
        is_first = event not in self.seen or not (has_id or 0 <= now - self.seen[event] <= _SAME)
        _put_last(self.seen, event, now)
        return is_first

    def is_unregistered(self) -> bool:
        """True once per session: a later `join` registers more, which must not be overwritten."""
        was, self.registered = self.registered, True
        return not was

    def is_due(self, now: float, quiet: float) -> bool:
        return not 0 <= now - self.renewed < quiet

    def is_news(self, claim: str, outcome: str) -> bool:
        was = self.reported.get(claim)
        _put_last(self.reported, claim, outcome)
        return was != outcome

    def is_more_mail(self, count: int) -> bool:
        was, self.mail = self.mail, count
        return count > was

    def lost(self, key: str) -> None:
        if key not in self.losses:
            self.losses.append(key)

    def may_ask_to_go_on(self) -> bool:
        """True at most every other time, so that no agent loops."""
        self.asked_to_go_on = not self.asked_to_go_on
        return self.asked_to_go_on


def _put_last(entries: dict[str, Any], key: str, value: object) -> None:
    """Add the newest entry, and drop the oldest where there are too many."""
    entries.pop(key, None)
    entries[key] = value
    for old in list(entries)[:-_MOST_SEEN]:
        del entries[old]


def file_of(folder: str, session: str) -> str:
    return os.path.join(folder, "hooks", safe_name(session))


@contextmanager
def hook_state(path: str) -> Iterator[HookState]:
    """The state in the file, locked; changes are written at the end of the context, also after an error."""
    os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        before = os.read(handle, 1 << 20)
        state = HookState()
        with suppress(msgspec.DecodeError):
            state = msgspec.json.decode(before or b"{}", type=HookState)
        try:
            yield state
        finally:
            after = msgspec.json.encode(state)
            if after != before:
                os.ftruncate(handle, 0)
                os.pwrite(handle, after, 0)
    finally:
        os.close(handle)


def prune(folder: str, now: float) -> None:
    """Remove the files of sessions that ended without an event."""
    with suppress(OSError):
        for entry in os.scandir(folder):
            if now - entry.stat().st_mtime > _OLD:
                os.unlink(entry.path)
