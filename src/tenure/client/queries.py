"""The queries: each method runs one query. They write nothing. Instants in views are microseconds UTC."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from tenure.client.caller import Caller
from tenure.client.results import Next
from tenure.core import queries as q
from tenure.core.queries import Query

if TYPE_CHECKING:
    from typing import TypedDict, Unpack

    from tenure.client.arguments import ClaimOptions
    from tenure.client.times import Instant
    from tenure.core.commands.graph_commands import NewTask, NewTrack

    Several = str | Iterable[str] | None

    class TaskFilters(TypedDict, total=False):
        """`text` searches title and key; a leading minus reverses `order`; `after` is the last row's
        (order value, id)."""

        state: Several
        track: Several
        type: Several
        agent: Several
        session: str | None
        dag: str | None
        parent: str | None
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


_SEVERAL = frozenset({"state", "track", "type", "agent", "kind", "tag", "fields", "status"})  # one or many values


class Queries(Caller):
    def _one(self, query: Query) -> dict[str, Any]:
        one: dict[str, Any] = self.query(query)
        return one

    def _dicts(self, query: Query) -> list[dict[str, Any]]:
        several: list[dict[str, Any]] = self.query(query)
        return several

    # --- tasks ---

    def show(self, task: str) -> dict[str, Any]:
        """Everything about one task except its log."""
        return self._one(q.Show(project=self.project, task=task))

    def tasks(self, **filters: Unpack[TaskFilters]) -> list[dict[str, Any]]:
        """A page of tasks."""
        return self._dicts(_filtered(q.Tasks, self.project, filters))

    def ready(self, *, track: str | None = None, limit: int = 50) -> list[dict[str, Any]]:
        """Claimable tasks, best first."""
        return self._dicts(q.Ready(project=self.project, track=track, limit=limit))

    def next(self, **filters: Unpack[ClaimOptions]) -> Next:
        """The task that `claim` would claim now; claim nothing."""
        query = q.Next(project=self.project, agent=self.agent, session=self.session, **_tuples(filters))
        return self._as(Next, self.query(query))

    def states(self, tasks: Iterable[str]) -> list[dict[str, Any]]:
        """The state of each named task, or that it does not exist."""
        return self._dicts(q.States(project=self.project, tasks=tuple(tasks)))

    def history(self, task: str) -> list[dict[str, Any]]:
        """The lineage: one entry for each generation, with its refused submissions."""
        return self._dicts(q.History(project=self.project, task=task))

    def results(self, task: str) -> list[dict[str, Any]]:
        """All results of a task, accepted and refused."""
        return self._dicts(q.Results(project=self.project, task=task))

    def artifacts(self, task: str, *, generation: int | None = None) -> list[dict[str, Any]]:
        """The artifacts of a task by name, the last generation first."""
        return self._dicts(q.Artifacts(project=self.project, task=task, generation=generation))

    def why(self, task: str) -> dict[str, Any]:
        """Why a task is in its state."""
        return self._one(q.Why(project=self.project, task=task))

    def briefing(self, task: str) -> dict[str, Any]:
        """What the next holder of a task must know."""
        return self._one(q.Briefing(project=self.project, task=task))

    def todo(self, limit: int = 100) -> list[dict[str, Any]]:
        """Everything that waits for a person, the longest wait first."""
        return self._dicts(q.Todo(project=self.project, limit=limit))

    def dead_letters(self, *, resolved: bool = False) -> list[dict[str, Any]]:
        """Tasks that ran out of attempts and wait for a person."""
        return self._dicts(q.DeadLetters(project=self.project, resolved=resolved))

    # --- dags ---

    def dag(self, id: str) -> dict[str, Any]:
        """A dag with its tasks, edges, counts and critical path."""
        return self._one(q.ShowDag(project=self.project, dag=id))

    def dags(self) -> list[dict[str, Any]]:
        """All dags, with their tasks by state."""
        return self._dicts(q.Dags(project=self.project))

    def plans(
        self, *, dag: str | None = None, plan: str | None = None, open_only: bool = False
    ) -> list[dict[str, Any]]:
        """The tasks of a dag, of a named plan, or all, as they were planned."""
        return self._dicts(q.Plans(project=self.project, dag=dag, plan=plan, open_only=open_only))

    def settings(self) -> dict[str, Any]:
        """The settings of the project."""
        return self._one(q.ShowProject(project=self.project))

    def project_limits(self) -> list[dict[str, Any]]:
        """The project's limits: value, source (`default`, `project`) and use of each."""
        return self._dicts(q.Limits(project=self.project))

    def tracks(self) -> list[dict[str, Any]]:
        """The project's tracks."""
        return self._dicts(q.Tracks(project=self.project))

    def forecast(self, **options: Unpack[ForecastOptions]) -> dict[str, Any]:
        """When the open tasks end and what they cost, in most cases; with `tasks` of a plan that is not applied yet."""
        return self._one(q.Forecast(project=self.project, **_tuples(options)))

    # --- the team ---

    def agents(self, *, managed: bool | None = None, status: Several = None) -> list[dict[str, Any]]:
        """The agents, and what each holds; `managed`: only those that a program looks after, or only the others."""
        return self._dicts(_filtered(q.Agents, self.project, {"managed": managed, "status": status}))

    def agent_health(self, name: str) -> dict[str, Any]:
        """How an agent is: its own word, when its next heartbeat is due, its memory and CPU in the last hour."""
        return self._one(q.AgentHealth(project=self.project, agent=name))

    def agent_tasks(self, name: str) -> list[dict[str, Any]]:
        """The tasks that an agent holds now, the first claimed first."""
        return self._dicts(q.AgentTasks(project=self.project, agent=name))

    def agent_news(self) -> dict[str, Any]:
        """Unread mail of this agent, and its directives."""
        return self._one(q.AgentNews(project=self.project, agent=self.agent))

    def agent_details(self, name: str) -> dict[str, Any]:
        """One agent: what it does now, when its next heartbeat is due, its memory and CPU in the last hour."""
        return self._one(q.ShowAgent(project=self.project, agent=name))

    def inbox(self, *, unread: bool = True, sender: str | None = None) -> list[dict[str, Any]]:
        """Mail of this agent; does not mark it as read."""
        return self._dicts(q.Inbox(project=self.project, agent=self.agent, unread=unread, sender=sender))

    def messages(self, limit: int = 100) -> list[dict[str, Any]]:
        """All mail of the project, newest first."""
        return self._dicts(q.Messages(project=self.project, limit=limit))

    def validations(self, limit: int = 100) -> list[dict[str, Any]]:
        """Results that wait for a verdict, the oldest first, with their validator and who checks them."""
        return self._dicts(q.Validations(project=self.project, limit=limit))

    def reservations(self) -> list[dict[str, Any]]:
        """The reservations and their holders."""
        return self._dicts(q.Reservations(project=self.project))

    def sessions(self, agent: str | None = None, limit: int = 100) -> list[dict[str, Any]]:
        """Sessions, the most recently active first."""
        return self._dicts(q.Sessions(project=self.project, agent=agent, limit=limit))

    def memory(self, session: str | None = None) -> dict[str, Any]:
        """What a session claimed, did and lost."""
        return self._one(q.ShowSession(project=self.project, session=session or self.session))

    def own_claims(self) -> list[dict[str, Any]]:
        """The claims of this agent in this session, and those that expired or were taken in the last day."""
        return self._dicts(q.OwnClaims(project=self.project, session=self.session, agent=self.agent))

    def processes(self) -> list[dict[str, Any]]:
        """The processes that hold claims now."""
        return self._dicts(q.Processes(project=self.project))

    # --- the project ---

    def projects(self) -> list[str]:
        """The names of all projects in the store."""
        names: list[str] = self.query(q.Projects())
        return names

    def status(self) -> dict[str, Any]:
        """One screen: the leader, the agents at work, progress by track, tasks by state."""
        return self._one(q.Status(project=self.project))

    def spent(self, by: str = "task", limit: int = 100) -> list[dict[str, Any]]:
        """What each task, agent, model or session has cost, the most expensive first."""
        return self._dicts(q.ShowSpending(project=self.project, by=by, limit=limit))

    def savings(self) -> dict[str, Any]:
        """What choosing models by tier has saved, compared with the middle tier for all tasks."""
        return self._one(q.ShowSavings(project=self.project))

    def estimates(self) -> dict[str, Any]:
        """Estimates compared with what tasks took, by type."""
        return self._one(q.Estimates(project=self.project))

    def models(self) -> dict[str, Any]:
        """The models by tier, their prices, and which are rate limited."""
        return self._one(q.Models(project=self.project))

    # --- budgets ---

    def budgets(self, scope: str | None = None, *, after: str | None = None, limit: int = 100) -> list[dict[str, Any]]:
        """Budgets of the project and the tenant; those of tasks with `scope="task"`."""
        return self._dicts(q.Budgets(project=self.project, scope=scope, after=after, limit=limit))

    def budget(self, scope: str = "project") -> dict[str, Any]:
        """One budget, with its spending by hour in the last week."""
        return self._one(q.ShowBudget(project=self.project, scope=scope))

    def alerts(self) -> list[dict[str, Any]]:
        """Budgets that are 50, 90 or 100 per cent spent, the worst first."""
        return self._dicts(q.Alerts(project=self.project))

    def projection(self, scope: str = "project") -> dict[str, Any]:
        """A budget's forecast: burn rate, days left, and what all open tasks will need."""
        return self._one(q.ShowProjection(project=self.project, scope=scope))

    def headroom(self) -> dict[str, Any]:
        """Whether budgets allow this agent to claim anything: ask before starting a process for it."""
        return self._one(q.Headroom(project=self.project, agent=self.agent))

    def log(self, **filters: Unpack[LogFilters]) -> list[dict[str, Any]]:
        """Events, oldest first."""
        return self._dicts(_filtered(q.Log, self.project, filters))

    def task_log(self, task: str, *, level: str | None = None, limit: int = 100) -> list[dict[str, Any]]:
        """The events of one task, oldest first, with the stack traces of its failures."""
        return self._dicts(q.TaskLog(project=self.project, task=task, level=level, limit=limit))


def _filtered(kind: type[Query], project: str, filters: Any) -> Query:
    """The query with these filters; InvalidInput for an unknown filter."""
    for name in filters:
        if name not in kind.__struct_fields__:
            from tenure.core.inputs import check_choice

            check_choice(name, [known for known in kind.__struct_fields__ if known != "project"], "filter")
    return kind(project=project, **_tuples(filters))


def _tuples(filters: Any) -> dict[str, Any]:
    """The filters with one name or any iterable of names as a tuple."""

    def tupled(name: str, value: Any) -> Any:
        if isinstance(value, str):
            return (value,) if name in _SEVERAL else value
        return tuple(value) if isinstance(value, Iterable) else value

    return {name: tupled(name, value) for name, value in filters.items()}
