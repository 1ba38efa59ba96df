"""Results that are too large to stand in a row: put as an artifact, and referred to."""

from __future__ import annotations

from typing import Any

import msgspec

from tenure.core.commands import Submit
from tenure.core.inputs import LARGEST_RESULT
from tenure.core.outcomes import Outcome
from tenure.core.records import replace

NAME = "result.json"
JSON = "application/json"
REF = "$artifact"


def too_large(data: Any) -> bytes | None:
    """The JSON of a result that does not fit; None for one that does, or that is no JSON at all."""
    try:
        encoded = msgspec.json.encode(data)
    except (TypeError, ValueError, RecursionError):  # said by whoever decides it, in better words
        return None
    return encoded if len(encoded) > LARGEST_RESULT else None


def referring(command: Submit, put: Outcome) -> Submit:
    """The same with a reference in the place of its data; the artifact goes along with what it names."""
    artifact = put.artifact or {}
    data = {REF: NAME, "size": artifact.get("size"), "digest": artifact.get("digest")}
    names = None if command.artifacts is None else tuple(dict.fromkeys((*command.artifacts, NAME)))
    return replace(command, data=data, artifacts=names)
