"""Closing what has several parts: an error of one keeps none of the others open."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import TypeVar

T = TypeVar("T")


def close_all(*closes: Callable[[], object]) -> None:
    """Call each of them in this order, whatever the others raise.

    Raises the first error afterwards, with a note for each that followed; an interruption comes before an error.
    """
    first: BaseException | None = None
    for close in closes:
        try:
            close()
        except BaseException as error:  # noqa: BLE001 - raised below
            if first is None:
                first = error
                continue
            if isinstance(first, Exception) and not isinstance(error, Exception):
                first, error = error, first
            first.add_note(f"also, while the rest was closed: {type(error).__name__}: {error}")
    if first is not None:
        raise first


def popped(items: list[T] | deque[T]) -> Iterator[T]:
    """Each of them, taken out of the list. Other threads may take some meanwhile, or add more."""
    while items:
        with suppress(IndexError):
            yield items.pop()
