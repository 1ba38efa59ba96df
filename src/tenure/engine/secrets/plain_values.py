"""Texts that are secret by their name and stored as given, since there was no master key: found, named, counted."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from tenure.core import limits
from tenure.core.records import Brief, Project, Schedule, Task, Trigger
from tenure.core.task_secrets import KEPT, is_place, secret_of, shown_name, walked
from tenure.engine.reads.task_view import unpacked
from tenure.engine.runtime.unit_of_work import UnitOfWork

if TYPE_CHECKING:
    from tenure.engine.runtime.engine import Engine

MOST = limits.PLAIN_LOOKED
NAMED = 5
_IN_TEMPLATE = re.compile(r"^/tasks/\d+(?=/)")


def is_plain(path: str, value: Any) -> bool:
    """Whether a text at this path, of a task or of a template, would be sealed today."""
    place = _IN_TEMPLATE.sub("", path)
    if not isinstance(value, str) or not is_place(place):
        return False
    return secret_of(place, value) is not None


def places(spec: Any, metadata: Any) -> dict[str, str]:
    """The plain ones of a task, by path."""
    return {**_in(spec, "/spec"), **_in(metadata, "/metadata")}


def _in(value: Any, root: str) -> dict[str, str]:
    found: dict[str, str] = {}

    def leaf(path: str, inner: Any) -> Any:
        if is_plain(path, inner):
            found[path] = inner
        return KEPT

    walked(value, root, leaf)
    return found


def seen_in(engine: Engine) -> list[str]:
    """The fields of the store's newest tasks and of its templates: as `A-002 metadata.db_password`, never the value."""
    return engine.read_settled((), lambda work: sorted(_named(work)))


def told(seen: list[str]) -> tuple[str, str]:
    """For `doctor` and the log of `serve`: the finding, and what to do."""
    more = f" and {len(seen) - NAMED} more" if len(seen) > NAMED else ""
    return (
        f"stored as given, though secret by their names, and shown to everybody: {', '.join(seen[:NAMED])}{more}",
        "give every process a master key, where there is none; then `tenure secret seal`, and replace those secrets",
    )


def _named(work: UnitOfWork) -> Iterator[str]:
    for project in work.find(Project, {}, limit=MOST):
        where = {"project": project.id}
        briefs = work.find(Brief, where, order="-id", limit=MOST)
        found = {b.id: places(unpacked(work, b.project, b.spec), b.metadata) for b in briefs if b.spec or b.metadata}
        tasks = work.get_many(Task, project.id, [id for id, paths in found.items() if paths])
        yield from (f"{task.key} {shown_name(path)}" for task in tasks.values() for path in found[task.id])
        templates = [(f"schedule {row.id}", row.template) for row in work.find(Schedule, where, limit=MOST)]
        templates += [(f"trigger {row.id}", row.template) for row in work.find(Trigger, where, limit=MOST)]
        for name, template in templates:
            yield from (f"{name} {shown_name(_IN_TEMPLATE.sub('', path))}" for path in _in(template, ""))
