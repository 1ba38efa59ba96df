"""Tenants: create, close, reopen, list. Their rows are in the home tenant, and have no project."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tenure.core import commands, ids, inputs, limits, tenant_limits, tenants
from tenure.core import queries as q
from tenure.core.errors import InvalidInput, LimitReached
from tenure.core.filters import Present
from tenure.core.outcomes import Outcome
from tenure.core.records import Tenant, replace
from tenure.core.safe_text import shell_word
from tenure.core.tenant_records import HOME
from tenure.engine.checks import evidence
from tenure.engine.runtime import seals
from tenure.engine.runtime.rows import check_without_project, fields_of
from tenure.engine.runtime.tenancy import STORE_PATH, store_owner
from tenure.engine.runtime.unit_of_work import Handlers, Reads, UnitOfWork

if TYPE_CHECKING:
    from tenure.core.views import TenantView


def add_tenant(work: UnitOfWork, cmd: commands.AddTenant) -> Outcome:
    check_without_project(work, cmd.project, "tenants")
    tenants.check_home(work.context.tenant)
    name = ids.check_tenant(cmd.tenant)
    if not work.context.keeps_tenants:
        raise InvalidInput(f"tenant {name}: this store keeps only the tenant {HOME}", tenants.SEVERAL)
    before = work.get(Tenant, "", name)
    if name == HOME or (before is not None and tenants.is_open(before)):
        return Outcome(outcome="EXISTS", tenant=_view(before), message=f"tenant {name} exists")
    if before is not None:
        message = f"tenant {name} exists and is closed"
        return Outcome(
            outcome="DENIED_STATE",
            tenant=_view(before),
            message=message,
            hint=f"tenure tenant reopen {shell_word(name)}",
        )
    if work.tally(Tenant, {"project": ""}, limits.TENANTS) >= limits.TENANTS:
        raise LimitReached(f"the deployment has {limits.TENANTS} tenants, the maximum")
    tenants.check_place(cmd.isolation, cmd.store, cmd.region)
    if cmd.isolation == tenants.SCHEMA and not work.context.keeps_schemas:
        raise InvalidInput("isolation schema: this store has no schemas", "PostgreSQL has; or --isolation instance")
    tier = tenant_limits.check_tier(cmd.tier)
    if cmd.store is not None:
        evidence.check_store(work, cmd.store)  # it cannot be changed later: a wrong one shows here
    sealed = b"" if cmd.store is None else seals.seal(work, "", store_owner(name), STORE_PATH, cmd.store.encode())
    row = Tenant(
        project="", id=name, tier=tier, created_by=work.principal.name, created_at=work.now, changed_at=work.now,
        isolation=cmd.isolation, store=sealed, region=cmd.region,
        schema=tenants.schema_of(name, work.tx.epoch, work.now) if cmd.isolation == tenants.SCHEMA else None,
    )  # fmt: skip
    return _changed(work, "tenant.added", row, "CREATED")


def change_tenant(work: UnitOfWork, cmd: commands.ChangeTenant) -> Outcome:
    before = _to_change(work, cmd)
    row = before if cmd.tier is None else replace(before, tier=tenant_limits.check_tier(cmd.tier))
    row = replace(row, limits=tenant_limits.changed(row, cmd.limits or {}))
    if row == before:
        return Outcome(outcome="UNCHANGED", tenant=_view(row))
    old, new = tenant_limits.of_tenant(before), tenant_limits.of_tenant(row)
    changed = [name for name in new if new[name] != old[name]]
    return _changed(work, "tenant.changed", replace(row, changed_at=work.now), "UPDATED", changed=changed)


def close_tenant(work: UnitOfWork, cmd: commands.CloseTenant) -> Outcome:
    row = _to_change(work, cmd)
    if not tenants.is_open(row):
        return Outcome(outcome="UNCHANGED", tenant=_view(row))
    why = inputs.check_text(cmd.reason, "reason", 500) or None
    row = replace(row, closed_at=work.now, closed_for=why, changed_at=work.now)
    return _changed(work, "tenant.closed", row, "UPDATED", why or "")


def reopen_tenant(work: UnitOfWork, cmd: commands.ReopenTenant) -> Outcome:
    row = _to_change(work, cmd)
    if tenants.is_open(row):
        return Outcome(outcome="UNCHANGED", tenant=_view(row))
    return _changed(
        work, "tenant.reopened", replace(row, closed_at=None, closed_for=None, changed_at=work.now), "UPDATED"
    )


def _to_change(work: UnitOfWork, cmd: commands.ChangeTenant | commands.CloseTenant | commands.ReopenTenant) -> Tenant:
    check_without_project(work, cmd.project, "tenants")
    if cmd.tenant == HOME:
        raise InvalidInput(f"the tenant {HOME} is the home of the deployment: it stays open, without limits")
    return _named(work, cmd.tenant)


def _named(work: UnitOfWork, name: str) -> Tenant:
    tenants.check_home(work.context.tenant)
    row = work.get(Tenant, "", name) if len(name) <= limits.TENANT_NAME else None
    if row is None:
        raise tenants.unknown(name)
    return row


def _changed(work: UnitOfWork, kind: str, row: Tenant, outcome: str, message: str = "", **more: object) -> Outcome:
    details = {"tenant": row.id, "by": work.principal.name, **more}
    work.record(kind, row, project="", message=message, details=details)
    return Outcome(outcome=outcome, command_id=work.command_id, tenant=_view(row))


# --- queries -----------------------------------------------------------------------------------------------


def read_tenants(work: UnitOfWork, project: str, *, closed: bool = False) -> list[TenantView]:
    """By name, the home tenant first."""
    tenants.check_home(work.context.tenant)
    where = {"project": ""} | ({} if closed else {"closed_at": Present(False)})
    return [_view(None), *(_view(row) for row in work.find(Tenant, where, limit=limits.TENANTS))]


def read_tenant(work: UnitOfWork, project: str, name: str) -> TenantView:
    tenants.check_home(work.context.tenant)
    return _view(None if name == HOME else _named(work, name))


def _view(row: Tenant | None) -> TenantView:
    """None: the home tenant, which has no row."""
    if row is None:
        home: TenantView = {
            "name": HOME, "status": "open", "tier": None, "limits": {}, "changed_limits": (), "created_at": None,
            "created_by": None, "closed_at": None, "closed_for": None, "isolation": tenants.LOGICAL, "schema": None,
            "region": None, "moving": None,
        }  # fmt: skip
        return home
    answer: TenantView = fields_of(row, "tier created_at created_by closed_at closed_for isolation schema region") | {
        "name": row.id,
        "moving": row.moving or None,
        "status": "open" if tenants.is_open(row) else "closed",
        "limits": tenant_limits.of_tenant(row),
        "changed_limits": tuple(row.limits),
    }
    return answer


HANDLERS: Handlers = {
    commands.AddTenant: add_tenant,
    commands.ChangeTenant: change_tenant,
    commands.CloseTenant: close_tenant,
    commands.ReopenTenant: reopen_tenant,
}

READS: Reads = {q.Tenants: read_tenants, q.ShowTenant: read_tenant}
