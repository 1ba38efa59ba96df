"""Members of the tenant: invite, change, remove, list. They belong to the tenant: rows and events have no project.

A key belongs to a member by its `user`. No key reaches further than its member: it is refused at its creation, and
revoked in the transaction that lowers or ends the membership.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tenure.core import commands, inputs, keys, limits, tenants
from tenure.core import queries as q
from tenure.core.errors import LimitReached, NotFound
from tenure.core.filters import Present
from tenure.core.outcomes import Outcome
from tenure.core.records import ApiKey, Member, replace
from tenure.engine.runtime.rows import check_without_project, fields_of, project_of
from tenure.engine.runtime.unit_of_work import Handlers, Reads, UnitOfWork
from tenure.engine.verbs.api_keys import revoked

if TYPE_CHECKING:
    from tenure.core.views import MemberView

HINT = "`projects` limits where a member may act"


def invite_member(work: UnitOfWork, cmd: commands.InviteMember) -> Outcome:
    check_without_project(work, cmd.project, "members", HINT)
    user = tenants.check_user(cmd.user)
    _check_granted(work, cmd.role, cmd.projects)
    before = work.get(Member, "", user)
    if before is not None and tenants.is_in(before):
        message = f"{user} is a member already, as {before.role}"
        return Outcome(outcome="EXISTS", member=_view(before), message=message, hint="`tenure member role` changes it")
    if before is None and work.tally(Member, {"project": ""}, limits.MEMBERS) >= limits.MEMBERS:
        raise LimitReached(f"the tenant has had {limits.MEMBERS} members, the maximum")
    row = Member(
        project="", id=user, role=cmd.role, projects=cmd.projects, invited_by=work.principal.name,
        invited_at=work.now, changed_at=work.now,
    )  # fmt: skip
    return _changed(work, "member.invited", row, "CREATED")


def change_member(work: UnitOfWork, cmd: commands.ChangeMember) -> Outcome:
    before = _to_change(work, cmd)
    after = replace(
        before,
        role=before.role if cmd.role is None else cmd.role,
        projects=before.projects if cmd.projects is None else cmd.projects,
    )
    _check_granted(work, after.role, after.projects)
    if after == before:
        return Outcome(outcome="UNCHANGED", member=_view(before))
    if after.role != "owner" and (denied := _denied_as_last_owner(work, before)) is not None:
        return denied
    return _changed(work, "member.changed", replace(after, changed_at=work.now), "UPDATED")


def remove_member(work: UnitOfWork, cmd: commands.RemoveMember) -> Outcome:
    before = _to_change(work, cmd)
    if (denied := _denied_as_last_owner(work, before)) is not None:
        return denied
    return _changed(work, "member.removed", replace(before, left_at=work.now, changed_at=work.now), "UPDATED")


def _to_change(work: UnitOfWork, cmd: commands.ChangeMember | commands.RemoveMember) -> Member:
    """The member, whose present role the caller may take away."""
    check_without_project(work, cmd.project, "members", HINT)
    row = work.get(Member, "", cmd.user)
    if row is None or not tenants.is_in(row):
        raise NotFound(f"no member {cmd.user[:80]!r} here", "`tenure member list` shows them")
    tenants.check_grant(work.principal.role, work.principal.projects, row.role, row.projects)
    return row


def _check_granted(work: UnitOfWork, role: str, projects: tuple[str, ...]) -> None:
    inputs.check_choice(role, tenants.MEMBER_ROLES, "role")
    for name in inputs.check_list(projects, "project"):
        project_of(work, name)
    tenants.check_grant(work.principal.role, work.principal.projects, role, projects)


def _denied_as_last_owner(work: UnitOfWork, row: Member) -> Outcome | None:
    """A tenant that has an owner keeps one."""
    if row.role != "owner":
        return None
    owners = work.find(Member, {"project": "", "role": "owner", "left_at": Present(False)}, limit=2)
    if any(owner.id != row.id for owner in owners):
        return None
    message = f"{row.id} is the only owner of the tenant"
    return Outcome(outcome="DENIED_STATE", member=_view(row), message=message, hint="make another member owner first")


def _changed(work: UnitOfWork, kind: str, row: Member, outcome: str) -> Outcome:
    details = {"member": row.id, "role": row.role, "projects": list(row.projects), "by": work.principal.name}
    work.record(kind, row, project="", details=details)
    lost = _keys_beyond(work, row)
    for key in lost:
        keys.check_project(work.principal.role, work.principal.projects, key.role, key.projects)
        revoked(work, key)
    message = f"{len(lost)} of their API keys revoked" if lost else ""
    return Outcome(outcome=outcome, command_id=work.command_id, member=_view(row), message=message)


def _keys_beyond(work: UnitOfWork, row: Member) -> list[ApiKey]:
    """The person's keys that reach further than the membership, all of them where it has ended."""
    found = work.find(ApiKey, {"project": "", "user": row.id, "revoked_at": Present(False)})
    return [key for key in found if not tenants.covers(row, key.role, key.projects)]


def joined(work: UnitOfWork, user: str) -> Member | None:
    """The member of that name as signed in; None where there is none."""
    row = work.get(Member, "", user)
    if row is None or not tenants.is_in(row) or row.joined_at is not None:
        return row
    row = replace(row, joined_at=work.now)
    details = {"member": row.id, "role": row.role, "projects": list(row.projects), "by": row.id}
    work.record("member.joined", row, project="", details=details)
    return row


# --- queries -----------------------------------------------------------------------------------------------


def read_members(work: UnitOfWork, project: str, *, left: bool = False) -> list[MemberView]:
    """By name."""
    where = {"project": ""} | ({} if left else {"left_at": Present(False)})
    return [_view(row) for row in work.find(Member, where, limit=limits.MEMBERS)]


def _view(row: Member) -> MemberView:
    fields = "role projects invited_by invited_at joined_at left_at"
    answer: MemberView = fields_of(row, fields) | {"user": row.id, "status": tenants.status(row)}
    return answer


HANDLERS: Handlers = {
    commands.InviteMember: invite_member,
    commands.ChangeMember: change_member,
    commands.RemoveMember: remove_member,
}

READS: Reads = {q.Members: read_members}
