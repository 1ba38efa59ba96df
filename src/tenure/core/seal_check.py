"""The check of a sealed log: its seals, every event that is still there, and what explains the missing ones.

Online and offline are the same: `SealCheck` is given the seals first, then the events of the log in order, then the
documents of the archive, then the leaves of what retention has deleted. It keeps the seals (40 bytes an event) and
marks what it has met. Events of an original log are met by their sequence. Those of a copy, and documents that were
archived before the audit began, are met by their leaf.
"""

from __future__ import annotations

import hashlib
from bisect import bisect_left
from collections.abc import Callable, Iterable
from typing import NamedTuple

from tenure.core import archive, limits
from tenure.core.access_chain import Head
from tenure.core.events import Event
from tenure.core.log_seals import (
    FORM,
    LEAF,
    START,
    document_leaf,
    head_of,
    head_text,
    is_joint,
    leaf,
    leaves_in,
    pruned_digest,
    seal_id,
    unpacked,
)
from tenure.core.records import Archived, PrunedLeaves, Seal
from tenure.core.signed_log import SignedResults

MOST = limits.AUDIT_FINDINGS
FORMS = range(1, FORM + 1)


class SealReport(NamedTuple):
    """The result of a check; `findings` are faults, the numbers are of events."""

    head: Head
    seals: int
    sealed: int  # events in the seals
    present: int  # of these: unchanged in the log or the archive
    pruned: int  # of these: deleted by retention
    unsealed: int  # younger than the last seal: not protected yet
    signatures: int  # of results, checked
    findings: list[str]


class _Sealed:
    """One seal, and which of its events were met."""

    def __init__(self, seal: Seal) -> None:
        self.seal, self.met = seal, bytearray(seal.count)
        self.by_leaf = not seal.first  # of the archive; or of the source, once the log is a copy
        self.sequences = unpacked(seal.sequences)

    def leaf_at(self, place: int) -> bytes:
        return self.seal.leaves[place * LEAF : (place + 1) * LEAF]


class SealCheck:
    def __init__(
        self,
        project: str,
        seals: Iterable[Seal],
        *,
        tenant: str,
        is_signed: Callable[[str, str, bytes], bool] | None = None,
    ) -> None:
        """`is_signed` verifies a signature by key, value and text; without it none is checked."""
        self._project = project
        self._findings: list[str] = []
        self._more = 0
        self._unsealed = 0
        self._chain: list[_Sealed] = []
        self._last: Seal | None = None
        self._joined = 0  # up to here the log was copied with its seals
        self._documents: dict[str, str] = {}  # task → the digest of its document, by the last `archive.moved`
        self._returned: set[str] = set()  # tasks that came back from the archive since
        self._prunings: dict[str, Event] = {}
        self._pruned: set[bytes] = set()
        self._order = -1  # of the last event met by its leaf in the log
        self._signed = SignedResults(tenant, project, is_signed)
        for seal in seals:
            self._take_seal(seal)
        self._by_sequence = [one for one in self._chain if not one.by_leaf]
        self._lasts = [one.seal.last for one in self._by_sequence]
        self._by_leaf: dict[bytes, tuple[int, _Sealed, int]] = {}
        for one in self._chain:
            if one.by_leaf:
                for n, sealed in enumerate(leaves_in(one.seal.leaves)):
                    self._by_leaf[sealed] = (len(self._by_leaf), one, n)

    # --- seals ---

    def _take_seal(self, seal: Seal) -> None:
        before = self._last
        number, head = (1, START) if before is None else (before.number + 1, before.head)
        name = f"seal {seal.number}"
        self._last = seal
        if seal.number > number:
            missing = f"{number} to {seal.number - 1}" if seal.number - number > 1 else str(number)
            self._find(f"seals missing before {name}: {missing}")
        elif seal.number < number:
            self._find(f"{name} follows seal {number - 1}")
        if seal.previous != head:
            self._find(f"{name} does not continue the seal before it: one of them was changed, or put there")
        if seal.id != seal_id(seal.number):
            self._find(f"{name} has the id of another: {seal.id[:40]}")
        if seal.project != self._project:
            self._find(f"{name} is of the project {seal.project}")
        if seal.form not in FORMS:
            self._find(f"{name} has form {seal.form}, which this version does not know: verify with a newer one")
            return
        is_whole = len(seal.leaves) == LEAF * seal.count and len(seal.sequences) == 8 * seal.count
        if head_of(seal) != seal.head or not is_whole:
            self._find(f"{name} was changed: its head is not that of its content")
            if not is_whole:
                return
        if is_joint(seal):
            self._joined = seal.last
            for one in self._chain:
                one.by_leaf = True
            return
        if seal.first and before is not None and seal.first <= before.last:
            self._find(f"{name} begins at event {seal.first}, before the end of the seal before it")
        self._chain.append(_Sealed(seal))

    # --- events ---

    def take(self, event: Event) -> None:
        """An event of the log, in order of sequence."""
        self._note(event)
        if event.sequence <= self._joined:
            self._meet_leaf(event, in_log=True)
        else:
            self._meet_sequence(event)

    def take_document(self, row: Archived) -> None:
        """A document of the archive, after all events of the log."""
        try:
            events, inside = archive.events_in(row), document_leaf(row)
            carried = archive.leaves_of(row)
        except ValueError as error:  # msgspec's errors are ValueErrors too
            self._find(f"archived {row.key}: {error}")
            return
        if row.out and row.id not in self._returned:
            self._find(f"archived {row.key}: it is marked as brought back, and the log has no such event")
        elif not row.out and not self._is_document(row.id, inside):
            self._find(f"archived {row.key}: its document was changed")
        if row.size != len(archive.inflated(row.document)) or row.events != len(events):
            self._find(f"archived {row.key}: its size or its number of events is not that of its document")
        if carried and carried != b"".join(map(leaf, events)):
            self._find(f"archived {row.key}: its leaves are not those of its events")
        for event in events:
            self._note(event)
            if leaf(event) in self._by_leaf:
                self._meet_leaf(event, in_log=False)
            else:
                self._meet_sequence(event, in_log=False)
        for body in archive.bodies_in(row):
            self.take_body(body.id, body.content)

    def wanted_bodies(self) -> set[str]:
        """Names of large values that a signature covers and that were not given yet."""
        return self._signed.wanted - self._signed.bodies.keys()

    def take_body(self, name: str, content: bytes) -> None:
        if hashlib.sha256(content).hexdigest() != name:
            self._find(f"large value {name[:16]}: its content was changed")
        elif name in self._signed.wanted:
            self._signed.bodies[name] = content

    def _is_document(self, task: str, digest: bytes) -> bool:
        wanted = self._documents.get(task)
        if wanted is not None:
            return wanted == digest.hex()
        known = self._by_leaf.get(digest)
        if known is None:
            return False
        _, one, n = known
        one.met[n] = True
        return True

    def take_pruned(self, row: PrunedLeaves) -> None:
        """What retention has deleted, after all documents."""
        event = self._prunings.get(row.id)
        if event is None:
            self._find(f"leaves of deleted events ({row.id}) belong to no event archive.pruned")
        elif event.details.get("leaves") != pruned_digest(row.leaves) or event.time != row.at:
            self._find(f"event {event.sequence}: the leaves that it has deleted were changed, or their time")
        else:
            self._pruned.update(leaves_in(row.leaves))

    def _note(self, event: Event) -> None:
        if event.project != self._project:
            self._find(f"event {event.sequence}: is of the project {event.project}")
        if event.kind == "archive.moved":
            documents = event.details.get("documents", {})
            self._documents |= documents
            self._returned.difference_update(documents)
        elif event.kind == "archive.returned":
            self._returned.update(id for table, id, _ in event.patch if table == "task")
        elif event.kind == "archive.pruned":
            self._prunings[event.id] = event
        self._signed.take(event)

    def _meet_sequence(self, event: Event, *, in_log: bool = True) -> None:
        n = bisect_left(self._lasts, event.sequence)
        if n == len(self._lasts):
            if in_log:
                self._unsealed += 1
            else:
                self._find(f"event {event.sequence}: archived without a seal ({_about(event)})")
            return
        one = self._by_sequence[n]
        place = bisect_left(one.sequences, event.sequence)
        if place == len(one.sequences) or one.sequences[place] != event.sequence:
            self._find(f"event {event.sequence}: put in ({_about(event)})")
            return
        if in_log and one.met[place]:
            self._find(f"event {event.sequence}: is there twice ({_about(event)})")
        found = leaf(event, one.seal.form)
        one.met[place] = True  # a changed one too: it is named once, and not as removed
        if one.leaf_at(place) != found:
            moved = next((s for k, s in enumerate(one.sequences) if one.leaf_at(k) == found), None)
            fault = "changed" if moved is None else f"moved: it was event {moved}"
            self._find(f"event {event.sequence}: {fault} ({_about(event)})")

    def _meet_leaf(self, event: Event, *, in_log: bool) -> None:
        known = self._by_leaf.get(leaf(event))
        if known is None:
            self._find(f"event {event.sequence}: changed or put in ({_about(event)})")
            return
        turn, one, n = known
        one.met[n] = True
        if in_log:
            if turn <= self._order:
                fault = "moved" if turn < self._order else "is there twice"
                self._find(f"event {event.sequence}: {fault} ({_about(event)})")
            self._order = max(self._order, turn)

    # --- the result ---

    def report(self, expected: Head | None = None) -> SealReport:
        """`expected`: a head that was kept elsewhere."""
        present = pruned = total = 0
        for one in self._chain:
            for n in range(one.seal.count):
                if not one.sequences[n]:
                    continue  # a document: its events are asked for one by one
                total += 1
                if one.met[n]:
                    present += 1
                elif one.leaf_at(n) in self._pruned:
                    pruned += 1
                else:
                    self._find(f"event {one.sequences[n]}: removed (seal {one.seal.number})")
        if expected is not None:
            self._compare(expected)
        checked = self._signed.check(self._find)
        findings = [*self._findings, *([f"… and {self._more} more"] if self._more else [])]
        head = head_text(self._last)
        return SealReport(head, len(self._chain), total, present, pruned, self._unsealed, checked, findings)

    def _compare(self, expected: Head) -> None:
        heads = {one.seal.number: one.seal.head.hex() for one in self._chain}
        last = head_text(self._last)
        heads[last.number] = last.digest
        if expected.number > last.number:
            self._find(f"the log was cut off: its seals end before seal {expected.number} of the given head")
        elif heads.get(expected.number) != expected.digest:
            self._find(f"seal {expected.number} is not the one of the given head: the log was written again")

    def _find(self, text: str) -> None:
        if len(self._findings) < MOST:
            self._findings.append(text)
        else:
            self._more += 1


def _about(event: Event) -> str:
    return f"{event.kind} {event.key}" if event.key else event.kind
