"""From nodes to the fields of a task. Core checks the values; this module adds line numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from tenure.core import inputs, templates
from tenure.core.commands import Add, Dependency, NewTask, Template
from tenure.core.errors import TenureError
from tenure.core.records import RetryPolicy, RetryWords
from tenure.core.retry import in_our_words
from tenure.core.triggers import DAG_ENDS
from tenure.core.written_times import SECOND, parse_duration, parse_instant
from tenure.plans.nodes import Findings, Mapping, Node, Scalar, Sequence, SourcePosition, Wrong, is_unset, plain

MERGED = ("metadata", "spec", "constraints", "output")  # a task's over the defaults', key by key


class Fields(msgspec.Struct):
    """The values of a mapping for NewTask, by name, and their positions."""

    place: SourcePosition
    values: dict[str, Any] = {}
    places: dict[str, SourcePosition] = {}
    relative: dict[str, int] = {}  # instants that were written relative to now → the distance
    waits_for: list[tuple[Dependency, SourcePosition]] = []
    subtasks: Node | None = None


def kind_of(node: Node) -> str:
    if isinstance(node, Mapping):
        return "a mapping"
    if isinstance(node, Sequence):
        return "a list"
    assert isinstance(node, Scalar)
    if node.value is None:
        return "nothing"
    return f"{node.text[:40]!r}"


def expected(node: Node, name: str, what: str, hint: str | None = None) -> Wrong:
    return Wrong(node.place, "WRONG_TYPE", f"{name}: {kind_of(node)} where {what} is expected", hint)


def text(node: Node, name: str) -> str:
    """A text; a number counts as its text, so that names such as 1 and 2 work."""
    if not isinstance(node, Scalar) or node.value is None:
        raise expected(node, name, "a text")
    return node.text


def texts(node: Node, name: str) -> tuple[str, ...]:
    items = node.items if isinstance(node, Sequence) else [node]
    return tuple(dict.fromkeys(text(item, name) for item in items))


def whole(node: Node, name: str) -> int:
    if not isinstance(node, Scalar) or type(node.value) is not int:
        raise expected(node, name, "a whole number")
    return node.value


def number(node: Node, name: str) -> float:
    if not isinstance(node, Scalar) or not isinstance(node.value, (int, float)) or isinstance(node.value, bool):
        raise expected(node, name, "a number")
    return node.value


def number_or_truth(node: Node, name: str) -> float | bool:
    if isinstance(node, Scalar) and isinstance(node.value, (int, float)):
        return node.value
    raise expected(node, name, "a number, true or false")


def flag(node: Node, name: str) -> bool:
    if not isinstance(node, Scalar) or type(node.value) is not bool:
        raise expected(node, name, "true or false")
    return node.value


def priority(node: Node, name: str) -> int | str:
    if not isinstance(node, Scalar) or not isinstance(node.value, (int, str)) or isinstance(node.value, bool):
        raise expected(node, name, "a number or a tier such as high")
    return node.value


def mapping(node: Node, name: str) -> dict[str, Any]:
    if not isinstance(node, Mapping):
        raise expected(node, name, "a mapping")
    return plain(node)  # type: ignore[no-any-return]


def duration(node: Node, name: str) -> int:
    """Microseconds; a bare number is seconds."""
    if isinstance(node, Scalar):
        if isinstance(node.value, (int, float)) and not isinstance(node.value, bool):
            return round(node.value * SECOND)
        found = parse_duration(node.text) if isinstance(node.value, str) else None
        if found is not None:
            return found
    raise expected(node, name, "a duration such as 30s or 2h")


def constraints(node: Node, name: str) -> dict[str, Any]:
    values = mapping(node, name)
    assert isinstance(node, Mapping)
    for key in ("max_duration", "estimated_duration"):
        given = node.get(key)
        if isinstance(given, Scalar) and isinstance(given.value, str):
            values[key] = seconds(given, f"{name}.{key}")
    return values


def seconds(node: Node, name: str) -> int | float:
    found = duration(node, name) / SECOND
    return int(found) if found.is_integer() else found


_RETRY: dict[str, Callable[[Node, str], Any]] = {
    "strategy": text, "initial_delay": seconds, "multiplier": number, "cap": seconds, "jitter": number_or_truth,
    "initial_delay_sec": seconds, "backoff_multiplier": number, "max_delay_sec": seconds,
    "retry_on": texts, "no_retry_on": texts,
}  # fmt: skip


def retry(node: Node, name: str) -> RetryPolicy:
    if not isinstance(node, Mapping):
        raise expected(node, name, "a mapping")
    values = {}
    for key, (place, value) in node.entries.items():
        if key not in _RETRY:
            raise unknown_key(place, key, _RETRY, f"{name}.")
        values[key] = _RETRY[key](value, f"{name}.{key}")
    try:
        return in_our_words(RetryWords(**values))
    except TenureError as error:
        raise Wrong(node.place, "INVALID", error.message, error.hint) from None


def unknown_key(place: SourcePosition, key: str, known: Any, prefix: str = "") -> Wrong:
    near = inputs.suggestion(key, known).removeprefix("; ")
    return Wrong(place, "UNKNOWN_KEY", f"{prefix}{key[:60]}: unknown key", near or f"there are: {', '.join(known)}")


def dependency(node: Node) -> Dependency:
    if isinstance(node, Scalar) and node.value is not None:
        return Dependency(task=node.text)
    if not isinstance(node, Mapping):
        raise expected(node, "depends_on", "the name or key of a task")
    for key, (place, _) in node.entries.items():
        if key not in ("task", "on_failure"):
            raise unknown_key(place, key, ("task", "on_failure"), "depends_on.")
    task, on_failure = node.get("task"), node.get("on_failure")
    if task is None:
        raise Wrong(node.place, "MISSING", "depends_on: `task` is missing", "as in {task: schema, on_failure: ignore}")
    named = Dependency(task=text(task, "depends_on.task"))
    return named if on_failure is None else msgspec.structs.replace(named, on_failure=text(on_failure, "on_failure"))


READERS: dict[str, Callable[[Node, str], Any]] = {
    "name": text, "key": text, "title": text, "track": text, "type": text, "description": text, "priority": priority,
    "tags": texts, "touches": texts, "caps": texts, "parent": text, "boost": number, "max_attempts": whole,
    "on_lost": text, "draft": flag, "metadata": mapping, "spec": mapping, "output": mapping,
    "constraints": constraints, "retry": retry,
}  # fmt: skip
OWN = ("name", "key", "title", "subtasks")  # which no two tasks can share
KEYS = (*READERS, "deadline", "not_before", "depends_on", "subtasks")
_END_KEYS = tuple(key for key in KEYS if key not in ("key", "deadline", "not_before", "parent", "subtasks"))


class FieldReader:
    """Reads mappings into fields; a wrong value becomes a finding, and the rest is still read."""

    def __init__(self, findings: Findings, now: int) -> None:
        self.findings = findings
        self.now = now

    def read(self, node: Node, what: str, known: tuple[str, ...] = KEYS) -> Fields:
        if isinstance(node, Scalar) and node.value is not None and "title" in known:
            return Fields(node.place, {"title": node.text}, {"title": node.place})
        fields = Fields(node.place)
        if not isinstance(node, Mapping):
            self.findings.put(expected(node, what, "a mapping"))
            return fields
        for key, (place, value) in node.entries.items():
            with self.findings.catching(value.place):
                if key not in known:
                    raise self._unknown(place, key, what, known)
                self._field(fields, key, value)
        self._caps(fields)
        return fields

    def read_ends(self, node: Node | None) -> dict[str, Template]:
        """The templates of `on_end`, by the status that the plan's dag ends with; a task may be one or a list."""
        found: dict[str, Template] = {}
        if node is None or is_unset(node):
            return found
        if not isinstance(node, Mapping):
            self.findings.put(expected(node, "on_end", "a mapping from completed, failed or cancelled to a task"))
            return found
        for status, (place, value) in node.entries.items():
            if status not in DAG_ENDS.values():
                self.findings.put(unknown_key(place, status, tuple(DAG_ENDS.values()), "on_end."))
                continue
            items = value.items if isinstance(value, Sequence) else [value]
            tasks = [new for item in items if (new := self._end_task(item)) is not None]
            if len(tasks) == len(items):  # otherwise it has findings already
                with self.findings.catching(value.place):
                    found[status] = templates.check_template(Template(tasks=tuple(tasks)))
        return found

    def _end_task(self, node: Node) -> NewTask | None:
        fields = self.read(node, "a task of on_end", _END_KEYS)
        if "title" not in fields.values:
            if "title" not in fields.places and isinstance(node, Mapping):
                self.findings.add(fields.place, "MISSING", "a task without a title", "add `title:`")
            return None
        waits_for = tuple(dependency for dependency, _ in fields.waits_for)
        return self.checked(fields, {**fields.values, **({"depends_on": waits_for} if waits_for else {})})

    @staticmethod
    def _unknown(place: SourcePosition, key: str, what: str, known: tuple[str, ...]) -> Wrong:
        if key in OWN:
            return Wrong(place, "UNKNOWN_KEY", f"{key}: each task has its own, so it cannot be in {what}")
        if key == "idempotency_key":
            return Wrong(place, "UNKNOWN_KEY", "idempotency_key: a plan recognises its tasks by name", "use `name`")
        return unknown_key(place, key, known)

    def _field(self, fields: Fields, key: str, node: Node) -> None:
        fields.places[key] = node.place
        if key == "subtasks":
            fields.subtasks = None if is_unset(node) else node
        elif key == "depends_on":
            items = node.items if isinstance(node, Sequence) else [] if is_unset(node) else [node]
            for item in items:
                with self.findings.catching(item.place):
                    fields.waits_for.append((dependency(item), item.place))
        elif is_unset(node):
            fields.values[key] = _DEFAULTS.get(key)
        elif key in ("deadline", "not_before"):
            when = parse_instant(text(node, key), key, self.now)
            fields.values[key] = when.instant
            if when.after is not None:
                fields.relative[key] = when.after
        else:
            fields.values[key] = READERS[key](node, key)

    def _caps(self, fields: Fields) -> None:
        if "caps" not in fields.values:
            return
        caps = fields.values.pop("caps")
        kept = fields.values.get("constraints") or {}
        if "required_capabilities" in kept:
            self.findings.add(
                fields.places["caps"], "DUPLICATE", "both caps and constraints.required_capabilities are given"
            )
        fields.values["constraints"] = {**kept, "required_capabilities": list(caps or ())}
        fields.places.setdefault("constraints", fields.places["caps"])

    def checked(self, fields: Fields, values: dict[str, Any]) -> NewTask | None:
        """The task of these values, checked by the engine's rules; None, with findings, where they are wrong."""
        error = error_of(values)
        if error is None:
            return NewTask(**values)
        alone = {n: error_of({"title": "probe", n: v}) for n, v in values.items() if n in fields.places}
        guilty = {name: found for name, found in alone.items() if found is not None}
        for name, found in guilty.items():
            self.findings.add(fields.places[name], found.code, _words(found), found.hint)
        if not guilty:
            self.findings.add(fields.places.get("key", fields.place), error.code, _words(error), error.hint)
        return None


def _default(field: msgspec.structs.FieldInfo) -> Any:
    if field.default_factory is not msgspec.NODEFAULT:
        return field.default_factory()
    return None if field.default is msgspec.NODEFAULT else field.default


_DEFAULTS = {field.name: _default(field) for field in msgspec.structs.fields(NewTask)}


def error_of(values: dict[str, Any]) -> TenureError | None:
    """The engine's error for a task of these values; None where it accepts them."""
    try:
        new = NewTask(**values)
        inputs.validated(Add(project="check", task=new))
        inputs.check_new_task(new)
    except TenureError as error:
        return error
    return None


def _words(error: TenureError) -> str:
    return error.message.removeprefix("add: ").removeprefix("task: ")


def merged(defaults: dict[str, Any], own: dict[str, Any]) -> dict[str, Any]:
    """A task's values over the defaults; mappings key by key."""
    values = {**defaults, **own}
    for name in MERGED:
        if defaults.get(name) and own.get(name):
            values[name] = {**defaults[name], **own[name]}
    return values
