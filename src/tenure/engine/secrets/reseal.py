"""Everything of a project sealed again: with its current data key, or in the store that it was copied to."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tenure.core import schedules, triggers, webhook_delivery
from tenure.core.claims import is_held
from tenure.core.errors import InvalidInput, SecretsOff, SecretUnreadable
from tenure.core.records import Dag, Request, Schedule, Task, Trigger, Webhook, replace
from tenure.core.sealed import (
    LARGEST,
    SEALED,
    Sealed,
    as_bytes,
    as_value,
    current_key,
    from_bytes,
    from_value,
    has_form,
    is_sealed,
)
from tenure.core.task_secrets import KEPT, check_names, sealed_in, walked
from tenure.engine.reads.task_view import packed, unpacked
from tenure.engine.runtime.rows import brief_of
from tenure.engine.runtime.seals import Vault
from tenure.engine.runtime.unit_of_work import UnitOfWork
from tenure.engine.secrets import known_secrets, plain_values, sealed_rows, trigger_secrets

Opens = Callable[[str, str, Sealed], bytes]  # owner, path and sealed value → the plain one


def moved_or_paused(work: UnitOfWork, project: str, opens: Opens, why: str) -> Resealing:
    """Seal the secrets of all but tasks again; webhooks and triggers whose secret does not open are paused."""
    where = {"project": project}
    hooks, fired = work.find(Webhook, where), work.find(Trigger, where)
    had = {(Webhook, row.id) for row in hooks if row.secret} | {(Trigger, row.id) for row in fired if row.secret}
    again = Resealing(work, project, opens)
    again.sources()
    for webhook in work.find(Webhook, where):
        if not webhook.secret and (Webhook, webhook.id) in had:
            work.put(webhook_delivery.paused(replace(webhook, previous=b""), why, work.now))
    for trigger in work.find(Trigger, where):
        if not trigger.secret and (Trigger, trigger.id) in had:
            row = replace(trigger, previous=b"", enabled=False, last_error=why)
            details = {"trigger": row.id, "on": row.kind}
            work.record("trigger.paused", row, project=project, message=why, details=details)
    return again


class Resealing:
    """Seals what an earlier data key has sealed; with `plain` also texts that are secret by their name.

    `opens` opens values of the store that this project was copied from. Then everything is sealed again; a secret that
    cannot be is dropped from its column, and stays unreadable in a task.
    """

    def __init__(self, work: UnitOfWork, project: str, opens: Opens | None = None, *, plain: bool = False) -> None:
        self._work, self._project, self._vault, self._plain = work, project, Vault(work, project), plain
        self._is_copy = opens is not None
        self._opens = opens or self._vault.opened
        self.count = 0
        self.left: list[str] = []  # keys of tasks with plain ones that stay: somebody holds it, or names collide

    def sources(self) -> None:
        """Webhooks, triggers, schedules, and the templates of dags."""
        work, where = self._work, {"project": self._project}
        for hook in work.find(Webhook, where):
            self._columns(hook, webhook_delivery.owner_of(hook.id), webhook_delivery.SECRET_PATH)
        for trigger in work.find(Trigger, where):
            row, owner = trigger, triggers.owner_of(trigger.id)
            if row.signature is not None:
                row = self._columns(row, owner, trigger_secrets.PATH)
            self._template("trigger.set", row, owner, {"trigger": row.id, "on": row.kind})
        for schedule in work.find(Schedule, where):
            details = {"schedule": schedule.id, "next_at": schedule.next_at}
            self._template("schedule.set", schedule, schedules.owner_of(schedule.id), details)
        for dag in work.find(Dag, where):
            self._ends(dag)
        for known in known_secrets.rows_of(work, self._project):
            self._known(known)

    def task(self, task: Task) -> None:
        work, brief = self._work, brief_of(self._work, task)
        owner, spec = sealed_rows.owner_of(task.id), unpacked(work, task.project, brief.spec)
        if self._plain and plain_values.places(spec, brief.metadata):
            if not self._may_seal(task, spec, brief.metadata):
                self.left.append(task.key)
                return
            sealed_rows.note_project(work, task.project)
            task = replace(task, sealed=True)
        after, metadata = self._value(spec, owner, "/spec"), self._value(brief.metadata, owner, "/metadata")
        if after is spec and metadata is brief.metadata:
            return
        stored = brief.spec if after is spec else packed(work, task.project, after)
        work.record("task.resealed", replace(brief, spec=stored, metadata=metadata), task=task, level="debug")

    def _may_seal(self, task: Task, spec: Any, metadata: Any) -> bool:
        """A holder reads its task as it claimed it; and the secrets of a task need different names."""
        if is_held(task):
            return False
        there = [*sealed_in(spec, "/spec"), *sealed_in(metadata, "/metadata")]
        plain = plain_values.places(spec, metadata)
        try:
            check_names([*(path for path, _ in there), *plain])
        except InvalidInput:
            return False
        return all(len(text.encode()) <= LARGEST for text in plain.values())

    def _known(self, row: Request) -> None:
        entries: dict[str, Any] = row.outcome["secrets"]
        counted = self.count  # these are copies
        after = {
            digest: {**entry, "value": self._value(entry["value"], entry["owner"], entry["path"])}
            for digest, entry in entries.items()
        }
        self.count = counted
        if after != entries:  # the digest of a copy is another
            by_digest = {entry["value"][SEALED]["digest"]: entry for entry in after.values()}
            self._work.put(replace(row, outcome={"secrets": by_digest}))

    def _template(self, kind: str, row: Any, owner: str, details: dict[str, Any]) -> None:
        template = self._value(row.template, owner, "")
        if template is not row.template:
            changed = replace(row, template=template)
            self._work.record(kind, changed, project=row.project, level="debug", details=details)

    def _ends(self, dag: Dag) -> None:
        on_end = {
            status: self._value(template, triggers.owner_of_end(dag.id, status), "")
            for status, template in dag.on_end.items()
        }
        if any(on_end[status] is not template for status, template in dag.on_end.items()):
            details = {"dag": dag.id, "on_end": sorted(on_end)}
            changed = replace(dag, on_end=on_end)
            self._work.record("dag.changed", changed, project=dag.project, level="debug", details=details)

    def _value(self, value: Any, owner: str, root: str) -> Any:
        def leaf(path: str, found: Any) -> Any:
            if not is_sealed(found):
                return self._sealed_by_name(owner, path, found) if self._plain else KEPT
            if self._is_current(found[SEALED].get("key")):
                return found
            after = self._again(owner, path, from_value(found))
            return found if after is None else as_value(after)

        return walked(value, root, leaf)

    def _sealed_by_name(self, owner: str, path: str, found: Any) -> Any:
        if not plain_values.is_plain(path, found):
            return KEPT
        self.count += 1
        return self._vault.seal_text(owner, path, found)

    def _columns(self, row: Any, owner: str, path: str) -> Any:
        """The row with its two secrets sealed again."""
        secret, previous = (self._column(owner, path, stored) for stored in (row.secret, row.previous))
        return self._work.put(replace(row, secret=secret, previous=previous))

    def _column(self, owner: str, path: str, stored: bytes) -> bytes:
        if not stored:
            return stored
        if not has_form(stored):  # from before there were sealed values
            try:
                return as_bytes(self._vault.sealed(owner, path, stored))
            except SecretsOff:
                return stored
        sealed = from_bytes(stored)
        if self._is_current(sealed.key):
            return stored
        after = self._again(owner, path, sealed)
        return b"" if after is None else as_bytes(after)

    def _is_current(self, key: Any) -> bool:
        now = None if self._is_copy else current_key(self._vault.seals.rows)
        return now is not None and key == now.id

    def _again(self, owner: str, path: str, sealed: Sealed) -> Sealed | None:
        """The value under the current data key; None where a copy's cannot be opened or sealed."""
        try:
            after = self._vault.sealed(owner, path, self._opens(owner, path, sealed))
        except (SecretsOff, SecretUnreadable):
            if self._is_copy or not self._vault.seals.has_key_of(sealed):
                return None  # nobody can open it
            raise
        self.count += 1
        return after
