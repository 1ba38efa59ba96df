"""What happens to a command before its handler sees it: its secrets are sealed, and those of its sender hidden.

So rows, events, digests of requests, archives, exports and sinks have no plain secret, whatever the handler does.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from tenure.core import commands as c
from tenure.core import limits
from tenure.core.commands import NewTask, Template
from tenure.core.errors import InvalidInput, SecretsOff, TenureError
from tenure.core.ids import parse_receipt
from tenure.core.inputs import Checked
from tenure.core.records import Project, Task, replace
from tenure.core.task_secrets import CONTEXT, KEPT, METADATA, Hidden, check_places, secret_of, shown_name, walked
from tenure.engine.reads.task_view import unpacked
from tenure.engine.runtime.rows import brief_of, find_task, task_by_ref
from tenure.engine.runtime.seals import Vault
from tenure.engine.runtime.unit_of_work import UnitOfWork
from tenure.engine.secrets.sealed_rows import COMMAND, FIELDS, secrets_of

_KEPT = ("project", "receipt", "task")  # texts that name rows
_OF_TEMPLATES = (c.SetSchedule, c.SetTrigger)
_OF_TASKS = (c.AddMany, c.Plan, c.Spawn)
_OF_CHANGES = (c.Edit, c.Retry)


class Guarded(NamedTuple):
    item: Checked
    warnings: tuple[str, ...] = ()


def guarded(work: UnitOfWork, project: Project | None, item: Checked) -> Guarded:
    """The command with its secrets sealed, and without those that its sender holds."""
    sealing = Sealing(work, item.command.project)
    command = sealing.command(item.command)
    if project is not None and project.sealed:
        command = without_held(work, command)
    return Guarded(item if command is item.command else replace(item, command=command), tuple(sealing.warnings))


class Sealing:
    """Seals the secrets of one command, for the command itself: see `sealed_rows.py`."""

    def __init__(self, work: UnitOfWork, project: str) -> None:
        self._vault = Vault(work, project)
        self._unsealed: list[str] = []

    @property
    def warnings(self) -> Iterable[str]:
        if self._unsealed:
            names = ", ".join(self._unsealed[:5]) + (" …" if len(self._unsealed) > 5 else "")
            yield f"{names}: stored as given, since there is no master key to seal it with"

    def command(self, command: Any) -> Any:
        if isinstance(command, c.Add):
            task = self._task(command.task)
            return command if task is command.task else replace(command, task=task)
        if isinstance(command, _OF_CHANGES):
            changes = command.changes and self._fields(command.changes)
            return command if not changes else replace(command, changes={**(command.changes or {}), **changes})
        if isinstance(command, _OF_TASKS):
            command = _with(command, "tasks", self._tasks(command.tasks))
            if isinstance(command, c.Plan) and command.on_end:
                on_end = {status: self._template(template) for status, template in command.on_end.items()}
                same = all(on_end[status] is template for status, template in command.on_end.items())
                command = command if same else replace(command, on_end=on_end)
        elif isinstance(command, _OF_TEMPLATES):
            command = _with(command, "template", self._template(command.template))
        return command

    def _template(self, template: Template) -> Template:
        sealed: Template = _with(template, "tasks", self._tasks(template.tasks))
        return sealed

    def _tasks(self, tasks: tuple[NewTask, ...]) -> tuple[NewTask, ...]:
        after = tuple([self._task(new) for new in tasks])
        return tasks if all(a is b for a, b in zip(after, tasks, strict=True)) else after

    def _task(self, new: NewTask) -> NewTask:
        if not new.spec and not new.metadata:
            return new
        changed = self._fields({"spec": new.spec, "metadata": new.metadata})
        return replace(new, **changed) if changed else new

    def _fields(self, fields: Mapping[str, Any]) -> dict[str, Any]:
        """The fields of a task that change because they have secrets."""
        found = {}
        for name in FIELDS:
            value = fields.get(name)
            if not isinstance(value, Mapping) or not value:
                continue
            check_places(value, f"/{name}")
            after = walked(value, f"/{name}", self._leaf)
            if after is not value:
                found[name] = after
        return found

    def _leaf(self, path: str, value: Any) -> Any:
        if not path.startswith((CONTEXT, METADATA)):
            return KEPT
        secret = secret_of(path, value)
        if secret is None:
            return KEPT
        try:
            return self._vault.seal_text(COMMAND, path, secret.value)
        except SecretsOff:
            if not secret.by_name:
                raise
            self._unsealed.append(shown_name(path))
            return KEPT


def _with(struct: Any, field: str, value: Any) -> Any:
    return struct if getattr(struct, field) is value else replace(struct, **{field: value})


# --- what a holder writes -----------------------------------------------------------------------------------


def without_held(work: UnitOfWork, command: Any) -> Any:
    """The command without the secrets of the tasks that its sender holds, or that it is about.

    Raises SecretUnreadable where they cannot be opened: what cannot be searched is not stored.
    """
    tasks = {task.id: task for task in _tasks_of(work, command)}
    if not tasks:
        return command
    hidden = hidden_of(work, tasks.values())
    after = hidden.struct(command, _KEPT)
    if after is not command and getattr(command, "signature", None) is not None:
        raise InvalidInput(
            "the result has a secret of the task; it is signed, so it cannot be stored without it",
            "take the secret out of the result, then sign and submit it again",
        )
    return after


def hidden_of(work: UnitOfWork, tasks: Iterable[Task]) -> Hidden:
    secrets: set[str] = set()
    for task in tasks:
        brief = brief_of(work, task)
        spec = unpacked(work, task.project, brief.spec)
        # What nobody can open any more does not stand in the way of an edit that replaces it.
        secrets |= set(secrets_of(Vault(work, task.project), task, brief, spec, is_whole=False).values())
    return Hidden(secrets)


def _tasks_of(work: UnitOfWork, command: Any) -> Iterable[Task]:
    """Tasks with secrets: the one of the receipt, the one that is named, and those that the sender holds."""
    project, agents = command.project, {work.principal.agent}
    for find in (_by_receipt, _by_name):
        task = find(work, command)
        if task is not None:
            agents.add(task.agent if find is _by_receipt else None)
            if task.sealed:
                yield task
    field = command.declaration.speaks_for
    agents.add(getattr(command, field) if field is not None else None)
    for agent in agents - {None}:
        yield from work.find(Task, {"project": project, "agent": agent, "sealed": True}, limit=limits.SEARCHED_TASKS)


def _by_receipt(work: UnitOfWork, command: Any) -> Task | None:
    receipt = getattr(command, "receipt", None)
    if not isinstance(receipt, str):
        return None
    try:
        return task_by_ref(work, command.project, parse_receipt(receipt).name)
    except InvalidInput:
        return None


def _by_name(work: UnitOfWork, command: Any) -> Task | None:
    name = getattr(command, "task", None)
    if not isinstance(name, str) or isinstance(command, (c.ClaimTask, c.Heartbeat)):
        return None
    try:
        return find_task(work, command.project, name)
    except TenureError:  # its handler refuses the name
        return None
