"""Rotation: a new data key, data keys under a new master key, and everything sealed again with the current data key."""

from __future__ import annotations

from tenure.core import commands
from tenure.core.errors import InvalidInput
from tenure.core.filters import Where
from tenure.core.outcomes import Outcome
from tenure.core.records import Task
from tenure.engine.runtime.rows import project_of
from tenure.engine.runtime.seals import Vault
from tenure.engine.runtime.unit_of_work import Handlers, UnitOfWork
from tenure.engine.secrets.open_secrets import open_secrets
from tenure.engine.secrets.reseal import Resealing, moved_or_paused

LOST = (
    "its secret was sealed under a master key that is lost: rotate it, give the other side the new one, then resume it"
)
PAGE = 100  # tasks that are sealed again in one transaction


def rotate_data_key(work: UnitOfWork, cmd: commands.RotateDataKey) -> Outcome:
    """Old values stay readable: retired data keys are kept, and so is the digest key. But not with `lost`."""
    if cmd.project:  # "": the secrets of the store itself
        project_of(work, cmd.project)
    vault = Vault(work, cmd.project)
    if cmd.master and cmd.lost:
        raise InvalidInput("master and lost exclude each other", "give the lost keys up first")
    if cmd.lost:
        gone = vault.seals.lost()
        if not gone:
            return Outcome(outcome="UNCHANGED", message=f"{cmd.project}: every data key opens: nothing is lost")
        for row in gone:
            work.remove(row)
        moved_or_paused(work, cmd.project, Vault(work, cmd.project).opened, LOST)
        count = len(gone)
        text = f"data keys given up: {count}; set again what they sealed"
    elif cmd.master:
        count = vault.seals.rewrap()
        if not count:
            text = f"{cmd.project}: every data key is wrapped by the current master key already"
            return Outcome(outcome="UNCHANGED", message=text)
        vault.save()
        text = f"data keys wrapped by the current master key: {count}"
    else:
        vault.seals.rotate()
        count = vault.save()
        text = "new secrets are sealed with a new data key; earlier ones stay readable"
    details = {"master": cmd.master, "keys": count, **({"lost": True} if cmd.lost else {})}
    work.record("project.key_rotated", project=cmd.project, details=details)
    return Outcome(outcome="UPDATED", command_id=work.command_id, message=f"{cmd.project}: {text}")


def reseal(work: UnitOfWork, cmd: commands.Reseal) -> Outcome:
    """A page of it; `next` shows where to go on."""
    again = Resealing(work, cmd.project, plain=cmd.plain)
    if cmd.after is None:
        again.sources()
    where: Where = {"project": cmd.project, **({} if cmd.plain else {"sealed": True})}
    after = None if cmd.after is None else (cmd.after, cmd.after)
    tasks = work.tx.find(Task, where, order="id", after=after, limit=PAGE)
    for task in tasks:
        again.task(work.require(Task, cmd.project, task.id))
    page = tasks[-1].id if len(tasks) == PAGE else None
    message = f"{cmd.project}: secrets sealed: {again.count}"
    code, counts = "UPDATED" if again.count else "UNCHANGED", {"resealed": again.count}
    if cmd.plain:
        counts["left"] = len(again.left)
    left = tuple(f"{key}: left as given, since it is held, or two names are alike" for key in again.left)
    return Outcome(outcome=code, message=message, counts=counts, next=page, warnings=left or None)


HANDLERS: Handlers = {
    commands.OpenSecrets: open_secrets,
    commands.RotateDataKey: rotate_data_key,
    commands.Reseal: reseal,
}
