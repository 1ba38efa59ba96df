"""The chain of an access log: every change of a line is found, and a torn line is not accused."""

from __future__ import annotations

from random import Random

import msgspec
import pytest

from tenure.core.access_chain import TORN, ChainReport, Head, check, digest_of, line_after, parse_head, torn_part
from tenure.core.errors import InvalidInput


def chain(lines: int) -> tuple[list[bytes], Head]:
    head, made = Head(), []
    for n in range(lines):
        line = line_after(head, {"route": "/x", "keys": [f"A-{n:03d}"]})
        made.append(line + b"\n")
        head = Head(head.number + 1, digest_of(line))
    return made, head


def checked(lines: list[bytes], head: Head | None = None) -> ChainReport:
    return check([("file", lines)], head)


def test_an_untouched_chain_is_whole_and_its_head_is_the_last_line() -> None:
    lines, head = chain(20)
    found = checked(lines, head)
    assert (found.lines, found.first, found.head, found.findings, found.torn) == (20, 1, head, [], [])
    assert parse_head(str(head)) == head


def test_a_chain_goes_on_in_the_next_file() -> None:
    lines, head = chain(20)
    assert check([("a", lines[:12]), ("b", lines[12:])], head).findings == []
    later = check([("b", lines[12:])], head)  # its beginning was deleted by its retention
    assert (later.findings, later.first) == ([], 13)
    assert check([("b", lines[12:]), ("a", lines[:12])]).findings != []


def edited(lines: list[bytes], dice: Random) -> None:
    n = dice.randrange(len(lines) - 1)
    fields = msgspec.json.decode(lines[n])
    lines[n] = msgspec.json.encode(fields | {"route": "/y"}) + b"\n"


def deleted(lines: list[bytes], dice: Random) -> None:
    n = dice.randrange(1, len(lines) - 2)
    del lines[n : n + dice.choice((1, 2))]


def swapped(lines: list[bytes], dice: Random) -> None:
    n = dice.randrange(len(lines) - 1)
    lines[n], lines[n + 1] = lines[n + 1], lines[n]


def inserted(lines: list[bytes], dice: Random) -> None:
    lines.insert(
        dice.randrange(1, len(lines)), dice.choice((b"{}\n", b"\n", lines[0], b'{"number":3,"previous":"x"}\n'))
    )


def cut(lines: list[bytes], dice: Random) -> None:
    del lines[-dice.randrange(1, len(lines)) :]


def last_edited(lines: list[bytes], dice: Random) -> None:
    lines[-1] = lines[-1].replace(b"/x", b"/z")


def computed_again(lines: list[bytes], dice: Random) -> None:
    lines[:] = chain(len(lines) - 1)[0]


@pytest.mark.parametrize("tamper", [edited, deleted, swapped, inserted])
def test_a_tampered_chain_is_found(tamper) -> None:  # type: ignore[no-untyped-def]  # one of the functions above
    for seed in range(200):
        dice = Random(seed)
        lines, _ = chain(dice.randrange(5, 30))
        tamper(lines, dice)
        assert checked(lines).findings != [], seed


@pytest.mark.parametrize("tamper", [edited, deleted, swapped, inserted, cut, last_edited, computed_again])
def test_with_a_head_from_elsewhere_cut_and_rewritten_chains_are_found_too(tamper) -> None:  # type: ignore[no-untyped-def]
    for seed in range(200):
        dice = Random(seed)
        lines, head = chain(dice.randrange(5, 30))
        tamper(lines, dice)
        assert checked(lines, head).findings != [], seed


def test_findings_name_the_place() -> None:
    lines, _ = chain(10)
    assert checked(lines[:3] + lines[4:]).findings == ["file:4: lines missing before it: 4"]
    lines[2] = lines[2].replace(b"/x", b"/y")
    assert checked(lines).findings == ["file:4: line 3 before it was changed"]


def test_a_torn_last_line_is_named_and_not_accused() -> None:
    lines, _ = chain(10)
    for size in (1, 10, len(lines[-1]) - 1):
        found = checked([*lines[:-1], lines[-1][:size]])
        assert (found.findings, len(found.torn), found.lines) == ([], 1, 9)


def test_a_torn_line_that_the_next_process_names_is_not_accused() -> None:
    lines, head = chain(5)
    part = lines[4][:30]
    _, before = chain(4)
    on = line_after(before, {"event": "started", TORN: torn_part(part)}) + b"\n"
    found = checked([*lines[:4], part + b"\n", on])
    assert (found.findings, len(found.torn)) == ([], 1)
    other = line_after(before, {"event": "started", TORN: torn_part(b"something else")}) + b"\n"
    assert checked([*lines[:4], part + b"\n", other]).findings == ["file:5: not a line of an access log"]
    assert head


@pytest.mark.parametrize("text", ["", "12", "x:" + "0" * 64, "1:" + "0" * 63, "1:" + "G" * 64])
def test_a_head_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match="NUMBER:SHA256"):
        parse_head(text)


@pytest.mark.parametrize("line", [b"[]", b"1", b'"x"', b"{", b"\xff", b'{"number":"1","previous":""}', b"[" * 5000])
def test_any_bytes_are_read_without_a_crash(line: bytes) -> None:
    lines, _ = chain(3)
    assert len(checked([*lines, line + b"\n", *chain(1)[0]]).findings) >= 1
