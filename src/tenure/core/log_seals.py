"""Seals: what shows that nobody has changed the log since.

Each event has a *leaf*, a SHA-256 over its canonical JSON. A seal has the leaves of a range of the log in order, the
head of the seal before, and its own head, a SHA-256 over all of that. So a head names everything that was sealed up to
it.

A leaf has the form number of its seal, and a form is computed the same for ever: `tests/core/leaves.json` has what each
of them gives. Form 1 is `tenure.event.v1`, a zero byte, and the JSON of the event: the fields that differ from their
defaults, by name, without spaces, in UTF-8; without the sequence, which differs in a copy. A field that a later version
adds is missing in older events, so it needs no new form; one that is renamed or removed does.
"""

from __future__ import annotations

import hashlib
from array import array
from collections.abc import Iterable, Sequence
from operator import itemgetter
from sys import byteorder
from typing import Any

import msgspec
from msgspec.structs import asdict, astuple

from tenure.core.access_chain import Head
from tenure.core.archive import inflated
from tenure.core.decoders import defaults_of
from tenure.core.events import Event
from tenure.core.records import Archived, Seal, replace

FORM = 1
LEAF = 32  # bytes
START = bytes(LEAF)  # the head before the first seal
_EVENT, _SEAL, _DOCUMENT = b"tenure.event.v1\0", b"tenure.seal.v1\0", b"tenure.document.v1\0"
_encode = msgspec.json.Encoder(order="sorted").encode
_NAMES = sorted(name for name in Event.__struct_fields__ if name != "sequence")
_picked = itemgetter(*map(Event.__struct_fields__.index, _NAMES))
# Every default but None, by its place: `omit_defaults` compares identities, so equal events would have other leaves.
_DEFAULTS = [(n, defaults_of(Event)[name]) for n, name in enumerate(_NAMES) if defaults_of(Event).get(name) is not None]
_Leaf: Any = msgspec.defstruct("_Leaf", [(name, Any, None) for name in _NAMES], omit_defaults=True, gc=False)


def leaf(event: Event, form: int = FORM) -> bytes:
    """What stands for an event in a seal of this form. Every event passes here: 5 µs, of which 4 are the JSON."""
    assert form == FORM, form
    values = list(_picked(astuple(event)))
    for n, default in _DEFAULTS:
        if values[n] == default:
            values[n] = None
    return hashlib.sha256(_EVENT + _encode(_Leaf(*values))).digest()


def document_leaf(row: Archived) -> bytes:
    """What stands for an archived document with its columns. Raises ValueError where it cannot be read.

    As events do, it leaves defaults out; `size` and the compressed bytes follow from the document.
    """
    defaults = defaults_of(Archived)
    fields = {
        name: value
        for name, value in asdict(row).items()
        if name not in ("size", "document") and (name not in defaults or defaults[name] != value)
    }
    digest = hashlib.sha256(_DOCUMENT + _encode(fields) + b"\0")
    digest.update(inflated(row.document))
    return digest.digest()


def sealed(
    project: str, before: Seal | None, leaves: Sequence[bytes], sequences: Sequence[int], now: int, *, of_log: bool
) -> Seal:
    """The next seal, over events in the order of their sequences; not `of_log`: over documents of the archive."""
    first, last = (sequences[0], sequences[-1]) if of_log else (0, 0)
    return _headed(project, before, b"".join(leaves), packed(sequences), first, last, now)


def joint(project: str, before: Seal, last: int, now: int) -> Seal:
    """The first seal of a copy. In its log `last` is the sequence of the event that was last sealed in the source."""
    return _headed(project, before, b"", b"", 0, last, now)


def _headed(
    project: str, before: Seal | None, leaves: bytes, sequences: bytes, first: int, last: int, now: int
) -> Seal:
    number = 1 if before is None else before.number + 1
    seal = Seal(
        project=project, id=seal_id(number), number=number, first=first, last=last, count=len(leaves) // LEAF,
        leaves=leaves, sequences=sequences, previous=START if before is None else before.head, head=b"", sealed_at=now,
        form=FORM,
    )  # fmt: skip
    return replace(seal, head=head_of(seal))


def seal_id(number: int) -> str:
    return f"{number:012}"


def head_of(seal: Seal) -> bytes:
    """The head that the seal must have."""
    digests = [seal.previous.hex(), *(hashlib.sha256(part).hexdigest() for part in (seal.leaves, seal.sequences))]
    covered = [seal.project, seal.number, seal.form, seal.first, seal.last, seal.count, seal.sealed_at, *digests]
    return hashlib.sha256(_SEAL + msgspec.json.encode(covered)).digest()


def is_joint(seal: Seal) -> bool:
    return seal.count == 0


def head_text(seal: Seal | None) -> Head:
    """The head for people, as `NUMBER:SHA256`; number 0 where nothing is sealed."""
    return Head(0, START.hex()) if seal is None else Head(seal.number, seal.head.hex())


def leaves_in(data: bytes) -> list[bytes]:
    return [data[n : n + LEAF] for n in range(0, len(data), LEAF)]


def packed(sequences: Iterable[int]) -> bytes:
    return _turned(array("Q", sequences)).tobytes()


def unpacked(data: bytes) -> Sequence[int]:
    """Raises ValueError where the bytes are not what `packed` made."""
    numbers = array("Q")
    numbers.frombytes(data)
    return _turned(numbers)


def _turned(numbers: array[int]) -> array[int]:
    if byteorder == "little":
        numbers.byteswap()
    return numbers


def pruned_digest(leaves: bytes) -> str:
    """The digest of the leaves that the event `archive.pruned` leaves."""
    return hashlib.sha256(leaves).hexdigest()
