"""Many new rows by one statement: values that differ among them come as arrays, equal ones once.

A statement for each row costs more than the row itself: a task has some eighty columns, each a parameter to encode, to
send and to read. Of many tasks that are made together, nearly all columns are equal.

The text is the same whatever differs, so that it is prepared once: each column has an array, which is empty where all
rows have the same value, and that value beside it.
"""
# ruff: noqa: S608 - texts consist of names that were checked against the structs, never of values

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from tenure.stores.sql.codec import Codec
from tenure.stores.sql.statements import Statement

_TYPES = {"int": "bigint", "float": "double precision", "bool": "boolean", "bytes": "bytea"}


def given(codec: Codec[Any], rows: Sequence[msgspec.Struct], leave_out: str = "") -> Statement:
    """A query that returns the columns of these rows, in their order."""
    kept = [column for column in codec.columns if column.name != leave_out]
    types = [_TYPES.get(column.type, "text") for column in kept]
    names = [f'"{column.name}"' for column in kept]
    chosen = ", ".join(f"coalesce(g.{name}, ?::{kind}) AS {name}" for name, kind in zip(names, types, strict=True))
    arrays = ", ".join(f"?::{kind}[]" for kind in types)
    values = codec.encode_many(rows)
    equal, lists = zip(*(values[codec.position[column.name]] for column in kept), strict=True)
    return f"SELECT {chosen} FROM unnest({arrays}) AS g ({', '.join(names)})", [*equal, *lists]
