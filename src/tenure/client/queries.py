"""The queries: each method runs one query. They write nothing. Instants in views are microseconds UTC."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, TypeVar

from tenure.client.caller import Caller
from tenure.client.results import Next
from tenure.client.times import moment_of
from tenure.core import limits
from tenure.core import queries as q
from tenure.core.queries import Query
from tenure.core.query import Page

if TYPE_CHECKING:
    from typing import TypedDict, Unpack

    from tenure.client.arguments import ClaimOptions
    from tenure.client.times import Instant, Moment
    from tenure.core.commands.graph_commands import NewTask, NewTrack
    from tenure.core.views import (
        AgentInFull,
        AgentNewsView,
        AgentView,
        AlertView,
        ArtifactView,
        BriefingView,
        BudgetInFull,
        BudgetView,
        DagEntry,
        DagView,
        DeadLetterView,
        EstimatesView,
        EventView,
        ForecastView,
        HeadroomView,
        HealthView,
        HistoryEntry,
        LimitView,
        MessageEntry,
        MessageView,
        ModelsView,
        OwnClaim,
        PlanView,
        ProcessView,
        ProjectionView,
        ProjectView,
        ReservationView,
        ResultView,
        SavingsView,
        SessionEntry,
        SessionView,
        SpentView,
        StateLine,
        StatusView,
        TaskInFull,
        TaskView,
        TodoEntry,
        TrackView,
        WaitingView,
        WhyView,
    )

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


View = TypeVar("View")


class Queries(Caller):
    def _ask(self, query: Query) -> View:  # type: ignore[type-var]  # each method names its view
        """The answer, as the view that `core/views` names for the query."""
        view: View = self.query(query)
        return view

    # --- tasks ---

    def show(self, task: str, *, at: Moment | None = None) -> TaskInFull:
        """Everything about one task except its log; `at`: as it was then."""
        return self._ask(q.Show(project=self.project, task=task, at=moment_of(at)))

    def tasks(self, **filters: Unpack[TaskFilters]) -> Page[TaskView]:
        """A page of tasks; its `next` is `after` of the next one."""
        return self._ask(_filtered(q.Tasks, self.project, filters))

    def ready(self, *, track: str | None = None, limit: int = 50) -> Page[TaskView]:
        """Claimable tasks, best first."""
        return self._ask(q.Ready(project=self.project, track=track, limit=limit))

    def next(self, **filters: Unpack[ClaimOptions]) -> Next:
        """The task that `claim` would claim now; claim nothing."""
        query = q.Next(project=self.project, agent=self.agent, session=self.session, **_tuples(q.Next, filters))
        return self._as(Next, self.query(query))

    def states(self, tasks: Iterable[str]) -> list[StateLine]:
        """The state of each named task, or that it does not exist."""
        return self._ask(q.States(project=self.project, tasks=tuple(tasks)))

    def history(self, task: str, *, at: Moment | None = None) -> list[HistoryEntry]:
        """The lineage: one entry for each generation, with its refused submissions; `at`: as it was then."""
        return self._ask(q.History(project=self.project, task=task, at=moment_of(at)))

    def results(self, task: str) -> list[ResultView]:
        """All results of a task, accepted and refused."""
        return self._ask(q.Results(project=self.project, task=task))

    def artifacts(self, task: str, *, generation: int | None = None) -> list[ArtifactView]:
        """The artifacts of a task by name, the last generation first."""
        return self._ask(q.Artifacts(project=self.project, task=task, generation=generation))

    def why(self, task: str) -> WhyView:
        """Why a task is in its state."""
        return self._ask(q.Why(project=self.project, task=task))

    def briefing(self, task: str, *, at: Moment | None = None) -> BriefingView:
        """What the next holder of a task must know; `at`: as it was then."""
        return self._ask(q.Briefing(project=self.project, task=task, at=moment_of(at)))

    def todo(self, limit: int = 100) -> Page[TodoEntry]:
        """Everything that waits for a person, the longest wait first."""
        return self._ask(q.Todo(project=self.project, limit=limit))

    def dead_letters(self, *, resolved: bool = False) -> list[DeadLetterView]:
        """Tasks that are not tried again and wait for a person."""
        return self._ask(q.DeadLetters(project=self.project, resolved=resolved))

    # --- dags ---

    def dag(self, id: str) -> DagView:
        """A dag with its tasks, edges, counts and critical path."""
        return self._ask(q.ShowDag(project=self.project, dag=id))

    def dags(self) -> list[DagEntry]:
        """All dags, with their tasks by state."""
        return self._ask(q.Dags(project=self.project))

    def plans(self, *, dag: str | None = None, plan: str | None = None, open_only: bool = False) -> list[PlanView]:
        """The tasks of a dag, of a named plan, or all, as they were planned."""
        return self._ask(q.Plans(project=self.project, dag=dag, plan=plan, open_only=open_only))

    def settings(self) -> ProjectView:
        """The settings of the project."""
        return self._ask(q.ShowProject(project=self.project))

    def project_limits(self) -> list[LimitView]:
        """The project's limits: value, source (`default`, `project`) and use of each."""
        return self._ask(q.Limits(project=self.project))

    def tracks(self) -> list[TrackView]:
        """The project's tracks."""
        return self._ask(q.Tracks(project=self.project))

    def forecast(self, **options: Unpack[ForecastOptions]) -> ForecastView:
        """When the open tasks end and what they cost, in most cases; with `tasks` of a plan that is not applied yet."""
        return self._ask(q.Forecast(project=self.project, **_tuples(q.Forecast, options)))

    # --- the team ---

    def agents(self, *, managed: bool | None = None, status: Several = None) -> list[AgentView]:
        """The agents, and what each holds; `managed`: only those that a program looks after, or only the others."""
        return self._ask(_filtered(q.Agents, self.project, {"managed": managed, "status": status}))

    def agent_health(self, name: str) -> HealthView:
        """How an agent is: its own word, when its next heartbeat is due, its memory and CPU in the last hour."""
        return self._ask(q.AgentHealth(project=self.project, agent=name))

    def agent_tasks(self, name: str, state: Several = None) -> list[TaskView]:
        """The tasks that an agent holds now, the first claimed first; those in one of these states."""
        return self._ask(_filtered(q.AgentTasks, self.project, {"agent": name, "state": state}))

    def agent_news(self) -> AgentNewsView:
        """Unread mail of this agent, and its directives."""
        return self._ask(q.AgentNews(project=self.project, agent=self.agent))

    def agent_details(self, name: str) -> AgentInFull:
        """One agent: what it does now, when its next heartbeat is due, its memory and CPU in the last hour."""
        return self._ask(q.ShowAgent(project=self.project, agent=name))

    def inbox(
        self, *, unread: bool = True, sender: str | None = None, after: str | None = None, limit: int = limits.LISTED
    ) -> Page[MessageView]:
        """Mail of this agent, oldest first; does not mark it as read."""
        who = {"project": self.project, "agent": self.agent}
        return self._ask(q.Inbox(**who, unread=unread, sender=sender, after=after, limit=limit))

    def messages(self, limit: int = 100) -> Page[MessageEntry]:
        """All mail of the project, newest first."""
        return self._ask(q.Messages(project=self.project, limit=limit))

    def validations(self, limit: int = 100) -> Page[WaitingView]:
        """Results that wait for a verdict or to be landed, oldest first, with their validator and who has them."""
        return self._ask(q.Validations(project=self.project, limit=limit))

    def reservations(self) -> list[ReservationView]:
        """The reservations and their holders."""
        return self._ask(q.Reservations(project=self.project))

    def sessions(self, agent: str | None = None, limit: int = 100) -> Page[SessionEntry]:
        """Sessions, the most recently active first."""
        return self._ask(q.Sessions(project=self.project, agent=agent, limit=limit))

    def memory(self, session: str | None = None) -> SessionView:
        """What a session claimed, did and lost."""
        return self._ask(q.ShowSession(project=self.project, session=session or self.session))

    def session_claims(self, session: str) -> list[OwnClaim]:
        """The claims of all agents in a session, and those that expired or were taken in the last day."""
        return self._ask(q.OwnClaims(project=self.project, session=session))

    def own_claims(self) -> list[OwnClaim]:
        """The claims of this agent in this session, and those that expired or were taken in the last day."""
        return self._ask(q.OwnClaims(project=self.project, session=self.session, agent=self.agent))

    def processes(self) -> list[ProcessView]:
        """The processes that hold claims now."""
        return self._ask(q.Processes(project=self.project))

    # --- the project ---

    def projects(self) -> list[str]:
        """The names of all projects in the store."""
        return self._ask(q.Projects())

    def status(self, *, at: Moment | None = None) -> StatusView:
        """One screen: the leader, the agents at work, progress by track, tasks by state; `at`: as it was then."""
        return self._ask(q.Status(project=self.project, at=moment_of(at)))

    def spent(self, by: str = "task", limit: int = 100) -> Page[SpentView]:
        """What each task, agent, model or session has cost, the most expensive first."""
        return self._ask(q.ShowSpending(project=self.project, by=by, limit=limit))

    def savings(self) -> SavingsView:
        """What choosing models by tier has saved, compared with the middle tier for all tasks."""
        return self._ask(q.ShowSavings(project=self.project))

    def estimates(self) -> EstimatesView:
        """Estimates compared with what tasks took, by type."""
        return self._ask(q.Estimates(project=self.project))

    def models(self) -> ModelsView:
        """The models by tier, their prices, and which are rate limited."""
        return self._ask(q.Models(project=self.project))

    # --- budgets ---

    def budgets(
        self, scope: str | None = None, *, after: str | None = None, limit: int = 100, at: Moment | None = None
    ) -> Page[BudgetView]:
        """Budgets of the project and the tenant; those of tasks with `scope="task"`; `at`: as they were then."""
        return self._ask(q.Budgets(project=self.project, scope=scope, after=after, limit=limit, at=moment_of(at)))

    def budget(self, scope: str = "project", *, at: Moment | None = None) -> BudgetInFull:
        """One budget, with its spending by hour in the last week; `at`: as it was then."""
        return self._ask(q.ShowBudget(project=self.project, scope=scope, at=moment_of(at)))

    def alerts(self) -> list[AlertView]:
        """Budgets that are 50, 90 or 100 per cent spent, the worst first."""
        return self._ask(q.Alerts(project=self.project))

    def projection(self, scope: str = "project") -> ProjectionView:
        """A budget's forecast: burn rate, days left, and what all open tasks will need."""
        return self._ask(q.ShowProjection(project=self.project, scope=scope))

    def headroom(self, task: str | None = None) -> HeadroomView:
        """Whether budgets allow this agent to claim anything: ask before starting a process for it.

        With a task the budgets that its claim counts in.
        """
        return self._ask(q.Headroom(project=self.project, agent=self.agent, task=task))

    def log(self, **filters: Unpack[LogFilters]) -> Page[EventView]:
        """Events, oldest first."""
        return self._ask(_filtered(q.Log, self.project, filters))

    def task_log(self, task: str, *, level: str | None = None, limit: int = 100) -> Page[EventView]:
        """The events of one task, oldest first, with the stack traces of its failures."""
        return self._ask(q.TaskLog(project=self.project, task=task, level=level, limit=limit))


def _filtered(kind: type[Query], project: str, filters: Any) -> Query:
    """The query with these filters; InvalidInput for an unknown filter."""
    for name in filters:
        if name not in kind.__struct_fields__:
            from tenure.core.inputs import check_choice

            check_choice(name, [known for known in kind.__struct_fields__ if known != "project"], "filter")
    return kind(project=project, **_tuples(kind, filters))


def _tuples(kind: type[Query], filters: Any) -> dict[str, Any]:
    """The filters with one name as a tuple where the query takes several, and any iterable of names."""

    def tupled(name: str, value: Any) -> Any:
        if name == q.AT:
            return moment_of(value)
        if isinstance(value, str):
            return (value,) if kind.__annotations__.get(name, "").startswith("tuple[") else value
        return tuple(value) if isinstance(value, Iterable) else value

    return {name: tupled(name, value) for name, value in filters.items()}
