"""The secrets of one project, sealed and opened with the data keys that this transaction reads."""

from __future__ import annotations

from tenure.core.errors import SecretsOff
from tenure.core.records import DataKey
from tenure.core.sealed import ProjectSeals, as_bytes, from_bytes
from tenure.engine.runtime.unit_of_work import UnitOfWork


def seal(work: UnitOfWork, project: str, owner: str, path: str, value: bytes) -> bytes:
    """The sealed form for a column. The first secret of a project makes its keys, in this transaction."""
    seals = _seals(work, project)
    sealed = seals.seal(owner, path, value)
    for row in seals.made:
        work.put(row)
    return as_bytes(sealed)


def open_sealed(work: UnitOfWork, project: str, owner: str, path: str, stored: bytes) -> bytes:
    """Raises SecretUnreadable."""
    return _seals(work, project).open(owner, path, from_bytes(stored))


def _seals(work: UnitOfWork, project: str) -> ProjectSeals:
    sealer = work.context.sealer
    if sealer is None:
        raise SecretsOff("this process has no master key, so secrets can neither be stored nor read")
    rows = work.find(DataKey, {"project": project})
    return ProjectSeals(sealer, work.context.tenant, project, rows, work.random.token, work.now)
