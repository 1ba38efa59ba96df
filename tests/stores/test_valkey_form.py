"""What the bytes of a store in Valkey mean: a change of it is a new form."""

from __future__ import annotations

import msgspec
import pytest

from tenure.core.decoders import defaults_of
from tenure.core.records import KINDS, Agent, Brief, Row, Task
from tenure.stores.sql.codec import columns_of
from tenure.stores.valkey import rows
from tenure.stores.valkey.keys import Keys, head_of, id_after_text, number, ordered, place_of, text
from tenure.testing.samples import row_of
from tests.docs.valkey_defaults import defaults, pinned


def test_fields_that_are_left_out_mean_the_same_for_ever() -> None:
    """A row is stored without its defaults. A default that changed, or a field that was renamed, needs a new FORM."""
    assert pinned() - defaults() == set()


def test_a_row_without_a_new_field_is_read_with_its_default() -> None:
    data = msgspec.msgpack.encode({"project": "p", "id": "a", "registered_at": 1, "last_seen": 2, "gone": "away"})
    assert rows.decoded(Agent, data, "") == Agent(project="p", id="a", registered_at=1, last_seen=2)


@pytest.mark.parametrize("kind", list(KINDS), ids=lambda kind: kind.__name__)
def test_defaults_take_no_room(kind: type[Row]) -> None:
    plain = row_of(kind, project="p", id="a")
    kept = msgspec.msgpack.decode(rows.encoded(plain))
    assert kept.keys() == {column.name for column in columns_of(kind)} - defaults_of(kind).keys()


def test_a_default_of_another_type_is_kept() -> None:
    brief = Brief(project="p", id="a", title="t", metadata={"x": 0})
    assert rows.decoded(Brief, rows.encoded(brief), "") == brief


def test_texts_and_numbers_sort_as_bytes() -> None:
    texts = ["", "\x00", "\x00\x00", "\x00a", "a", "a\x00", "a\x00b", "ab", "b", "é", "🙂", "\U0010ffff"]
    assert sorted(texts, key=text) == sorted(texts)
    assert [id_after_text(text(one) + b"id\x00x") for one in texts] == ["id\x00x"] * len(texts)
    numbers = [-(2**63), -7, -1, 0, 1, 2**40, 2**63 - 1]
    assert sorted(numbers, key=number) == numbers
    assert ordered(True) == number(1)
    with pytest.raises(OverflowError):
        number(2**63)


def test_a_place_in_a_lane_comes_back() -> None:
    task = row_of(Task, project="p", id="t\x00x", band=-1, rank=5, sequence=-(2**63), plain=True)
    head = head_of(place_of(task))
    assert head == (task.band, task.rank, task.sequence, task.id, True)


def test_names_of_keys_cannot_be_confused() -> None:
    keys = Keys("s", "t")
    assert keys.lane("a", "b:c") != keys.lane("a:b", "c")
    assert keys.log_of_task("a", "1:b") != keys.log_of_task("a:1", "b")
    assert keys.log_of("") != keys.log
