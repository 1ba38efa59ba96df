"""Errors that end a thread, as a sentence with what it means; Python prints a bare traceback otherwise."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from tenure.core.errors import spelled

# The beginning of a thread's name → what stops with it.
_MEANINGS = {
    "tenure-coordinator": "this process leads no more, and another may",
    "tenure-batcher": "commands may wait in vain",
    "tenure-feed": "requests that wait hear of nothing new",
    "tenure-listen": "requests that wait hear of news late",
    "tenure-wake-ups": "requests that wait hear of news late",
    "tenure-relay": "what it sends stays in the log until then",
    "tenure-closing": "connections of a store that was left stay open until then",
}


@contextmanager
def reported(say: Callable[[str, BaseException], object]) -> Iterator[None]:
    """While it is open, `say` gets each error that ends a thread of this process."""

    def report(ended: threading.ExceptHookArgs) -> None:
        if ended.exc_value is None or issubclass(ended.exc_type, SystemExit):
            return
        name = ended.thread.name if ended.thread is not None else "a thread"
        means = next((text for start, text in _MEANINGS.items() if name.startswith(start)), "its work stops")
        say(
            f"{name} was ended by an error: {spelled(ended.exc_value)}; start this process again: {means}",
            ended.exc_value,
        )

    before, threading.excepthook = threading.excepthook, report
    try:
        yield
    finally:
        threading.excepthook = before
