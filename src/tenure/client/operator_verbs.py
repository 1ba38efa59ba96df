"""The verbs of people and of the team: projects, budgets, decisions about tasks, agents, reservations, the leader."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from tenure.client.caller import as_tuples
from tenure.client.results import Changed, Reserved, Team, Updated
from tenure.client.tenants import Tenants
from tenure.core import commands as c
from tenure.core import limits
from tenure.core import queries as q
from tenure.core.commands import Process

if TYPE_CHECKING:  # only for types: the import of Decimal alone would cost every start a millisecond
    from decimal import Decimal
    from os import PathLike
    from typing import Unpack

    from tenure.client.arguments import AgentFields, BudgetFields, Health, ProjectSettings, TaskChanges
    from tenure.client.times import Duration
    from tenure.core.views import AttestationView, AuditHeadView, AuditPageView, AuditReportView, ExportView


class OperatorVerbs(Tenants):
    # --- projects ---

    def init(self, **settings: Unpack[ProjectSettings]) -> Updated:
        """Create the project, or change its settings.

        These are default_track, boost, agents_may_operate, review_other_person, limits, routing, router, order, lead
        and compliance.
        `limits` replaces all limits; `change_limits` changes those that it names, None back to the default.
        """
        return self._do(Updated, c.DefineProject, **as_tuples(settings))

    def reorder(self, after: str | None = None) -> Updated:
        """Move a page of open tasks to the project's current order; `next` of the outcome is `after` of the next."""
        return self._do(Updated, c.Reorder, after=after)

    def rotate_data_key(self, *, master: bool = False, lost: bool = False) -> Updated:
        """Seal new secrets with a new data key; `master`: wrap the data keys by the current master key.

        `lost`: give up data keys whose master key is lost, and what they sealed, for ever.
        """
        return self._do(Updated, c.RotateDataKey, master=master, lost=lost)

    def reseal(self, after: str | None = None, *, plain: bool = False) -> Updated:
        """Seal a page of the project's secrets again with its data key; `next` is `after` of the next page.

        `plain`: also texts that are secret by their name and were stored as given, without a master key.
        """
        return self._do(Updated, c.Reseal, after=after, plain=plain)

    def define_track(
        self, code: str, name: str | None = None, purpose: str = "", *, max_agents: int | None = None
    ) -> Updated:
        """Create or change a track; without a name, name and purpose of a known one stay."""
        return self._do(Updated, c.DefineTrack, code=code, name=name, purpose=purpose, max_agents=max_agents)

    def assign_track(self, code: str, agent: str) -> Updated:
        """Assign a track to an agent until it leaves or is released; needs the project's router."""
        return self._do(Updated, c.AssignTrack, code=code, agent=agent)

    def release_track(self, code: str, agent: str | None = None) -> Updated:
        """End the assignment of a track to an agent, or to all."""
        return self._do(Updated, c.ReleaseTrack, code=code, agent=agent)

    def stop_line(self, scope: str = "project:", reason: str = "") -> Updated:
        """Stop claiming in a scope: `project:`, `track:B`, `dag:ID`, `agent:NAME` or `type:code`."""
        return self._do(Updated, c.StopLine, scope=scope, reason=reason)

    def start_line(self, scope: str = "project:") -> Updated:
        """Allow claiming in the scope again."""
        return self._do(Updated, c.StartLine, scope=scope)

    # --- budgets ---

    def set_budget(
        self,
        scope: str = "project",
        *,
        usd: str | Decimal | float | None = None,
        tokens: int | None = None,
        default_estimate: str | Decimal | float | None = None,
        **fields: Unpack[BudgetFields],
    ) -> Changed:
        """Create or change a budget: `tenant`, `project`, `dag:ID`, `task:KEY` or `agent:NAME`.

        `fields` are those of SetBudget: period, zone, begins_at, ends_at and throttle.
        """
        amount = None if usd is None else str(usd)
        estimate = None if default_estimate is None else str(default_estimate)
        return self._do(
            Changed, c.SetBudget, scope=scope, usd=amount, tokens=tokens, default_estimate=estimate, **fields
        )

    def remove_budget(self, scope: str = "project") -> Changed:
        """Remove a budget; the scope's spending is no longer limited."""
        return self._do(Changed, c.RemoveBudget, scope=scope)

    def move_budget(self, source: str, target: str, amount: str | Decimal | float) -> Changed:
        """Move an amount that is neither spent nor reserved from one budget to another of its currency and period."""
        return self._do(Changed, c.MoveBudget, source=source, target=target, amount=str(amount))

    def confirm_usage(self, task: str, generation: int | None = None) -> Updated:
        """Confirm a doubtful cost of the task, or of one attempt: budgets count it from now on."""
        return self._do(Updated, c.ConfirmUsage, task=task, generation=generation)

    def reject_usage(self, task: str, generation: int | None = None) -> Updated:
        """Reject a doubtful cost of the task, or of one attempt: it was not spent."""
        return self._do(Updated, c.RejectUsage, task=task, generation=generation)

    # --- operators ---

    def pause(self, task: str, reason: str = "", *, drain: bool = False) -> Updated:
        """Pause the task and end its claim; with `drain` its holder may finish."""
        return self._do(Updated, c.Pause, task=task, reason=reason, drain=drain)

    def resume(self, task: str, *, budget: bool = False) -> Updated:
        """Resume a task that a person paused; with `budget` also one that its budget paused."""
        return self._do(Updated, c.Resume, task=task, budget=budget)

    def answer(self, task: str, text: str) -> Updated:
        """Answer the question that a task waits for."""
        return self._do(Updated, c.Answer, task=task, text=text)

    def cancel(self, task: str, reason: str = "") -> Updated:
        """Cancel the task and end its claim."""
        return self._do(Updated, c.Cancel, task=task, reason=reason)

    def retry(self, task: str, note: str = "", changes: Mapping[str, Any] | None = None) -> Updated:
        """Give a dead letter or waiting task another attempt; `changes` are edited first."""
        return self._do(Updated, c.Retry, task=task, note=note, changes=None if changes is None else dict(changes))

    def reset(self, task: str, *, cascade: bool = False) -> Updated:
        """Start the task over, with `cascade` its dependents too."""
        return self._do(Updated, c.Reset, task=task, cascade=cascade)

    def adopt(self, task: str, result: str | None = None, *, supersede: bool = False, note: str = "") -> Updated:
        """Accept a result that was refused, for a task without one."""
        return self._do(Updated, c.Adopt, task=task, result=result, supersede=supersede, note=note)

    def approve(self, task: str, note: str = "") -> Updated:
        """Pass the result that waits for a verdict; it is accepted, or waits to be landed."""
        return self._do(Updated, c.Approve, task=task, note=note)

    def reject(self, task: str, reason: str) -> Updated:
        """Reject the result that waits for a verdict or to be landed; the next attempt gets the reason."""
        return self._do(Updated, c.Reject, task=task, reason=reason)

    def archive(self, task: str) -> Updated:
        """Move a finished task into the archive."""
        return self._do(Updated, c.Archive, task=task)

    def update(
        self, task: str, version: int | None = None, *, supersede: bool = False, **changes: Unpack[TaskChanges]
    ) -> Updated:
        """Change fields of a task; with `version` only if it is still the current one."""
        return self._do(Updated, c.Edit, task=task, changes=as_tuples(changes), version=version, supersede=supersede)

    def assign(self, task: str, agent: str, seconds: Duration = limits.OFFER, *, term: int | None = None) -> Updated:
        """Offer a task to one agent. With `term` as the project's leader: a stale one is refused."""
        return self._do(Updated, c.Assign, task=task, agent=agent, seconds=seconds, term=term)

    def reassign(self, task: str, agent: str, seconds: Duration = limits.OFFER, *, term: int | None = None) -> Updated:
        """End the claim and offer the task to another agent for a while; `term` as for `assign`."""
        return self._do(Updated, c.Reassign, task=task, agent=agent, seconds=seconds, term=term)

    def recover(self, task: str, reason: str = "", *, term: int | None = None) -> Updated:
        """End a claim whose holder is lost; the attempt does not count. `term` as for `assign`."""
        return self._do(Updated, c.Recover, task=task, reason=reason, term=term)

    def abort(self, task: str, reason: str = "") -> Updated:
        """End a claim that hangs; the attempt counts."""
        return self._do(Updated, c.Abort, task=task, reason=reason)

    def note(self, task: str, text: str) -> Updated:
        """Add a note to the task, for its next holder."""
        return self._do(Updated, c.Note, task=task, text=text)

    def undo(self, command_id: str) -> Updated:
        """Undo the operator command with this `command_id`, unless its tasks have changed since."""
        return self._do(Updated, c.Undo, command_id=command_id)

    # --- the team ---

    def register(self, **fields: Unpack[AgentFields]) -> Team:
        """Register this agent: type, capabilities, models, tracks, region, max_concurrent_tasks …

        With a `signing_key` its public key too: results of this session must then be signed, and are.
        """
        if self.signing_key is not None:
            fields.setdefault("public_key", self.signing_key.public)
        return self._do(Team, c.Register, agent=self.agent, session=self.session, **as_tuples(fields))

    def heartbeat(self, **fields: Unpack[Health]) -> Team:
        """A sign of life of this agent; renews no lease."""
        return self._do(Team, c.Heartbeat, agent=self.agent, session=self.session, **fields)

    def drain(self, agent: str | None = None) -> Team:
        """Let an agent finish what it holds and claim nothing more."""
        return self._do(Team, c.Drain, agent=agent or self.agent)

    def terminate(self, agent: str, *, graceful: bool = True, reason: str = "") -> Team:
        """Stop an agent: it claims nothing until `resume_agent`. Graceful: its claims may finish."""
        return self._do(Team, c.Terminate, agent=agent, graceful=graceful, reason=reason)

    def resume_agent(self, agent: str) -> Team:
        """Let a drained or terminated agent claim again."""
        return self._do(Team, c.ResumeAgent, agent=agent)

    def leave(self, session: str | None = None) -> Team:
        """End a session: its agent is gone, its claims' leases run out."""
        return self._do(Team, c.Leave, session=session or self.session)

    def gone(self, processes: Iterable[Process]) -> Team:
        """Report processes that have ended on this host: their claims expire now."""
        return self._do(Team, c.Gone, processes=tuple(processes))

    def reserve(
        self, *patterns: str, receipt: str | None = None, mode: str = "exclusive", lease: Duration | None = None
    ) -> Reserved:
        """Reserve paths or names, such as `docs/**` or `port:8080`."""
        return self._do(
            Reserved,
            c.Reserve,
            patterns=patterns,
            agent=self.agent,
            session=self.session,
            mode=mode,
            receipt=receipt,
            lease=lease,
        )

    def renew_reservation(self, receipt: str, lease: Duration | None = None) -> Reserved:
        """Extend a reservation."""
        return self._do(Reserved, c.RenewReservation, receipt=receipt, lease=lease)

    def unreserve(self, receipt: str) -> Reserved:
        """End a reservation."""
        return self._do(Reserved, c.Unreserve, receipt=receipt)

    def lead(self, *, lease: Duration = limits.LEADER_LEASE, term: int | None = None) -> Team:
        """Become this project's `@leader`, or renew leadership."""
        return self._do(Team, c.Lead, holder=self.agent, agent=True, lease=lease, term=term)

    def step_down(self, term: int) -> Team:
        """Give up leadership."""
        return self._do(Team, c.StepDown, holder=self.agent, agent=True, term=term)

    # --- the sealed log; `store`: of what belongs to no project, as keys and members ---

    def audit_on(self) -> Updated:
        """Seal the log of the project from now on, what it has so far included. It cannot be turned off."""
        return self._do(Updated, c.AuditOn)

    def audit_head(self, *, store: bool = False) -> AuditHeadView:
        """Seal the committed events; return the head, to be kept elsewhere."""
        return self._ask(q.AuditHead(project=self.project, store=store))

    def verify_audit(self, *, head: str | None = None, store: bool = False) -> AuditReportView:
        """Check every sealed event and every signature; with a `head` also that nothing was cut off."""
        return self._ask(q.VerifyAudit(project=self.project, head=head, store=store))

    def attest(self, *, store: bool = False) -> AttestationView:
        """The head, signed with the key of the server, or of this user where the store is opened here."""
        return self._ask(q.Attest(project=self.project, store=store))

    def audit_page(self, after: str | None = None, *, store: bool = False) -> AuditPageView:
        """A page of the export; `after` is `next` of the page before."""
        return self._ask(q.AuditPage(project=self.project, after=after, store=store))

    def export_audit(self, path: str | PathLike[str], *, store: bool = False) -> ExportView:
        """Write the sealed log with its seals to a new file, for `tenure audit verify`; keep its digest elsewhere."""
        return self._steps(self._export_audit(path, store))

    async def _export_audit(self, path: str | PathLike[str], store: bool) -> ExportView:
        from tenure.client.audit_file import new_export

        after = None
        with new_export(path) as file:
            while True:
                page: Any = await self._each(self.audit_page(after, store=store))
                file.write(page["lines"])
                after = page["next"]
                if after is None:
                    return file.end()
