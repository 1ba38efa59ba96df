"""`on_end` of a plan file: what the end of the plan's dag makes, by the status that it ends with.

on_end:
  completed: Announce {dag.title}
  failed:
    - title: Find out what is wrong with {dag.title}
      priority: high
"""

from __future__ import annotations

from tenure.core import templates
from tenure.core.commands import NewTask, Template
from tenure.core.errors import TenureError
from tenure.core.triggers import DAG_ENDS
from tenure.plans.fields import KEYS, FieldReader, expected, unknown_key
from tenure.plans.nodes import Findings, Mapping, Node, Sequence, is_unset

_KEYS = tuple(key for key in KEYS if key not in ("key", "deadline", "not_before", "parent", "subtasks"))


def read_ends(node: Node | None, reader: FieldReader, findings: Findings) -> dict[str, Template]:
    """Templates by status; what is wrong goes to the findings."""
    found: dict[str, Template] = {}
    if node is None or is_unset(node):
        return found
    if not isinstance(node, Mapping):
        findings.put(expected(node, "on_end", "a mapping from completed, failed or cancelled to a task"))
        return found
    for status, (place, value) in node.entries.items():
        if status not in DAG_ENDS.values():
            findings.put(unknown_key(place, status, tuple(DAG_ENDS.values()), "on_end."))
            continue
        items = value.items if isinstance(value, Sequence) else [value]
        tasks = [new for item in items if (new := _task(item, reader)) is not None]
        try:
            found[status] = templates.check_template(Template(tasks=tuple(tasks)))
        except TenureError as error:
            if len(tasks) == len(items):  # else it was said already
                findings.add(value.place, error.code, error.message, error.hint)
    return found


def _task(node: Node, reader: FieldReader) -> NewTask | None:
    fields = reader.read(node, "a task of on_end", _KEYS)
    if "title" not in fields.values:
        if "title" not in fields.places and isinstance(node, Mapping):
            reader.findings.add(fields.place, "MISSING", "a task without a title", "add `title:`")
        return None
    waits_for = tuple(dependency for dependency, _ in fields.waits_for)
    return reader.checked(fields, {**fields.values, **({"depends_on": waits_for} if waits_for else {})})
