"""What happens to a command before its handler sees it: its secrets are sealed, and those of its sender hidden.

So rows, events, digests of requests, archives, exports and sinks have no plain secret, whatever the handler does.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from tenure.core import commands as c
from tenure.core import limits
from tenure.core.claims import claim_id
from tenure.core.commands import NewTask, Template
from tenure.core.decoders import defaults_of
from tenure.core.errors import InvalidInput, NotAllowed, NotFound, SecretsOff, TenureError
from tenure.core.ids import parse_receipt
from tenure.core.inputs import Checked
from tenure.core.records import Agent, Claim, Project, Session, Task, replace
from tenure.core.task_secrets import (
    KEPT,
    SEARCHED,
    Hidden,
    check_places,
    is_place,
    secret_of,
    shown_name,
    walked,
)
from tenure.engine.checks.evidence import check_found
from tenure.engine.reads.task_view import unpacked
from tenure.engine.runtime.rows import brief_of, find_task, task_by_ref
from tenure.engine.runtime.seals import Vault
from tenure.engine.runtime.unit_of_work import UnitOfWork
from tenure.engine.secrets.known_secrets import knowers, known_to
from tenure.engine.secrets.sealed_rows import COMMAND, FIELDS, secrets_of

_KEPT = ("project", "receipt", "task")  # texts that name rows
_WITHOUT_TEXT = (*_KEPT, "request_id", "trace_id")  # nobody writes these
_OF_TEMPLATES = (c.SetSchedule, c.SetTrigger)
_OF_TASKS = (c.AddMany, c.Plan, c.Spawn)
_OF_CHANGES = (c.Edit, c.Retry)


class Guarded(NamedTuple):
    item: Checked
    warnings: tuple[str, ...] = ()


def guarded(work: UnitOfWork, project: Project | None, item: Checked) -> Guarded:
    """The command with its secrets sealed, and without those that its sender knows."""
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
        if not is_place(path):
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


# --- what its sender knows -----------------------------------------------------------------------------------


def without_held(work: UnitOfWork, command: Any) -> Any:
    """The command without the secrets that its sender holds or was given within a day, or that it is about.

    Raises SecretUnreadable where they cannot be opened: what cannot be searched is not stored.
    """
    agents, keys, tasks, names = _senders_of(work, command)
    if not _has_texts(command, names):
        return command
    secrets = _secrets_of(work, tasks) | known_to(work, command.project, knowers(agents, keys))
    hidden = _hidden(frozenset(secrets))
    if not hidden:
        return command
    after = hidden.struct(command, _KEPT)
    if after is not command and getattr(command, "signature", None) is not None:
        raise InvalidInput(
            "the result has a secret of the task; it is signed, so it cannot be stored without it",
            "take the secret out of the result, then sign and submit it again",
        )
    if isinstance(after, c.PutArtifact):
        check_bytes(work, after, secrets)
    return after


@lru_cache(limits.SEARCHES_KEPT)
def _hidden(secrets: frozenset[str]) -> Hidden:
    """Most commands are of senders whose secrets are the same as before."""
    return Hidden(secrets)


def _has_texts(command: Any, names: set[str]) -> bool:
    """Whether it has texts besides names: what has none is not searched, and needs no key."""
    usual = defaults_of(type(command))
    for field in command.__struct_fields__:
        value = getattr(command, field)
        is_name = isinstance(value, str) and (field in _WITHOUT_TEXT or value == usual.get(field))
        if not is_name and not isinstance(value, (int, float)) and _is_text(value, names):
            return True
    return False


def _is_text(value: Any, names: set[str]) -> bool:
    if isinstance(value, str):
        return len(value) >= SEARCHED and value not in names
    if isinstance(value, Mapping):
        return any(_is_text(part, names) for pair in value.items() for part in pair)
    if isinstance(value, (list, tuple)):
        return any(_is_text(part, names) for part in value)
    return value is not None and not isinstance(value, (bool, bytes))


def _secrets_of(work: UnitOfWork, tasks: Iterable[Task]) -> set[str]:
    secrets: set[str] = set()
    for task in tasks:
        brief = brief_of(work, task)
        spec = unpacked(work, task.project, brief.spec)
        # What nobody can open any more does not stand in the way of an edit that replaces it.
        secrets |= set(secrets_of(Vault(work, task.project), task, brief, spec, is_whole=False).values())
    return secrets


class Senders(NamedTuple):
    """Whose secrets a command may have, and the tasks with secrets that they hold or that it names."""

    agents: set[str]
    keys: set[str]
    tasks: list[Task]
    names: set[str]  # of agents and sessions that exist


def _senders_of(work: UnitOfWork, command: Any) -> Senders:
    who, field = work.principal, command.declaration.speaks_for
    spoken = getattr(command, field) if field is not None else None
    agents, keys = {name for name in (who.agent, spoken) if name}, {who.key} if who.key else set()
    sessions: set[str] = {name for name in (who.session, getattr(command, "session", None)) if name}
    known = work.get_many(Session, command.project, sorted(sessions))
    agents |= {session.agent for session in known.values()}
    tasks: dict[str, Task | None] = {}
    claim = _claim_by_receipt(work, command)
    if claim is not None:
        agents.add(claim.agent)
        keys |= {claim.key} if claim.key else set()
        tasks[claim.task] = work.get(Task, command.project, claim.task)
    named = _by_name(work, command)
    if named is not None:
        tasks[named.id] = named
    for agent in agents:
        where = {"project": command.project, "agent": agent, "sealed": True}
        tasks |= {task.id: task for task in work.find(Task, where, limit=limits.SEARCHED_TASKS)}
    found = [task for task in tasks.values() if task is not None and task.sealed]
    names = known.keys() | work.get_many(Agent, command.project, sorted(agents)).keys()
    return Senders(agents, keys, found, names)


def _claim_by_receipt(work: UnitOfWork, command: Any) -> Claim | None:
    """Whose receipt it shows: it need not be live, nor genuine."""
    receipt = getattr(command, "receipt", None)
    if not isinstance(receipt, str):
        return None
    try:
        given = parse_receipt(receipt)
    except InvalidInput:
        return None
    task = task_by_ref(work, command.project, given.name)
    return None if task is None else work.get(Claim, command.project, claim_id(task.id, given.generation))


def _by_name(work: UnitOfWork, command: Any) -> Task | None:
    name = getattr(command, "task", None)
    if not isinstance(name, str) or isinstance(command, (c.ClaimTask, c.Heartbeat)):
        return None
    try:
        return find_task(work, command.project, name)
    except TenureError:  # its handler refuses the name
        return None


# --- bytes --------------------------------------------------------------------------------------------------


def check_bytes(work: UnitOfWork, command: c.PutArtifact, secrets: set[str]) -> None:
    """Refuse an artifact that has one of the secrets. Its bytes are not changed: their digest is their name.

    They are read between two attempts of the transaction, as evidence is.
    """
    open_artifacts = work.context.artifacts
    if open_artifacts is None:
        return

    def search() -> None:
        try:
            pieces = open_artifacts(command.project).read(command.digest, end=min(command.size, limits.SEARCHED_BYTES))
            text = b"".join(pieces).decode(errors="replace")
        except NotFound:  # its handler knows what to do without them
            return
        if Hidden(secrets).text(text) != text:
            raise NotAllowed(
                f"the artifact {command.name} has a secret of a task",
                "nothing was stored under that name; take the secret out, and revoke it if it was passed on",
            )

    check_found(work, [sorted(secrets), command.project, command.digest, command.size], search)
