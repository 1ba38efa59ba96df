"""Digests of requests, kept to recognise a repeat.

A digest begins with the number of its form. The second form leaves out every field with its default, so that a field
added by a later version changes nothing; rows of the first form have no number, and still match.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from operator import attrgetter
from typing import Any

import msgspec

from tenure.core.commands.command import Command

FORM = "2:"
_APART = frozenset({"request_id", "trace_id"})  # the request's own name, and its trace
_PLAIN = (str, int, bool, float, type(None))
_ALWAYS = ("project", "request_id", "trace_id")


def digest_of(command: Command, owner: str = "") -> str:
    """`owner`: the owner of the key that sent it, if any; the same request by another owner is another request."""
    digest = FORM + _hashed(msgspec.json.encode(_said(command), order="deterministic"))
    return bound(digest, owner)


def bound(text: str, owner: str) -> str:
    """A request's id or digest, tied to the owner of the key that sent it."""
    return f"{text}.{_hashed(owner.encode())[:12]}" if owner else text


def is_same(kept: str | None, command: Command, owner: str = "") -> bool:
    """Whether the kept digest is of this command. Digests of the first form name no owner."""
    if kept is None:
        return False
    return kept == (digest_of(command, owner) if kept.startswith(FORM) else _first_form(command))


def _hashed(encoded: bytes) -> str:
    import hashlib  # a fifth of the startup time, and rarely needed

    return hashlib.sha256(encoded).hexdigest()[:32]


def _said(value: Any) -> Any:
    if isinstance(value, msgspec.Struct):
        names, defaults, given, tag = _shape(type(value))
        said = {
            name: item if type(item) in _PLAIN else _said(item)
            for name, default, item in zip(names, defaults, given(value), strict=True)
            if item is not default and item != default
        }
        if tag is not None:
            said["command"] = tag
        return said
    if isinstance(value, (tuple, list)):
        return [_said(item) for item in value]
    if isinstance(value, dict):
        return {key: _said(item) for key, item in value.items()}
    return value


@cache
def _shape(kind: Any) -> tuple[tuple[str, ...], tuple[Any, ...], Callable[[Any], tuple[Any, ...]], Any]:
    fields = [(name, default) for name, default in _fields(kind) if name not in _APART]
    names = tuple(name for name, _ in fields)
    get = attrgetter(*names)
    return (
        names, tuple(default for _, default in fields), get if len(names) > 1 else lambda value: (get(value),),
        kind.__struct_config__.tag,
    )  # fmt: skip


@cache
def _fields(kind: Any) -> tuple[tuple[str, Any], ...]:
    """Names and defaults; a required field differs from all values."""
    missing = object()
    found = []
    for field in msgspec.structs.fields(kind):
        default = missing if field.required else field.default
        if default is msgspec.NODEFAULT:
            default = field.default_factory()
        found.append((field.name, default))
    return tuple(found)


def _first_form(command: Command) -> str:
    from tenure.core.commands.first_form import FIELDS

    def as_then(value: Any) -> Any:
        if isinstance(value, msgspec.Struct):
            kind = type(value)
            known = next((FIELDS[one.__name__] for one in kind.__mro__ if one.__name__ in FIELDS), None)
            had = [name for name in (*_ALWAYS, *(known or "").split()) if hasattr(value, name)]
            more = [
                n for n, default in _fields(kind) if n not in had and (known is None or getattr(value, n) != default)
            ]
            said = {name: as_then(getattr(value, name)) for name in (*had, *more)}
            tag = kind.__struct_config__.tag
            return said if tag is None else {"command": tag, **said}
        if isinstance(value, (tuple, list)):
            return [as_then(item) for item in value]
        if isinstance(value, dict):
            return {key: as_then(item) for key, item in value.items()}
        return value

    return _hashed(msgspec.json.encode(as_then(msgspec.structs.replace(command, trace_id=None))))
