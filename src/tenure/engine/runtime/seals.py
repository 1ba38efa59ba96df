"""The secrets of one project, sealed and opened with the data keys that this transaction reads.

`seal` and `open_sealed` are for a field of any row, as the secret of a webhook: `owner` names the row by its table and
id, `path` the field. A value opens only under the owner and path that it was sealed with.
"""

from __future__ import annotations

from typing import Any

from tenure.core.errors import SecretsOff
from tenure.core.records import DataKey
from tenure.core.sealed import ProjectSeals, Sealed, as_bytes, as_value, from_bytes, from_value
from tenure.engine.runtime.unit_of_work import UnitOfWork


def seal(work: UnitOfWork, project: str, owner: str, path: str, value: bytes) -> bytes:
    """The sealed form for a column. The first secret of a project makes its keys, in this transaction."""
    return as_bytes(Vault(work, project).sealed(owner, path, value))


def open_sealed(work: UnitOfWork, project: str, owner: str, path: str, stored: bytes) -> bytes:
    """Raises SecretUnreadable."""
    return Vault(work, project).opened(owner, path, from_bytes(stored))


class Vault:
    """The data keys of one project. For one command: where that is undone, so are the keys that it made."""

    def __init__(self, work: UnitOfWork, project: str) -> None:
        self._work, self._project = work, project
        self._found: ProjectSeals | None = None

    @property
    def seals(self) -> ProjectSeals:
        """Read with the first secret. Raises SecretsOff where this process has no cipher."""
        if self._found is None:
            work = self._work
            if work.context.sealer is None:
                raise SecretsOff("this process has no master key, so secrets can neither be stored nor read")
            rows = work.find(DataKey, {"project": self._project})
            self._found = ProjectSeals(
                work.context.sealer, work.context.tenant, self._project, rows, work.random.token, work.now
            )
        return self._found

    def sealed(self, owner: str, path: str, value: bytes) -> Sealed:
        sealed = self.seals.seal(owner, path, value)
        self.save()
        return sealed

    def opened(self, owner: str, path: str, sealed: Sealed) -> bytes:
        return self.seals.open(owner, path, sealed)

    def save(self) -> int:
        """Put the keys that were made or changed; how many these are."""
        made, self.seals.made = self.seals.made, []
        for row in made:
            self._work.put(row)
        return len(made)

    # --- texts in JSON ---

    def seal_text(self, owner: str, path: str, text: str) -> dict[str, Any]:
        return as_value(self.sealed(owner, path, text.encode()))

    def open_text(self, owner: str, path: str, value: Any) -> str:
        return self.opened(owner, path, from_value(value)).decode()

    def moved(self, value: Any, before: tuple[str, str], after: tuple[str, str]) -> dict[str, Any]:
        """A sealed text, sealed again for another owner and path."""
        return self.seal_text(*after, self.open_text(*before, value))
