"""The verbs: each method sends one command. Written once for `Client` and `AsyncClient`.

`Out` is an Outcome, or an awaitable of one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from tenure.client.caller import Dicts, Names, One, Out
from tenure.client.pools import Pools
from tenure.core import commands as c
from tenure.core import limits
from tenure.core.commands import Dependency, NewTask, NewTrack, Process, Template, Totals

if TYPE_CHECKING:
    from decimal import Decimal  # only for types: its import would cost every start a millisecond


class Verbs(Pools[Out, One, Dicts, Names]):
    """Every verb of a project, as methods.

    "Denied" and "stale" are outcomes (check `outcome.ok`); bad input and an unavailable store raise TenureError.
    A receipt is the only proof of a claim: keep it, or pass it to the process that continues the work.
    """

    # --- projects ---

    def init(self, **settings: Any) -> Out:
        """Create the project, or change its settings.

        These are default_track, boost, agents_may_operate, limits, routing, router, order and lead.
        """
        return self._do(c.DefineProject, **settings)

    def reorder(self, after: str | None = None) -> Out:
        """Move a page of open tasks to the project's current order; `next` of the outcome is `after` of the next."""
        return self._do(c.Reorder, after=after)

    def define_track(
        self, code: str, name: str | None = None, purpose: str = "", *, max_agents: int | None = None
    ) -> Out:
        """Create or change a track; without a name, name and purpose of a known one stay."""
        return self._do(c.DefineTrack, code=code, name=name, purpose=purpose, max_agents=max_agents)

    def assign_track(self, code: str, agent: str) -> Out:
        """Assign a track to an agent until it leaves or is released; needs the project's router."""
        return self._do(c.AssignTrack, code=code, agent=agent)

    def release_track(self, code: str, agent: str | None = None) -> Out:
        """End the assignment of a track to an agent, or to all."""
        return self._do(c.ReleaseTrack, code=code, agent=agent)

    def stop_line(self, scope: str = "project:", reason: str = "") -> Out:
        return self._do(c.StopLine, scope=scope, reason=reason)

    def start_line(self, scope: str = "project:") -> Out:
        return self._do(c.StartLine, scope=scope)

    # --- budgets ---

    def set_budget(
        self,
        scope: str = "project",
        *,
        usd: str | Decimal | float | None = None,
        tokens: int | None = None,
        default_estimate: str | Decimal | float | None = None,
        **fields: Any,
    ) -> Out:
        """Create or change a budget: `tenant`, `project`, `dag:ID`, `task:KEY` or `agent:NAME`.

        `fields` are those of SetBudget: period, zone, begins_at, ends_at and throttle.
        """
        amount = None if usd is None else str(usd)
        estimate = None if default_estimate is None else str(default_estimate)
        return self._do(c.SetBudget, scope=scope, usd=amount, tokens=tokens, default_estimate=estimate, **fields)

    def remove_budget(self, scope: str = "project") -> Out:
        return self._do(c.RemoveBudget, scope=scope)

    def move_budget(self, source: str, target: str, amount: str | Decimal | float) -> Out:
        """Move an amount that is neither spent nor reserved from one budget to another, in their currency."""
        return self._do(c.MoveBudget, source=source, target=target, amount=str(amount))

    # --- tasks and dags ---

    def add(
        self, title: str, *, after: Iterable[str | Dependency] = (), request_id: str | None = None, **fields: Any
    ) -> Out:
        """Create a task; `after` names its dependencies, `fields` are those of NewTask."""
        task = NewTask(title=title, depends_on=tuple(after), **fields)
        return self._do(c.Add, task=task, request_id=request_id)

    def plan(
        self,
        tasks: Iterable[NewTask],
        *,
        title: str = "",
        name: str | None = None,
        prune: bool = False,
        tracks: Iterable[NewTrack] = (),
        dry_run: bool = False,
        on_end: Mapping[str, Template] | None = None,
        budget: str | Decimal | float | None = None,
    ) -> Out:
        """Create a whole dag; one with a name can be applied again. A dry run returns what would happen.

        `on_end` has the tasks to create when the dag is completed, failed or cancelled; `budget` is in dollars.
        """
        return self._do(
            c.Plan,
            tasks=tuple(tasks),
            title=title,
            name=name,
            prune=prune,
            tracks=tuple(tracks),
            dry_run=dry_run,
            on_end=dict(on_end or {}),
            budget=None if budget is None else str(budget),
        )

    def link(self, task: str, needs: str, on_failure: str = "block") -> Out:
        return self._do(c.Link, task=task, needs=needs, on_failure=on_failure)

    def unlink(self, task: str, needs: str) -> Out:
        return self._do(c.Unlink, task=task, needs=needs)

    def publish(self, task: str | None = None, dag: str | None = None) -> Out:
        return self._do(c.Publish, task=task, dag=dag)

    # --- claims ---

    def claim(
        self,
        task: str | None = None,
        *,
        lease: float | str | None = None,
        n: int = 1,
        like: bool = False,
        wait: float = 0.0,
        process: Process | None = None,
        agent_type: str | None = None,
        request_id: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        spawn: str | None = None,
        **filters: Any,
    ) -> Out:
        """Claim a task by name, or the best that this agent may claim; `wait` is how many seconds to wait for one.

        The end of `process` proves that the holder is gone; leave it out if the receipt will be passed on.
        `agent_type` (claude, codex, gemini …) chooses the model for an agent that is not registered. The lease `"auto"`
        follows the task's estimate, else its type. With `like` all `n` tasks are of the type and track of the first.
        `spawn` is the id that a pool gave this process.
        """
        who: dict[str, Any] = {"project": self.project, "agent": self.agent, "session": self.session, "user": self.user}
        who |= {"lease": lease, "process": process, "agent_type": agent_type, "request_id": request_id}
        who |= {"metadata": dict(metadata or {}), "spawn": spawn}
        if task is not None:
            return self.do(c.ClaimTask(**who, task=task))
        command = c.ClaimNext(**who, n=n, like=like, **filters)
        return self.claim_or_wait(command, wait) if wait > 0 else self.do(command)

    def renew(
        self, receipt: str, lease: float | None = None, *, background: bool = False, seen: int | None = None
    ) -> Out:
        """`seen` is the number of the description that you have read, after the directive `changed`."""
        return self._do(c.Renew, receipt=receipt, lease=lease, background=background, seen=seen)

    def start(self, receipt: str) -> Out:
        return self._do(c.Start, receipt=receipt)

    def progress(
        self,
        receipt: str,
        percent: int | None = None,
        step: str | None = None,
        done_in: float | None = None,
        *,
        seen: int | None = None,
    ) -> Out:
        return self._do(c.Progress, receipt=receipt, percent=percent, step=step, done_in=done_in, seen=seen)

    def checkpoint(self, receipt: str, data: Mapping[str, Any]) -> Out:
        return self._do(c.SaveCheckpoint, receipt=receipt, data=dict(data))

    def usage(
        self,
        receipt: str,
        model: str,
        *,
        fresh: int = 0,
        cached: int = 0,
        written: int = 0,
        output: int = 0,
        cost_usd: str | Decimal | float | None = None,
        duration: float = 0.0,
    ) -> Out:
        """Report a model's totals since the claim: tokens, dollars (None: not known), seconds."""
        return self._do(
            c.ReportUsage,
            receipt=receipt,
            model=model,
            fresh=fresh,
            cached=cached,
            written=written,
            output=output,
            cost_usd=None if cost_usd is None else str(cost_usd),
            duration=duration,
        )

    def land(self, receipt: str, branch: str, old: str, new: str, *, seen: int | None = None) -> Out:
        """Record that the branch is about to move from one commit to another; the caller moves it."""
        return self._do(c.Land, receipt=receipt, branch=branch, old=old, new=new, seen=seen)

    def submit(
        self,
        receipt: str,
        data: Any = None,
        summary: str = "",
        request_id: str | None = None,
        *,
        usage: Iterable[Totals] = (),
        lines: int | None = None,
        test_files: int = 0,
        artifacts: Iterable[str] | None = None,
        seen: int | None = None,
    ) -> Out:
        """Submit a result; `artifacts` are the names of its artifacts, by default all of the task in this run.

        CHANGED means that the description has changed: read `diff`, then submit with `seen` = `brief`.
        `lines` and `test_files` are the size of the change, for projects that compare it with the cost.
        """
        return self._do(
            c.Submit,
            receipt=receipt,
            data=data,
            summary=summary,
            request_id=request_id,
            usage=tuple(usage),
            artifacts=None if artifacts is None else tuple(artifacts),
            lines=lines,
            test_files=test_files,
            seen=seen,
        )

    def take_validation(
        self,
        task: str | None = None,
        *,
        validators: Iterable[str] = (),
        lease: float | None = None,
        checker: str | None = None,
        request_id: str | None = None,
    ) -> Out:
        """Take a result that waits for a verdict: this task's, or the best one that `validators` can check."""
        return self._do(
            c.TakeValidation,
            task=task,
            validators=tuple(validators),
            lease=lease,
            checker=checker or self.agent,
            request_id=request_id,
        )

    def renew_validation(self, receipt: str, lease: float | None = None) -> Out:
        return self._do(c.RenewValidation, receipt=receipt, lease=lease)

    def judge(
        self, receipt: str, ok: bool, reasons: Iterable[str] = (), details: Mapping[str, Any] | None = None
    ) -> Out:
        """Record the verdict, with the receipt of the validation."""
        return self._do(c.Judge, receipt=receipt, ok=ok, reasons=tuple(reasons), details=dict(details or {}))

    def undecided(self, receipt: str, reason: str, retry_after: float | None = None) -> Out:
        """Give up a validation without a verdict; it will be tried again."""
        return self._do(c.Undecide, receipt=receipt, reason=reason, retry_after=retry_after)

    def fail(
        self,
        receipt: str,
        message: str = "",
        error_class: str = "task",
        *,
        retry_after: float | None = None,
        model: str | None = None,
    ) -> Out:
        return self._do(
            c.Fail, receipt=receipt, message=message, error_class=error_class, retry_after=retry_after, model=model
        )

    def release(self, receipt: str, reason: str = "") -> Out:
        return self._do(c.Release, receipt=receipt, reason=reason)

    def spawn(self, receipt: str, tasks: Iterable[NewTask], *, wait: bool = False) -> Out:
        return self._do(c.Spawn, receipt=receipt, tasks=tuple(tasks), wait=wait)

    def wait_for_subtasks(self, receipt: str) -> Out:
        return self._do(c.Wait, receipt=receipt)

    def ask(self, receipt: str, question: str) -> Out:
        return self._do(c.Ask, receipt=receipt, question=question)

    # --- operators ---

    def pause(self, task: str, reason: str = "", *, drain: bool = False) -> Out:
        return self._do(c.Pause, task=task, reason=reason, drain=drain)

    def resume(self, task: str, *, budget: bool = False) -> Out:
        """Resume a task that a person paused; with `budget` also one that its budget paused."""
        return self._do(c.Resume, task=task, budget=budget)

    def answer(self, task: str, text: str) -> Out:
        return self._do(c.Answer, task=task, text=text)

    def cancel(self, task: str, reason: str = "") -> Out:
        return self._do(c.Cancel, task=task, reason=reason)

    def retry(self, task: str, note: str = "", changes: Mapping[str, Any] | None = None) -> Out:
        return self._do(c.Retry, task=task, note=note, changes=None if changes is None else dict(changes))

    def reset(self, task: str, *, cascade: bool = False) -> Out:
        return self._do(c.Reset, task=task, cascade=cascade)

    def adopt(self, task: str, result: str | None = None, *, supersede: bool = False, note: str = "") -> Out:
        return self._do(c.Adopt, task=task, result=result, supersede=supersede, note=note)

    def approve(self, task: str, note: str = "") -> Out:
        """Accept the result that waits for a verdict."""
        return self._do(c.Approve, task=task, note=note)

    def reject(self, task: str, reason: str) -> Out:
        """Reject the result that waits for a verdict; the next attempt gets the reason."""
        return self._do(c.Reject, task=task, reason=reason)

    def archive(self, task: str) -> Out:
        return self._do(c.Archive, task=task)

    def update(self, task: str, version: int | None = None, *, supersede: bool = False, **changes: Any) -> Out:
        """Change fields of a task; with `version` only if it is still the current one."""
        return self._do(c.Edit, task=task, changes=changes, version=version, supersede=supersede)

    def assign(self, task: str, agent: str, seconds: float = limits.OFFER, *, term: int | None = None) -> Out:
        """Offer a task to one agent. With `term` as the project's leader: a stale one is refused."""
        return self._do(c.Assign, task=task, agent=agent, seconds=seconds, term=term)

    def reassign(self, task: str, agent: str, seconds: float = limits.OFFER, *, term: int | None = None) -> Out:
        return self._do(c.Reassign, task=task, agent=agent, seconds=seconds, term=term)

    def recover(self, task: str, reason: str = "", *, term: int | None = None) -> Out:
        return self._do(c.Recover, task=task, reason=reason, term=term)

    def abort(self, task: str, reason: str = "") -> Out:
        return self._do(c.Abort, task=task, reason=reason)

    def note(self, task: str, text: str) -> Out:
        return self._do(c.Note, task=task, text=text)

    def undo(self, command_id: str) -> Out:
        return self._do(c.Undo, command_id=command_id)

    # --- the team ---

    def register(self, **fields: Any) -> Out:
        """Register this agent: type, capabilities, models, tracks, region, max_concurrent_tasks …"""
        return self._do(c.Register, agent=self.agent, session=self.session, **fields)

    def heartbeat(self, **fields: Any) -> Out:
        return self._do(c.Heartbeat, agent=self.agent, session=self.session, **fields)

    def drain(self, agent: str | None = None) -> Out:
        return self._do(c.Drain, agent=agent or self.agent)

    def terminate(self, agent: str, *, graceful: bool = True, reason: str = "") -> Out:
        """Stop an agent: it claims nothing until `resume_agent`. Graceful: its claims may finish."""
        return self._do(c.Terminate, agent=agent, graceful=graceful, reason=reason)

    def resume_agent(self, agent: str) -> Out:
        """Let a drained or terminated agent claim again."""
        return self._do(c.ResumeAgent, agent=agent)

    def leave(self, session: str | None = None) -> Out:
        return self._do(c.Leave, session=session or self.session)

    def gone(self, processes: Iterable[Process]) -> Out:
        """Report processes that have ended on this host: their claims expire now."""
        return self._do(c.Gone, processes=tuple(processes))

    def reserve(
        self, *patterns: str, receipt: str | None = None, mode: str = "exclusive", lease: float | None = None
    ) -> Out:
        return self._do(
            c.Reserve,
            patterns=patterns,
            agent=self.agent,
            session=self.session,
            mode=mode,
            receipt=receipt,
            lease=lease,
        )

    def renew_reservation(self, receipt: str, lease: float | None = None) -> Out:
        return self._do(c.RenewReservation, receipt=receipt, lease=lease)

    def unreserve(self, receipt: str) -> Out:
        return self._do(c.Unreserve, receipt=receipt)

    def lead(self, *, lease: float = limits.LEADER_LEASE, term: int | None = None) -> Out:
        """Become this project's `@leader`, or renew leadership."""
        return self._do(c.Lead, holder=self.agent, agent=True, lease=lease, term=term)

    def step_down(self, term: int) -> Out:
        return self._do(c.StepDown, holder=self.agent, agent=True, term=term)
