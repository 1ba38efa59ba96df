"""`Client`: the operations as methods, on a local store."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib import import_module
from types import TracebackType
from typing import TYPE_CHECKING, Any

from tenure.client.chance import SystemChance
from tenure.core import commands as c
from tenure.core.commands import Command, Dependency, NewTask, NewTrack, Principal, Process, Totals
from tenure.core.errors import TenureError
from tenure.core.outcomes import Outcome
from tenure.engine import Chance, Engine
from tenure.stores.opening import open_store
from tenure.stores.port import Clock

if TYPE_CHECKING:
    from decimal import Decimal  # only named: its import would cost every start a millisecond

    from tenure.engine.archiving import Moved
    from tenure.engine.gathering import Gatherer

__all__ = ["Client"]


class Client:
    """One project of a store, and who speaks: `agent` and `session` are what claims are put down to.

    "Denied" and "stale" come back as outcomes (`outcome.ok` tells); bad input and a store that is away are raised as
    TenureError. A receipt is the only proof of a claim: keep it, and hand it to whoever shall go on.

    Safe to share between threads. With `gather=True` commands that several threads send at once share transactions,
    which is worth it from a handful of threads on; more than 10,000 waiting ones are refused as Overloaded. From
    asyncio use `client.gatherer.ado(command, client.principal)`.
    """

    def __init__(
        self,
        url: str,
        project: str = "default",
        *,
        agent: str | None = None,
        session: str | None = None,
        role: str = "owner",
        user: str | None = None,
        create: bool = True,
        gather: bool = False,
        clock: Clock | None = None,
        chance: Chance | None = None,
        monotonic: Callable[[], float] = time.monotonic,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        self.store = open_store(url, clock=clock, create=create)
        self.engine = Engine(self.store, chance or SystemChance(), pause=pause)
        self.project = project
        self.agent = agent or "me"
        # identity is per process, never per host or name
        self.session = session or f"{self.agent}-{os.getpid()}"
        self.user = user
        self.principal = Principal(role=role, user=user, agent=agent, session=session)
        self._monotonic = monotonic
        self.gatherer: Gatherer | None = None
        if gather:
            from tenure.engine.gathering import Gatherer

            self.gatherer = Gatherer(self.engine)

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the store, once what other threads have sent is done."""
        if self.gatherer is not None:
            self.gatherer.close()
        self.store.close()

    def do(self, command: Command) -> Outcome:
        """Run any command."""
        return (self.gatherer or self.engine).do(command, self.principal)

    def batch(self, batch: Sequence[Command]) -> list[Outcome | TenureError]:
        """Many commands in one transaction, one outcome or error each."""
        return self.engine.run(batch, self.principal)

    def preview(self, batch: Sequence[Command]) -> list[Outcome | TenureError]:
        """What `batch` would answer now; nothing is written."""
        return self.engine.preview(batch, self.principal)

    def now(self) -> int:
        """The store's time, in microseconds."""
        with self.engine.reading() as work:
            return work.now

    # --- projects ---

    def init(self, **settings: Any) -> Outcome:
        """Make the project, or change its settings: default_track, boost, agents_may_operate, limits."""
        return self.do(c.DefineProject(project=self.project, **settings))

    def define_track(self, code: str, name: str, purpose: str = "") -> Outcome:
        return self.do(c.DefineTrack(project=self.project, code=code, name=name, purpose=purpose))

    def stop_line(self, scope: str = "project:", reason: str = "") -> Outcome:
        return self.do(c.StopLine(project=self.project, scope=scope, reason=reason))

    def start_line(self, scope: str = "project:") -> Outcome:
        return self.do(c.StartLine(project=self.project, scope=scope))

    # --- making work ---

    def add(
        self, title: str, *, after: Iterable[str | Dependency] = (), request_id: str | None = None, **fields: Any
    ) -> Outcome:
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
    ) -> Outcome:
        """Make a whole dag at once; with a name it can be applied again. A dry run says what would happen."""
        return self.do(
            c.Plan(
                project=self.project, tasks=tuple(tasks), title=title, name=name, prune=prune, tracks=tuple(tracks),
                dry_run=dry_run,
            )
        )  # fmt: skip

    def link(self, task: str, needs: str, on_failure: str = "block") -> Outcome:
        return self.do(c.Link(project=self.project, task=task, needs=needs, on_failure=on_failure))

    def unlink(self, task: str, needs: str) -> Outcome:
        return self.do(c.Unlink(project=self.project, task=task, needs=needs))

    def publish(self, task: str | None = None, dag: str | None = None) -> Outcome:
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
        request_id: str | None = None,
        **filters: Any,
    ) -> Outcome:
        """Claim a task by name, or the best that this agent may take; `wait` stays that many seconds for one.

        `process` is whose end proves that the holder is gone; leave it out where the receipt will be handed on.
        """
        who: dict[str, Any] = {
            "project": self.project, "agent": self.agent, "session": self.session, "user": self.user, "lease": lease,
            "process": process, "request_id": request_id,
        }  # fmt: skip
        if task is not None:
            return self.do(c.Claim(**who, task=task))
        command = c.ClaimNext(**who, n=n, **filters)
        if wait > 0:
            from tenure.engine.waiting import claim_next_or_wait

            do = (self.gatherer or self.engine).do
            return claim_next_or_wait(self.engine, command, wait, self._monotonic, self.principal, do=do)
        return self.do(command)

    def renew(self, receipt: str, lease: float | None = None, *, background: bool = False) -> Outcome:
        return self.do(c.Renew(project=self.project, receipt=receipt, lease=lease, background=background))

    def start(self, receipt: str) -> Outcome:
        return self.do(c.Start(project=self.project, receipt=receipt))

    def progress(
        self, receipt: str, percent: int | None = None, step: str | None = None, done_in: float | None = None
    ) -> Outcome:
        return self.do(c.Progress(project=self.project, receipt=receipt, percent=percent, step=step, done_in=done_in))

    def checkpoint(self, receipt: str, data: Mapping[str, Any]) -> Outcome:
        return self.do(c.Checkpoint(project=self.project, receipt=receipt, data=dict(data)))

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
    ) -> Outcome:
        """Report what a model has cost since the claim, in all: tokens, dollars (None: not known), seconds."""
        return self.do(
            c.Usage(
                project=self.project, receipt=receipt, model=model, fresh=fresh, cached=cached, written=written,
                output=output, cost_usd=None if cost_usd is None else str(cost_usd), duration=duration,
            )
        )  # fmt: skip

    def land(self, receipt: str, branch: str, old: str, new: str) -> Outcome:
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
    ) -> Outcome:
        return self.do(
            c.Submit(
                project=self.project, receipt=receipt, data=data, summary=summary, request_id=request_id,
                usage=tuple(usage),
            )
        )  # fmt: skip

    def fail(
        self,
        receipt: str,
        message: str = "",
        error_class: str = "task",
        *,
        retry_after: float | None = None,
        model: str | None = None,
    ) -> Outcome:
        return self.do(
            c.Fail(
                project=self.project, receipt=receipt, message=message, error_class=error_class,
                retry_after=retry_after, model=model,
            )
        )  # fmt: skip

    def release(self, receipt: str, reason: str = "") -> Outcome:
        return self.do(c.Release(project=self.project, receipt=receipt, reason=reason))

    def spawn(self, receipt: str, tasks: Iterable[NewTask], *, wait: bool = False) -> Outcome:
        return self.do(c.Spawn(project=self.project, receipt=receipt, tasks=tuple(tasks), wait=wait))

    def wait_for_subtasks(self, receipt: str) -> Outcome:
        return self.do(c.Wait(project=self.project, receipt=receipt))

    def ask(self, receipt: str, question: str) -> Outcome:
        return self.do(c.Ask(project=self.project, receipt=receipt, question=question))

    # --- persons' verbs ---

    def pause(self, task: str, reason: str = "", *, drain: bool = False) -> Outcome:
        return self.do(c.Pause(project=self.project, task=task, reason=reason, drain=drain))

    def resume(self, task: str) -> Outcome:
        return self.do(c.Resume(project=self.project, task=task))

    def answer(self, task: str, text: str) -> Outcome:
        return self.do(c.Answer(project=self.project, task=task, text=text))

    def cancel(self, task: str, reason: str = "") -> Outcome:
        return self.do(c.Cancel(project=self.project, task=task, reason=reason))

    def retry(self, task: str, note: str = "", changes: Mapping[str, Any] | None = None) -> Outcome:
        return self.do(
            c.Retry(project=self.project, task=task, note=note, changes=None if changes is None else dict(changes))
        )

    def reset(self, task: str, *, cascade: bool = False) -> Outcome:
        return self.do(c.Reset(project=self.project, task=task, cascade=cascade))

    def adopt(self, task: str, result: str | None = None, *, supersede: bool = False, note: str = "") -> Outcome:
        return self.do(c.Adopt(project=self.project, task=task, result=result, supersede=supersede, note=note))

    def archive(self, task: str) -> Outcome:
        return self.do(c.Archive(project=self.project, task=task))

    def update(self, task: str, version: int | None = None, *, supersede: bool = False, **changes: Any) -> Outcome:
        """Change fields of a task; with `version` only if nobody has changed it since."""
        return self.do(c.Edit(project=self.project, task=task, changes=changes, version=version, supersede=supersede))

    def assign(self, task: str, agent: str, seconds: float = 60.0) -> Outcome:
        return self.do(c.Assign(project=self.project, task=task, agent=agent, seconds=seconds))

    def reassign(self, task: str, agent: str, seconds: float = 60.0) -> Outcome:
        return self.do(c.Reassign(project=self.project, task=task, agent=agent, seconds=seconds))

    def recover(self, task: str, reason: str = "") -> Outcome:
        return self.do(c.Recover(project=self.project, task=task, reason=reason))

    def abort(self, task: str, reason: str = "") -> Outcome:
        return self.do(c.Abort(project=self.project, task=task, reason=reason))

    def note(self, task: str, text: str) -> Outcome:
        return self.do(c.Note(project=self.project, task=task, text=text))

    def undo(self, command_id: str) -> Outcome:
        return self.do(c.Undo(project=self.project, command_id=command_id))

    # --- the team ---

    def register(self, **fields: Any) -> Outcome:
        """Tell of this agent: type, capabilities, models, tracks, region, max_concurrent_tasks …"""
        return self.do(c.Register(project=self.project, agent=self.agent, session=self.session, **fields))

    def heartbeat(self, **fields: Any) -> Outcome:
        return self.do(c.Heartbeat(project=self.project, agent=self.agent, session=self.session, **fields))

    def drain(self, agent: str | None = None) -> Outcome:
        return self.do(c.Drain(project=self.project, agent=agent or self.agent))

    def terminate(self, agent: str, *, graceful: bool = True) -> Outcome:
        return self.do(c.Terminate(project=self.project, agent=agent, graceful=graceful))

    def leave(self, session: str | None = None) -> Outcome:
        return self.do(c.Leave(project=self.project, session=session or self.session))

    def gone(self, processes: Iterable[Process]) -> Outcome:
        """Tell of processes that this host's process table no longer has: the claims they held expire now."""
        return self.do(c.Gone(project=self.project, processes=tuple(processes)))

    def send(self, text: str, to: str = "@all", *, type: str = "chat", reply_to: str | None = None) -> Outcome:
        return self.do(c.Send(project=self.project, sender=self.agent, text=text, to=to, type=type, reply_to=reply_to))

    def read(self, messages: Iterable[str] | None = None) -> Outcome:
        """Unread mail of this agent, marked as read."""
        wanted = None if messages is None else tuple(messages)
        return self.do(c.Read(project=self.project, agent=self.agent, messages=wanted))

    def reserve(
        self, *patterns: str, receipt: str | None = None, mode: str = "exclusive", lease: float | None = None
    ) -> Outcome:
        return self.do(
            c.Reserve(
                project=self.project, patterns=patterns, agent=self.agent, session=self.session, mode=mode,
                receipt=receipt, lease=lease,
            )
        )  # fmt: skip

    def renew_reservation(self, receipt: str, lease: float | None = None) -> Outcome:
        return self.do(c.RenewReservation(project=self.project, receipt=receipt, lease=lease))

    def unreserve(self, receipt: str) -> Outcome:
        return self.do(c.Unreserve(project=self.project, receipt=receipt))

    def lead(self, *, lease: float = 30.0, term: int | None = None) -> Outcome:
        """Become, or stay, this project's `@leader`."""
        return self.do(c.Lead(project=self.project, holder=self.agent, agent=True, lease=lease, term=term))

    def step_down(self, term: int) -> Outcome:
        return self.do(c.StepDown(project=self.project, holder=self.agent, agent=True, term=term))

    # --- looking ---

    def _look(self, where: str, *args: Any, **options: Any) -> Any:
        """What a reading of the engine says; its module is loaded with the first look, since a claim needs none."""
        module, _, name = where.partition(":")
        look = getattr(import_module(f"tenure.engine.{module}"), name)
        with self.engine.reading((self.project,)) as work:
            return look(work, self.project, *args, **options)

    def show(self, task: str) -> dict[str, Any]:
        return self._look("reading:show", task)  # type: ignore[no-any-return]

    def tasks(self, **filters: Any) -> list[dict[str, Any]]:
        return self._look("reading:tasks", **filters)  # type: ignore[no-any-return]

    def ready(self, *, track: str | None = None, limit: int = 50) -> list[dict[str, Any]]:
        """Claimable tasks, best first."""
        return self._look("previewing:ready", track=track, limit=limit)  # type: ignore[no-any-return]

    def next(self, **filters: Any) -> Outcome:
        """What `claim` would take now, without taking it."""
        return self._look("previewing:next_for", self.agent, self.session, **filters)  # type: ignore[no-any-return]

    def states(self, tasks: Iterable[str]) -> list[dict[str, Any]]:
        return self._look("reading:states", tasks)  # type: ignore[no-any-return]

    def history(self, task: str) -> list[dict[str, Any]]:
        return self._look("reading:history", task)  # type: ignore[no-any-return]

    def results(self, task: str) -> list[dict[str, Any]]:
        return self._look("reading:results", task)  # type: ignore[no-any-return]

    def why(self, task: str) -> dict[str, Any]:
        return self._look("explaining:why", task)  # type: ignore[no-any-return]

    def dag(self, id: str) -> dict[str, Any]:
        return self._look("reading:dag", id)  # type: ignore[no-any-return]

    def plans(
        self, *, dag: str | None = None, plan: str | None = None, open_only: bool = False
    ) -> list[dict[str, Any]]:
        """The tasks of a dag, of a named plan, or all, as they were asked for."""
        return self._look("describing:plans", dag=dag, plan=plan, open_only=open_only)  # type: ignore[no-any-return]

    def tracks(self) -> list[dict[str, Any]]:
        return self._look("describing:tracks")  # type: ignore[no-any-return]

    def dags(self) -> list[dict[str, Any]]:
        return self._look("reading:dags")  # type: ignore[no-any-return]

    def dead_letters(self, *, resolved: bool = False) -> list[dict[str, Any]]:
        return self._look("reading:dead_letters", resolved=resolved)  # type: ignore[no-any-return]

    def agents(self) -> list[dict[str, Any]]:
        return self._look("reading:agents")  # type: ignore[no-any-return]

    def inbox(self, *, unread: bool = True, sender: str | None = None) -> list[dict[str, Any]]:
        return self._look("reading:inbox", self.agent, unread=unread, sender=sender)  # type: ignore[no-any-return]

    def reservations(self) -> list[dict[str, Any]]:
        return self._look("reading:reservations")  # type: ignore[no-any-return]

    def memory(self, session: str | None = None) -> dict[str, Any]:
        """What a session claimed, did and lost."""
        return self._look("reading:session", session or self.session)  # type: ignore[no-any-return]

    def projects(self) -> list[str]:
        """The names of all projects in the store."""
        from tenure.engine.upkeep import projects

        return projects(self.engine)

    def status(self) -> dict[str, Any]:
        return self._look("reading:status")  # type: ignore[no-any-return]

    def spent(self, by: str = "task", limit: int = 100) -> list[dict[str, Any]]:
        """What was spent for each task, agent, model or session, the dearest first."""
        return self._look("reading:usage", by=by, limit=limit)  # type: ignore[no-any-return]

    def processes(self) -> list[dict[str, Any]]:
        """The processes that hold claims now."""
        return self._look("reading:processes")  # type: ignore[no-any-return]

    def log(self, **filters: Any) -> list[dict[str, Any]]:
        return self._look("reading:log", **filters)  # type: ignore[no-any-return]

    # --- upkeep ---

    def sweep(self) -> int:
        """Settle what is due, so that events come promptly; how many rows it was."""
        return self.engine.sweep(self.project).settled

    def verify(self) -> list[str]:
        """What is wrong with the store; empty when every promise holds."""
        return [*self.store.check(), *self.engine.verify()]

    def backup(self, target: str) -> None:
        self.store.backup(target)

    def archive_finished(self, *, older: float | None = None) -> Moved:
        """Move finished tasks that nothing open can reach into the archive, those `older` than so many seconds."""
        from tenure.engine.archiving import move_all

        return move_all(self.engine, self.project, older=None if older is None else round(older * 1e6))

    def could_archive(self, *, older: float | None = None) -> int:
        """How many tasks `archive_finished` would move; nothing is written."""
        from tenure.engine.archiving import could_move

        return could_move(self.engine, self.project, older=None if older is None else round(older * 1e6))

    def new_epoch(self, why: str) -> str:
        return self.engine.new_epoch(why)
