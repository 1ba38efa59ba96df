"""Results that are too large for a row: stored as an artifact, with a reference in the row."""

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
    """The JSON of a result that does not fit into a row; None for one that fits, or is not valid JSON."""
    try:
        encoded = msgspec.json.encode(data)
    except (TypeError, ValueError, RecursionError):  # the engine reports it better
        return None
    return encoded if len(encoded) > LARGEST_RESULT else None


def referring(command: Submit, put: Outcome) -> Submit:
    """The command with a reference instead of its data; the artifact is part of its result."""
    artifact = put.artifact or {}
    data = {REF: NAME, "size": artifact.get("size"), "digest": artifact.get("digest")}
    names = None if command.artifacts is None else tuple(dict.fromkeys((*command.artifacts, NAME)))
    return replace(command, data=data, artifacts=names)
