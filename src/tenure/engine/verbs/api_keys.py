"""API keys: create, rotate, revoke, list. They belong to the store: their rows and events have no project.

A secret leaves the engine once, in the answer to the command that made it, and is stored nowhere. A repeated request
therefore cannot return the same secret: it returns a new one for the same key and voids the one nobody received.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tenure.core import commands, ids, inputs, keys, limits, roles, tenants
from tenure.core import queries as q
from tenure.core.commands.command import digest_of
from tenure.core.errors import Ambiguous, InvalidInput, NotFound
from tenure.core.filters import Present
from tenure.core.outcomes import Outcome
from tenure.core.records import Agent, ApiKey, Member, replace
from tenure.engine.runtime.decision import check_same
from tenure.engine.runtime.rows import check_without_project, fields_of, project_of
from tenure.engine.runtime.unit_of_work import Handlers, Reads, UnitOfWork

if TYPE_CHECKING:
    from tenure.core.views import KeyView

LONGEST_NAME = limits.KEY_NAME
LONGEST_GRACE = limits.KEY_GRACE


def create_key(work: UnitOfWork, cmd: commands.CreateKey) -> Outcome:
    check_without_project(work, cmd.project, "keys", "`projects` limits where a key is valid")
    _check_wanted(work, cmd)
    again = _sent_before(work, cmd)
    if again is not None:
        return _renewed(work, again, "CREATED")
    lifetime = None if cmd.expires_in is None else inputs.micros(cmd.expires_in, "expires_in", low=1)
    key = ApiKey(
        project="",
        id=keys.new_id(work.random.token(keys.ID_BYTES)),
        **fields_of(cmd, "name role agent projects capabilities request_id"),
        user=cmd.user or cmd.name,
        created_at=work.now,
        created_by=keys.author_of(work.principal),
        expires_at=None if lifetime is None else work.now + lifetime,
        request_hash=_digest(work, cmd),
    )
    return _with_secret(work, "key.created", key, "CREATED")


def rotate_key(work: UnitOfWork, cmd: commands.RotateKey) -> Outcome:
    """The secret before the last is void at once; the last one ends with the grace period, or earlier if it expires."""
    check_without_project(work, cmd.project, "keys", "`projects` limits where a key is valid")
    grace = inputs.micros(cmd.grace, "grace", high=LONGEST_GRACE)
    again = _sent_before(work, cmd)
    if again is not None:
        return _renewed(work, again, "UPDATED")
    before = key_named(work, cmd.key)
    if before.revoked_at is not None:
        message = f"key {before.id} ({before.name}) is revoked"
        return Outcome(outcome="DENIED_STATE", key=key_view(work, before), message=message, hint="create a new key")
    until = work.now + grace
    expires = None
    if before.expires_at is not None:
        until = min(until, before.expires_at)
        expires = work.now + before.expires_at - (before.rotated_at or before.created_at)
    has_grace = until > work.now
    key = replace(
        before,
        previous=before.digest if has_grace else b"",
        previous_until=until if has_grace else None,
        created_by=keys.author_of(work.principal),
        rotated_at=work.now,
        expires_at=expires,
        request_id=cmd.request_id,
        request_hash=_digest(work, cmd),
    )
    return _with_secret(work, "key.rotated", key, "UPDATED")


def revoke_key(work: UnitOfWork, cmd: commands.RevokeKey) -> Outcome:
    check_without_project(work, cmd.project, "keys", "`projects` limits where a key is valid")
    key = key_named(work, cmd.key)
    if key.revoked_at is not None:
        return Outcome(outcome="UNCHANGED", key=key_view(work, key))
    key = revoked(work, key)
    return Outcome(outcome="UPDATED", key=key_view(work, key), message=f"key {key.id} ({key.name}) is revoked")


def revoked(work: UnitOfWork, key: ApiKey) -> ApiKey:
    key = replace(key, revoked_at=work.now, previous=b"", previous_until=None)
    _record(work, "key.revoked", key)
    return key


def key_named(work: UnitOfWork, name: str) -> ApiKey:
    """The key with that id, or the one unrevoked key with that name; a key outside the caller's scope is not found."""
    who = work.principal
    key = work.get(ApiKey, "", name)
    found = [key] if key is not None else work.find(ApiKey, {"project": "", "name": name, "revoked_at": Present(False)})
    mine = [k for k in found if keys.is_within(who.projects, k.projects)]
    if not mine:
        raise NotFound(f"no key {name[:80]!r} here")
    if len(mine) > 1:
        some = ", ".join(k.id for k in mine[:3])
        raise Ambiguous(f"{name[:80]!r} names several keys: {some}", "use the key's id")
    keys.check_project(who.role, who.projects, mine[0].role, mine[0].projects)
    return mine[0]


def _check_wanted(work: UnitOfWork, cmd: commands.CreateKey) -> None:
    inputs.check_text(cmd.name, "name", LONGEST_NAME, required=True)
    if not cmd.name.isprintable():
        raise InvalidInput(f"name {cmd.name!r} contains control characters: use printable text on one line")
    inputs.check_text(cmd.user or "", "user", inputs.LONGEST_NAME)
    inputs.check_choice(cmd.role, roles.ROLES, "role")
    who = work.principal
    for name in inputs.check_list(cmd.projects, "project"):
        roles.check_scope(who, name)
        project_of(work, name)
    keys.check_project(who.role, who.projects, cmd.role, cmd.projects)
    user = cmd.user or cmd.name
    member = work.get(Member, "", user)
    tenants.check_key_of(member, cmd.role, cmd.projects)
    keys.check_in_name_of(who, member, cmd.role, cmd.name, user)
    for name in inputs.check_list(cmd.capabilities, "capability"):
        inputs.check_choice(name, roles.CAPABILITIES, "capability")
    if cmd.agent is not None:
        if not work.find(Agent, {"id": cmd.agent}, limit=1):
            ids.check_new_name(cmd.agent, "agent")
        if cmd.role != "agent":
            raise InvalidInput(f"agent {cmd.agent[:80]!r}: only a key with role agent may name an agent")


def _digest(work: UnitOfWork, cmd: commands.Command) -> str | None:
    return None if cmd.request_id is None else digest_of(cmd, work.principal.owner)


def _sent_before(work: UnitOfWork, cmd: commands.CreateKey | commands.RotateKey) -> ApiKey | None:
    """The key that this request already created or rotated."""
    if cmd.request_id is None:
        return None
    found = work.find(ApiKey, {"project": "", "request_id": cmd.request_id})
    if not found:
        return None
    check_same(found[0].request_hash, cmd, work.principal.owner)
    return key_named(work, found[0].id)


def _renewed(work: UnitOfWork, key: ApiKey, outcome: str) -> Outcome:
    if key.revoked_at is not None:
        return Outcome(outcome="DENIED_STATE", key=key_view(work, key), message=f"key {key.id} has been revoked since")
    return replace(_with_secret(work, "key.rotated", key, outcome), again=True)


def _with_secret(work: UnitOfWork, kind: str, key: ApiKey, outcome: str) -> Outcome:
    secret = keys.new_secret(work.random.token(keys.SECRET_BYTES))
    key = replace(key, digest=keys.digest_of(secret))
    _record(work, kind, key)
    message, hint = f"key {key.id} ({key.name})", "save it now: it is not shown again"
    spelled = keys.spelled(work.context.tenant, key.id, secret)
    return Outcome(outcome=outcome, key=key_view(work, key), secret=spelled, message=message, hint=hint)


def _record(work: UnitOfWork, kind: str, key: ApiKey) -> None:
    details = {"key": key.id, "name": key.name, "role": key.role, "by": work.principal.name}
    work.record(kind, key, project="", details=details)


# --- queries -----------------------------------------------------------------------------------------------


def read_keys(work: UnitOfWork, project: str, *, ended: bool = False) -> list[KeyView]:
    """The keys that the caller may see, oldest first."""
    only = work.principal.projects
    found = work.find(ApiKey, {"project": ""}, order="created_at")
    return [
        key_view(work, key)
        for key in found
        if keys.is_within(only, key.projects) and (ended or keys.is_live(key, work.now))
    ]


def key_view(work: UnitOfWork, key: ApiKey) -> KeyView:
    fields = "id name role user agent projects capabilities created_at created_by used_at rotated_at previous_until"
    answer: KeyView = fields_of(key, fields + " expires_at revoked_at") | {"status": keys.status(key, work.now)}
    return answer


HANDLERS: Handlers = {commands.CreateKey: create_key, commands.RotateKey: rotate_key, commands.RevokeKey: revoke_key}


READS: Reads = {q.Keys: read_keys}
