"""Triggers: which events match, how often one may fire, and where a loop ends.

A filter is data, not code: each path must have the given value, or one with a prefix, matching a pattern, or in a list;
or a path that patterns cover. Of a list any item may match.

Two limits keep a trigger from feeding itself. A created task knows how many triggers led to it, and beyond three
nothing is created; and an hourly limit stops loops that go through an agent.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from functools import cache
from typing import Any

from tenure.core import inputs, limits
from tenure.core.errors import InvalidInput, TooLarge
from tenure.core.events import KINDS
from tenure.core.path_patterns import covers
from tenure.core.records import Trigger, replace
from tenure.core.reservations import normalised
from tenure.core.templates import check_path, value_at

WEBHOOK = "webhook"
DAG_ENDS = {"dag.completed": "completed", "dag.failed": "failed", "dag.cancelled": "cancelled"}
DEEPEST = limits.TRIGGER_CHAIN
HOUR = 3600 * inputs.SECOND

_NEVER_HEARD = "trigger."  # events about triggers fire none


@cache
def kinds_of(pattern: str) -> frozenset[str]:
    """The event kinds that a pattern matches; none for a webhook."""
    if pattern == WEBHOOK:
        return frozenset()
    return frozenset(k for k in KINDS if not k.startswith(_NEVER_HEARD) and fnmatchcase(k, pattern))


def owner_of(name: str) -> str:
    """The owner of a trigger's secrets."""
    return f"trigger:{name}"


def owner_of_end(dag: str, status: str) -> str:
    """The same for the template of a dag's end."""
    return f"dag:{dag}:{status}"


def check_kind(pattern: str) -> str:
    """Check for an event kind, a pattern that matches some kind, or `webhook`."""
    if pattern != WEBHOOK and (len(pattern) > 100 or not kinds_of(pattern)):
        raise InvalidInput(
            f"on {pattern[:60]!r} matches no kind of event{inputs.suggestion(pattern, KINDS)}",
            "use a kind such as task.dead_lettered, a pattern such as dag.*, or webhook",
        )
    return pattern


# --- filters ------------------------------------------------------------------------------------------------


def check_filter(where: Mapping[str, Any]) -> dict[str, Any]:
    if len(where) > limits.TRIGGER_CONDITIONS:
        raise TooLarge(f"where may have at most {limits.TRIGGER_CONDITIONS} conditions (got {len(where)})")
    for path, wanted in where.items():
        check_path(path, "where")
        _check_condition(path, wanted)
    return dict(where)


def _check_condition(path: str, wanted: Any) -> None:
    if isinstance(wanted, dict):
        if len(wanted) != 1 or next(iter(wanted)) not in _OPERATORS:
            raise InvalidInput(f"where.{path} must be a value or one of {', '.join(_OPERATORS)}")
        ((operator, value),) = wanted.items()
        if operator == "not":
            if isinstance(value, dict) and "not" in value:
                raise InvalidInput(f"where.{path}: `not` cannot be nested")
            return _check_condition(path, value)
        if operator in _LISTS:
            if not isinstance(value, (list, tuple)) or len(value) > limits.TRIGGER_CHOICES:
                raise InvalidInput(f"where.{path}.{operator} must be a list of at most {limits.TRIGGER_CHOICES} values")
            for one in value:
                _check_plain(path, one)
                if operator == "paths":
                    _check_pattern(path, one)
            return None
        if not isinstance(value, str):
            raise InvalidInput(f"where.{path}.{operator} must be a text")
        wanted = value
    return _check_plain(path, wanted)


def _check_plain(path: str, wanted: Any) -> None:
    if wanted is not None and not isinstance(wanted, (str, int, float, bool)):
        raise InvalidInput(f"where.{path} must be a text, number, true, false or null (got {str(wanted)[:60]})")
    if isinstance(wanted, str) and len(wanted) > limits.TRIGGER_VALUE:
        raise TooLarge(f"where.{path} may have at most {limits.TRIGGER_VALUE} characters (got {len(wanted)})")


def _check_pattern(path: str, pattern: Any) -> None:
    if not isinstance(pattern, str):
        raise InvalidInput(f"where.{path}.paths must be texts (got {str(pattern)[:60]})", "as in src/**")
    normalised(pattern)


def fits(where: Mapping[str, Any], values: Mapping[str, Any]) -> bool:
    """Whether every condition holds."""
    return all(_holds(wanted, value_at(values, path)) for path, wanted in where.items())


def roots_of(where: Mapping[str, Any]) -> set[str]:
    """The values that the filter needs."""
    return {path.partition(".")[0] for path in where}


def _holds(wanted: Any, value: Any) -> bool:
    if isinstance(wanted, Mapping) and "not" in wanted:
        return not _holds(wanted["not"], value)
    if isinstance(value, (list, tuple)):
        return any(_holds(wanted, item) for item in value if not isinstance(item, (list, tuple)))
    if not isinstance(wanted, Mapping):
        return _equals(wanted, value)
    ((operator, given),) = wanted.items()
    if operator == "in":
        return any(_equals(one, value) for one in given)
    return isinstance(value, str) and _OPERATORS[operator](value[: limits.TRIGGER_TEXT], given)


def _equals(wanted: Any, value: Any) -> bool:
    return bool(wanted == value) and isinstance(wanted, bool) == isinstance(value, bool)


def _covered(path: str, patterns: Sequence[str]) -> bool:
    return any(covers(pattern, path) for pattern in patterns)


_LISTS = ("in", "paths")
_OPERATORS: dict[str, Any] = {"prefix": str.startswith, "glob": fnmatchcase, "paths": _covered, "in": None, "not": None}


# --- bounds -------------------------------------------------------------------------------------------------


def check_most(most: int) -> int:
    if not 1 <= most <= limits.TRIGGER_FIRINGS:
        raise InvalidInput(f"most must be from 1 to {limits.TRIGGER_FIRINGS} firings per hour (got {most})")
    return most


def is_spent(trigger: Trigger, now: int) -> bool:
    """Whether it has reached its limit in this hour."""
    return not _is_new_hour(trigger, now) and trigger.hour >= trigger.most


def left_of_hour(trigger: Trigger, now: int) -> int:
    """Microseconds until it may fire again."""
    return max(0, (trigger.hour_at or now) + HOUR - now)


def counted(trigger: Trigger, now: int) -> Trigger:
    """The trigger with one firing more."""
    if _is_new_hour(trigger, now):
        trigger = replace(trigger, hour_at=now, hour=0)
    return replace(trigger, hour=trigger.hour + 1, fired=trigger.fired + 1, last_at=now, last_error=None)


def _is_new_hour(trigger: Trigger, now: int) -> bool:
    return trigger.hour_at is None or now >= trigger.hour_at + HOUR


def depth_in(metadata: Mapping[str, Any]) -> int:
    """How many triggers led to the task with this metadata."""
    trigger = metadata.get("trigger")
    depth = trigger.get("depth") if isinstance(trigger, Mapping) else None
    return depth if isinstance(depth, int) and not isinstance(depth, bool) and depth > 0 else 0
