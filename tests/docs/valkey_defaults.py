"""The defaults of all rows, pinned: a store in Valkey has its rows without them.

A new field adds its line. A line stays when its default changes or its field is gone, and `test_valkey_form.py` fails:
rows of before would be read otherwise than they were written. That needs a new form.
"""

from __future__ import annotations

from pathlib import Path

from tenure.core.decoders import defaults_of
from tenure.core.events import Event
from tenure.core.records import KINDS

PINNED = Path(__file__).parents[1] / "stores" / "valkey_defaults.txt"


def pinned() -> set[str]:
    return set(PINNED.read_text().splitlines())


def defaults() -> set[str]:
    return {f"{kind.__name__}.{n} = {v!r}" for kind in (*KINDS, Event) for n, v in defaults_of(kind).items()}


def text() -> str:
    return "\n".join(sorted(pinned() | defaults())) + "\n"
