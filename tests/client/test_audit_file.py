"""The strict check of an exported log: every change of a file is found, and no file as it was written is accused."""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenure.client.audit_file import FileReport, check_file, new_export
from tenure.core import queries as q
from tenure.core.access_chain import Head, parse_head
from tenure.core.audit_lines import end_line
from tenure.core.errors import InvalidInput
from tenure.engine.reads.query_table import read_query
from tenure.sealing.signing import is_signed
from tenure.stores.memory import Memory
from tenure.testing.clock import FakeClock
from tenure.testing.engine.signing import sent, submit_of
from tenure.testing.factories import PROJECT, Scene
from tests.reliability import tamper

FORMER = Path(__file__).parents[1] / "core" / "sealed_1.jsonl"
LARGE = {"text": "x" * 70_000}
Forgery = Callable[[list[bytes]], list[bytes]]


def exported(scene: Scene, path: Path) -> Path:
    """As a client writes it."""
    after = None
    with new_export(path) as file:
        while True:
            page: Any = read_query(scene.engine, q.AuditPage(project=PROJECT, after=after))
            file.write(page["lines"])
            after = page["next"]
            if after is None:
                file.end()
                return path


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """A log with documents, deletions, signatures, a large value."""
    clock = FakeClock()
    scene = tamper.filled(Memory(clock=clock), clock, 3, 12)
    sent(scene, submit_of(scene.take(scene.add("large"), "zed"), data=LARGE))
    tamper.sealer.seal_all(scene.engine, PROJECT)
    return exported(scene, tmp_path_factory.mktemp("export") / "log.jsonl").read_bytes()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("changed")


def checked(folder: Path, content: bytes, head: Head | None = None) -> FileReport:
    path = folder / f"{hashlib.sha256(content).hexdigest()[:16]}.jsonl"
    path.write_bytes(content)
    return check_file(str(path), head_of=lambda _: head, is_signed=is_signed)


def findings(folder: Path, content: bytes, head: Head | None = None) -> list[str]:
    """A file that cannot be read at all is refused, which names its line too."""
    try:
        return checked(folder, content, head).report.findings
    except InvalidInput as error:
        return [error.message]


def lines_of(content: bytes) -> list[bytes]:
    return content.splitlines(keepends=True)


def with_new_digest(lines: list[bytes]) -> bytes:
    """Whoever forges a file computes its digest again."""
    body = b"".join(lines[:-1])
    return body + end_line(hashlib.sha256(body).hexdigest()).encode() + b"\n"


def at(lines: list[bytes], part: str, n: int = 0) -> int:
    return [k for k, line in enumerate(lines) if line.startswith(f'{{"{part}"'.encode())][n]


def test_a_file_that_the_program_wrote_has_no_findings(whole: bytes, tmp_path: Path) -> None:
    header, digest, report = checked(tmp_path, whole)
    assert report.findings == []
    assert (header.tenant, header.project, report.head) == ("local", PROJECT, parse_head(header.head))
    assert digest == hashlib.sha256(b"".join(lines_of(whole)[:-1])).hexdigest()
    parts = {next(iter(json.loads(line))) for line in lines_of(whole)[1:]}
    assert parts == {"seal", "event", "body", "document", "pruned", "end"}
    assert report.signatures > 1


def replaced(part: str, old: bytes, new: bytes, n: int = 0) -> Forgery:
    def forge(lines: list[bytes]) -> list[bytes]:
        k = at(lines, part, n)
        assert old in lines[k], lines[k]
        return [*lines[:k], lines[k].replace(old, new, 1), *lines[k + 1 :]]

    return forge


def doubled(part: str, n: int = 0) -> Forgery:
    return lambda lines: [*lines[: at(lines, part, n) + 1], *lines[at(lines, part, n) :]]


def swapped(part: str, n: int = 0, other: int = 1) -> Forgery:
    def forge(lines: list[bytes]) -> list[bytes]:
        k, j = at(lines, part, n), at(lines, part, other)
        lines = list(lines)
        lines[k], lines[j] = lines[j], lines[k]
        return lines

    return forge


def removed(part: str, n: int = 0) -> Forgery:
    return lambda lines: [*lines[: at(lines, part, n)], *lines[at(lines, part, n) + 1 :]]


def moved_to_the_end(part: str, n: int = 0) -> Forgery:
    return lambda lines: [*removed(part, n)(lines)[:-1], lines[at(lines, part, n)], lines[-1]]


FORGED_EVENT = b'{"event":{"id":"evt_0","kind":"task.noted","project":"p","sequence":1,"time":1},"event":{'
# By somebody who computes the digest of the file again: only the seals and the form of the lines are left.
FORGERIES: dict[str, Forgery] = {
    "a field put into an event": replaced("event", b'{"event":{', b'{"event":{"approved_by":"ceo","exit_code":0,'),
    "an unknown field behind": replaced("event", b"}}\n", b',"zz":1}}\n'),
    "a field put beside an event": replaced("event", b'{"event":{', b'{"approved_by":"ceo","event":{'),
    "a field twice, a forged one first": replaced("event", b'{"event":{', b'{"event":{"user":"mallory",'),
    "an event twice in its line": replaced("event", b'{"event":{', FORGED_EVENT),
    "a default stated": replaced("event", b"}}\n", b',"trace_id":null}}\n'),
    "spaces": replaced("event", b":", b": "),
    "an escape instead of a letter": replaced("event", b'"kind"', b'"\\u006bind"'),
    "another line break": replaced("event", b"\n", b"\r\n"),
    "an event twice": doubled("event", 1),
    "two events swapped": swapped("event", 1, 2),
    "an event behind the documents": moved_to_the_end("event", 1),
    "an event removed": removed("event", 1),
    "a seal twice": doubled("seal"),
    "two seals swapped": swapped("seal"),
    "a field put into a seal": replaced("seal", b'{"seal":{', b'{"seal":{"by":"ceo",'),
    "the id of a seal": replaced("seal", b'"id":"000000000001"', b'"id":"000000000009"'),
    "a document twice": doubled("document"),
    "two documents swapped": swapped("document"),
    "a column of a document": replaced("document", b'"priority":50', b'"priority":51'),
    "the size of a document": replaced("document", b'"size":', b'"size":1'),
    "a document marked as brought back": replaced("document", b'"priority"', b'"out":true,"priority"'),
    "leaves of a deletion twice": doubled("pruned"),
    "the time of a deletion": replaced("pruned", b'"at":', b'"at":1'),
    "the event of a deletion removed": lambda lines: [
        line for n, line in enumerate(lines) if n != at(lines, "pruned") - 1
    ],
    "the event of a deletion, the second time": lambda lines: [
        line.replace(b'"tasks":', b'"tasks":9', 1) if n == at(lines, "pruned") - 1 else line
        for n, line in enumerate(lines)
    ],
    "a large value twice": doubled("body"),
    "a large value in another place": moved_to_the_end("body"),
    "the name of a large value": replaced("body", b'"id":"', b'"id":"0'),
    "the head in the header": lambda lines: [lines[0].replace(b'"head":"', b'"head":"1', 1), *lines[1:]],
    "a field put into the header": lambda lines: [lines[0].replace(b"{", b'{"approved_by":"ceo",', 1), *lines[1:]],
    "the tenant twice": lambda lines: [lines[0].replace(b"{", b'{"tenant":"x",', 1), *lines[1:]],
    "the tenant, which the signatures cover": lambda lines: [lines[0].replace(b'"local"', b'"other"'), *lines[1:]],
    "the digest given twice": lambda lines: [*lines[:-1], lines[-1], lines[-1]],
}


@pytest.mark.parametrize("name", FORGERIES)
def test_a_forgery_is_found_although_its_digest_was_computed_again(name: str, whole: bytes, tmp_path: Path) -> None:
    lines = lines_of(whole)
    forged = FORGERIES[name](lines)
    assert forged != lines
    again = with_new_digest(forged) if forged[-1] == lines[-1] and forged[-2] != lines[-1] else b"".join(forged)
    assert findings(tmp_path, again), name


@pytest.mark.parametrize("old", [b'"exported_at":', b'"tenant":"'])
def test_the_header_is_proved_by_the_digest_alone(old: bytes, whole: bytes, tmp_path: Path) -> None:
    lines = lines_of(whole)
    changed = [lines[0].replace(old, old + b"1", 1), *lines[1:]]
    (finding, *_) = findings(tmp_path, b"".join(changed))
    assert finding == "the file was changed after it was written: its digest is not that of its lines"
    found = checked(tmp_path, with_new_digest(changed))
    assert found.digest != checked(tmp_path, whole).digest  # it differs from the one that was kept
    if old == b'"exported_at":':
        assert found.report.findings == []


def test_a_file_without_its_end_was_cut_off(whole: bytes, tmp_path: Path) -> None:
    lines = lines_of(whole)
    assert findings(tmp_path, b"".join(lines[:-1])) == ["the file has no end: lines were cut off"]
    assert findings(tmp_path, whole + lines[1])
    assert findings(tmp_path, whole[:-1])


def mutated(content: bytes, dice: random.Random) -> bytes:
    """One change of a file: of a byte, of a bit, or of whole lines."""
    lines = lines_of(content)
    k, j = dice.randrange(len(lines)), dice.randrange(len(lines))
    place = dice.randrange(len(content))
    turn = dice.randrange(8)
    if turn == 0:
        lines[k], lines[j] = lines[j], lines[k]
    elif turn == 1:
        lines.insert(j, lines[k])
    elif turn == 2:
        del lines[k]
    elif turn == 3:
        lines.insert(j, lines.pop(k))
    elif turn == 4:
        return content[:place] + bytes([content[place] ^ 1 << dice.randrange(8)]) + content[place + 1 :]
    elif turn == 5:
        return content[:place] + content[place + 1 :]
    elif turn == 6:
        return content[:place] + bytes([dice.randrange(256)]) + content[place:]
    else:
        value = json.loads(lines[k])
        value = value | {"extra": 1} if dice.randrange(2) else {name: value[name] for name in reversed(value)}
        lines[k] = msgspec.json.encode(value) + b"\n"
    return b"".join(lines)


@given(seed=st.integers(0, 2**32))
def test_every_random_change_of_a_file_is_found(seed: int, whole: bytes, folder: Path) -> None:
    changed = mutated(whole, random.Random(seed))
    if changed != whole:
        assert findings(folder, changed), seed


def test_150_random_changes_are_found_although_the_digest_was_computed_again(whole: bytes, tmp_path: Path) -> None:
    """All but changes of the header's time: nothing but the digest of the file proves it."""
    missed, tried = [], 0
    for seed in range(200):
        changed = lines_of(mutated(whole, random.Random(seed)))
        if changed == lines_of(whole) or not changed[-1].startswith(b'{"end"'):
            continue
        tried += 1
        if not findings(tmp_path, with_new_digest(changed)):
            missed.append((seed, [n for n, (a, b) in enumerate(zip(changed, lines_of(whole), strict=False)) if a != b]))
    assert tried >= 150
    assert all(places == [0] for _, places in missed), missed


# --- files of the former format -----------------------------------------------------------------------------


def test_a_file_of_the_former_format_verifies_and_states_that_nothing_covers_its_header(tmp_path: Path) -> None:
    found = checked(tmp_path, FORMER.read_bytes())
    assert (found.report.findings, found.digest, found.header.format) == ([], None, "tenure.audit.v1")


FORMER_FORGERIES = {
    name: FORGERIES[name]
    for name in (
        "a field put into an event", "an unknown field behind", "a field put beside an event", "spaces",
        "a field twice, a forged one first", "an event twice in its line", "an event twice", "two events swapped",
        "an event removed", "a seal twice", "two seals swapped", "a document twice", "leaves of a deletion twice",
        "the head in the header", "a field put into the header", "the tenant twice",
    )
}  # fmt: skip


@pytest.mark.parametrize("name", FORMER_FORGERIES)
def test_a_forgery_of_a_former_file_is_found(name: str, tmp_path: Path) -> None:
    lines = lines_of(FORMER.read_bytes())
    assert findings(tmp_path, b"".join(FORMER_FORGERIES[name](lines)))


def test_a_new_file_that_poses_as_a_former_one_is_found(whole: bytes, tmp_path: Path) -> None:
    """Without its end nothing would cover its header."""
    lines = lines_of(whole)[:-1]
    posing = [lines[0].replace(b"audit.v2", b"audit.v1"), *lines[1:]]
    assert findings(tmp_path, b"".join(posing))
