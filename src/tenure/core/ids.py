"""Names of things: time-sorted ids, task keys for people, and the base32 that receipts are written in.

Time and randomness are handed in; nothing here reads a clock or rolls dice.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from tenure.core.errors import InvalidInput

CROCKFORD = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_VALUE = {c: i for i, c in enumerate(CROCKFORD)} | {c: i for i, c in enumerate(CROCKFORD.lower())}

SLUG_LENGTH = 50
_KEY = re.compile(r"([A-Z]+)-([0-9]{3,18})(?:-([A-Za-z0-9_-]+?))?((?:::[0-9]{1,18})*)")
_TRACK = re.compile(r"[A-Z]{1,32}")
_NAME = re.compile(r"[^\s/@|\x00-\x1f]{1,128}")


RANDOM_BITS = 80


def new_id(prefix: str, now: int, random: int) -> str:
    """`task_01J…`: 48 bits of milliseconds and 80 random bits, so that ids sort by creation time."""
    number = ((now // 1000) & 0xFFFF_FFFF_FFFF) << RANDOM_BITS | random & ((1 << RANDOM_BITS) - 1)
    return f"{prefix}_{_digits(number, 26)}"


def encode_base32(data: bytes) -> str:
    """Crockford base32 without padding."""
    bits = len(data) * 8
    length = -(-bits // 5)
    return _digits(int.from_bytes(data, "big") << (length * 5 - bits), length)


def decode_base32(text: str, size: int) -> bytes | None:
    """The bytes behind `text`, or None where it is not Crockford base32 of exactly `size` bytes."""
    bits = size * 8
    length = -(-bits // 5)
    if len(text) != length or any(c not in _VALUE for c in text):
        return None
    number = 0
    for c in text:
        number = number << 5 | _VALUE[c]
    spare = length * 5 - bits
    if number & ((1 << spare) - 1):
        return None  # one token has one spelling
    return (number >> spare).to_bytes(size, "big")


_PAIRS = [a + b for a in CROCKFORD for b in CROCKFORD]


def _digits(number: int, length: int) -> str:
    """Base 32, two digits a step: ids are made for every event."""
    out = []
    for _ in range(length // 2):
        number, pair = divmod(number, 1024)
        out.append(_PAIRS[pair])
    if length % 2:
        out.append(CROCKFORD[number & 31])
    out.reverse()
    return "".join(out)


def slug_of(title: str) -> str:
    """Kebab-case of a title, at most fifty characters, never empty."""
    words = re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")
    return words[:SLUG_LENGTH].rstrip("-") or "task"


class Key(NamedTuple):
    """A task key taken apart: `B-003-implement-repositories::2`."""

    track: str
    sequence: int
    slug: str
    path: tuple[int, ...]

    @property
    def ref(self) -> str:
        """The part that identifies: `B-003::2`."""
        return ref_of(self.track, self.sequence) + "".join(f"::{n}" for n in self.path)


def ref_of(track: str, sequence: int) -> str:
    return f"{track}-{sequence:03d}"


def parse_key(text: str) -> Key | None:
    """The key that `text` spells, or None. The slug may be missing (`B-003`)."""
    match = _KEY.fullmatch(text)
    if not match:
        return None
    track, sequence, slug, path = match.groups()
    return Key(track, int(sequence), slug or "", tuple(int(n) for n in path.split("::")[1:]))


def check_track_code(code: str) -> str:
    if not _TRACK.fullmatch(code):
        raise InvalidInput(f"track {code[:40]!r}: a track code is 1 to 32 capital letters, as in B or CORE")
    return code


def check_name(name: str, what: str) -> str:
    """Agents, sessions and projects are named without spaces, `/`, `@` or `|`, in at most 128 characters."""
    if not _NAME.fullmatch(name):
        raise InvalidInput(f"{what} {name[:140]!r}: 1 to 128 characters without spaces, '/', '@' or '|'")
    return name
