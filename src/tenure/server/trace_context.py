"""W3C trace context: the caller's trace id is stored with commands and events, and returned in the response.

An invalid header counts as missing: a new trace starts here. Traces are not exported.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

from tenure.core import limits

HEADER = b"traceparent"
# version - trace id - parent's id - flags; only later versions may have more after another dash.
_PARENT = re.compile(rb"([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?", re.DOTALL)
_LONGEST = limits.TRACE_PARENT
_NO_TRACE, _NO_SPAN = b"0" * 32, b"0" * 16
_SAMPLED, _UNSAMPLED = b"01", b"00"


class Trace(NamedTuple):
    """`id` is the trace's id in commands, events and logs; `span` is the id of this request."""

    id: str
    span: str
    flags: str = "00"

    @property
    def header(self) -> bytes:
        """The value of `traceparent` in the response."""
        return f"00-{self.id}-{self.span}-{self.flags}".encode()


def trace_of(given: bytes | None, token: Callable[[int], bytes]) -> Trace:
    """The trace of a request's `traceparent`, or a new one; `token` returns random bytes."""
    found = _PARENT.fullmatch(given) if given is not None and len(given) <= _LONGEST else None
    if found is not None:
        version, trace, span, flags, more = found.groups()
        is_valid = version != b"ff" and trace != _NO_TRACE and span != _NO_SPAN and not (version == b"00" and more)
        if is_valid:
            # Only the first flag is defined; later versions may use the others.
            sampled = _SAMPLED if int(flags, 16) & 1 else _UNSAMPLED
            return Trace(trace.decode(), _id(token, 8), sampled.decode())
    return Trace(_id(token, 16), _id(token, 8))


def _id(token: Callable[[int], bytes], size: int) -> str:
    """Random, and never all zeros, which would mean none."""
    return (token(size).hex().lstrip("0") or "1").zfill(size * 2)
