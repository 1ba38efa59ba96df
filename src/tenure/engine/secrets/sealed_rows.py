"""Where the secrets of tasks and templates lie: each is sealed for its row and its path in it.

A command comes with values that are sealed for the command itself (`COMMAND`): its handler does not know the row yet,
and never sees a plain value. When the row is known they are sealed again for it. The same is done for what a template
makes: each task has its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tenure.core.commands import Template
from tenure.core.decoders import converted
from tenure.core.errors import InvalidInput
from tenure.core.records import Brief, Project, Task, replace
from tenure.core.sealed import from_value, is_sealed
from tenure.core.task_secrets import (
    KEPT,
    METADATA,
    SECRET,
    SHOWN,
    check_names,
    comparable,
    is_place,
    sealed_in,
    shown_name,
    value_at,
    walked,
)
from tenure.engine.runtime.seals import Vault
from tenure.engine.runtime.unit_of_work import UnitOfWork

COMMAND = "command"  # the owner of a value whose row is not known yet
FIELDS = ("spec", "metadata")  # of a task, which may have secrets


def owner_of(task: str) -> str:
    return f"task:{task}"


def has_sealed(*values: Any) -> bool:
    return any(next(sealed_in(value, ""), None) is not None for value in values if value)


def placed(
    vault: Vault, fields: Mapping[str, Any], before: tuple[str, str], after: tuple[str, str], known: Any = None
) -> dict[str, Any]:
    """Spec and metadata with each secret, which was sealed for `before`, sealed for `after`: an owner, and where in it.

    A secret that is the same as in `known`, or that is given as it is shown, stays as it lies there.
    """

    def leaf(path: str, value: Any) -> Any:
        is_shown = value == SHOWN and is_place(path) and path != METADATA
        if not is_shown and not is_sealed(value):
            return KEPT
        there = value_at(known, path)
        if is_sealed(there) and (is_shown or comparable(there) == comparable(value)):
            return there
        if is_shown:
            raise InvalidInput(
                f"{shown_name(path)} is {SHOWN}, which only stands for a secret that is there already",
                f'give the secret itself, as in {{"{SECRET}": "the text"}}',
            )
        return vault.moved(value, (before[0], before[1] + path), (after[0], after[1] + path))

    return {name: walked(fields[name], f"/{name}", leaf) for name in FIELDS if name in fields}


def sealed_for(
    work: UnitOfWork, task: Task, spec: Any, metadata: Any, old: Mapping[str, Any] | None = None
) -> tuple[Any, Any, bool]:
    """Spec and metadata of the task with their secrets sealed for it, and whether they have any."""
    vault = Vault(work, task.project)
    after = placed(vault, {"spec": spec, "metadata": metadata}, (COMMAND, ""), (owner_of(task.id), ""), old)
    if not has_sealed(*after.values()):
        return after["spec"], after["metadata"], False
    check_secret_names(*after.values())
    note_project(work, task.project)
    return after["spec"], after["metadata"], True


def note_project(work: UnitOfWork, project: str) -> None:
    """From its first secret on, what holders write in the project is searched."""
    row = work.require(Project, project, project)
    if not row.sealed:
        work.put(replace(row, sealed=True))


def secrets_of(vault: Vault, task: Task, brief: Brief, spec: Any, *, is_whole: bool = True) -> dict[str, str]:
    """The plain secrets of a task, by name. For its holder, and to search what the holder writes; for nobody else.

    Without `is_whole` those whose data key was given up are left out.
    """
    owner = owner_of(task.id)
    found = [*sealed_in(spec, "/spec"), *sealed_in(brief.metadata, "/metadata")]
    return {
        shown_name(path): vault.open_text(owner, path, value)
        for path, value in found
        if is_whole or vault.seals.has_key_of(from_value(value))
    }


def check_secret_names(spec: Any, metadata: Any) -> None:
    check_names(
        path for value, root in ((spec, "/spec"), (metadata, "/metadata")) for path, _ in sealed_in(value, root)
    )


# --- templates ----------------------------------------------------------------------------------------------


def stored_template(work: UnitOfWork, project: str, owner: str, template: dict[str, Any], old: Any) -> dict[str, Any]:
    """A template as its row keeps it; `old` is what the row has now. Its tasks came with secrets of a command."""
    vault, tasks = Vault(work, project), []
    before = old.get("tasks", ()) if isinstance(old, Mapping) else ()
    for number, task in enumerate(template["tasks"]):
        known = before[number] if number < len(before) else None
        tasks.append({**task, **placed(vault, task, (COMMAND, ""), (owner, f"/tasks/{number}"), known)})
    return {**template, "tasks": tasks}


def template_of(work: UnitOfWork, project: str, owner: str, stored: Mapping[str, Any]) -> Template:
    """A stored template, with its secrets as those of a command: the tasks that it makes get their own."""
    vault = Vault(work, project)
    tasks = [
        {**task, **placed(vault, task, (owner, f"/tasks/{number}"), (COMMAND, ""))}
        for number, task in enumerate(stored["tasks"])
    ]
    return converted({**stored, "tasks": tasks}, Template)
