"""`copy`: copy projects from one store to another, and verify both afterwards."""

from __future__ import annotations

from typing import NamedTuple

from tenure.client.caller import StoreOnly, SystemRandom, is_server
from tenure.client.transports.local import ProjectArtifacts
from tenure.core.errors import CopyRefused, NotFound
from tenure.engine import Context, Engine, Random
from tenure.engine.duties.sweep import projects
from tenure.engine.project_copy import Copied, copy_project
from tenure.engine.verify.artifact_rows import lost
from tenure.stores.open_store import open_store


class Copies(NamedTuple):
    copied: list[Copied]
    is_verified: bool
    findings: list[str]


def copy(
    source: str,
    target: str,
    project: str | None = None,
    *,
    verified: bool = True,
    random: Random | None = None,
    artifacts: str | None = None,
    artifacts_to: str | None = None,
) -> Copies:
    """Copy one project, or all, to the store at `target`, which is created where it is missing.

    Each is one transaction there. `verified`: check every invariant of both stores; `findings` lists the violations.
    `artifacts` is where the bytes of artifacts are stored, `artifacts_to` where they shall be; defaults as for Client.
    """
    for url in (source, target):
        if is_server(url):
            raise StoreOnly(f"copy: {url} is a server, not a store", "copy on its host, with its store's URL")
    random = random or SystemRandom()
    old = Engine(open_store(source, create=False), random, Context(artifacts=ProjectArtifacts(artifacts, source)))
    try:
        names = [project] if project is not None else projects(old)
        if not names:
            raise NotFound(f"{old.store.url} has no project", "create one with `tenure init`")
        places = ProjectArtifacts(artifacts_to or artifacts, target)
        new = Engine(open_store(target), random, Context(artifacts=places))
        try:
            if project is None:
                _refuse_existing(new, names)
            done = [copy_project(old, new, name) for name in names]
            findings = []
            if verified:
                for engine in (old, new):
                    wrong = [*engine.store.check(), *engine.verify(), *lost(engine)]
                    findings += [f"{engine.store.url}: {line}" for line in wrong]
            return Copies(done, verified, findings)
        finally:
            new.store.close()
    finally:
        old.store.close()


def _refuse_existing(new: Engine, names: list[str]) -> None:
    """Copy all projects or none."""
    there = sorted(set(projects(new)) & set(names))
    if there:
        raise CopyRefused(
            f"{new.store.url} has the project {there[0]} already; projects are never merged",
            "copy to another store, or name one project with --project",
        )
