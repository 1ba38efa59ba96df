"""Where the artifacts of a store's projects lie: what was set, else a folder beside an embedded store."""
# ruff: noqa: PTH100, PTH122 - pathlib costs every command 7 ms at its start

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from tenure.core.errors import InvalidInput
from tenure.stores.open_store import path_of

if TYPE_CHECKING:
    from tenure.artifacts.port import Artifacts


class Places:
    """Opened when first asked for: most commands need none."""

    def __init__(self, url: str | None, store: str, tenant: str = "local") -> None:
        self._url, self._store, self._tenant = url or os.environ.get("TENURE_ARTIFACTS"), store, tenant
        self._opened: dict[str, Artifacts] = {}

    def __call__(self, project: str) -> Artifacts:
        found = self._opened.get(project)
        if found is None:
            from tenure.artifacts.open_artifacts import open_artifacts

            made = open_artifacts(self.url, tenant=self._tenant, project=project)
            found = self._opened.setdefault(project, made)
        return found

    @property
    def url(self) -> str:
        if self._url:
            return self._url
        if self._store.startswith("memory://"):
            return "memory://"
        path = path_of(self._store)
        if path is None:
            raise InvalidInput(
                "there is no place for artifacts: this store is no file that a folder could lie beside",
                "set `artifacts` (TENURE_ARTIFACTS) to s3://bucket/prefix, or to a folder that all hosts share",
            )
        # After the store's own name: two stores in one folder must not delete each other's.
        return os.path.splitext(os.path.abspath(path))[0] + ".artifacts"

    def close(self) -> None:
        for opened in self._opened.values():
            opened.close()
