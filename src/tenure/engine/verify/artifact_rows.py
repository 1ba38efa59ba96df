"""Verify artifacts: each belongs to a claim, and contents count their references."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING

import msgspec

from tenure.core import archive, claims
from tenure.core.errors import TenureError
from tenure.core.records import Archived, Artifact, Claim, Content, Result, Task
from tenure.engine.duties.sweep import projects
from tenure.engine.verify.replay import Tables

if TYPE_CHECKING:
    from tenure.engine.runtime.engine import Engine
    from tenure.stores.port import Transaction


def artifact_rows(rows: Tables) -> Iterator[str]:
    found = list(rows[Artifact].values())
    of_task = Counter((row.project, row.task) for row in found)
    for row in found:
        claim = rows[Claim].get((row.project, claims.claim_id(row.task, row.generation)))
        if claim is None or claim.agent != row.agent or row.id != f"{claim.id}:{row.name}":
            yield f"{row.id}: belongs to a claim that does not exist"
    for task in rows[Task].values():
        if task.artifacts != of_task[task.project, task.id]:
            yield f"{task.key}: {task.artifacts} artifacts, {of_task[task.project, task.id]} are there"
    for result in rows[Result].values():
        for id in result.artifacts:
            if (result.project, id) not in rows[Artifact]:
                yield f"{result.id}: passes on {id}, which does not exist"
    yield from _contents(rows, found)


def _contents(rows: Tables, found: list[Artifact]) -> Iterator[str]:
    uses = Counter((row.project, row.digest) for row in found)
    for archived in rows[Archived].values():
        uses.update((row.project, row.digest) for row in _inside(archived))
    for key in uses.keys() | rows[Content].keys():
        content = rows[Content].get(key)
        counted = content.uses if content is not None else 0
        if counted != uses[key]:
            yield f"{key[1]}: {uses[key]} artifacts refer to these bytes, {counted} are counted"
        if content is not None and (content.idle_at is None) != bool(content.uses):
            yield f"{key[1]}: {content.uses} artifacts refer to these bytes, and since {content.idle_at} none does"


def _inside(archived: Archived) -> list[Artifact]:
    """Those of an archived task; unreadable ones are reported with the archive."""
    try:
        return [row for row in archive.rows_in(archived) if isinstance(row, Artifact)]
    except (ValueError, msgspec.MsgspecError):
        return []


def lost(engine: Engine) -> Iterator[str]:
    """Contents that artifacts refer to and that are missing. Queries the artifact store for each."""
    for project in projects(engine):
        contents = engine.read(partial(_of_project, project=project))
        wanted = [row for row in contents if row.uses]
        if not wanted:
            continue
        if engine.context.artifacts is None:
            yield f"{project}: {len(wanted)} contents of artifacts, but no artifact store"
            continue
        try:
            place = engine.context.artifacts(project)
            for row in wanted:
                size = place.size(row.id)
                is_now = "gone" if size is None else f"{size} bytes"
                if size != row.size:
                    yield f"{project}: artifact content {row.id}: {is_now}, not {row.size} in {place.url}"
        except TenureError as error:
            yield f"{project}: cannot read the artifact store: {error.message}"


def _of_project(tx: Transaction, project: str) -> list[Content]:
    return tx.find(Content, {"project": project})
