"""The shapes of queries' answers, one type per view, one module per theme. `OF` is the one table: query → its answer.

Views are plain dicts, built where rows are read; these types list their fields. Optional fields are NotRequired. The
HTTP document is generated from them, and a test holds every query to its type. To add one: a TypedDict in the module
of its theme, a line in `OF`.

Not for run time: queries name these types for the type checker alone, which keeps startup fast.
"""

from __future__ import annotations

from typing import Any

from tenure.core import queries as q
from tenure.core.outcomes import Outcome
from tenure.core.views.audit_views import AttestationView, AuditHeadView, AuditPageView, AuditReportView, ExportView
from tenure.core.views.budget_views import (
    AlertView,
    BudgetInFull,
    BudgetView,
    HeadroomView,
    ProjectionView,
    ShortageView,
    ShortfallView,
    WindowView,
)
from tenure.core.views.dag_views import DagEntry, DagView, DeadLetterView, PlanView
from tenure.core.views.forecast_views import (
    CostView,
    FinishView,
    ForecastView,
    LastsView,
    LeftOutView,
    MoreView,
    PathView,
)
from tenure.core.views.model_views import (
    EstimatesView,
    LimitedView,
    ModelsView,
    OfferedView,
    SavedView,
    SavingsView,
    SizeView,
)
from tenure.core.views.pool_views import PoolInFull, PoolView, SpawnView
from tenure.core.views.project_views import (
    EventView,
    GaugesView,
    LeaderView,
    LimitView,
    OverviewView,
    ProjectView,
    SpendingView,
    StatusView,
    TrackView,
)
from tenure.core.views.relay_views import DeliveryView, RelayView, WebhookView
from tenure.core.views.source_views import ScheduleInFull, ScheduleView, TriggerInFull, TriggerView, WatchedView
from tenure.core.views.task_views import (
    ArtifactView,
    BriefingView,
    CheckpointView,
    CheckView,
    HistoryEntry,
    LandingView,
    ResultView,
    SignatureView,
    SpentView,
    StateLine,
    TaskInFull,
    TaskLine,
    TaskView,
    TodoEntry,
    TotalsView,
    UsageView,
    ValidationView,
    WaitingView,
    WhyView,
)
from tenure.core.views.team_views import (
    AgentInFull,
    AgentNewsView,
    AgentView,
    HealthView,
    KeyView,
    MessageEntry,
    MessageView,
    MinuteView,
    OwnClaim,
    ProcessView,
    Remembered,
    ReservationView,
    SessionEntry,
    SessionView,
    TrackProgress,
)
from tenure.core.views.tenant_views import MemberView, TenantView

OF: dict[type[q.Query], Any] = {
    q.Projects: list[str],
    q.Relays: list[RelayView],
    q.Webhooks: list[WebhookView],
    q.ShowWebhook: WebhookView,
    q.Deliveries: list[DeliveryView],
    q.Pools: list[PoolView],
    q.ShowPool: PoolInFull,
    q.Spawns: list[SpawnView],
    q.Status: StatusView,
    q.ShowProject: ProjectView,
    q.Limits: list[LimitView],
    q.Overview: OverviewView,
    q.Gauges: list[GaugesView],
    q.Spending: list[SpendingView],
    q.Tasks: list[TaskView],
    q.Show: TaskInFull,
    q.Ready: list[TaskView],
    q.Next: Outcome,
    q.States: list[StateLine],
    q.History: list[HistoryEntry],
    q.Results: list[ResultView],
    q.Artifacts: list[ArtifactView],
    q.Why: WhyView,
    q.Briefing: BriefingView,
    q.AgentNews: AgentNewsView,
    q.Todo: list[TodoEntry],
    q.Dags: list[DagEntry],
    q.ShowDag: DagView,
    q.Plans: list[PlanView],
    q.Tracks: list[TrackView],
    q.DeadLetters: list[DeadLetterView],
    q.Agents: list[AgentView],
    q.ShowAgent: AgentInFull,
    q.AgentHealth: HealthView,
    q.AgentTasks: list[TaskView],
    q.Forecast: ForecastView,
    q.Inbox: list[MessageView],
    q.Messages: list[MessageEntry],
    q.Validations: list[WaitingView],
    q.Reservations: list[ReservationView],
    q.Sessions: list[SessionEntry],
    q.ShowSession: SessionView,
    q.OwnClaims: list[OwnClaim],
    q.ShowSpending: list[SpentView],
    q.ShowSavings: SavingsView,
    q.Estimates: EstimatesView,
    q.Models: ModelsView,
    q.Budgets: list[BudgetView],
    q.ShowBudget: BudgetInFull,
    q.Alerts: list[AlertView],
    q.ShowProjection: ProjectionView,
    q.Headroom: HeadroomView,
    q.Processes: list[ProcessView],
    q.Log: list[EventView],
    q.TaskLog: list[EventView],
    q.Keys: list[KeyView],
    q.Tenants: list[TenantView],
    q.ShowTenant: TenantView,
    q.Members: list[MemberView],
    q.Schedules: list[ScheduleView],
    q.ShowSchedule: ScheduleInFull,
    q.Triggers: list[TriggerView],
    q.ShowTrigger: TriggerInFull,
    q.Watched: WatchedView,
    q.AuditHead: AuditHeadView,
    q.VerifyAudit: AuditReportView,
    q.AuditPage: AuditPageView,
    q.Attest: AttestationView,
}

# What an outcome's own type cannot name: importing the views would slow down every start.
IN_OUTCOME: dict[str, Any] = {
    "task": TaskView,
    "tasks": list[TaskView],
    "agent": AgentView,
    "messages": list[MessageView],
    "checkpoint": CheckpointView,
    "usage": UsageView,
    "landings": list[LandingView],
    "artifact": ArtifactView,
    "artifacts": list[ArtifactView],
    "key": KeyView,
    "webhook": WebhookView,
    "pool": PoolView,
    "tenant": TenantView,
    "member": MemberView,
    "budget": BudgetView,
    "shortage": ShortageView,
    "schedule": ScheduleView,
    "trigger": TriggerView,
    "validation": CheckView,
}
