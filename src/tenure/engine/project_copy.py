"""Moving a project to another store: every row and event, in pages, in one transaction of the target store.

So there is never half of a project: if the copy is interrupted, the target has all of it or nothing. The source store
changes in one thing only: claiming is stopped there, so that no agent continues where the work no longer is.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple, TypeVar

import msgspec
from msgspec.structs import astuple

from tenure.artifacts.port import Artifacts, put
from tenure.core import commands, lifecycle, limits
from tenure.core.errors import (
    CopyRefused,
    InvalidInput,
    NotFound,
    OutcomeUnknown,
    SecretsOff,
    StoreCorrupt,
)
from tenure.core.filters import Where
from tenure.core.records import (
    KINDS,
    Claim,
    Content,
    Cursor,
    DataKey,
    Project,
    Reservation,
    Row,
    Sink,
    Spawn,
    Task,
    Trigger,
    Webhook,
    replace,
)
from tenure.core.sealed import ProjectSeals, Sealed
from tenure.engine.audit.sealer import join_copy, last_seal, seal_all
from tenure.engine.budgets.budget_verbs import joined
from tenure.engine.relay.webhook_verbs import listen
from tenure.engine.runtime.engine import Engine
from tenure.engine.runtime.epoch import put_in_force
from tenure.engine.runtime.rows import event_pages, row_pages
from tenure.engine.runtime.unit_of_work import UnitOfWork
from tenure.engine.secrets.reseal import moved_or_paused
from tenure.engine.sources.template_tasks import LINE, MOVED
from tenure.engine.verbs.reserve import release_reservations
from tenure.stores.port import Change, Transaction

R = TypeVar("R", bound=Row)
PAGE = 100  # rows in memory at once
MOST_NAMED = limits.COPY_NAMED


class Copied(NamedTuple):
    """The contents of the target store."""

    project: str
    rows: dict[str, int]  # table → how many
    events: int
    epoch: str  # current there


def copy_project(source: Engine, target: Engine, project: str) -> Copied:
    """Move a project; raises where claims are live, the target has a project of that name, or the source has none.

    Both stores are locked against other writes to the project meanwhile. If the data read back differs from the
    source, it raises and nothing is kept. No earlier receipt is valid there. Artifact bytes are copied before the
    rows that refer to them; most of them before anything is locked.
    """
    if source.store.url == target.store.url:
        raise InvalidInput(f"{source.store.url}: source and target are the same store")
    stopped = source.read(lambda old: _project(old, project, source.store.url).stopped.get(LINE))
    target.read(lambda new: _refuse_where_it_is(new, project, target.store.url))
    source.transact((project,), lambda _: None)  # settles, so that expired leases do not count as live claims
    why = f"{MOVED}{target.store.url}"
    is_ours = stopped in (None, why)  # stopped by another: stays stopped there too; by us: the last try was interrupted
    if stopped is None:
        source.do(commands.StopLine(project=project, scope=LINE, reason=why))
    try:
        seal_all(source, project)
        source.read(lambda old: _carry(source, target, project, old))
        with source.store.begin(source.tenant, write=True) as old:
            old.lock("write", (project,))
            _refuse_while_held(old, project)
            _carry(source, target, project, old)
            return _copied(source, old, target, project, is_ours=is_ours)
    except OutcomeUnknown:
        raise  # it may be there already: claiming stays stopped
    except BaseException:
        if is_ours:
            source.do(commands.StartLine(project=project, scope=LINE))
        raise


def _copied(source: Engine, old: Transaction, target: Engine, project: str, *, is_ours: bool) -> Copied:
    with target.store.begin(target.tenant, write=True) as new:
        new.lock("write", (project,))
        _refuse_where_it_is(new, project, target.store.url)
        rows, events = copy_all(old, new, project)
        where = {"project": project}
        if digest(old, (project,), where) != digest(new, (project,), where):
            raise StoreCorrupt(f"{target.store.url}: data read back differs from data written; nothing was kept")
        work = UnitOfWork(new, target.random, target.context)
        follow(work, old, (project,), where)
        _reseal(work, source, project)
        _arrive(work, project, is_ours=is_ours)
        work.save()
    return Copied(project, rows, events, work.epoch)


def follow(work: UnitOfWork, old: Transaction, projects: Sequence[str], where: Where) -> None:
    """Positions in the log refer to the same event here, where sequences differ. `where`: of the copied events."""
    cursors: list[Cursor | Sink] = [row for name in projects for row in work.find(Cursor, {"project": name})]
    cursors += [row for name in projects for row in work.find(Sink, {"project": name})]
    triggers = [row for name in projects for row in work.find(Trigger, {"project": name})]
    webhooks = [row for name in projects for row in work.find(Webhook, {"project": name})]
    seals = [seal for name in projects if (seal := last_seal(old, name)) is not None]
    wanted = {row.sequence for row in cursors} | {row.behind for row in triggers} | {seal.last for seal in seals}
    wanted |= {at for row in webhooks for at in (row.since, row.sequence) if at is not None}
    here = _places(old, work.tx, where, wanted)
    for cursor in cursors:
        work.put(replace(cursor, sequence=here[cursor.sequence]))
    for trigger in triggers:
        work.put(replace(trigger, behind=here[trigger.behind]))
    for webhook in webhooks:
        behind = None if webhook.sequence is None else here[webhook.sequence]
        work.put(replace(webhook, since=here[webhook.since], sequence=behind))
        listen(work)
    for seal in seals:
        join_copy(work, seal.project, here[seal.last])


def _reseal(work: UnitOfWork, source: Engine, project: str) -> None:
    """Secrets open only in their place and under their master key: seal them again with a new key of this store."""
    keys, sealer, where = work.find(DataKey, {"project": project}), source.context.sealer, {"project": project}

    def opened(owner: str, path: str, sealed: Sealed) -> bytes:
        if sealer is None:
            raise SecretsOff("the source has no master key")
        seals = ProjectSeals(sealer, source.tenant, project, keys, work.random.token, work.now)
        return seals.open(owner, path, sealed)

    for key in keys:
        work.remove(key)
    again = moved_or_paused(work, project, opened, _UNREADABLE)
    for page in row_pages(work.tx, Task, {**where, "sealed": True}, PAGE):
        for task in page:
            again.task(work.require(Task, project, task.id))


_UNREADABLE = "its secret could not be copied: rotate it, give the other side the new one, then resume it"


def _places(old: Transaction, new: Transaction, where: Where, wanted: Collection[int]) -> dict[int, int]:
    """For each sequence of the old log that of the same event in the new one: of the last event up to it."""
    left = sorted(wanted, reverse=True)
    found, place = {}, 0
    for there, here in zip(event_pages(old, where, PAGE), event_pages(new, where, PAGE), strict=True):
        for before, after in zip(there, here, strict=True):
            while left and left[-1] < before.sequence:
                found[left.pop()] = place
            if not left:
                return found
            place = after.sequence
    return found | dict.fromkeys(left, place)


def _arrive(work: UnitOfWork, project: str, *, is_ours: bool) -> None:
    """What differs here: nothing is reserved, claiming runs, and no receipt from there is of this epoch."""
    row = _project(work.tx, project, "")
    release_reservations(work, project, work.find(Reservation, {"project": project}))
    work.put(joined(work, work.get(Project, project, project) or row))
    if is_ours:
        kept = work.get(Project, project, project) or row
        left = {scope: why for scope, why in kept.stopped.items() if scope != LINE}
        work.record("project.started", replace(kept, stopped=left), project=project, details={"scope": LINE})
    alone = len(work.find(Project, {}, limit=2)) == 1
    if alone or work.epoch in work.count(Claim, {"project": project}, "epoch"):
        put_in_force(work, f"project {project} was moved here")


def _project(tx: Transaction, project: str, url: str) -> Project:
    found = tx.load(Project, ((project, project),))
    if not found:
        raise NotFound(f"no project {project[:80]!r} in {url}", "name another with --project")
    return found[0]


def _refuse_where_it_is(new: Transaction, project: str, url: str) -> None:
    if new.load(Project, ((project, project),)):
        raise CopyRefused(
            f"{url} already has a project {project}; projects are never merged", "copy to another store or schema"
        )


def _refuse_while_held(old: Transaction, project: str) -> None:
    held = old.find(Task, {"project": project, "state": lifecycle.HELD}, order="lease_until", limit=MOST_NAMED + 1)
    if held:
        named = ", ".join(f"{t.ref} by {t.agent}" for t in held[:MOST_NAMED])
        seconds = max(1, ((held[-1].lease_until or old.now) - old.now) // 1_000_000)
        raise CopyRefused(
            f"live claims: {named}{' …' if len(held) > MOST_NAMED else ''}",
            f"nothing was copied; wait until they are submitted or released (the last lease ends in {seconds} s)",
        )


# --- pages --------------------------------------------------------------------------------------------------


def _rows(tx: Transaction, kind: type[R], project: str) -> Iterator[list[R]]:
    return row_pages(tx, kind, {"project": project}, PAGE)


def copied_kinds() -> list[type[Row]]:
    """Every kind but spawns: their processes belong to the old store, whose leader ends them."""
    return [kind for kind in KINDS if kind is not Spawn]


def copy_all(old: Transaction, new: Transaction, project: str) -> tuple[dict[str, int], int]:
    """Copy the rows and the log; return the count per table, and the number of events."""
    rows = {KINDS[kind].table: copy_rows(old, new, kind, project) for kind in copied_kinds()}
    return rows, copy_events(old, new, {"project": project})


def copy_rows(old: Transaction, new: Transaction, kind: type[Row], project: str) -> int:
    count = 0
    for page in _rows(old, kind, project):
        new.save([Change(None, row) for row in page])
        count += len(page)
    return count


def copy_events(old: Transaction, new: Transaction, where: Where) -> int:
    """In order, with their ids, times and versions; the sequences are the target's."""
    count = 0
    for page in event_pages(old, where, PAGE):
        new.append(page)
        new.load(Project, ((page[0].project, page[0].project),))  # a store may delay events until its next query
        count += len(page)
    return count


def digest(tx: Transaction, projects: Sequence[str], where: Where) -> str:
    """Equal for two stores if and only if each row of the projects is equal, and each event that `where` fits."""
    hasher = hashlib.sha256()
    encode = msgspec.json.Encoder().encode
    for project in projects:
        for kind in copied_kinds():
            hasher.update(KINDS[kind].table.encode())
            for page in _rows(tx, kind, project):
                for row in page:
                    hasher.update(encode(astuple(row)))
    for events in event_pages(tx, where, PAGE):
        for event in events:
            hasher.update(encode(astuple(replace(event, sequence=0))))
    return hasher.hexdigest()


# --- bytes of artifacts --------------------------------------------------------------------------------------


def _carry(source: Engine, target: Engine, project: str, old: Transaction) -> int:
    """Copy the bytes that rows of `old` refer to and that are missing there; return the number of contents.

    Contents missing at the source are skipped: `verify` reports them there, and afterwards in the new store.
    """
    carried = 0
    for page in _rows(old, Content, project):
        wanted = [row for row in page if row.uses]
        if wanted:
            carried += _carried(_artifacts_of(source, project), _artifacts_of(target, project), wanted)
    return carried


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


def _artifacts_of(engine: Engine, project: str) -> Artifacts:
    try:
        if engine.context.artifacts is None:
            raise InvalidInput("no artifact store is configured")
        return engine.context.artifacts(project)
    except InvalidInput as error:
        raise CopyRefused(
            f"{project} has artifacts, and {engine.store.url} has no artifact store: {error.message}",
            "name one with --artifacts: a folder that all hosts share, or s3://bucket/prefix",
        ) from error
