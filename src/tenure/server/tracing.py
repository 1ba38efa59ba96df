"""W3C trace context: the caller's trace goes on through commands and events, and back in the answer.

A header that is not as the standard has it is as good as none: a trace then begins here. Nothing is sent anywhere.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

from tenure.core import limits

HEADER = b"traceparent"
# version - trace id - parent's id - flags; a later version may have more behind a dash, the first may not.
_PARENT = re.compile(rb"([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?", re.DOTALL)
_LONGEST = limits.TRACE_PARENT
_NO_TRACE, _NO_SPAN = b"0" * 32, b"0" * 16
_SAMPLED, _UNSAMPLED = b"01", b"00"


class Trace(NamedTuple):
    """`id` is the trace's, for commands, events and logs; `span` is this request's own part in it."""

    id: str
    span: str
    flags: str = "00"

    @property
    def header(self) -> bytes:
        """The value of `traceparent` in the answer."""
        return f"00-{self.id}-{self.span}-{self.flags}".encode()


def trace_of(given: bytes | None, token: Callable[[int], bytes]) -> Trace:
    """The trace that a request belongs to, by its `traceparent`, or a new one; `token` gives random bytes."""
    found = _PARENT.fullmatch(given) if given is not None and len(given) <= _LONGEST else None
    if found is not None:
        version, trace, span, flags, more = found.groups()
        is_good = version != b"ff" and trace != _NO_TRACE and span != _NO_SPAN and not (version == b"00" and more)
        if is_good:
            # Of the flags only the first is known; a later version may mean something else by the others.
            sampled = _SAMPLED if int(flags, 16) & 1 else _UNSAMPLED
            return Trace(trace.decode(), _id(token, 8), sampled.decode())
    return Trace(_id(token, 16), _id(token, 8))


def _id(token: Callable[[int], bytes], size: int) -> str:
    """Random, and never all zeros, which means none."""
    return (token(size).hex().lstrip("0") or "1").zfill(size * 2)
