"""Copying a project's artifact bytes to another store's artifact store."""

from __future__ import annotations

from tenure.artifacts.port import Artifacts, put
from tenure.core.errors import CopyRefused, InvalidInput, NotFound
from tenure.core.records import Content
from tenure.engine.runtime.engine import Engine
from tenure.stores.port import Transaction

PAGE = 500


def carry(source: Engine, target: Engine, project: str, old: Transaction) -> int:
    """Copy the bytes that rows of `old` refer to and that are missing there; return the number of contents.

    Contents missing at the source are skipped: `verify` reports them there, and afterwards in the new store.
    """
    carried = 0
    last: tuple[str, str] | None = None
    while True:
        page = old.find(Content, {"project": project}, after=last, limit=PAGE)
        wanted = [row for row in page if row.uses]
        if wanted:
            carried += _carried(_place(source, project), _place(target, project), wanted)
        if len(page) < PAGE:
            return carried
        last = (page[-1].id, page[-1].id)


def _carried(old: Artifacts, new: Artifacts, wanted: list[Content]) -> int:
    carried = 0
    for row in wanted:
        if new.size(row.id) == row.size:
            continue
        try:
            content = old.read(row.id)
        except NotFound:
            continue
        put(new, content, largest=row.size, expected=row.id)
        carried += 1
    return carried


def _place(engine: Engine, project: str) -> Artifacts:
    try:
        if engine.context.artifacts is None:
            raise InvalidInput("no artifact store is configured")
        return engine.context.artifacts(project)
    except InvalidInput as error:
        raise CopyRefused(
            f"{project} has artifacts, and {engine.store.url} has no artifact store: {error.message}",
            "name one with --artifacts: a folder that all hosts share, or s3://bucket/prefix",
        ) from error
