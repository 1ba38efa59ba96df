"""The queries: each method runs one query. They write nothing. Instants in views are microseconds UTC."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from tenure.client.caller import Caller, Dicts, Names, One, Out
from tenure.core import queries as q
from tenure.core.queries import Query

if TYPE_CHECKING:
    from typing import TypedDict, Unpack

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
        tag: str | None
        text: str | None
        priority_range: tuple[int, int] | None
        created_from: int | None
        created_until: int | None
        archived: bool
        order: str
        after: tuple[Any, str] | None
        limit: int

    class ClaimFilters(TypedDict, total=False):
        """What a claim may be limited to; `capabilities` defaults to those that the agent registered."""

        capabilities: Iterable[str] | None
        tracks: Iterable[str]
        types: Iterable[str]
        tags: Iterable[str]
        region: str | None

    class LogFilters(TypedDict, total=False):
        """The newest `limit` events, or with `last=False` the first ones after the sequence `after`."""

        after: int
        limit: int
        last: bool
        since: int | None
        task: str | None
        kind: Several
        level: Several
        agent: str | None
        session: str | None


_SEVERAL = frozenset({"state", "track", "type", "agent", "kind", "level"})  # one or many values


class Queries(Caller[Out, One, Dicts, Names]):
    def _one(self, query: Query) -> One:
        one: One = self.query(query)
        return one

    def _dicts(self, query: Query) -> Dicts:
        several: Dicts = self.query(query)
        return several

    # --- tasks ---

    def show(self, task: str) -> One:
        """Everything about one task except its log."""
        return self._one(q.Show(project=self.project, task=task))

    def tasks(self, **filters: Unpack[TaskFilters]) -> Dicts:
        """A page of tasks."""
        return self._dicts(_filtered(q.Tasks, self.project, filters))

    def ready(self, *, track: str | None = None, limit: int = 50) -> Dicts:
        """Claimable tasks, best first."""
        return self._dicts(q.Ready(project=self.project, track=track, limit=limit))

    def next(self, **filters: Unpack[ClaimFilters]) -> Out:
        """The task that `claim` would claim now; claim nothing."""
        found: Out = self.query(
            q.Next(project=self.project, agent=self.agent, session=self.session, **_tuples(filters))
        )
        return found

    def states(self, tasks: Iterable[str]) -> Dicts:
        """The state of each named task, or that it does not exist."""
        return self._dicts(q.States(project=self.project, tasks=tuple(tasks)))

    def history(self, task: str) -> Dicts:
        """The lineage: one entry for each generation, with its refused submissions."""
        return self._dicts(q.History(project=self.project, task=task))

    def results(self, task: str) -> Dicts:
        """All results of a task, accepted and refused."""
        return self._dicts(q.Results(project=self.project, task=task))

    def artifacts(self, task: str, *, generation: int | None = None) -> Dicts:
        """The artifacts of a task by name, the last generation first."""
        return self._dicts(q.Artifacts(project=self.project, task=task, generation=generation))

    def why(self, task: str) -> One:
        """Why a task is in its state."""
        return self._one(q.Why(project=self.project, task=task))

    def briefing(self, task: str) -> One:
        """What the next holder of a task must know."""
        return self._one(q.Briefing(project=self.project, task=task))

    def todo(self, limit: int = 100) -> Dicts:
        """Everything that waits for a person, the longest wait first."""
        return self._dicts(q.Todo(project=self.project, limit=limit))

    def dead_letters(self, *, resolved: bool = False) -> Dicts:
        """Tasks that ran out of attempts and wait for a person."""
        return self._dicts(q.DeadLetters(project=self.project, resolved=resolved))

    # --- dags ---

    def dag(self, id: str) -> One:
        """A dag with its tasks, edges, counts and critical path."""
        return self._one(q.ShowDag(project=self.project, dag=id))

    def dags(self) -> Dicts:
        return self._dicts(q.Dags(project=self.project))

    def plans(self, *, dag: str | None = None, plan: str | None = None, open_only: bool = False) -> Dicts:
        """The tasks of a dag, of a named plan, or all, as they were planned."""
        return self._dicts(q.Plans(project=self.project, dag=dag, plan=plan, open_only=open_only))

    def tracks(self) -> Dicts:
        return self._dicts(q.Tracks(project=self.project))

    # --- the team ---

    def agents(self) -> Dicts:
        """The agents, and what each holds."""
        return self._dicts(q.Agents(project=self.project))

    def agent_news(self) -> One:
        """Unread mail of this agent, and what is asked of it."""
        return self._one(q.AgentNews(project=self.project, agent=self.agent))

    def inbox(self, *, unread: bool = True, sender: str | None = None) -> Dicts:
        """Mail of this agent; does not mark it as read."""
        return self._dicts(q.Inbox(project=self.project, agent=self.agent, unread=unread, sender=sender))

    def messages(self, limit: int = 100) -> Dicts:
        """All mail of the project, newest first."""
        return self._dicts(q.Messages(project=self.project, limit=limit))

    def validations(self, limit: int = 100) -> Dicts:
        """Results that wait for a verdict, the oldest first, with their validator and who checks them."""
        return self._dicts(q.Validations(project=self.project, limit=limit))

    def reservations(self) -> Dicts:
        """The reservations and their holders."""
        return self._dicts(q.Reservations(project=self.project))

    def sessions(self, agent: str | None = None, limit: int = 100) -> Dicts:
        """Sessions, the most recently active first."""
        return self._dicts(q.Sessions(project=self.project, agent=agent, limit=limit))

    def memory(self, session: str | None = None) -> One:
        """What a session claimed, did and lost."""
        return self._one(q.ShowSession(project=self.project, session=session or self.session))

    def own_claims(self) -> Dicts:
        """The claims of this agent in this session, and those that expired or were taken in the last day."""
        return self._dicts(q.OwnClaims(project=self.project, session=self.session, agent=self.agent))

    def processes(self) -> Dicts:
        """The processes that hold claims now."""
        return self._dicts(q.Processes(project=self.project))

    # --- the project ---

    def projects(self) -> Names:
        """The names of all projects in the store."""
        names: Names = self.query(q.Projects())
        return names

    def status(self) -> One:
        """One screen: the leader, the agents at work, progress by track, tasks by state."""
        return self._one(q.Status(project=self.project))

    def spent(self, by: str = "task", limit: int = 100) -> Dicts:
        """What each task, agent, model or session has cost, the most expensive first."""
        return self._dicts(q.ShowSpending(project=self.project, by=by, limit=limit))

    def savings(self) -> One:
        """What choosing models by tier has saved, compared with the middle tier for all tasks."""
        return self._one(q.ShowSavings(project=self.project))

    def estimates(self) -> One:
        """Estimates compared with what tasks took, by type."""
        return self._one(q.Estimates(project=self.project))

    def models(self) -> One:
        """The models by tier, their prices, and which are rate limited."""
        return self._one(q.Models(project=self.project))

    # --- budgets ---

    def budgets(self, scope: str | None = None, *, after: str | None = None, limit: int = 100) -> Dicts:
        """Budgets of the project and the tenant; those of tasks with `scope="task"`."""
        return self._dicts(q.Budgets(project=self.project, scope=scope, after=after, limit=limit))

    def budget(self, scope: str = "project") -> One:
        """One budget, with its spending by hour in the last week."""
        return self._one(q.ShowBudget(project=self.project, scope=scope))

    def alerts(self) -> Dicts:
        """Budgets that are 50, 90 or 100 per cent spent, the worst first."""
        return self._dicts(q.Alerts(project=self.project))

    def projection(self, scope: str = "project") -> One:
        """A budget's forecast: burn rate, days left, and what all open tasks will need."""
        return self._one(q.ShowProjection(project=self.project, scope=scope))

    def headroom(self) -> One:
        """Whether budgets allow this agent to claim anything: ask before starting a process for it."""
        return self._one(q.Headroom(project=self.project, agent=self.agent))

    def log(self, **filters: Unpack[LogFilters]) -> Dicts:
        """Events, oldest first."""
        return self._dicts(_filtered(q.Log, self.project, filters))


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
