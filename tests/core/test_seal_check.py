"""The check of a sealed log, on events that are given: each change of the log or of its seals is found."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenure.client.audit_file import check_file, new_export
from tenure.core.access_chain import Head
from tenure.core.errors import InvalidInput
from tenure.core.events import Event
from tenure.core.log_seals import head_of, head_text, leaf, sealed
from tenure.core.records import Seal, replace
from tenure.core.seal_check import SealCheck, SealReport
from tenure.sealing.signing import is_signed

GOLDEN = Path(__file__).with_name("sealed_1.jsonl")


def event(sequence: int, **fields: Any) -> Event:
    return Event(sequence=sequence, id=f"evt_{sequence}", time=sequence, kind="task.noted", project="p", **fields)


LOG = [event(n) for n in (2, 3, 5, 8, 9, 11, 12, 20)]


def seals_of(log: Sequence[Event], size: int = 3) -> list[Seal]:
    seals: list[Seal] = []
    for n in range(0, len(log), size):
        part = log[n : n + size]
        before = seals[-1] if seals else None
        seals.append(sealed("p", before, [leaf(e) for e in part], [e.sequence for e in part], n, of_log=True))
    return seals


SEALS = seals_of(LOG)


def report(log: Sequence[Event], seals: Sequence[Seal] = SEALS, head: Head | None = None) -> SealReport:
    check = SealCheck("p", seals, tenant="local")
    for one in log:
        check.take(one)
    return check.report(head)


def test_an_untouched_log_has_no_findings() -> None:
    found = report([*LOG, event(21)], head=head_text(SEALS[1]))
    assert (found.findings, found.sealed, found.present, found.unsealed) == ([], 8, 8, 1)
    assert found.head == head_text(SEALS[-1])


def test_each_change_is_named_by_its_sequence() -> None:
    assert report([e for e in LOG if e.sequence != 5]).findings == ["event 5: removed (seal 1)"]
    assert report([*LOG[:3], event(6), *LOG[3:]]).findings == ["event 6: put in (task.noted)"]
    assert report([*LOG[:3], event(8, message="x"), *LOG[4:]]).findings == ["event 8: changed (task.noted)"]
    swapped = [replace(LOG[1], sequence=2), replace(LOG[0], sequence=3), *LOG[2:]]
    assert report(swapped).findings == [
        "event 2: moved: it was event 3 (task.noted)",
        "event 3: moved: it was event 2 (task.noted)",
    ]


@given(st.sets(st.sampled_from([e.sequence for e in LOG])))
def test_whatever_is_left_out_is_found(left_out: set[int]) -> None:
    findings = report([e for e in LOG if e.sequence not in left_out]).findings
    assert [line.partition(":")[0] for line in findings] == [f"event {n}" for n in sorted(left_out)]


def test_a_seal_that_was_computed_again_does_not_fit_the_next_one() -> None:
    """The thief has changed an event, and its seal with it: the seal after it still has the head of the former."""
    changed = [event(2, message="forged"), *LOG[1:]]
    forged = [seals_of(changed)[0], *SEALS[1:]]
    assert head_of(forged[0]) == forged[0].head
    (finding,) = report(changed, forged).findings
    assert "seal 2 does not continue the seal before it" in finding


def test_a_log_that_was_sealed_again_is_found_with_a_head_from_elsewhere() -> None:
    changed = [event(2, message="forged"), *LOG[1:]]
    again = seals_of(changed)
    assert report(changed, again).findings == []
    (finding,) = report(changed, again, head_text(SEALS[-1])).findings
    assert "the log was written again" in finding
    (finding,) = report(LOG[:3], SEALS[:1], head_text(SEALS[-1])).findings
    assert "cut off" in finding


def test_seals_that_are_missing_swapped_or_strange_are_found() -> None:
    assert "seals missing before seal 3: 2" in report(LOG, [SEALS[0], SEALS[2]]).findings
    swapped = [SEALS[1], SEALS[0], SEALS[2]]
    assert len(report(LOG, swapped).findings) >= 2
    newer = replace(SEALS[0], form=7)
    assert any("form 7" in line for line in report(LOG, [newer]).findings)
    other = replace(SEALS[0], project="q")
    assert any("of the project q" in line for line in report(LOG, [replace(other, head=head_of(other))]).findings)
    short = replace(SEALS[0], leaves=SEALS[0].leaves[:40])
    assert any("was changed" in line for line in report(LOG, [replace(short, head=head_of(short))]).findings)
    late = sealed("p", SEALS[0], [leaf(LOG[1])], [3], 0, of_log=True)
    assert any("before the end of the seal before it" in line for line in report(LOG[:3], [SEALS[0], late]).findings)


def test_an_event_of_another_project_is_found() -> None:
    assert any("of the project q" in line for line in report([replace(LOG[0], project="q"), *LOG[1:]]).findings)


def test_so_many_findings_are_listed_and_the_others_counted() -> None:
    found = report([event(1_000 + n) for n in range(2)] + [event(n) for n in range(30, 32)], seals_of(LOG))
    assert len(found.findings) == len(LOG)
    many = [event(n) for n in range(1, 3000)]
    findings = report([], seals_of(many, 1000)).findings
    assert (len(findings), findings[-1]) == (1001, "… and 1999 more")


# --- exports ------------------------------------------------------------------------------------------------


def changed_file(folder: Path, change: Any) -> str:
    lines = [json.loads(line) for line in GOLDEN.read_text("utf-8").splitlines()]
    path = folder / "changed.jsonl"
    with new_export(path) as file:  # of the former format, which has no end
        file.write(msgspec.json.encode(line).decode() for line in change(lines))
    return str(path)


def test_a_forged_result_has_the_wrong_signature_too(tmp_path: Path) -> None:
    def forged(lines: list[Any]) -> list[Any]:
        for line in lines:
            for table, _, fields in line.get("event", {}).get("patch", ()):
                if table == "result" and fields.get("summary") == "live":
                    fields["data"] = {"ok": False}
        return lines

    findings = check_file(changed_file(tmp_path, forged), is_signed=is_signed).report.findings
    assert ["changed" in line for line in findings] == [True, False]
    assert "the signature of" in findings[1]
    assert len(check_file(changed_file(tmp_path / "..", forged)).report.findings) == 1  # no signature is checked


def test_a_signature_of_a_weak_key_is_named_as_such(tmp_path: Path) -> None:
    def weakened(lines: list[Any]) -> list[Any]:
        for line in lines:
            for table, _, fields in line.get("event", {}).get("patch", ()):
                if table == "signature":
                    fields["public_key"] = "01" + "00" * 31
        return lines

    findings = check_file(changed_file(tmp_path, weakened), is_signed=is_signed).report.findings
    assert any("proves nothing: its key is a point of small order" in line for line in findings)


def test_an_export_that_is_cut_off_or_something_else_is_refused(tmp_path: Path) -> None:
    whole = GOLDEN.read_bytes()
    for number, content in enumerate((b"", b"{}\n", whole[:-30], whole + b"[]\n", whole + b'{"strange":1}\n')):
        path = tmp_path / f"{number}.jsonl"
        path.write_bytes(content)
        with pytest.raises(InvalidInput):
            check_file(str(path))
    with pytest.raises(InvalidInput):
        check_file(str(tmp_path / "missing"))
    with pytest.raises(InvalidInput), new_export(path):
        pass
    with pytest.raises(AttributeError), new_export(tmp_path / "half") as file:
        file.write(["{}", None])  # type: ignore[list-item]
    assert not (tmp_path / "half").exists()


def test_a_line_less_of_an_export_is_found(tmp_path: Path) -> None:
    lines = GOLDEN.read_text("utf-8").splitlines(keepends=True)
    head = check_file(str(GOLDEN)).report.head
    for n, line in enumerate(lines[1:], 1):
        if line.startswith('{"body"') or lines.count(line) > 1:  # it explains what was deleted, and is there twice
            continue
        path = tmp_path / f"{n}.jsonl"
        path.write_text("".join([*lines[:n], *lines[n + 1 :]]), "utf-8")
        assert check_file(str(path), head_of=lambda _: head).report.findings, line[:60]
