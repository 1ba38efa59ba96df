"""What the standard library and msgspec do at a start for nobody, left out in the processes of the command line."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from types import ModuleType
from typing import Any

# Of msgspec, loaded with it: JSON schemas and the description of types. They are imported at their first use.
_SELDOM = {"msgspec.inspect": (), "msgspec._json_schema": ("schema", "schema_components")}


# Verbs that agents call all day. They hash some words and no files: without OpenSSL, whose library alone takes 2 ms to
# load. They send and print no Decimal and no UUID, so msgspec knows neither in their processes: another millisecond.
_HOT = frozenset({"claim", "progress", "checkpoint", "renew", "done", "fail", "release"})


def prepare(verb: str) -> None:
    """Import msgspec and argparse without what a command seldom needs."""
    if verb in _HOT:
        sys.modules.setdefault("_hashlib", None)  # type: ignore[arg-type]  # hashlib and hmac then use Python's own
    gettext: Any = ModuleType("gettext")  # argparse has it translate its messages, and ships no translation
    gettext.gettext = str
    gettext.ngettext = lambda one, many, n: one if n == 1 else many
    with _without(gettext=gettext):
        import argparse  # noqa: F401
    if "msgspec" in sys.modules:
        return
    # msgspec imports `typing_extensions` if it is installed (mcp brings it), for a fifth of the start; the standard
    # library has everything that it uses from there. `uuid` asks `platform` for the system's name.
    platform: Any = ModuleType("platform")
    platform.system = lambda: os.uname().sysname
    instead: dict[str, Any] = {"typing_extensions": None, "platform": platform}
    if verb in _HOT:
        decimal: Any = ModuleType("decimal")
        uuid: Any = ModuleType("uuid")
        decimal.Decimal, uuid.UUID = type("Decimal", (), {}), type("UUID", (), {})
        uuid.SafeUUID = type("SafeUUID", (), {"unknown": None})
        instead |= {"decimal": decimal, "uuid": uuid}
    with _without(**instead, **{name: _Later(name) for name in _SELDOM}):
        import msgspec
    if isinstance(msgspec.inspect, _Later):
        del msgspec.inspect
        vars(msgspec)["__getattr__"] = _inspect


@contextmanager
def _without(**instead: Any) -> Iterator[None]:
    """Import something else, or nothing, for these modules unless they are there."""
    hidden = {name: module for name, module in instead.items() if name not in sys.modules}
    sys.modules.update(hidden)
    try:
        yield
    finally:
        for name in hidden:
            del sys.modules[name]


class _Later(ModuleType):
    def __getattr__(self, name: str) -> Any:
        if name not in _SELDOM[self.__name__]:
            raise AttributeError(name)

        def called(*given: Any, **more: Any) -> Any:
            return getattr(import_module(self.__name__), name)(*given, **more)

        return called


def _inspect(name: str) -> Any:
    if name == "inspect":
        return import_module("msgspec.inspect")
    raise AttributeError(f"module 'msgspec' has no attribute {name!r}")
