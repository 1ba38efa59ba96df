"""New tasks from the keyword arguments of a call."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from msgspec import Struct

from tenure.core.commands import NewTask


def new_task(title: str, fields: Mapping[str, Any]) -> NewTask:
    """A task of the keyword arguments of `add`."""
    given = as_tuples(fields)
    return NewTask(title=title, depends_on=given.pop("after", ()), **given)


def as_tuples(fields: Mapping[str, Any]) -> dict[str, Any]:
    """The fields with any iterable of names as a tuple and any mapping as a dict, as commands have them."""

    def plain(value: Any) -> Any:
        if isinstance(value, (str, int, float, tuple, dict, Struct)) or value is None:
            return value
        if isinstance(value, Mapping):
            return dict(value)
        return tuple(value) if isinstance(value, Iterable) else value

    return {name: plain(value) for name, value in fields.items()}
