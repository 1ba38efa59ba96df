"""The names of keys, and values as bytes that sort as the values do.

Every key of a tenant begins with `{SPACE:TENANT}`, so all of them have one hash slot, and one script may use them.
"""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from tenure.core.records import Task
from tenure.stores.port import Head

_LOWEST = 1 << 63
END = b"\xff"  # above every byte of UTF-8


class Keys:
    """The keys of one tenant."""

    def __init__(self, space: str, tenant: str) -> None:
        self.start = b"{%s:%s}" % (space.encode(), quote(tenant, safe="").encode())
        self.versions = self.start + b":versions"  # project → its version; `*` → how many commits there were
        self.meta = self.start + b":meta"
        self.log = self.start + b":log"  # sequence → project
        self.turn = self.start + b":turn"  # of a reader of all projects

    def turn_of(self, project: str) -> bytes:
        return b"%s:turn:%s" % (self.start, project.encode())

    def rows(self, table: str, project: str) -> bytes:
        """Id → row."""
        return b"%s:row:%s:%s" % (self.start, table.encode(), project.encode())

    def index(self, table: str, field: str, project: str) -> bytes:
        """Members are `ordered(value)` and the id."""
        return b"%s:index:%s:%s:%s" % (self.start, table.encode(), field.encode(), project.encode())

    def unique(self, project: str) -> bytes:
        """A unique value → the id of its row."""
        return b"%s:unique:%s" % (self.start, project.encode())

    def lanes(self, project: str) -> bytes:
        """Names of lanes with claimable tasks."""
        return b"%s:lanes:%s" % (self.start, project.encode())

    def lane(self, project: str, lane: str) -> bytes:
        """Members are `place_of` its claimable tasks."""
        name = project.encode()
        return b"%s:lane:%d:%s:%s" % (self.start, len(name), name, lane.encode())

    def due(self, project: str) -> bytes:
        """Members are due times and ids."""
        return b"%s:due:%s" % (self.start, project.encode())

    def log_of(self, project: str) -> bytes:
        """Sequence → event."""
        return b"%s:log:%s" % (self.start, project.encode())

    def log_of_task(self, project: str, task: str) -> bytes:
        """Version → sequence; `-SEQUENCE` instead of the version where the event has none."""
        name = project.encode()
        return b"%s:task:%d:%s:%s" % (self.start, len(name), name, task.encode())


def number(value: int) -> bytes:
    """Eight bytes; raises OverflowError beyond 64 bits."""
    return (value + _LOWEST).to_bytes(8, "big")


def text(value: str) -> bytes:
    """With its end marked: no text is the beginning of another one."""
    return value.encode().replace(b"\x00", b"\x00\xff") + b"\x00"


def ordered(value: Any) -> bytes:
    """A text, a number or a flag."""
    return text(value) if isinstance(value, str) else number(int(value))


def id_after_text(member: bytes) -> str:
    """The id behind an `ordered` text."""
    at = member.index(b"\x00")
    while member[at + 1 : at + 2] == END:
        at = member.index(b"\x00", at + 2)
    return member[at + 1 :].decode()


def id_after_number(member: bytes) -> str:
    return member[8:].decode()


def place_of(task: Task) -> bytes:
    """Where a claimable task stands in its lane."""
    return _place(Head(task.band, task.rank, task.sequence, task.id, task.plain))


def _place(head: Head) -> bytes:
    start = number(head.band) + number(head.rank) + number(head.sequence)
    return start + text(head.id) + (b"1" if head.plain else b"0")


def behind(head: Head | None) -> bytes:
    """The lower end of a range behind that place."""
    return b"-" if head is None else b"(" + _place(head)


def head_of(member: bytes) -> Head:
    band, rank, sequence = (int.from_bytes(member[n : n + 8], "big") - _LOWEST for n in (0, 8, 16))
    return Head(band, rank, sequence, member[24:-2].replace(b"\x00\xff", b"\x00").decode(), member[-1:] == b"1")
