"""What an exception says, however broken it is: nothing here raises, and every store takes the text."""

from __future__ import annotations

import traceback
from types import TracebackType

from tenure.core.safe_text import storable

_GAP = "\n  …\n"


def text_of(error: BaseException, most: int) -> str:
    """The error's own text."""
    try:
        return storable(str(error), most)
    except BaseException as broken:  # noqa: BLE001 `__str__` is anybody's code
        return f"(its text cannot be read: {name_of(broken)})"


def name_of(error: BaseException) -> str:
    """The name of its class."""
    try:
        return storable(type(error).__name__, 200)
    except BaseException:  # noqa: BLE001 a metaclass is anybody's code too
        return "an exception without a name"


def described(error: BaseException, most: int) -> str:
    """One text: the class and what it says, as in `ValueError: no such file`."""
    name, text = name_of(error), text_of(error, most)
    return f"{name}: {text}"[:most] if text else name


def trace_text(error: BaseException, begins: TracebackType | None, most: int) -> str:
    """The stack trace from `begins` on; of a long one its beginning and its end, `most` characters each."""
    try:
        text = "".join(traceback.format_exception(type(error), error, begins))
    except BaseException as broken:  # noqa: BLE001 notes, causes and groups are anybody's code
        text = f"(the trace cannot be written: {name_of(broken)})\n{described(error, most)}"
    if len(text) > 2 * most:
        text = text[:most] + _GAP + text[-most:]
    return storable(text, 6 * len(text))  # an escape has six characters
