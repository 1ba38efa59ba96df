"""Structs become rows and rows structs, by whatever way Python and msgspec allow."""

import types
import typing
from typing import Any

import msgspec
import pytest

from tenure.core.errors import Bug
from tenure.core.events import Event
from tenure.core.records import KINDS, Task
from tenure.stores.sql import codec
from tenure.stores.sql.codec import JSON, SCALARS, Codec, columns_of
from tenure.stores.sql.migrations import read_migrations
from tenure.stores.sql.statements import successor
from tenure.testing.samples import row_of

every_struct = pytest.mark.parametrize("struct", [*KINDS, Event], ids=lambda struct: struct.__name__)


@every_struct
def test_a_column_is_what_the_fields_type_says(struct: type[msgspec.Struct]) -> None:
    """The codec reads annotations as text; here they are resolved."""
    hints = typing.get_type_hints(struct)
    for column in columns_of(struct):
        hint = hints[column.name]
        parts = set(typing.get_args(hint)) if typing.get_origin(hint) in (types.UnionType, typing.Union) else {hint}
        assert column.nullable is (type(None) in parts or hint is Any), column
        bare = parts - {type(None)}
        named = next(iter(bare)).__name__ if len(bare) == 1 and bare <= {str, int, float, bytes, bool} else JSON
        assert (column.type, column.type in (*SCALARS, JSON)) == (named, True), column


@every_struct
def test_the_quick_way_and_the_plain_way_make_the_same(struct: type[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    row = row_of(struct)
    quick: Codec[Any] = Codec(struct)

    def refuse(*_: Any) -> None:
        raise TypeError("object layout differs")

    monkeypatch.setattr(codec, "_become", refuse)
    plain: Codec[Any] = Codec(struct)
    values = quick.encode(row)
    assert plain.decode(values) == quick.decode(values) == row
    assert type(plain.decode(values)) is type(quick.decode(values)) is struct


def test_what_is_decoded_is_as_frozen_as_any_other() -> None:
    task: Codec[Task] = Codec(Task)
    made = task.decode(task.encode(row_of(Task)))
    with pytest.raises(AttributeError):
        made.state = "other"  # type: ignore[misc]
    assert hash(type(made)) == hash(Task)
    assert msgspec.structs.replace(made, state="other") == row_of(Task, state="other")


@pytest.mark.parametrize(
    ("text", "following"),
    [("a", "b"), ("", None), ("\U0010ffff", None), ("a\U0010ffff", "b"), ("\ud7ff", "\ue000"), ("a\x00", "a\x01")],
)
def test_behind_a_beginning_comes_the_next_code_point(text: str, following: str | None) -> None:
    assert successor(text) == following


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("0001_Initial.sql", "-- breaking: no\n-- since: 0.1.0\n"),
        ("first.sql", "-- breaking: no\n-- since: 0.1.0\n"),
        ("0001_initial.sql", "-- since: 0.1.0\n"),
        ("0001_initial.sql", "-- breaking: perhaps\n-- since: 0.1.0\n"),
        ("0001_initial.sql", "-- breaking: no\n\n-- since: 0.1.0\n"),
        ("0002_later.sql", "-- breaking: no\n-- since: 0.1.0\n"),
    ],
)
def test_a_migration_without_name_number_or_header_is_a_bug(tmp_path: Any, name: str, text: str) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(Bug):
        read_migrations(tmp_path)
