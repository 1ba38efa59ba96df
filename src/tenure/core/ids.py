"""Names: time-sorted ids, task keys for people, and receipts.

Time and randomness are arguments; nothing here reads a clock or generates random numbers.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING

import msgspec

from tenure.core import limits
from tenure.core.errors import InvalidInput
from tenure.core.patterns import pattern

if TYPE_CHECKING:
    from tenure.core.records import Claim, Task

CROCKFORD = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
# From Crockford's digits to those that `int` reads; other characters that `int` accepts become invalid.
_TO_PYTHON = {
    **{ord(c): "!" for c in map(chr, range(128))},
    **{ord(c): p for c, p in zip(CROCKFORD, "0123456789abcdefghijklmnopqrstuv", strict=True)},
    **{ord(c.lower()): p for c, p in zip(CROCKFORD, "0123456789abcdefghijklmnopqrstuv", strict=True)},
}

SLUG_LENGTH = 50
_KEY = pattern(r"([A-Z]+)-([0-9]{3,18})(?:-([A-Za-z0-9_-]+?))?((?:::[0-9]{1,18})*)")
TRACK = r"[A-Z]{1,32}"
NAME = r"[^\s/@|\x00-\x1f]{1,128}"
_TRACK = pattern(TRACK)
_NAME = pattern(NAME)
NEW_NAME = r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}"
_NEW_NAME = pattern(NEW_NAME)
TENANT = r"[a-z0-9](?:[a-z0-9-]*[a-z0-9])?"
_TENANT = pattern(TENANT)


class IdMaker:
    """Ids of one transaction, `task_01J…`: they sort by time, and within the transaction by creation.

    48 bits of milliseconds, then 80 given random bits of which the last 30 count up; the counter starts in its lower
    half, so that it never overflows.
    """

    RANDOM_BYTES = 10

    def __init__(self, now: int, random: bytes) -> None:
        number = int.from_bytes(random, "big")
        time_and_chance = ((now // 1000) & 0xFFFF_FFFF_FFFF) << 50 | number >> 30
        self._head = _digits(time_and_chance, 20)
        self._count = number & 0x1FFF_FFFF

    def next(self, prefix: str) -> str:
        self._count += 1
        return f"{prefix}_{self._head}{_six(self._count)}"

    def nth(self, prefix: str, number: int) -> str:
        """The id that `next` gives as its first, second, … one, if it gives no other."""
        return f"{prefix}_{self._head}{_six(self._count + number)}"

    def tail(self, number: int) -> str:
        """What `nth` has behind its prefix and its time: the store adds these where it knows the time."""
        return self._head[_OF_TIME:] + _six(self._count + number)


_OF_TIME = 10  # digits


def time_of(id: str) -> int | None:
    """When the transaction that made the id began, in milliseconds; None if it is not such an id."""
    token = decode_base32("0" * 6 + id.rpartition("_")[2], 20)
    return None if token is None else int.from_bytes(token, "big") >> 80


def encode_base32(data: bytes) -> str:
    """Crockford base32 without padding."""
    bits = len(data) * 8
    length = -(-bits // 5)
    return _digits(int.from_bytes(data, "big") << (length * 5 - bits), length)


def decode_base32(text: str, size: int) -> bytes | None:
    """The bytes behind `text`, or None where it is not Crockford base32 of exactly `size` bytes."""
    bits = size * 8
    length = -(-bits // 5)
    if len(text) != length:
        return None
    try:
        number = int(text.translate(_TO_PYTHON) or "0", 32)
    except ValueError:
        return None
    spare = length * 5 - bits
    if number & ((1 << spare) - 1):
        return None  # a token has one spelling
    return (number >> spare).to_bytes(size, "big")


def _six(n: int) -> str:
    return f"{_PAIRS[n >> 20]}{_PAIRS[n >> 10 & 1023]}{_PAIRS[n & 1023]}"


_PAIRS = [a + b for a in CROCKFORD for b in CROCKFORD]


def _digits(number: int, length: int) -> str:
    """Base 32, two digits per step."""
    digits = "".join([_PAIRS[number >> shift & 1023] for shift in range(length // 2 * 10 - 10, -1, -10)])
    return CROCKFORD[number >> length // 2 * 10 & 31] + digits if length % 2 else digits


# Letters that do not come apart into a base letter and a mark.
_LETTERS = str.maketrans({
    "ß": "ss", "æ": "ae", "œ": "oe", "ø": "o", "ł": "l", "đ": "d", "ð": "d", "þ": "th", "ı": "i",
    "Æ": "ae", "Œ": "oe", "Ø": "o", "Ł": "l", "Đ": "d", "Ð": "d", "Þ": "th",
})  # fmt: skip


def _in_ascii(title: str) -> str:
    """The title with its letters' base letters: `Prüfe Größe` is `Prufe Grosse`. Other scripts have none."""
    from unicodedata import normalize

    return normalize("NFKD", title.translate(_LETTERS)).encode("ascii", "ignore").decode()


def slug_of(title: str) -> str:
    """Kebab-case of a title, at most fifty characters, never empty."""
    words = re.sub(r"[^a-z0-9]+", "-", (title if title.isascii() else _in_ascii(title)).lower()).strip("-")
    return words[:SLUG_LENGTH].rstrip("-") or "task"


class Key(msgspec.Struct, frozen=True):
    """A parsed task key: `B-003-implement-repositories::2`."""

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


def lone_dag(task_id: str) -> str:
    """The dag id of a single task, which needs no row."""
    return "dag_" + task_id.removeprefix("task_")


def lone_task(dag_id: str) -> str:
    """The task, if the dag is that of a single task."""
    return "task_" + dag_id.removeprefix("dag_")


def has_dag_row(task: Task) -> bool:
    return task.children > 0 or task.dag != lone_dag(task.id)


def check_track_code(code: str) -> str:
    if not _TRACK.fullmatch(code):
        raise InvalidInput(f"track {code[:40]!r} must be 1 to 32 capital letters, as in B or CORE")
    return code


def check_name(name: str, what: str) -> str:
    """Stored names of agents, sessions and projects have no spaces, `/`, `@` or `|`, and at most 128 characters.

    New ones are checked by `check_new_name`: earlier versions stored more, and those can be used.
    """
    if not _NAME.fullmatch(name):
        raise InvalidInput(f"{what} {name[:140]!r} must be 1 to 128 characters without spaces, '/', '@' or '|'")
    return name


def is_new_name(name: str) -> bool:
    return _NEW_NAME.fullmatch(name) is not None


def check_new_name(name: str, what: str) -> str:
    """A new agent, session, project, pool or program: nothing that a shell, a path or a reader could misread."""
    if not is_new_name(name):
        raise InvalidInput(
            f"{what} {name[:140]!r} must be 1 to 128 ASCII letters, digits, '.', '_' and '-', a letter or digit first",
            f"{fitted_name(name, what)} would do",
        )
    return name


def fitted_name(text: str, default: str) -> str:
    """The text as a new name may be: base letters for letters with marks, a hyphen for everything else."""
    if is_new_name(text):
        return text
    words = re.sub(r"[^A-Za-z0-9._]+", "-", text if text.isascii() else _in_ascii(text))
    return words.lstrip("-._")[:128].rstrip("-") or default


def fitted_session(text: str) -> str:
    """A session's name that another program has given. One that does not fit gets a digest: two must not become one."""
    if is_new_name(text):
        return text
    import hashlib  # rarely needed, and a fifth of the startup time

    digest = hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()[:16]
    return f"{fitted_name(text, 'session')[:100]}-{digest}"


def is_tenant(name: str) -> bool:
    """Whether a tenant could have this name."""
    return len(name) <= limits.TENANT_NAME and _TENANT.fullmatch(name) is not None


def check_tenant(name: str) -> str:
    """A tenant's name is a part of keys and paths: small letters, digits and inner hyphens."""
    if not is_tenant(name):
        raise InvalidInput(
            f"tenant {name[:80]!r} must be 1 to {limits.TENANT_NAME} of a-z, 0-9 and inner hyphens, as in acme-2"
        )
    return name


# --- ranges of sequences: compact, ordered, from and to --------------------------------------------

Ranges = tuple[tuple[int, int], ...]


def with_number(ranges: Ranges, number: int) -> Ranges:
    """The ranges with one number more, neighbours joined."""
    low = high = number
    others = []
    for first, last in ranges:
        if first - 1 <= high and low <= last + 1:
            low, high = min(low, first), max(high, last)
        else:
            others.append((first, last))
    return tuple(sorted([*others, (low, high)]))


def has_number(ranges: Ranges, number: int) -> bool:
    """Whether it is in one of them."""
    return any(first <= number <= last for first, last in ranges)


# --- receipts -----------------------------------------------------------------------------------------------

EPOCH_BYTES = 4
FREEZES = "."  # in an epoch, before the number of the move that freezes its tenant: see `core/tenant_moves.py`
NONCE_BYTES = 16
_RECEIPT = pattern(r"([A-Za-z0-9_:-]{1,400}?)@(0|[1-9][0-9]{0,17}):([0-9A-Za-z]+)")


class Receipt(msgspec.Struct, frozen=True):
    """What a claim returns to its holder, and the only proof of the claim.

    Text `B-003@7:TOKEN`; TOKEN is the store epoch and the claim's nonce in hex, in receipts of earlier versions in
    Crockford base32. Standalone reservations have receipts of the same shape, named by the reservation's id.
    """

    name: str  # short key of the task, or id of the reservation
    generation: int
    epoch: str
    nonce: bytes

    def __str__(self) -> str:
        return f"{self.name}@{self.generation}:{self.epoch}{self.nonce.hex()}"


@lru_cache(maxsize=1024)  # a submit looks at its receipt four times
def parse_receipt(text: str) -> Receipt:
    match = _RECEIPT.fullmatch(text)
    token = _token(match.group(3)) if match else None
    if match is None or token is None:
        raise InvalidInput(
            "malformed receipt; expected B-003@7:TOKEN", "pass the text that `claim` returned, unchanged"
        )
    return Receipt(match.group(1), int(match.group(2)), token[:EPOCH_BYTES].hex(), token[EPOCH_BYTES:])


def _token(text: str) -> bytes | None:
    size = EPOCH_BYTES + NONCE_BYTES
    if len(text) != 2 * size:
        return decode_base32(text, size)
    try:
        return bytes.fromhex(text)
    except ValueError:
        return None


def receipt_of(task: Task, claim: Claim) -> str:
    return str(Receipt(task.ref, claim.generation, claim.epoch, claim.nonce))


def is_genuine(receipt: Receipt, claim: Claim | None) -> bool:
    """Whether the receipt was issued for this claim, whatever has happened to the claim since."""
    import hmac  # imports hashlib, a fifth of the startup time: only for presented receipts

    return claim is not None and claim.epoch == receipt.epoch and hmac.compare_digest(claim.nonce, receipt.nonce)
