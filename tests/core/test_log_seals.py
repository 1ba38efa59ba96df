"""Leaves and seals are computed the same for ever: a seal of an older version verifies in a later one."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenure.client.audit_file import check_file
from tenure.core.access_chain import Head, parse_head
from tenure.core.decoders import converted
from tenure.core.errors import InvalidInput
from tenure.core.events import Event
from tenure.core.log_seals import FORM, leaf, leaves_in, packed, unpacked
from tenure.core.records import replace
from tenure.sealing.signing import is_signed
from tenure.testing.samples import event_of

HERE = Path(__file__).parent
LEAVES = json.loads((HERE / "leaves.json").read_text("utf-8"))
EXPORTS = sorted(HERE.glob("sealed_*.jsonl"))


@pytest.mark.parametrize("name", LEAVES)
def test_the_leaf_of_an_event_is_what_it_was_when_its_form_was_new(name: str) -> None:
    one = LEAVES[name]
    event = converted(one["event"], Event)
    assert leaf(event, one["form"]).hex() == one["leaf"]
    assert leaf(replace(event, sequence=99), one["form"]).hex() == one["leaf"]


def test_every_form_has_golden_files() -> None:
    assert {one["form"] for one in LEAVES.values()} == set(range(1, FORM + 1))
    assert [path.name for path in EXPORTS] == [f"sealed_{form}.jsonl" for form in range(1, FORM + 1)]
    blocks = json.loads((HERE.parent / "stores" / "blocks.json").read_text("utf-8"))
    named = {name.removeprefix("block ") for name in LEAVES if name.startswith("block ")}
    assert named == set(blocks)  # each form of PostgreSQL's blocks has its leaves too
    assert all(LEAVES[f"block {name}"]["event"] == blocks[name] for name in named)


@pytest.mark.parametrize("path", EXPORTS, ids=lambda path: path.stem)
def test_a_log_that_an_older_version_sealed_verifies(path: Path) -> None:
    header, _, report = check_file(str(path), is_signed=is_signed)
    assert report.findings == []
    assert str(report.head) == header.head
    assert report.sealed == report.present + report.pruned
    assert report.pruned
    assert report.signatures


def test_equal_events_have_equal_leaves_however_they_were_read() -> None:
    event = replace(event_of(), level="info", message="")
    same = converted(json.loads(json.dumps({"id": event.id, "time": event.time, "kind": event.kind})), Event)
    same = replace(event, level="".join(["in", "fo"]), message="".join([]))
    assert same.level is not event.level or same == event
    assert leaf(same) == leaf(event)


def documented(event: Event) -> bytes:
    """The leaf as `docs/how-to/prove-what-happened.md` words it, with the standard library alone."""
    said = {f.name: getattr(event, f.name) for f in msgspec.structs.fields(Event) if f.name != "sequence"}
    plain = {"level": "info", "project": "", "message": "", "details": {}, "patch": ()}
    said = {name: value for name, value in said.items() if value != plain.get(name)}
    text = json.dumps(said, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(b"tenure.event.v1\0" + text.encode()).digest()


WORDS = st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=4)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**60), 2**60) | WORDS,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(WORDS, inner, max_size=2),
    max_leaves=5,
)

FIELDS = st.dictionaries(WORDS, VALUES, max_size=3)


@given(
    event=st.builds(
        Event, id=WORDS, time=st.integers(0, 2**60), kind=WORDS, sequence=st.integers(0, 2**60),
        level=st.sampled_from(["info", "error"]), project=WORDS, message=WORDS, agent=st.none() | WORDS,
        task=st.none() | WORDS, version=st.none() | st.integers(0, 9), details=FIELDS,
        patch=st.lists(st.tuples(WORDS, WORDS, st.none() | FIELDS), max_size=2).map(tuple),
    )
)  # fmt: skip
def test_the_leaf_is_the_documented_form(event: Event) -> None:
    again = converted(json.loads(json.dumps(msgspec.to_builtins(event))), Event)  # other objects, equal values
    assert leaf(event) == leaf(again) == documented(event)


def test_sequences_are_packed_and_read_back() -> None:
    numbers = [0, 1, 2**40, 2**63 - 1]
    assert list(unpacked(packed(numbers))) == numbers
    assert packed([1]) == b"\0" * 7 + b"\1"
    assert leaves_in(b"a" * 64) == [b"a" * 32] * 2
    with pytest.raises(ValueError, match="bytes"):
        unpacked(b"123")


def test_a_head_is_spelt_with_its_number() -> None:
    assert parse_head(f"7:{'a' * 64}") == Head(7, "a" * 64)
    with pytest.raises(InvalidInput):
        parse_head("7:xyz")
