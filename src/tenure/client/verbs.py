"""The verbs: each method sends one command. Written once for `Client` and `AsyncClient`: see caller.py."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from tenure.client.caller import as_tuples, new_task
from tenure.client.operator_verbs import OperatorVerbs
from tenure.client.results import Added, AddedMany, Claimed, Held, Planned, Spawned, Submitted, Updated, Validation
from tenure.client.times import seconds_of
from tenure.core import commands as c
from tenure.core import limits
from tenure.core.commands import NewTask, NewTrack, Process, Template, Totals
from tenure.core.errors import NotFound, TenureError
from tenure.core.land_request import LAND, LandRequest
from tenure.core.lifecycle import ENDED

if TYPE_CHECKING:  # only for types: the import of Decimal alone would cost every start a millisecond
    from decimal import Decimal
    from typing import Unpack

    from tenure.client.arguments import ClaimOptions, TaskFields
    from tenure.client.handles import Ended
    from tenure.client.times import Duration
    from tenure.core.outcomes import Outcome
    from tenure.core.views import TaskLine

MOST_ADDED = limits.ADDED_AT_ONCE
LONGEST_WAIT = limits.WORKER_POLL
PACE = 0.05  # seconds between two reads of a wait on a busy store


class Verbs(OperatorVerbs):
    """Every verb of a project, as methods.

    "Denied" and "stale" are answers (look at `ok`, or call `check()`); bad input and an unavailable store raise
    TenureError. Durations are seconds, timedeltas or texts such as `2h`; instants are datetimes or microseconds.
    A receipt is the only proof of a claim: keep it, or pass it to the process that continues the work.
    """

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
                waited = f"{timeout} s" if isinstance(timeout, (int, float)) else timeout
                raise TimeoutError(f"{line['key']} is {line['state']} after {waited}")
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
        like: bool = False,
        wait: Duration = 0.0,
        process: Process | None = None,
        agent_type: str | None = None,
        request_id: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        spawn: str | None = None,
        **filters: Unpack[ClaimOptions],
    ) -> Claimed:
        """Claim a task by name, or the best that this agent may claim; `wait` is how long to wait for it.

        By name it waits for a dependency, a retry, another's lease or whatever else may end by itself.

        The end of `process` proves that the holder is gone; leave it out if the receipt will be passed on.
        `agent_type` (claude, codex, gemini …) chooses the model for an agent that is not registered. The lease `"auto"`
        follows the task's estimate, else its type. With `like` all `n` tasks are of the type and track of the first.
        `spawn` is the id that a pool gave this process.
        """
        who: dict[str, Any] = {"project": self.project, "agent": self.agent, "session": self.session, "user": self.user}
        who |= {"lease": lease, "process": process, "agent_type": agent_type, "request_id": request_id}
        who |= {"metadata": dict(metadata or {}), "spawn": spawn}
        seconds = seconds_of(wait, "wait")
        if task is not None:
            named = c.ClaimTask(**who, task=task)
            return self._as(Claimed, self._steps(self._claim(named, seconds)) if seconds > 0 else self.do(named))
        command = c.ClaimNext(**who, n=n, like=like, **as_tuples(filters))
        return self._as(Claimed, self.claim_or_wait(command, seconds) if seconds > 0 else self.do(command))

    async def _claim(self, command: c.ClaimTask, seconds: float) -> Outcome:
        """The claim of a named task, asked again after each event and when a lease or a delay has ended."""
        import time

        from tenure.core.claims import may_end

        until = time.monotonic() + seconds
        while True:
            mark = await self._each(self.mark())  # before the claim: later events wake us
            outcome: Outcome = await self._each(self.do(command))
            left = until - time.monotonic()
            if left <= 0 or not may_end(outcome):
                return outcome
            ends = [in_ for in_ in (outcome.retry_in, outcome.lease) if in_ is not None]
            await self._each(self.wait_for_news(mark, min(left, LONGEST_WAIT, *(max(PACE, end) for end in ends))))
            await self._pause(min(PACE, left))

    def renew(
        self,
        receipt: str,
        lease: Duration | None = None,
        *,
        background: bool = False,
        worked: bool = False,
        seen: int | None = None,
    ) -> Held:
        """`worked` says that the holder has just worked, which a renewal alone does not.

        `seen` is the number of the description that you have read, after the directive `changed`.
        """
        given = {"lease": lease, "background": background, "worked": worked, "seen": seen}
        return self._do(Held, c.Renew, receipt=receipt, **given)

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
        checkpoint: Mapping[str, Any] | None = None,
    ) -> Held:
        """Report progress on the held task; `done_in` is the estimated time to completion.

        With `checkpoint` it also saves what the next holder needs to continue from here.
        """
        saved = None if checkpoint is None else dict(checkpoint)
        fields = {"percent": percent, "step": step, "done_in": done_in, "seen": seen, "checkpoint": saved}
        return self._do(Held, c.Progress, receipt=receipt, **fields)

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
        operation: str = "",
    ) -> Held:
        """Report a model's totals since the claim: tokens, dollars (None: not known), seconds.

        With an `operation` (`review`, `tests`): the part of them that was for it.
        """
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
            operation=operation,
        )

    def land(
        self,
        receipt: str,
        branch: str,
        old: str,
        new: str,
        *,
        seen: int | None = None,
        request_id: str | None = None,
    ) -> Held:
        """Record that the branch is about to move from one commit to another; the caller moves it."""
        fields = {"branch": branch, "old": old, "new": new, "seen": seen, "request_id": request_id}
        return self._do(Held, c.Land, receipt=receipt, **fields)

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
        land: LandRequest | None = None,
    ) -> Submitted:
        """Submit a result; `artifacts` are the names of its artifacts, by default all of the task in this run.

        With `land` it is accepted once that commit is on that branch: see `take_landing`.
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
            land=land,
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

    def take_landing(
        self,
        task: str | None = None,
        *,
        lease: Duration | None = None,
        lander: str | None = None,
        request_id: str | None = None,
    ) -> Validation:
        """Take a result that has passed and whose commit is to be put on a branch: this task's, or the best one.

        `land` with its receipt records the move of the branch before it is made; `judge` says that it is done.
        """
        return self._do(
            Validation,
            c.TakeValidation,
            task=task,
            phase=LAND,
            lease=lease,
            checker=lander or self.agent,
            request_id=request_id,
        )

    def judge(
        self,
        receipt: str,
        ok: bool,
        reasons: Iterable[str] = (),
        details: Mapping[str, Any] | None = None,
        *,
        conflict: bool = False,
    ) -> Validation:
        """Record the verdict, with the receipt of the validation; or whether its landing is done.

        `conflict`: the commit does not fit to its branch any more; the attempt is given back.
        """
        return self._do(
            Validation,
            c.Judge,
            receipt=receipt,
            ok=ok,
            reasons=tuple(reasons),
            details=dict(details or {}),
            conflict=conflict,
        )

    def undecided(
        self, receipt: str, reason: str, retry_after: Duration | None = None, *, blocked: bool = False
    ) -> Validation:
        """Give up a validation without a verdict; it will be tried again. `blocked`: of a landing; it
        does not count as a try, since something in the checkout is in its way."""
        return self._do(
            Validation, c.Undecide, receipt=receipt, reason=reason, retry_after=retry_after, blocked=blocked
        )

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

    def release(self, receipt: str, reason: str = "", *, stopped: bool = False) -> Held:
        """Release the claim; the attempt does not count. The agent gets the task again only after five minutes, or at
        once if it was `stopped`: by a shutdown, not by the task."""
        return self._do(Held, c.Release, receipt=receipt, reason=reason, stopped=stopped)

    def spawn(self, receipt: str, tasks: Iterable[NewTask], *, wait: bool = False) -> Spawned:
        """Create subtasks of the held task; with `wait` it is ready again when all have ended."""
        return self._do(Spawned, c.Spawn, receipt=receipt, tasks=tuple(tasks), wait=wait)

    def wait_for_subtasks(self, receipt: str) -> Held:
        """Release the claim until the subtasks have ended."""
        return self._do(Held, c.Wait, receipt=receipt)

    def ask(self, receipt: str, question: str) -> Held:
        """Ask a person; the task is paused until the answer."""
        return self._do(Held, c.Ask, receipt=receipt, question=question)

    def open_secrets(self, receipt: str) -> Held:
        """The `secrets` of the held task, by name, as the claim's answer had them."""
        return self._do(Held, c.OpenSecrets, receipt=receipt)
