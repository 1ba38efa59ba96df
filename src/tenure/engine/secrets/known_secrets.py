"""Who was given which secrets: until a day after the last of its claims, what it writes is searched for them.

Agents sum up after they have finished. So an agent that is given secrets, and the API key that it used, get a row
with their sealed values. An edit of the task, the archive and a restart do not take them away; nothing in it is plain,
and it opens like the task does, with the master key. The row is one of requests, since these too are swept after a day.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from tenure.core import limits
from tenure.core.claims import claim_id
from tenure.core.filters import Prefix
from tenure.core.records import Archived, Claim, Request, Task, replace
from tenure.core.sealed import SEALED, from_value
from tenure.core.task_secrets import sealed_in
from tenure.engine.reads.task_view import unpacked
from tenure.engine.runtime.rows import brief_of
from tenure.engine.runtime.seals import Vault
from tenure.engine.runtime.unit_of_work import UnitOfWork
from tenure.engine.secrets.sealed_rows import owner_of

KNOWN = limits.SECRET_KNOWN
MOST = limits.KNOWN_SECRETS
MARK = "$secrets|"  # what the ids of these rows begin with: no principal's name does


class Knower(NamedTuple):
    """`agent` or `key`, and its name."""

    kind: str
    name: str

    @property
    def row(self) -> str:
        return f"{MARK}{self.kind}:{self.name}"


def knowers(agents: Iterable[str | None], keys: Iterable[str | None]) -> set[Knower]:
    return {Knower("agent", name) for name in agents if name} | {Knower("key", name) for name in keys if name}


def note_given(work: UnitOfWork, task: Task) -> None:
    """The secrets of the task were given to the holder, and to the caller."""
    claim = work.require(Claim, task.project, claim_id(task.id, task.generation))
    brief, owner = brief_of(work, task), owner_of(task.id)
    spec = unpacked(work, task.project, brief.spec)
    fresh = {
        value[SEALED]["digest"]: {"owner": owner, "path": path, "value": value}
        for path, value in (*sealed_in(spec, "/spec"), *sealed_in(brief.metadata, "/metadata"))
    }
    caller = work.principal
    for knower in knowers((claim.agent, caller.agent), (claim.key, caller.key)):
        row = work.get(Request, task.project, knower.row)
        known = {} if row is None else row.outcome["secrets"]
        others = {digest: entry for digest, entry in known.items() if digest not in fresh}
        added = {
            digest: {**entry, "claims": [*_live_of(work, task.project, known.get(digest), claim.id), claim.id]}
            for digest, entry in fresh.items()
        }
        kept = dict([*others.items(), *added.items()][-MOST:])
        after = Request(project=task.project, id=knower.row, digest="", outcome={"secrets": kept}, at=work.now)
        if row is None or row.outcome != after.outcome:
            work.put(after)


def _live_of(work: UnitOfWork, project: str, entry: Mapping[str, Any] | None, besides: str) -> list[str]:
    """Those that may still end later than a new claim."""
    names = [] if entry is None else [name for name in entry["claims"] if name != besides]
    found = work.get_many(Claim, project, names)
    return [name for name in names if name in found and found[name].state == "active"]


def known_to(work: UnitOfWork, project: str, who: Iterable[Knower]) -> set[str]:
    """The plain secrets that one of them was given within a day. Raises SecretUnreadable or SecretsOff."""
    vault = Vault(work, project)
    return {
        vault.open_text(entry["owner"], entry["path"], entry["value"])
        for row in work.get_many(Request, project, sorted(knower.row for knower in who)).values()
        for entry in _still_known(work, row).values()
        # What nobody can open any more does not stand in the way of its former holder.
        if vault.seals.has_key_of(from_value(entry["value"]))
    }


def _still_known(work: UnitOfWork, row: Request) -> dict[str, Any]:
    entries: dict[str, Any] = row.outcome["secrets"]
    claims = work.get_many(Claim, row.project, {name for entry in entries.values() for name in entry["claims"]})

    def is_known(entry: Mapping[str, Any]) -> bool:
        return any(_ended(work, row, claims.get(name), name) + KNOWN > work.now for name in entry["claims"])

    return {digest: entry for digest, entry in entries.items() if is_known(entry)}


def _ended(work: UnitOfWork, row: Request, claim: Claim | None, name: str) -> int:
    """When the claim has ended; `now` where it has not."""
    if claim is None:
        archived = work.get(Archived, row.project, name.partition("@")[0])
        return row.at if archived is None else max(row.at, archived.completed_at or archived.updated_at)
    return work.now if claim.state == "active" else claim.released_at or row.at


def kept_on(work: UnitOfWork, row: Request) -> bool:
    """Whether a row that has lain for a day is kept for another, with the secrets that are still known."""
    left = _still_known(work, row)
    if left:
        work.put(replace(row, outcome={"secrets": left}, at=work.now))
    return bool(left)


def rows_of(work: UnitOfWork, project: str) -> Iterator[Request]:
    """All rows of the project that name who was given secrets."""
    return iter(work.find(Request, {"project": project, "id": Prefix(MARK)}))
