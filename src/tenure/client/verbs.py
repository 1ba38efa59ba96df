"""The verbs: each method sends one command. Written once for `Client` and `AsyncClient`: see caller.py."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from tenure.client.messaging import Messaging
from tenure.client.results import (
    Added,
    AddedMany,
    Changed,
    Claimed,
    Held,
    Planned,
    Reserved,
    Spawned,
    Submitted,
    Team,
    Updated,
    Validation,
)
from tenure.client.times import seconds_of
from tenure.core import commands as c
from tenure.core import limits
from tenure.core.commands import NewTask, NewTrack, Process, Template, Totals
from tenure.core.errors import NotFound, TenureError
from tenure.core.lifecycle import ENDED

if TYPE_CHECKING:  # only for types: the import of Decimal alone would cost every start a millisecond
    from decimal import Decimal
    from typing import Unpack

    from tenure.client.arguments import (
        AgentFields,
        BudgetFields,
        ClaimOptions,
        Health,
        ProjectSettings,
        TaskChanges,
        TaskFields,
    )
    from tenure.client.handles import Ended
    from tenure.client.times import Duration
    from tenure.core.views import TaskLine

MOST_ADDED = limits.ADDED_AT_ONCE
LONGEST_WAIT = limits.WORKER_POLL
PACE = 0.05  # seconds between two reads of a wait on a busy store


def new_task(title: str, fields: Mapping[str, Any]) -> NewTask:
    """A task of the keyword arguments of `add`."""
    given = as_tuples(fields)
    return NewTask(title=title, depends_on=given.pop("after", ()), **given)


def as_tuples(fields: Mapping[str, Any]) -> dict[str, Any]:
    """The fields with any iterable of names as a tuple and any mapping as a dict, as commands have them."""

    def plain(value: Any) -> Any:
        if isinstance(value, (str, int, float, tuple, dict, Struct)) or value is None:
            return value
        if isinstance(value, Mapping):
            return dict(value)
        return tuple(value) if isinstance(value, Iterable) else value

    return {name: plain(value) for name, value in fields.items()}


class Verbs(Messaging):
    """Every verb of a project, as methods.

    "Denied" and "stale" are answers (look at `ok`, or call `check()`); bad input and an unavailable store raise
    TenureError. Durations are seconds, timedeltas or texts such as `2h`; instants are datetimes or microseconds.
    A receipt is the only proof of a claim: keep it, or pass it to the process that continues the work.
    """

    # --- projects ---

    def init(self, **settings: Unpack[ProjectSettings]) -> Updated:
        """Create the project, or change its settings: default_track, boost, agents_may_operate, limits, routing."""
        return self._do(Updated, c.DefineProject, **as_tuples(settings))

    def define_track(self, code: str, name: str, purpose: str = "") -> Updated:
        """Create or change a track; its letter starts the keys of its tasks."""
        return self._do(Updated, c.DefineTrack, code=code, name=name, purpose=purpose)

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
        """Move an amount that is neither spent nor reserved from one budget to another, in their currency."""
        return self._do(Changed, c.MoveBudget, source=source, target=target, amount=str(amount))

    # --- tasks and dags ---

    def add(self, title: str, *, request_id: str | None = None, **fields: Unpack[TaskFields]) -> Added:
        """Create a task; `after` names its dependencies, `fields` are those of NewTask."""
        return self._do(Added, c.Add, task=new_task(title, fields), request_id=request_id)

    def add_many(self, tasks: Iterable[NewTask], *, request_id: str | None = None) -> list[TaskLine]:
        """Create many tasks, each in its own dag, in batches of 1,000: a batch is created whole or not at all.

        An error names its batch; the ones before it are created. Where a task with the same idempotency key exists,
        that one is returned in its place. A `request_id` makes the whole call repeatable.
        """
        return self._steps(self._add_many(list(tasks), request_id))

    async def _add_many(self, tasks: list[NewTask], request_id: str | None) -> list[TaskLine]:
        lines: list[TaskLine] = []
        for first in range(0, len(tasks), MOST_ADDED):
            some = tuple(tasks[first : first + MOST_ADDED])
            id = None if request_id is None else f"{request_id}-{first // MOST_ADDED}"
            try:
                made = await self._each(self._do(AddedMany, c.AddMany, tasks=some, request_id=id))
            except TenureError as error:
                if len(tasks) > MOST_ADDED:
                    error.add_note(f"tasks {first + 1} to {first + len(some)} were not created; those before were")
                raise
            lines += made.check().tasks
        return lines

    def wait(self, task: str, timeout: Duration | None = None) -> Ended:
        """Wait until the task has ended: completed, cancelled or a dead letter. Raises TimeoutError after `timeout`."""
        return self._steps(self._wait(task, timeout))

    async def _wait(self, task: str, timeout: Duration | None) -> Ended:  # noqa: ASYNC109 - as `wait`
        import time

        from tenure.client.handles import Ended

        until = None if timeout is None else time.monotonic() + seconds_of(timeout, "timeout")
        while True:
            mark = await self._each(self.mark())  # before the read: later events wake us
            (line,) = await self._each(self.states([task]))
            if "id" not in line:
                raise NotFound(f"no task {task[:80]!r} in project {self.project}")
            task = line["id"]
            if line["state"] in ENDED:
                return Ended(await self._each(self.show(task)))
            left = LONGEST_WAIT if until is None else until - time.monotonic()
            if left <= 0:
                raise TimeoutError(f"{line['key']} is {line['state']} after {timeout}")
            await self._each(self.wait_for_news(mark, min(left, LONGEST_WAIT), tasks=[task]))
            await self._pause(PACE)

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
    ) -> Planned:
        """Create a whole dag; one with a name can be applied again. A dry run returns what would happen.

        `on_end` has the tasks to create when the dag is completed, failed or cancelled; `budget` is in dollars.
        """
        return self._do(
            Planned,
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

    def link(self, task: str, needs: str, on_failure: str = "block") -> Updated:
        """Make `task` wait for `needs`."""
        return self._do(Updated, c.Link, task=task, needs=needs, on_failure=on_failure)

    def unlink(self, task: str, needs: str) -> Updated:
        """Remove the dependency of `task` on `needs`."""
        return self._do(Updated, c.Unlink, task=task, needs=needs)

    def publish(self, task: str | None = None, dag: str | None = None) -> Updated:
        """Publish a draft, or all drafts of a dag."""
        return self._do(Updated, c.Publish, task=task, dag=dag)

    # --- claims ---

    def claim(
        self,
        task: str | None = None,
        *,
        lease: Duration | None = None,
        n: int = 1,
        wait: Duration = 0.0,
        process: Process | None = None,
        agent_type: str | None = None,
        request_id: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        **filters: Unpack[ClaimOptions],
    ) -> Claimed:
        """Claim a task by name, or the best that this agent may claim; `wait` is how long to wait for one.

        The end of `process` proves that the holder is gone; leave it out if the receipt will be passed on.
        `agent_type` (claude, codex, gemini …) chooses the model for an agent that is not registered.
        """
        who: dict[str, Any] = {"project": self.project, "agent": self.agent, "session": self.session, "user": self.user}
        who |= {"lease": lease, "process": process, "agent_type": agent_type, "request_id": request_id}
        who["metadata"] = dict(metadata or {})
        if task is not None:
            return self._as(Claimed, self.do(c.ClaimTask(**who, task=task)))
        command = c.ClaimNext(**who, n=n, **as_tuples(filters))
        seconds = seconds_of(wait, "wait")
        return self._as(Claimed, self.claim_or_wait(command, seconds) if seconds > 0 else self.do(command))

    def renew(
        self, receipt: str, lease: Duration | None = None, *, background: bool = False, seen: int | None = None
    ) -> Held:
        """`seen` is the number of the description that you have read, after the directive `changed`."""
        return self._do(Held, c.Renew, receipt=receipt, lease=lease, background=background, seen=seen)

    def start(self, receipt: str) -> Held:
        """Start work on the held task."""
        return self._do(Held, c.Start, receipt=receipt)

    def progress(
        self,
        receipt: str,
        percent: int | None = None,
        step: str | None = None,
        done_in: Duration | None = None,
        *,
        seen: int | None = None,
    ) -> Held:
        """Report progress on the held task; `done_in` is the estimated time to completion."""
        return self._do(Held, c.Progress, receipt=receipt, percent=percent, step=step, done_in=done_in, seen=seen)

    def checkpoint(self, receipt: str, data: Mapping[str, Any]) -> Held:
        """Save what the next holder needs to continue from here."""
        return self._do(Held, c.SaveCheckpoint, receipt=receipt, data=dict(data))

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
        duration: Duration = 0.0,
    ) -> Held:
        """Report a model's totals since the claim: tokens, dollars (None: not known), seconds."""
        return self._do(
            Held,
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

    def land(self, receipt: str, branch: str, old: str, new: str, *, seen: int | None = None) -> Held:
        """Record that the branch is about to move from one commit to another; the caller moves it."""
        return self._do(Held, c.Land, receipt=receipt, branch=branch, old=old, new=new, seen=seen)

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
    ) -> Submitted:
        """Submit a result; `artifacts` are the names of its artifacts, by default all of the task in this run.

        CHANGED means that the description has changed: read `diff`, then submit with `seen` = `brief`.
        `lines` and `test_files` are the size of the change, for projects that compare it with the cost.
        """
        return self._do(
            Submitted,
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
        lease: Duration | None = None,
        checker: str | None = None,
        request_id: str | None = None,
    ) -> Validation:
        """Take a result that waits for a verdict: this task's, or the best one that `validators` can check."""
        return self._do(
            Validation,
            c.TakeValidation,
            task=task,
            validators=tuple(validators),
            lease=lease,
            checker=checker or self.agent,
            request_id=request_id,
        )

    def renew_validation(self, receipt: str, lease: Duration | None = None) -> Validation:
        """Extend the lease of a validation."""
        return self._do(Validation, c.RenewValidation, receipt=receipt, lease=lease)

    def judge(
        self, receipt: str, ok: bool, reasons: Iterable[str] = (), details: Mapping[str, Any] | None = None
    ) -> Validation:
        """Record the verdict, with the receipt of the validation."""
        return self._do(
            Validation, c.Judge, receipt=receipt, ok=ok, reasons=tuple(reasons), details=dict(details or {})
        )

    def undecided(self, receipt: str, reason: str, retry_after: Duration | None = None) -> Validation:
        """Give up a validation without a verdict; it will be tried again."""
        return self._do(Validation, c.Undecide, receipt=receipt, reason=reason, retry_after=retry_after)

    def fail(
        self,
        receipt: str,
        message: str = "",
        error_class: str = "task",
        *,
        retry_after: Duration | None = None,
        model: str | None = None,
        trace: str = "",
    ) -> Held:
        """Report a failed attempt. `trace` is the stack trace, kept with the attempt: bounded, secrets removed."""
        return self._do(
            Held,
            c.Fail,
            receipt=receipt,
            message=message,
            error_class=error_class,
            retry_after=retry_after,
            model=model,
            trace=trace,
        )

    def release(self, receipt: str, reason: str = "") -> Held:
        """Release the claim; the attempt does not count."""
        return self._do(Held, c.Release, receipt=receipt, reason=reason)

    def spawn(self, receipt: str, tasks: Iterable[NewTask], *, wait: bool = False) -> Spawned:
        """Create subtasks of the held task; with `wait` it is ready again when all have ended."""
        return self._do(Spawned, c.Spawn, receipt=receipt, tasks=tuple(tasks), wait=wait)

    def wait_for_subtasks(self, receipt: str) -> Held:
        """Release the claim until the subtasks have ended."""
        return self._do(Held, c.Wait, receipt=receipt)

    def ask(self, receipt: str, question: str) -> Held:
        """Ask a person; the task is paused until the answer."""
        return self._do(Held, c.Ask, receipt=receipt, question=question)

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
        """Accept the result that waits for a verdict."""
        return self._do(Updated, c.Approve, task=task, note=note)

    def reject(self, task: str, reason: str) -> Updated:
        """Reject the result that waits for a verdict; the next attempt gets the reason."""
        return self._do(Updated, c.Reject, task=task, reason=reason)

    def archive(self, task: str) -> Updated:
        """Move a finished task into the archive."""
        return self._do(Updated, c.Archive, task=task)

    def update(
        self, task: str, version: int | None = None, *, supersede: bool = False, **changes: Unpack[TaskChanges]
    ) -> Updated:
        """Change fields of a task; with `version` only if it is still the current one."""
        return self._do(Updated, c.Edit, task=task, changes=as_tuples(changes), version=version, supersede=supersede)

    def assign(self, task: str, agent: str, seconds: Duration = limits.OFFER) -> Updated:
        """Offer the task to one agent for a while."""
        return self._do(Updated, c.Assign, task=task, agent=agent, seconds=seconds)

    def reassign(self, task: str, agent: str, seconds: Duration = limits.OFFER) -> Updated:
        """End the claim and offer the task to another agent for a while."""
        return self._do(Updated, c.Reassign, task=task, agent=agent, seconds=seconds)

    def recover(self, task: str, reason: str = "") -> Updated:
        """End a claim whose holder is lost; the attempt does not count."""
        return self._do(Updated, c.Recover, task=task, reason=reason)

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
        """Register this agent: type, capabilities, models, tracks, region, max_concurrent_tasks …"""
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
