"""Secrets in the clear: for the holder of a live claim, and for nobody else."""

from __future__ import annotations

from tenure.core import commands
from tenure.core.errors import SecretsOff, SecretUnreadable
from tenure.core.outcomes import Outcome
from tenure.core.records import Task
from tenure.core.roles import check_opens
from tenure.engine.reads.task_view import unpacked
from tenure.engine.runtime.rows import brief_of
from tenure.engine.runtime.seals import Vault
from tenure.engine.runtime.unit_of_work import UnitOfWork
from tenure.engine.secrets.known_secrets import note_given
from tenure.engine.secrets.sealed_rows import secrets_of
from tenure.engine.verbs.holder_verbs import held


def opened(work: UnitOfWork, task: Task) -> dict[str, str]:
    """Raises SecretUnreadable or SecretsOff: the claim is not granted then, and the task stays as it is."""
    brief = brief_of(work, task)
    return secrets_of(Vault(work, task.project), task, brief, unpacked(work, task.project, brief.spec))


def given(work: UnitOfWork, task: Task) -> dict[str, str]:
    """The same for an answer: from now on what its receiver writes is searched for them."""
    secrets = opened(work, task)
    note_given(work, task)
    return secrets


def why_unreadable(work: UnitOfWork, task: Task) -> str | None:
    """Why nobody can get the secrets of the task here; None where they open."""
    try:
        opened(work, task)
    except (SecretUnreadable, SecretsOff) as error:
        return error.message
    return None


def open_secrets(work: UnitOfWork, cmd: commands.OpenSecrets) -> Outcome:
    """The secrets of the held task; the receipt is judged first, as in every verb of a holder."""
    hold = held(work, cmd.project, cmd.receipt)
    check_opens(work.principal, hold.claim, f"the secrets of {hold.task.key}")
    return Outcome(outcome="OK", generation=hold.task.generation, secrets=given(work, hold.task))
