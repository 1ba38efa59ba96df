"""Which function answers which query. A theme is imported with its first query, so a start loads only its own."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any

from tenure.core import queries as q
from tenure.core import roles
from tenure.core.commands import OWNER, Principal
from tenure.core.decoders import defaults_of
from tenure.core.queries import Query
from tenure.core.query import check_limit, page_of
from tenure.engine.runtime.rows import project_of
from tenure.engine.runtime.unit_of_work import Deferred

if TYPE_CHECKING:
    from tenure.engine.runtime.engine import Engine
    from tenure.engine.runtime.unit_of_work import Reads, UnitOfWork

_COUNTING = frozenset({q.Status, q.Overview, q.ShowSession})  # queries that need all tasks by state
_WITHOUT_PROJECT = frozenset({q.Projects, q.Gauges, q.Spending, q.Keys, q.Relays, q.Tenants, q.ShowTenant, q.Members})

_SEALING = frozenset({q.AuditHead, q.VerifyAudit, q.AuditPage, q.Attest})  # the log is sealed first, if they may


def read_query(engine: Engine, query: Query, principal: Principal = OWNER) -> Any:
    """The answer to the query, from rows brought up to `now`, or from those of the moment that it names; nothing is
    written but seals, before queries about them.
    """
    roles.check_tenant(principal, engine.tenant)
    engine.check_open()
    roles.check_query(principal, query)
    check_limit(query)
    # An embedded program has the process to itself, but for questions that need a project's memory.
    is_gated = query.is_costly and (principal.is_served or getattr(query, q.AT, None) is not None)
    if not is_gated:
        return _answered(engine, query, principal)
    from tenure.engine.reads.costly import gate

    with gate():
        return _answered(engine, query, principal)


def _answered(engine: Engine, query: Query, principal: Principal) -> Any:
    function, required, optional = _reading(type(query))
    follows = isinstance(query, (q.Log, q.TaskLog)) and not query.last
    if type(query) in _SEALING and roles.seals_log(principal):
        from tenure.core.records import STORE
        from tenure.engine.audit.sealer import seal_all

        seal_all(engine, STORE if query.store else query.project)  # type: ignore[attr-defined]  # each of them has it
    counts = engine.context.counts if type(query) in _COUNTING else None
    before = counts.before(query.project) if counts is not None else None

    def ask(work: UnitOfWork) -> Any:
        work.begin_command(principal, None)  # the answer may depend on the caller
        work.counted_before = before
        if type(query) not in _WITHOUT_PROJECT:
            project_of(work, query.project)
        arguments = [getattr(query, name) for name in required]
        options = {name: getattr(query, name) for name in optional}
        if not query.largest:
            return function(work, query.project, *arguments, **options)
        options["limit"] += 1  # one more than the page has: are there more?
        return page_of(query, function(work, query.project, *arguments, **options))

    at = getattr(query, q.AT, None)
    if at is not None:
        from tenure.engine.past.rebuild import read_past

        return read_past(engine, query.project, at, ask)
    answer = engine.read_settled((query.project,) if query.project else (), ask, follows=follows)
    return answer.tell() if isinstance(answer, Deferred) else answer


@cache
def _reading(kind: type[Query]) -> tuple[Callable[..., Any], list[str], list[str]]:
    own, defaults = [name for name in kind.__struct_fields__ if name not in ("project", q.AT)], defaults_of(kind)
    required = [name for name in own if name not in defaults]
    return reads_of(kind.declaration.theme)[kind], required, [name for name in own if name in defaults]


def reads_of(theme: str) -> Reads:  # noqa: PLR0912, PLR0915  # one case a theme
    match theme:
        case "projects":
            from tenure.engine.duties.sweep import READS
        case "tasks":
            from tenure.engine.reads.tasks import READS
        case "dags":
            from tenure.engine.reads.dags import READS
        case "event_log":
            from tenure.engine.reads.event_log import READS
        case "team":
            from tenure.engine.reads.team import READS
        case "project_view":
            from tenure.engine.reads.project_view import READS
        case "overview":
            from tenure.engine.reads.overview import READS
        case "gauges":
            from tenure.engine.reads.gauges import READS
        case "spending":
            from tenure.engine.reads.spending import READS
        case "preview" | "own_claims":
            from tenure.engine.reads.claim_reads import READS
        case "artifacts":
            from tenure.engine.artifacts.artifact_verbs import READS
        case "briefing":
            from tenure.engine.reads.briefing import READS
        case "todo":
            from tenure.engine.reads.todo import READS
        case "why":
            from tenure.engine.reads.why import READS
        case "plan_export":
            from tenure.engine.reads.plan_export import READS
        case "validations":
            from tenure.engine.checks.validation_reads import READS
        case "models":
            from tenure.engine.models.model_reads import READS
        case "budgets":
            from tenure.engine.budgets.budget_reads import READS
        case "forecast":
            from tenure.engine.reads.forecast import READS
        case "webhooks":
            from tenure.engine.relay.webhook_verbs import READS
        case "relays":
            from tenure.engine.relay.relay_verbs import READS
        case "pools":
            from tenure.engine.fleet.pool_verbs import READS
        case "api_keys":
            from tenure.engine.verbs.api_keys import READS
        case "tenants":
            from tenure.engine.verbs.tenants import READS
        case "members":
            from tenure.engine.verbs.members import READS
        case "audit":
            from tenure.engine.audit.audit_verbs import READS
        case "schedules":
            from tenure.engine.sources.schedules import READS
        case "triggers":
            from tenure.engine.sources.triggers import READS
        case "failure_watch":
            from tenure.engine.sources.failure_watch import READS
        case _:
            raise AssertionError(theme)
    return READS
