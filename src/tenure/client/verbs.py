"""The verbs: each makes one command and hands it to `do`. Written once, for clients that block and clients that don't.

`Out` is what comes back: an Outcome, or an awaitable of one. `client.py` and `async_client.py` say which.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from tenure.client.looks import Dicts, Names, One, Out
from tenure.client.sources import Sources
from tenure.core import commands as c
from tenure.core import limits
from tenure.core.commands import ClaimNext, Command, Dependency, NewTask, NewTrack, Process, Template, Totals

if TYPE_CHECKING:
    from decimal import Decimal  # only named: its import would cost every start a millisecond


class Verbs(Sources[Out, One, Dicts, Names]):
    """Everything that can be asked of a project, as methods.

    "Denied" and "stale" come back as outcomes (`outcome.ok` tells); bad input and a store that is away are raised as
    TenureError. A receipt is the only proof of a claim: keep it, and hand it to whoever shall go on.
    """

    user: str | None

    def do(self, command: Command) -> Out:
        """Run any command."""
        raise NotImplementedError

    def stay(self, command: ClaimNext, seconds: float) -> Out:
        """As `do`, but stays until there is something to take or the time is over."""
        raise NotImplementedError

    # --- projects ---

    def init(self, **settings: Any) -> Out:
        """Make the project, or change its settings: default_track, boost, agents_may_operate, limits, routing."""
        return self.do(c.DefineProject(project=self.project, **settings))

    def define_track(self, code: str, name: str, purpose: str = "") -> Out:
        return self.do(c.DefineTrack(project=self.project, code=code, name=name, purpose=purpose))

    def stop_line(self, scope: str = "project:", reason: str = "") -> Out:
        return self.do(c.StopLine(project=self.project, scope=scope, reason=reason))

    def start_line(self, scope: str = "project:") -> Out:
        return self.do(c.StartLine(project=self.project, scope=scope))

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
        """Make a budget or change it: `tenant`, `project`, `dag:ID`, `task:KEY` or `agent:NAME`.

        `fields` are period, zone, begins_at, ends_at and throttle, as SetBudget has them.
        """
        amount = None if usd is None else str(usd)
        estimate = None if default_estimate is None else str(default_estimate)
        return self.do(
            c.SetBudget(
                project=self.project, scope=scope, usd=amount, tokens=tokens, default_estimate=estimate, **fields
            )
        )

    def remove_budget(self, scope: str = "project") -> Out:
        return self.do(c.RemoveBudget(project=self.project, scope=scope))

    def move_budget(self, source: str, target: str, amount: str | Decimal | float) -> Out:
        """Give a part of one budget that is neither spent nor reserved to another, in the currency of both."""
        return self.do(c.MoveBudget(project=self.project, source=source, target=target, amount=str(amount)))

    # --- making work ---

    def add(
        self, title: str, *, after: Iterable[str | Dependency] = (), request_id: str | None = None, **fields: Any
    ) -> Out:
        """Make one task; `after` names what it depends on, `fields` are those of NewTask."""
        task = NewTask(title=title, depends_on=tuple(after), **fields)
        return self.do(c.Add(project=self.project, task=task, request_id=request_id))

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
        """Make a whole dag at once; with a name it can be applied again. A dry run says what would happen.

        `on_end` says what is made when the dag is completed, failed or cancelled; `budget` what it may cost in dollars.
        """
        return self.do(
            c.Plan(
                project=self.project, tasks=tuple(tasks), title=title, name=name, prune=prune, tracks=tuple(tracks),
                dry_run=dry_run, on_end=dict(on_end or {}), budget=None if budget is None else str(budget),
            )
        )  # fmt: skip

    def link(self, task: str, needs: str, on_failure: str = "block") -> Out:
        return self.do(c.Link(project=self.project, task=task, needs=needs, on_failure=on_failure))

    def unlink(self, task: str, needs: str) -> Out:
        return self.do(c.Unlink(project=self.project, task=task, needs=needs))

    def publish(self, task: str | None = None, dag: str | None = None) -> Out:
        return self.do(c.Publish(project=self.project, task=task, dag=dag))

    # --- claims ---

    def claim(
        self,
        task: str | None = None,
        *,
        lease: float | None = None,
        n: int = 1,
        wait: float = 0.0,
        process: Process | None = None,
        agent_type: str | None = None,
        request_id: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        **filters: Any,
    ) -> Out:
        """Claim a task by name, or the best that this agent may take; `wait` stays that many seconds for one.

        `process` is whose end proves that the holder is gone; leave it out where the receipt will be handed on.
        `agent_type` (claude, codex, gemini …) is for an agent that is not registered: by it a model is named.
        """
        who: dict[str, Any] = {
            "project": self.project, "agent": self.agent, "session": self.session, "user": self.user, "lease": lease,
            "process": process, "agent_type": agent_type, "request_id": request_id,
            "metadata": dict(metadata or {}),
        }  # fmt: skip
        if task is not None:
            return self.do(c.ClaimTask(**who, task=task))
        command = c.ClaimNext(**who, n=n, **filters)
        return self.stay(command, wait) if wait > 0 else self.do(command)

    def renew(
        self, receipt: str, lease: float | None = None, *, background: bool = False, seen: int | None = None
    ) -> Out:
        """`seen` says up to which number you have read the task's description, after the directive `changed`."""
        return self.do(c.Renew(project=self.project, receipt=receipt, lease=lease, background=background, seen=seen))

    def start(self, receipt: str) -> Out:
        return self.do(c.Start(project=self.project, receipt=receipt))

    def progress(
        self,
        receipt: str,
        percent: int | None = None,
        step: str | None = None,
        done_in: float | None = None,
        *,
        seen: int | None = None,
    ) -> Out:
        return self.do(
            c.Progress(
                project=self.project, receipt=receipt, percent=percent, step=step, done_in=done_in, seen=seen
            )
        )  # fmt: skip

    def checkpoint(self, receipt: str, data: Mapping[str, Any]) -> Out:
        return self.do(c.SaveCheckpoint(project=self.project, receipt=receipt, data=dict(data)))

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
        """Report what a model has cost since the claim, in all: tokens, dollars (None: not known), seconds."""
        return self.do(
            c.ReportUsage(
                project=self.project, receipt=receipt, model=model, fresh=fresh, cached=cached, written=written,
                output=output, cost_usd=None if cost_usd is None else str(cost_usd), duration=duration,
            )
        )  # fmt: skip

    def land(self, receipt: str, branch: str, old: str, new: str) -> Out:
        """Record that the branch is about to be moved from one commit to the other; the swap is the caller's."""
        return self.do(c.Land(project=self.project, receipt=receipt, branch=branch, old=old, new=new))

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
        """Hand in; `artifacts` names those of this claim that go along, else all that the task has in this run.

        CHANGED means that the description is another by now: read `diff`, then submit with `seen` = `brief`.
        `lines` and `test_files` say what the work has changed, for projects that look at what it took.
        """
        return self.do(
            c.Submit(
                project=self.project, receipt=receipt, data=data, summary=summary, request_id=request_id,
                usage=tuple(usage), artifacts=None if artifacts is None else tuple(artifacts), lines=lines,
                test_files=test_files, seen=seen,
            )
        )  # fmt: skip

    def take_validation(
        self,
        task: str | None = None,
        *,
        validators: Iterable[str] = (),
        lease: float | None = None,
        checker: str | None = None,
        request_id: str | None = None,
    ) -> Out:
        """Check a result that waits for a verdict: of this task, or the best one that `validators` can judge."""
        return self.do(
            c.TakeValidation(
                project=self.project, task=task, validators=tuple(validators), lease=lease,
                checker=checker or self.agent, request_id=request_id,
            )
        )  # fmt: skip

    def renew_validation(self, receipt: str, lease: float | None = None) -> Out:
        return self.do(c.RenewValidation(project=self.project, receipt=receipt, lease=lease))

    def judge(
        self, receipt: str, ok: bool, reasons: Iterable[str] = (), details: Mapping[str, Any] | None = None
    ) -> Out:
        """The verdict, by the receipt that taking the validation gave."""
        return self.do(
            c.Judge(
                project=self.project, receipt=receipt, ok=ok, reasons=tuple(reasons), details=dict(details or {})
            )
        )  # fmt: skip

    def undecided(self, receipt: str, reason: str, retry_after: float | None = None) -> Out:
        """Give a validation up without a verdict; it is tried again."""
        return self.do(c.Undecide(project=self.project, receipt=receipt, reason=reason, retry_after=retry_after))

    def fail(
        self,
        receipt: str,
        message: str = "",
        error_class: str = "task",
        *,
        retry_after: float | None = None,
        model: str | None = None,
    ) -> Out:
        return self.do(
            c.Fail(
                project=self.project, receipt=receipt, message=message, error_class=error_class,
                retry_after=retry_after, model=model,
            )
        )  # fmt: skip

    def release(self, receipt: str, reason: str = "") -> Out:
        return self.do(c.Release(project=self.project, receipt=receipt, reason=reason))

    def spawn(self, receipt: str, tasks: Iterable[NewTask], *, wait: bool = False) -> Out:
        return self.do(c.Spawn(project=self.project, receipt=receipt, tasks=tuple(tasks), wait=wait))

    def wait_for_subtasks(self, receipt: str) -> Out:
        return self.do(c.Wait(project=self.project, receipt=receipt))

    def ask(self, receipt: str, question: str) -> Out:
        return self.do(c.Ask(project=self.project, receipt=receipt, question=question))

    # --- persons' verbs ---

    def pause(self, task: str, reason: str = "", *, drain: bool = False) -> Out:
        return self.do(c.Pause(project=self.project, task=task, reason=reason, drain=drain))

    def resume(self, task: str, *, budget: bool = False) -> Out:
        """Lift what persons have paused; with `budget` also what a budget has, whatever that has left."""
        return self.do(c.Resume(project=self.project, task=task, budget=budget))

    def answer(self, task: str, text: str) -> Out:
        return self.do(c.Answer(project=self.project, task=task, text=text))

    def cancel(self, task: str, reason: str = "") -> Out:
        return self.do(c.Cancel(project=self.project, task=task, reason=reason))

    def retry(self, task: str, note: str = "", changes: Mapping[str, Any] | None = None) -> Out:
        return self.do(
            c.Retry(project=self.project, task=task, note=note, changes=None if changes is None else dict(changes))
        )

    def reset(self, task: str, *, cascade: bool = False) -> Out:
        return self.do(c.Reset(project=self.project, task=task, cascade=cascade))

    def adopt(self, task: str, result: str | None = None, *, supersede: bool = False, note: str = "") -> Out:
        return self.do(c.Adopt(project=self.project, task=task, result=result, supersede=supersede, note=note))

    def approve(self, task: str, note: str = "") -> Out:
        """The result that waits for a verdict is good."""
        return self.do(c.Approve(project=self.project, task=task, note=note))

    def reject(self, task: str, reason: str) -> Out:
        """It is not; the reason is for whoever tries again."""
        return self.do(c.Reject(project=self.project, task=task, reason=reason))

    def archive(self, task: str) -> Out:
        return self.do(c.Archive(project=self.project, task=task))

    def update(self, task: str, version: int | None = None, *, supersede: bool = False, **changes: Any) -> Out:
        """Change fields of a task; with `version` only if nobody has changed it since."""
        return self.do(c.Edit(project=self.project, task=task, changes=changes, version=version, supersede=supersede))

    def assign(self, task: str, agent: str, seconds: float = limits.OFFER) -> Out:
        return self.do(c.Assign(project=self.project, task=task, agent=agent, seconds=seconds))

    def reassign(self, task: str, agent: str, seconds: float = limits.OFFER) -> Out:
        return self.do(c.Reassign(project=self.project, task=task, agent=agent, seconds=seconds))

    def recover(self, task: str, reason: str = "") -> Out:
        return self.do(c.Recover(project=self.project, task=task, reason=reason))

    def abort(self, task: str, reason: str = "") -> Out:
        return self.do(c.Abort(project=self.project, task=task, reason=reason))

    def note(self, task: str, text: str) -> Out:
        return self.do(c.Note(project=self.project, task=task, text=text))

    def undo(self, command_id: str) -> Out:
        return self.do(c.Undo(project=self.project, command_id=command_id))

    # --- the team ---

    def register(self, **fields: Any) -> Out:
        """Tell of this agent: type, capabilities, models, tracks, region, max_concurrent_tasks …"""
        return self.do(c.Register(project=self.project, agent=self.agent, session=self.session, **fields))

    def heartbeat(self, **fields: Any) -> Out:
        return self.do(c.Heartbeat(project=self.project, agent=self.agent, session=self.session, **fields))

    def drain(self, agent: str | None = None) -> Out:
        return self.do(c.Drain(project=self.project, agent=agent or self.agent))

    def terminate(self, agent: str, *, graceful: bool = True, reason: str = "") -> Out:
        """End an agent: it claims nothing until `resume_agent`. Graceful: what it holds may finish."""
        return self.do(c.Terminate(project=self.project, agent=agent, graceful=graceful, reason=reason))

    def resume_agent(self, agent: str) -> Out:
        """Let an agent claim again that was drained or terminated."""
        return self.do(c.ResumeAgent(project=self.project, agent=agent))

    def leave(self, session: str | None = None) -> Out:
        return self.do(c.Leave(project=self.project, session=session or self.session))

    def gone(self, processes: Iterable[Process]) -> Out:
        """Tell of processes that this host's process table no longer has: the claims they held expire now."""
        return self.do(c.Gone(project=self.project, processes=tuple(processes)))

    def send(self, text: str, to: str = "@all", *, type: str = "chat", reply_to: str | None = None) -> Out:
        return self.do(c.Send(project=self.project, sender=self.agent, text=text, to=to, type=type, reply_to=reply_to))

    def read(self, messages: Iterable[str] | None = None) -> Out:
        """Unread mail of this agent, marked as read."""
        wanted = None if messages is None else tuple(messages)
        return self.do(c.Read(project=self.project, agent=self.agent, messages=wanted))

    def reserve(
        self, *patterns: str, receipt: str | None = None, mode: str = "exclusive", lease: float | None = None
    ) -> Out:
        return self.do(
            c.Reserve(
                project=self.project, patterns=patterns, agent=self.agent, session=self.session, mode=mode,
                receipt=receipt, lease=lease,
            )
        )  # fmt: skip

    def renew_reservation(self, receipt: str, lease: float | None = None) -> Out:
        return self.do(c.RenewReservation(project=self.project, receipt=receipt, lease=lease))

    def unreserve(self, receipt: str) -> Out:
        return self.do(c.Unreserve(project=self.project, receipt=receipt))

    def lead(self, *, lease: float = limits.LEADER_LEASE, term: int | None = None) -> Out:
        """Become, or stay, this project's `@leader`."""
        return self.do(c.Lead(project=self.project, holder=self.agent, agent=True, lease=lease, term=term))

    def step_down(self, term: int) -> Out:
        return self.do(c.StepDown(project=self.project, holder=self.agent, agent=True, term=term))
