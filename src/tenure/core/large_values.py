"""Large values: rows refer to one as `{"$body": HASH}`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tenure.core.records import Brief, Checkpoint, Result, Row, Validation

REF = "$body"
# Where a reference may be.
HOLDERS: dict[type[Row], tuple[str, ...]] = {
    Brief: ("description", "spec"),
    Result: ("data",),
    Checkpoint: ("data",),
    Validation: ("details",),
}


def is_reference(value: Any) -> bool:
    return isinstance(value, dict) and len(value) == 1 and REF in value


def referred(rows: Iterable[Row]) -> list[str]:
    """The names of the bodies that these rows refer to, each once."""
    values = (getattr(row, field) for row in rows for field in HOLDERS.get(type(row), ()))
    return list(dict.fromkeys(str(value[REF]) for value in values if is_reference(value)))
