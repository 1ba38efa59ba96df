"""The methods of AsyncClient for type checkers. Generated from caller.py, queries.py, sources.py, messaging.py, pools.py, tenants.py, operator_verbs.py, verbs.py by `./x docs`; do not edit."""
# fmt: off

from collections.abc import Iterable, Mapping
from decimal import Decimal
from os import PathLike
from tenure.client.arguments import AgentFields, BudgetFields, ClaimOptions, Health, ProjectSettings, TaskChanges, TaskFields
from tenure.client.handles import Ended
from tenure.client.results import Added, Changed, Claimed, Held, Mail, Next, Planned, Reserved, Spawned, Submitted, Team, Updated, Validation
from tenure.client.signed_submits import signed
from tenure.client.times import Duration, Instant, Moment
from tenure.core import limits
from tenure.core.commands import ClaimNext, Command, NewTask, NewTrack, Principal, Process, Submit, Template, Totals
from tenure.core.commands.graph_commands import NewTask, NewTrack
from tenure.core.errors import InvalidInput
from tenure.core.land_request import LandRequest
from tenure.core.outcomes import Outcome
from tenure.core.queries import Query
from tenure.core.query import Page
from tenure.core.records import Watch, replace
from tenure.core.views import AgentInFull, AgentNewsView, AgentView, AlertView, ArtifactView, AttestationView, AuditHeadView, AuditPageView, AuditReportView, BriefingView, BudgetInFull, BudgetView, DagEntry, DagView, DeadLetterView, DeliveryView, EstimatesView, EventView, ExportView, ForecastView, HeadroomView, HealthView, HistoryEntry, LimitView, MemberView, MessageEntry, MessageView, ModelsView, OwnClaim, PlanView, PoolInFull, PoolView, ProcessView, ProjectView, ProjectionView, RelayView, ReservationView, ResultView, SavingsView, ScheduleInFull, ScheduleView, SessionEntry, SessionView, SpawnView, SpentView, StateLine, StatusView, TaskInFull, TaskLine, TaskView, TenantView, TodoEntry, TrackView, TriggerInFull, TriggerView, WaitingView, WatchedView, WebhookView, WhyView
from typing import Any, TypedDict, Unpack

Several = str | Iterable[str] | None
class TaskFilters(TypedDict, total=False):
    """`text` searches title and key; a leading minus reverses `order`; `after` is the last row's
        (order value, id). `at`: as they were at that instant, or after the event with that sequence."""
    state: Several
    track: Several
    type: Several
    agent: Several
    session: str | None
    dag: str | None
    parent: str | None
    idempotency_key: str | None
    tag: Several
    text: str | None
    priority_range: tuple[int, int] | None
    priority_min: int | None
    priority_max: int | None
    created_from: Instant | None
    created_until: Instant | None
    archived: bool
    order: str
    after: tuple[Any, str] | None
    limit: int
    fields: Several
    at: Moment | None
class ForecastOptions(TypedDict, total=False):
    """Without `agents` or `pool` the agents that work now; the same `seed` gives the same forecast."""
    agents: int | None
    pool: str | None
    dag: str | None
    runs: int
    seed: int
    tasks: Iterable[NewTask]
    tracks: Iterable[NewTrack]
    name: str | None
    budget: str | None
class LogFilters(TypedDict, total=False):
    """The newest `limit` events, or with `last=False` the first ones after the sequence `after`; `level` is the
        lowest that is wanted."""
    after: int
    limit: int
    last: bool
    since: Instant | None
    task: str | None
    kind: Several
    level: str | None
    agent: str | None
    session: str | None
    store: bool

class AsyncVerbs:
    project: str
    agent: str
    session: str
    user: str | None
    principal: Principal
    transport: Any
    signing_key: Any

    def _identify(
        self, project: str | None, agent: str | None, session: str | None, role: str, user: str | None
    ) -> None: ...

    async def _signed_batch(self, batch: Any, key: Any, send: Any) -> list[Any]: ...

    async def do(self, command: Command) -> Outcome:
        """Run any command. A result that is too large for a row is stored as an artifact first."""
        ...

    async def claim_or_wait(self, command: ClaimNext, seconds: float) -> Outcome:
        """As `do`, but waits up to `seconds` for a claimable task."""
        ...

    async def query(self, query: Query) -> Any:
        """Run any query. InvalidInput where a value has another type than the query's field."""
        ...

    async def show(self, task: str, *, at: Moment | None=None) -> TaskInFull:
        """Everything about one task except its log; `at`: as it was then."""
        ...

    async def tasks(self, **filters: Unpack[TaskFilters]) -> Page[TaskView]:
        """A page of tasks; its `next` is `after` of the next one."""
        ...

    async def ready(self, *, track: str | None=None, limit: int=50) -> Page[TaskView]:
        """Claimable tasks, best first."""
        ...

    async def next(self, **filters: Unpack[ClaimOptions]) -> Next:
        """The task that `claim` would claim now; claim nothing."""
        ...

    async def states(self, tasks: Iterable[str]) -> list[StateLine]:
        """The state of each named task, or that it does not exist."""
        ...

    async def history(self, task: str, *, at: Moment | None=None) -> list[HistoryEntry]:
        """The lineage: one entry for each generation, with its refused submissions; `at`: as it was then."""
        ...

    async def results(self, task: str) -> list[ResultView]:
        """All results of a task, accepted and refused."""
        ...

    async def artifacts(self, task: str, *, generation: int | None=None) -> list[ArtifactView]:
        """The artifacts of a task by name, the last generation first."""
        ...

    async def why(self, task: str) -> WhyView:
        """Why a task is in its state."""
        ...

    async def briefing(self, task: str, *, at: Moment | None=None) -> BriefingView:
        """What the next holder of a task must know; `at`: as it was then."""
        ...

    async def todo(self, limit: int=100) -> Page[TodoEntry]:
        """Everything that waits for a person, the longest wait first."""
        ...

    async def dead_letters(self, *, resolved: bool=False) -> list[DeadLetterView]:
        """Tasks that are not tried again and wait for a person."""
        ...

    async def dag(self, id: str) -> DagView:
        """A dag with its tasks, edges, counts and critical path."""
        ...

    async def dags(self) -> list[DagEntry]:
        """All dags, with their tasks by state."""
        ...

    async def plans(self, *, dag: str | None=None, plan: str | None=None, open_only: bool=False) -> list[PlanView]:
        """The tasks of a dag, of a named plan, or all, as they were planned."""
        ...

    async def settings(self) -> ProjectView:
        """The settings of the project."""
        ...

    async def project_limits(self) -> list[LimitView]:
        """The project's limits: value, source (`default`, `project`) and use of each."""
        ...

    async def tracks(self) -> list[TrackView]:
        """The project's tracks."""
        ...

    async def forecast(self, **options: Unpack[ForecastOptions]) -> ForecastView:
        """When the open tasks end and what they cost, in most cases; with `tasks` of a plan that is not applied yet."""
        ...

    async def agents(self, *, managed: bool | None=None, status: Several=None) -> list[AgentView]:
        """The agents, and what each holds; `managed`: only those that a program looks after, or only the others."""
        ...

    async def agent_health(self, name: str) -> HealthView:
        """How an agent is: its own word, when its next heartbeat is due, its memory and CPU in the last hour."""
        ...

    async def agent_tasks(self, name: str, state: Several=None) -> list[TaskView]:
        """The tasks that an agent holds now, the first claimed first; those in one of these states."""
        ...

    async def agent_news(self) -> AgentNewsView:
        """Unread mail of this agent, and its directives."""
        ...

    async def agent_details(self, name: str) -> AgentInFull:
        """One agent: what it does now, when its next heartbeat is due, its memory and CPU in the last hour."""
        ...

    async def inbox(self, *, unread: bool=True, sender: str | None=None, after: str | None=None, limit: int=limits.LISTED) -> Page[MessageView]:
        """Mail of this agent, oldest first; does not mark it as read."""
        ...

    async def messages(self, limit: int=100) -> Page[MessageEntry]:
        """All mail of the project, newest first."""
        ...

    async def validations(self, limit: int=100) -> Page[WaitingView]:
        """Results that wait for a verdict or to be landed, oldest first, with their validator and who has them."""
        ...

    async def reservations(self) -> list[ReservationView]:
        """The reservations and their holders."""
        ...

    async def sessions(self, agent: str | None=None, limit: int=100) -> Page[SessionEntry]:
        """Sessions, the most recently active first."""
        ...

    async def memory(self, session: str | None=None) -> SessionView:
        """What a session claimed, did and lost."""
        ...

    async def session_claims(self, session: str) -> list[OwnClaim]:
        """The claims of all agents in a session, and those that expired or were taken in the last day."""
        ...

    async def own_claims(self) -> list[OwnClaim]:
        """The claims of this agent in this session, and those that expired or were taken in the last day."""
        ...

    async def processes(self) -> list[ProcessView]:
        """The processes that hold claims now."""
        ...

    async def projects(self) -> list[str]:
        """The names of all projects in the store."""
        ...

    async def status(self, *, at: Moment | None=None) -> StatusView:
        """One screen: the leader, the agents at work, progress by track, tasks by state; `at`: as it was then."""
        ...

    async def spent(self, by: str='task', limit: int=100) -> Page[SpentView]:
        """What each task, agent, model or session has cost, the most expensive first."""
        ...

    async def savings(self) -> SavingsView:
        """What choosing models by tier has saved, compared with the middle tier for all tasks."""
        ...

    async def estimates(self) -> EstimatesView:
        """Estimates compared with what tasks took, by type."""
        ...

    async def models(self) -> ModelsView:
        """The models by tier, their prices, and which are rate limited."""
        ...

    async def budgets(self, scope: str | None=None, *, after: str | None=None, limit: int=100, at: Moment | None=None) -> Page[BudgetView]:
        """Budgets of the project and the tenant; those of tasks with `scope="task"`; `at`: as they were then."""
        ...

    async def budget(self, scope: str='project', *, at: Moment | None=None) -> BudgetInFull:
        """One budget, with its spending by hour in the last week; `at`: as it was then."""
        ...

    async def alerts(self) -> list[AlertView]:
        """Budgets that are 50, 90 or 100 per cent spent, the worst first."""
        ...

    async def projection(self, scope: str='project') -> ProjectionView:
        """A budget's forecast: burn rate, days left, and what all open tasks will need."""
        ...

    async def headroom(self, task: str | None=None) -> HeadroomView:
        """Whether budgets allow this agent to claim anything: ask before starting a process for it.

            With a task the budgets that its claim counts in.
            """
        ...

    async def log(self, **filters: Unpack[LogFilters]) -> Page[EventView]:
        """Events, oldest first."""
        ...

    async def task_log(self, task: str, *, level: str | None=None, limit: int=100) -> Page[EventView]:
        """The events of one task, oldest first, with the stack traces of its failures."""
        ...

    async def set_schedule(self, name: str, cron: str, tasks: Iterable[NewTask] | NewTask, *, zone: str='UTC', misfire: str='once', title: str='', deadline_in: Duration | None=None) -> Changed:
        """Create or replace a schedule. Texts of the tasks may have placeholders such as `{tick.date}`."""
        ...

    async def pause_schedule(self, name: str, reason: str='') -> Changed:
        """Pause a schedule: it creates no tasks."""
        ...

    async def resume_schedule(self, name: str) -> Changed:
        """Continue a schedule with its next tick."""
        ...

    async def remove_schedule(self, name: str) -> Changed:
        """Remove a schedule; its tasks stay."""
        ...

    async def run_schedule(self, name: str) -> Changed:
        """Create its tasks now, in addition to its ticks."""
        ...

    async def schedules(self) -> list[ScheduleView]:
        """The schedules, by name."""
        ...

    async def schedule(self, name: str, ticks: int=5) -> ScheduleInFull:
        """One schedule with its template, and its next ticks."""
        ...

    async def set_trigger(self, name: str, on: str, tasks: Iterable[NewTask] | NewTask, *, where: Mapping[str, Any] | None=None, most: int=100, signature: str='standard', secret: str | None=None, title: str='', deadline_in: Duration | None=None) -> Changed:
        """Create or replace a trigger. Texts of the tasks may have placeholders such as `{event.key}`.

            `on` is a kind of event, a pattern such as `dag.*`, or `webhook`: then this outcome alone has its secret.
            """
        ...

    async def pause_trigger(self, name: str) -> Changed:
        """Pause a trigger: it creates no tasks."""
        ...

    async def resume_trigger(self, name: str) -> Changed:
        """Continue a trigger with the next event."""
        ...

    async def remove_trigger(self, name: str) -> Changed:
        """Remove a trigger; its tasks stay."""
        ...

    async def rotate_secret(self, name: str, secret: str | None=None, *, grace: Duration=24 * 3600.0) -> Changed:
        """Replace a webhook's secret; the previous one stays valid for `grace` seconds."""
        ...

    async def try_trigger(self, name: str, sample: Mapping[str, Any] | None=None) -> Changed:
        """Return what it would create for a sample, or for the last matching event; store nothing."""
        ...

    async def deliver(self, name: str, headers: Mapping[str, str], body: bytes) -> Changed:
        """Pass a delivery to a webhook, unchanged."""
        ...

    async def triggers(self) -> list[TriggerView]:
        """The triggers, by name, without their secrets."""
        ...

    async def trigger(self, name: str) -> TriggerInFull:
        """One trigger with its template, without its secret."""
        ...

    async def set_watch(self, watch: Watch | None) -> Changed:
        """Create a task that investigates when failures of a tag, type or track cluster; None turns it off."""
        ...

    async def watched(self) -> WatchedView:
        """The watch's settings and the failure rates, the worst first."""
        ...

    async def emit(self, name: str, data: Any=None) -> Changed:
        """Append a fact to the log, for sinks and triggers; `data` is JSON. It is never read as state."""
        ...

    async def send(self, text: str, to: str='@all', *, type: str='chat', reply_to: str | None=None, action: str | None=None, expires: Duration | None=None) -> Mail:
        """Send mail. With an `action` it is a command for programs, void after `expires` seconds."""
        ...

    async def read(self, messages: Iterable[str] | None=None) -> Mail:
        """Return this agent's unread mail and mark it as read."""
        ...

    async def set_webhook(self, name: str, url: str, *, kinds: Iterable[str]=('task.status_changed',), where: Mapping[str, Any] | None=None, secret: str | None=None) -> Changed:
        """Create or replace a webhook. The outcome that creates it is the only one that has its secret."""
        ...

    async def pause_webhook(self, name: str, reason: str='') -> Changed:
        """Send nothing more to the webhook; its deliveries wait."""
        ...

    async def resume_webhook(self, name: str) -> Changed:
        """Continue with the deliveries that wait."""
        ...

    async def remove_webhook(self, name: str) -> Changed:
        """Remove a webhook and its delivery log."""
        ...

    async def rotate_webhook(self, name: str, secret: str | None=None, *, grace: Duration=24 * 3600.0) -> Changed:
        """Give it a new secret; for `grace` seconds every delivery is signed with both."""
        ...

    async def test_webhook(self, name: str) -> Changed:
        """Send a message of the kind `webhook.test`, in order with the others."""
        ...

    async def replay_webhook(self, name: str, message: str | None=None, *, since: Instant | None=None) -> Changed:
        """Send deliveries again with the same ids: one, those that failed, or all events since an instant."""
        ...

    async def webhooks(self) -> list[WebhookView]:
        """The webhooks, by name, without their secrets."""
        ...

    async def webhook(self, name: str) -> WebhookView:
        """One webhook, without its secret."""
        ...

    async def deliveries(self, name: str, *, state: str | None=None, limit: int=100) -> Page[DeliveryView]:
        """The delivery log of a webhook, the newest first; parked deliveries are in it too."""
        ...

    async def relays(self) -> list[RelayView]:
        """The sinks with their places in the log, by name."""
        ...

    async def pause_relay(self, sink: str) -> Changed:
        """Send nothing more to the sink; events are kept for it up to its max_lag."""
        ...

    async def resume_relay(self, sink: str) -> Changed:
        """Continue where the relay was paused."""
        ...

    async def rewind_relay(self, sink: str, to: int | None=None, *, since: Instant | None=None) -> Changed:
        """Send events again: those after a sequence, or since an instant. Consumers see the same message ids."""
        ...

    async def remove_relay(self, sink: str) -> Changed:
        """Forget the sink's place in the log, so that it no longer holds the archive back."""
        ...

    async def set_pool(self, name: str, program: str | None=None, *, size: int | None=None, spawner: str | None=None, idle: Duration | None=None, capabilities: Iterable[str] | None=None, types: Iterable[str] | None=None, tracks: Iterable[str] | None=None, models: Iterable[str] | None=None) -> Changed:
        """Create or change a pool; omitted fields stay as they are. A new pool needs a program.

            `program` and `spawner` are names in the configuration of the leading process.
            """
        ...

    async def pause_pool(self, name: str, reason: str='') -> Changed:
        """Start nothing more; running agents finish their tasks."""
        ...

    async def resume_pool(self, name: str) -> Changed:
        """Start agents again, at once, also while the pool backs off."""
        ...

    async def remove_pool(self, name: str) -> Changed:
        """Remove the pool. Agents that have not claimed yet claim nothing; the others finish their tasks."""
        ...

    async def pools(self) -> list[PoolView]:
        """The pools, by name, with the number of their live processes."""
        ...

    async def pool(self, name: str) -> PoolInFull:
        """One pool with its live processes."""
        ...

    async def spawns(self, pool: str | None=None, *, state: Iterable[str] | None=None, limit: int=100) -> Page[SpawnView]:
        """Processes that pools have started, the newest first; ended ones are kept for a while."""
        ...

    async def add_tenant(self, name: str, *, tier: str='default', isolation: str='logical', store: str | None=None, region: str | None=None) -> Changed:
        """Create a tenant of a store that keeps several; its projects, keys and members are visible to it alone.

            With `isolation="instance"` its rows are in the store at the URL `store`, which is sealed and shown nowhere.
            """
        ...

    async def change_tenant(self, name: str, *, tier: str | None=None, limits: Mapping[str, int | None] | None=None) -> Changed:
        """Change the tier of a tenant, or the limits that are named; None goes back to the tier's value."""
        ...

    async def close_tenant(self, name: str, reason: str='') -> Changed:
        """Close a tenant: nobody can use it. Its rows stay."""
        ...

    async def reopen_tenant(self, name: str) -> Changed:
        """Open a closed tenant again, as it was."""
        ...

    async def tenants(self, *, closed: bool=False) -> list[TenantView]:
        """The tenants, `local` first, then by name; with `closed` also closed ones."""
        ...

    async def tenant(self, name: str) -> TenantView:
        """One tenant."""
        ...

    async def invite_member(self, user: str, role: str='member', *, projects: Iterable[str]=()) -> Changed:
        """Make a person a member of the tenant, in some projects or all."""
        ...

    async def change_member(self, user: str, role: str | None=None, *, projects: Iterable[str] | None=None) -> Changed:
        """Change the role or the projects of a member; keys of theirs that reach further are revoked."""
        ...

    async def remove_member(self, user: str) -> Changed:
        """End a membership, and revoke the keys of that person."""
        ...

    async def members(self, *, left: bool=False) -> list[MemberView]:
        """The members, by name; with `left` also former ones."""
        ...

    async def init(self, **settings: Unpack[ProjectSettings]) -> Updated:
        """Create the project, or change its settings.

            These are default_track, boost, agents_may_operate, review_other_person, limits, routing, router, order, lead
            and compliance.
            `limits` replaces all limits; `change_limits` changes those that it names, None back to the default.
            """
        ...

    async def reorder(self, after: str | None=None) -> Updated:
        """Move a page of open tasks to the project's current order; `next` of the outcome is `after` of the next."""
        ...

    async def rotate_data_key(self, *, master: bool=False, lost: bool=False) -> Updated:
        """Seal new secrets with a new data key; `master`: wrap the data keys by the current master key.

            `lost`: give up data keys whose master key is lost, and what they sealed, for ever.
            """
        ...

    async def reseal(self, after: str | None=None, *, plain: bool=False) -> Updated:
        """Seal a page of the project's secrets again with its data key; `next` is `after` of the next page.

            `plain`: also texts that are secret by their name and were stored as given, without a master key.
            """
        ...

    async def define_track(self, code: str, name: str | None=None, purpose: str='', *, max_agents: int | None=None) -> Updated:
        """Create or change a track; without a name, name and purpose of a known one stay."""
        ...

    async def assign_track(self, code: str, agent: str) -> Updated:
        """Assign a track to an agent until it leaves or is released; needs the project's router."""
        ...

    async def release_track(self, code: str, agent: str | None=None) -> Updated:
        """End the assignment of a track to an agent, or to all."""
        ...

    async def stop_line(self, scope: str='project:', reason: str='') -> Updated:
        """Stop claiming in a scope: `project:`, `track:B`, `dag:ID`, `agent:NAME` or `type:code`."""
        ...

    async def start_line(self, scope: str='project:') -> Updated:
        """Allow claiming in the scope again."""
        ...

    async def set_budget(self, scope: str='project', *, usd: str | Decimal | float | None=None, tokens: int | None=None, default_estimate: str | Decimal | float | None=None, **fields: Unpack[BudgetFields]) -> Changed:
        """Create or change a budget: `tenant`, `project`, `dag:ID`, `task:KEY` or `agent:NAME`.

            `fields` are those of SetBudget: period, zone, begins_at, ends_at and throttle.
            """
        ...

    async def remove_budget(self, scope: str='project') -> Changed:
        """Remove a budget; the scope's spending is no longer limited."""
        ...

    async def move_budget(self, source: str, target: str, amount: str | Decimal | float) -> Changed:
        """Move an amount that is neither spent nor reserved from one budget to another of its currency and period."""
        ...

    async def confirm_usage(self, task: str, generation: int | None=None) -> Updated:
        """Confirm a doubtful cost of the task, or of one attempt: budgets count it from now on."""
        ...

    async def reject_usage(self, task: str, generation: int | None=None) -> Updated:
        """Reject a doubtful cost of the task, or of one attempt: it was not spent."""
        ...

    async def pause(self, task: str, reason: str='', *, drain: bool=False) -> Updated:
        """Pause the task and end its claim; with `drain` its holder may finish."""
        ...

    async def resume(self, task: str, *, budget: bool=False) -> Updated:
        """Resume a task that a person paused; with `budget` also one that its budget paused."""
        ...

    async def answer(self, task: str, text: str) -> Updated:
        """Answer the question that a task waits for."""
        ...

    async def cancel(self, task: str, reason: str='') -> Updated:
        """Cancel the task and end its claim."""
        ...

    async def retry(self, task: str, note: str='', changes: Mapping[str, Any] | None=None) -> Updated:
        """Give a dead letter or waiting task another attempt; `changes` are edited first."""
        ...

    async def reset(self, task: str, *, cascade: bool=False) -> Updated:
        """Start the task over, with `cascade` its dependents too."""
        ...

    async def adopt(self, task: str, result: str | None=None, *, supersede: bool=False, note: str='') -> Updated:
        """Accept a result that was refused, for a task without one."""
        ...

    async def approve(self, task: str, note: str='') -> Updated:
        """Pass the result that waits for a verdict; it is accepted, or waits to be landed."""
        ...

    async def reject(self, task: str, reason: str) -> Updated:
        """Reject the result that waits for a verdict or to be landed; the next attempt gets the reason."""
        ...

    async def archive(self, task: str) -> Updated:
        """Move a finished task into the archive."""
        ...

    async def update(self, task: str, version: int | None=None, *, supersede: bool=False, **changes: Unpack[TaskChanges]) -> Updated:
        """Change fields of a task; with `version` only if it is still the current one."""
        ...

    async def assign(self, task: str, agent: str, seconds: Duration=limits.OFFER, *, term: int | None=None) -> Updated:
        """Offer a task to one agent. With `term` as the project's leader: a stale one is refused."""
        ...

    async def reassign(self, task: str, agent: str, seconds: Duration=limits.OFFER, *, term: int | None=None) -> Updated:
        """End the claim and offer the task to another agent for a while; `term` as for `assign`."""
        ...

    async def recover(self, task: str, reason: str='', *, term: int | None=None) -> Updated:
        """End a claim whose holder is lost; the attempt does not count. `term` as for `assign`."""
        ...

    async def abort(self, task: str, reason: str='') -> Updated:
        """End a claim that hangs; the attempt counts."""
        ...

    async def note(self, task: str, text: str) -> Updated:
        """Add a note to the task, for its next holder."""
        ...

    async def undo(self, command_id: str) -> Updated:
        """Undo the operator command with this `command_id`, unless its tasks have changed since."""
        ...

    async def register(self, **fields: Unpack[AgentFields]) -> Team:
        """Register this agent: type, capabilities, models, tracks, region, max_concurrent_tasks …

            With a `signing_key` its public key too: results of this session must then be signed, and are.
            """
        ...

    async def heartbeat(self, **fields: Unpack[Health]) -> Team:
        """A sign of life of this agent; renews no lease."""
        ...

    async def drain(self, agent: str | None=None) -> Team:
        """Let an agent finish what it holds and claim nothing more."""
        ...

    async def terminate(self, agent: str, *, graceful: bool=True, reason: str='') -> Team:
        """Stop an agent: it claims nothing until `resume_agent`. Graceful: its claims may finish."""
        ...

    async def resume_agent(self, agent: str) -> Team:
        """Let a drained or terminated agent claim again."""
        ...

    async def leave(self, session: str | None=None) -> Team:
        """End a session: its agent is gone, its claims' leases run out."""
        ...

    async def gone(self, processes: Iterable[Process]) -> Team:
        """Report processes that have ended on this host: their claims expire now."""
        ...

    async def reserve(self, *patterns: str, receipt: str | None=None, mode: str='exclusive', lease: Duration | None=None) -> Reserved:
        """Reserve paths or names, such as `docs/**` or `port:8080`."""
        ...

    async def renew_reservation(self, receipt: str, lease: Duration | None=None) -> Reserved:
        """Extend a reservation."""
        ...

    async def unreserve(self, receipt: str) -> Reserved:
        """End a reservation."""
        ...

    async def lead(self, *, lease: Duration=limits.LEADER_LEASE, term: int | None=None) -> Team:
        """Become this project's `@leader`, or renew leadership."""
        ...

    async def step_down(self, term: int) -> Team:
        """Give up leadership."""
        ...

    async def audit_on(self) -> Updated:
        """Seal the log of the project from now on, what it has so far included. It cannot be turned off."""
        ...

    async def audit_head(self, *, store: bool=False) -> AuditHeadView:
        """Seal the committed events; return the head, to be kept elsewhere."""
        ...

    async def verify_audit(self, *, head: str | None=None, store: bool=False) -> AuditReportView:
        """Check every sealed event and every signature; with a `head` also that nothing was cut off."""
        ...

    async def attest(self, *, store: bool=False) -> AttestationView:
        """The head, signed with the key of the server, or of this user where the store is opened here."""
        ...

    async def audit_page(self, after: str | None=None, *, store: bool=False) -> AuditPageView:
        """A page of the export; `after` is `next` of the page before."""
        ...

    async def export_audit(self, path: str | PathLike[str], *, store: bool=False) -> ExportView:
        """Write the sealed log with its seals to a new file, for `tenure audit verify`; keep its digest elsewhere."""
        ...

    async def add(self, title: str, *, request_id: str | None=None, **fields: Unpack[TaskFields]) -> Added:
        """Create a task; `after` names its dependencies, `fields` are those of NewTask."""
        ...

    async def add_many(self, tasks: Iterable[NewTask], *, request_id: str | None=None) -> list[TaskLine]:
        """Create many tasks, each in its own dag, in batches of 1,000: a batch is created whole or not at all.

            An error names its batch; the ones before it are created. Where a task with the same idempotency key exists,
            that one is returned in its place. A `request_id` makes the whole call repeatable.
            """
        ...

    async def wait(self, task: str, timeout: Duration | None=None) -> Ended:
        """Wait until the task has ended: completed, cancelled or a dead letter. Raises TimeoutError after `timeout`."""
        ...

    async def plan(self, tasks: Iterable[NewTask], *, title: str='', name: str | None=None, prune: bool=False, tracks: Iterable[NewTrack]=(), dry_run: bool=False, on_end: Mapping[str, Template] | None=None, budget: str | Decimal | float | None=None) -> Planned:
        """Create a whole dag; one with a name can be applied again. A dry run returns what would happen.

            `on_end` has the tasks to create when the dag is completed, failed or cancelled; `budget` is in dollars.
            """
        ...

    async def link(self, task: str, needs: str, on_failure: str='block') -> Updated:
        """Make `task` wait for `needs`."""
        ...

    async def unlink(self, task: str, needs: str) -> Updated:
        """Remove the dependency of `task` on `needs`."""
        ...

    async def publish(self, task: str | None=None, dag: str | None=None) -> Updated:
        """Publish a draft, or all drafts of a dag."""
        ...

    async def claim(self, task: str | None=None, *, lease: Duration | None=None, n: int=1, like: bool=False, wait: Duration=0.0, process: Process | None=None, agent_type: str | None=None, request_id: str | None=None, metadata: Mapping[str, Any] | None=None, spawn: str | None=None, **filters: Unpack[ClaimOptions]) -> Claimed:
        """Claim a task by name, or the best that this agent may claim; `wait` is how long to wait for it.

            By name it waits for a dependency, a retry, another's lease or whatever else may end by itself.

            The end of `process` proves that the holder is gone; leave it out if the receipt will be passed on.
            `agent_type` (claude, codex, gemini …) chooses the model for an agent that is not registered. The lease `"auto"`
            follows the task's estimate, else its type. With `like` all `n` tasks are of the type and track of the first.
            `spawn` is the id that a pool gave this process.
            """
        ...

    async def renew(self, receipt: str, lease: Duration | None=None, *, background: bool=False, worked: bool=False, seen: int | None=None) -> Held:
        """`worked` says that the holder has just worked, which a renewal alone does not.

            `seen` is the number of the description that you have read, after the directive `changed`.
            """
        ...

    async def start(self, receipt: str) -> Held:
        """Start work on the held task."""
        ...

    async def progress(self, receipt: str, percent: int | None=None, step: str | None=None, done_in: Duration | None=None, *, seen: int | None=None, checkpoint: Mapping[str, Any] | None=None) -> Held:
        """Report progress on the held task; `done_in` is the estimated time to completion.

            With `checkpoint` it also saves what the next holder needs to continue from here.
            """
        ...

    async def checkpoint(self, receipt: str, data: Mapping[str, Any]) -> Held:
        """Save what the next holder needs to continue from here."""
        ...

    async def usage(self, receipt: str, model: str, *, fresh: int=0, cached: int=0, written: int=0, output: int=0, cost_usd: str | Decimal | float | None=None, duration: Duration=0.0, operation: str='') -> Held:
        """Report a model's totals since the claim: tokens, dollars (None: not known), seconds.

            With an `operation` (`review`, `tests`): the part of them that was for it.
            """
        ...

    async def land(self, receipt: str, branch: str, old: str, new: str, *, seen: int | None=None, request_id: str | None=None) -> Held:
        """Record that the branch is about to move from one commit to another; the caller moves it."""
        ...

    async def submit(self, receipt: str, data: Any=None, summary: str='', request_id: str | None=None, *, usage: Iterable[Totals]=(), lines: int | None=None, test_files: int=0, artifacts: Iterable[str] | None=None, seen: int | None=None, land: LandRequest | None=None) -> Submitted:
        """Submit a result; `artifacts` are the names of its artifacts, by default all of the task in this run.

            With `land` it is accepted once that commit is on that branch: see `take_landing`.
            CHANGED means that the description has changed: read `diff`, then submit with `seen` = `brief`.
            `lines` and `test_files` are the size of the change, for projects that compare it with the cost.
            """
        ...

    async def take_validation(self, task: str | None=None, *, validators: Iterable[str]=(), lease: Duration | None=None, checker: str | None=None, request_id: str | None=None) -> Validation:
        """Take a result that waits for a verdict: this task's, or the best one that `validators` can check."""
        ...

    async def renew_validation(self, receipt: str, lease: Duration | None=None) -> Validation:
        """Extend the lease of a validation."""
        ...

    async def take_landing(self, task: str | None=None, *, lease: Duration | None=None, lander: str | None=None, request_id: str | None=None) -> Validation:
        """Take a result that has passed and whose commit is to be put on a branch: this task's, or the best one.

            `land` with its receipt records the move of the branch before it is made; `judge` says that it is done.
            """
        ...

    async def judge(self, receipt: str, ok: bool, reasons: Iterable[str]=(), details: Mapping[str, Any] | None=None, *, conflict: bool=False) -> Validation:
        """Record the verdict, with the receipt of the validation; or whether its landing is done.

            `conflict`: the commit does not fit to its branch any more; the attempt is given back.
            """
        ...

    async def undecided(self, receipt: str, reason: str, retry_after: Duration | None=None, *, blocked: bool=False) -> Validation:
        """Give up a validation without a verdict; it will be tried again. `blocked`: of a landing; it
            does not count as a try, since something in the checkout is in its way."""
        ...

    async def fail(self, receipt: str, message: str='', error_class: str='task', *, retry_after: Duration | None=None, model: str | None=None, trace: str='') -> Held:
        """Report a failed attempt. `trace` is the stack trace, kept with the attempt: bounded, secrets removed."""
        ...

    async def release(self, receipt: str, reason: str='', *, stopped: bool=False) -> Held:
        """Release the claim; the attempt does not count. The agent gets the task again only after five minutes, or at
            once if it was `stopped`: by a shutdown, not by the task."""
        ...

    async def spawn(self, receipt: str, tasks: Iterable[NewTask], *, wait: bool=False) -> Spawned:
        """Create subtasks of the held task; with `wait` it is ready again when all have ended."""
        ...

    async def wait_for_subtasks(self, receipt: str) -> Held:
        """Release the claim until the subtasks have ended."""
        ...

    async def ask(self, receipt: str, question: str) -> Held:
        """Ask a person; the task is paused until the answer."""
        ...

    async def open_secrets(self, receipt: str) -> Held:
        """The `secrets` of the held task, by name, as the claim's answer had them."""
        ...

