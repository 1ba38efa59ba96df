"""The secrets of triggers on deliveries, sealed in their rows.

Rows from before 0.2 have theirs as they are. These work as before; a leader that has the master key seals them, and so
does every change of the secret. Without a master key they stay as they are, and no new one is stored.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from tenure.core import signatures
from tenure.core import triggers as rule
from tenure.core.errors import SecretsOff
from tenure.core.records import Trigger, replace
from tenure.core.sealed import has_form
from tenure.engine.runtime.effects import Report
from tenure.engine.runtime.seals import open_sealed, seal
from tenure.engine.runtime.unit_of_work import UnitOfWork

if TYPE_CHECKING:
    from tenure.engine.runtime.engine import Engine

PATH = "secret"


def sealed(work: UnitOfWork, row: Trigger, key: bytes) -> bytes:
    return seal(work, row.project, rule.owner_of(row.id), PATH, key)


def key_of(work: UnitOfWork, row: Trigger, stored: bytes) -> bytes:
    return open_sealed(work, row.project, rule.owner_of(row.id), PATH, stored) if has_form(stored) else stored


def keys_at(work: UnitOfWork, row: Trigger, now: int) -> tuple[bytes, ...]:
    """The keys that a delivery may be signed with now."""
    return tuple(key_of(work, row, stored) for stored in signatures.keys_at(row, now))


# --- rows from before ---------------------------------------------------------------------------------------


def projects_with_plain(engine: Engine, now: int) -> Sequence[str]:
    """Projects with a secret that is not sealed. None where this process cannot seal."""
    if engine.context.sealer is None:
        return ()
    return engine.read(lambda tx: sorted({row.project for row in tx.find(Trigger, {}) if is_plain(row)}))


def seal_plain(engine: Engine, project: str) -> Report:
    def decide(work: UnitOfWork) -> None:
        for row in work.find(Trigger, {"project": project}):
            if is_plain(row):
                work.put(resealed(work, row))

    with suppress(SecretsOff):  # `doctor` reports it
        engine.transact((project,), decide)
    return Report()


def is_plain(row: Trigger) -> bool:
    return any(stored and not has_form(stored) for stored in (row.secret, row.previous))


def resealed(work: UnitOfWork, row: Trigger) -> Trigger:
    """The row with its secrets sealed under the current data key."""
    secret, previous = (
        stored and sealed(work, row, key_of(work, row, stored)) for stored in (row.secret, row.previous)
    )
    return replace(row, secret=secret, previous=previous)
