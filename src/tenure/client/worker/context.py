"""What a function is called with: its task, and what it may tell while it works on it.

`Context` is for functions that block, `AsyncContext` for async ones: the same methods, awaited.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from tenure.client.client import Client
from tenure.client.worker.failures import Failure, Suspended, may_pass
from tenure.client.worker.hold import Hold
from tenure.core import commands as c
from tenure.core.commands import NewTask
from tenure.core.errors import TenureError
from tenure.core.lifecycle import ENDED
from tenure.core.outcomes import Outcome

if TYPE_CHECKING:
    from decimal import Decimal

    from tenure.client.contents import Given

log = logging.getLogger("tenure.worker")

Done = TypeVar("Done")
Out = TypeVar("Out")
Dicts = TypeVar("Dicts")
Text = TypeVar("Text")
Data = TypeVar("Data")


class Telling(Generic[Done, Out, Dicts, Text, Data]):
    """Every method raises Cancelled once the task is no longer this function's. Set `summary` to say what was done.

    The work must also look at `cancelled` where it goes on for long without telling anything.
    """

    def __init__(self, hold: Hold, granted: Outcome) -> None:
        from tenure.client.worker.spending import Spending

        self._hold = hold
        self.task: dict[str, Any] = hold.task
        self.inputs: dict[str, Any] = granted.inputs or {}
        self.models: tuple[str, ...] = granted.models or ()
        self.model: str | None = granted.model  # the one to use, where it is known
        self.tier: str | None = granted.tier  # of models: small, middle or top
        self.attempt: int = granted.attempt or 1
        # What was left by whoever worked on this before: the last checkpoint and who wrote it, and what was put.
        self.saved: dict[str, Any] | None = (granted.checkpoint or {}).get("data")
        self.saved_by: str | None = (granted.checkpoint or {}).get("agent")
        self.artifacts: tuple[Mapping[str, Any], ...] = granted.artifacts or ()
        self.summary = ""
        self.spending = Spending()
        hold.moved = self.spending.moved

    @property
    def generation(self) -> int:
        """The fencing token of the claim; it grows where a lost claim was taken again."""
        return self._hold.generation

    @property
    def receipt(self) -> str:
        """What proves the claim. Hand it to whoever shall write in its name."""
        return self._hold.receipt

    @property
    def cancelled(self) -> bool:
        """Whether the function should stop. What it returns all the same is still handed in."""
        return self._hold.is_cancelled

    @property
    def client(self) -> Client:
        """For everything else; it blocks."""
        return self._hold.client

    def _run(self, deed: Callable[[], Any]) -> Any:
        raise NotImplementedError

    def _present(self, kind: type[c.Command], **fields: Any) -> Outcome:
        project = self._hold.client.project
        return self._hold.present(lambda receipt: kind(project=project, receipt=receipt, **fields))  # type: ignore[call-arg]

    def _tell(self, make: Callable[[str], c.Command]) -> bool:
        """Tell what the work does not depend on; whether it was heard."""
        try:
            self._hold.try_once(make)
        except TenureError as error:
            if not may_pass(error):
                raise
            log.warning("%s: not told: %s", self._hold.key, error.message)
            return False
        return True

    # --- telling ---

    def progress(self, percent: int | None = None, step: str | None = None, done_in: float | None = None) -> Done:
        """How far it is; `done_in` is an estimate in seconds. Not told while the store is away."""
        project = self._hold.client.project
        told: Done = self._run(
            lambda: self._tell(
                lambda receipt: c.Progress(
                    project=project, receipt=receipt, percent=percent, step=step, done_in=done_in
                )
            )
        )
        return told

    def change(self) -> str | None:
        """What has changed in the task's description since you last asked, as a diff; None where nothing has.

        Who takes it has seen it: the result is then for the new text. One that nobody has seen is not accepted, and
        the task is done again with the new text.
        """
        news = self._hold.change
        if news is None or news.brief == self._hold.seen:
            return None
        self._hold.seen = news.brief
        return news.diff

    def checkpoint(self, data: Mapping[str, Any]) -> Out:
        """Keep what another attempt needs to go on from here; it finds it as `saved`."""
        kept: Out = self._run(lambda: self._present(c.SaveCheckpoint, data=dict(data)))
        return kept

    def artifact(self, name: str, content: Given, *, type: str | None = None) -> Out:
        """Keep a named output: bytes, a Path, or a file opened for bytes. Those who depend on this task get it."""
        client = self._hold.client
        put: Out = self._run(
            lambda: self._hold.insist(lambda receipt: client.put_artifact(receipt, name, content, type=type))
        )
        return put

    def fetch(self, name: str, task: str | None = None, *, generation: int | None = None) -> Data:
        """The bytes of an artifact: of a task in `inputs`, by its key, or of this one's own earlier attempts."""

        def get() -> bytes:
            return self._hold.client.get_artifact(task or self.task["key"], name, generation=generation).read()

        got: Data = self._run(get)
        return got

    def spend(
        self,
        model: str,
        *,
        fresh: int = 0,
        cached: int = 0,
        written: int = 0,
        output: int = 0,
        cost_usd: str | Decimal | float | None = None,
        duration: float = 0.0,
    ) -> Done:
        """Add what a call of a model has cost: tokens, dollars, seconds. Not totals: those are kept here.

        While the store is away they only grow; it is told with the next call, or the result.
        """

        def add() -> None:
            from decimal import Decimal

            from tenure.client.worker.spending import Amounts

            cost = None if cost_usd is None else Decimal(str(cost_usd))
            self.spending.add(model, Amounts(fresh, cached, written, output, cost, duration))
            if self._tell(lambda receipt: self._usage(model, receipt)):
                self.spending.told(model)

        told: Done = self._run(add)
        return told

    def _usage(self, model: str, receipt: str) -> c.ReportUsage:
        import msgspec

        totals = next(one for one in self.spending.totals() if one.model == model)
        return c.ReportUsage(project=self._hold.client.project, receipt=receipt, **msgspec.structs.asdict(totals))

    def spawn(self, *tasks: NewTask, wait: bool = False) -> Out:
        """Make subtasks, each with a `name` of its own: what an earlier call has made is given back, not made again.

        With `wait` the function ends here while one of them is open, and is called again when all have ended. Then it
        comes past this line, with their outputs and failures in `inputs`.
        """

        def grow() -> Outcome:
            made = self._present(c.Spawn, tasks=tuple(tasks))
            if wait and any(task["state"] not in ENDED for task in made.tasks or ()):
                raise self._suspended(c.Wait)
            return made

        made: Out = self._run(grow)
        return made

    def ask(self, question: str) -> Text:
        """What a person answers. The function ends here until then, and is called again; then it comes past this line.

        Questions are told apart by their words: ask with the same ones each time.
        """

        def answer() -> str:
            for said in reversed(self.task.get("answers") or ()):
                if str(said["question"]).removeprefix("question: ") == question:
                    return str(said["answer"])
            raise self._suspended(c.Ask, question=question)

        answered: Text = self._run(answer)
        return answered

    def _suspended(self, kind: type[c.Command], **fields: Any) -> Suspended:
        outcome = self._present(kind, **fields)
        if not outcome.ok:
            raise Failure(f"{outcome.outcome}: {outcome.message}")
        self._hold.end()
        return Suspended()

    def message(self, text: str, to: str = "@all", *, type: str = "chat") -> Out:
        """Write to an agent, `@all`, `@leader`, `@idle` or `@track:B`."""
        sent: Out = self._run(lambda: self._hold.client.send(text, to, type=type))
        return sent

    def messages(self) -> Dicts:
        """Mail that this worker has not read yet, marked as read."""

        def read() -> list[dict[str, Any]]:
            return [dict(message) for message in self._hold.client.read().messages or ()]

        mail: Dicts = self._run(read)
        return mail


class Context(Telling[None, Outcome, list[dict[str, Any]], str, bytes]):
    def _run(self, deed: Callable[[], Any]) -> Any:
        return deed()


class AsyncContext(
    Telling[Awaitable[None], Awaitable[Outcome], Awaitable[list[dict[str, Any]]], Awaitable[str], Awaitable[bytes]]
):
    def _run(self, deed: Callable[[], Any]) -> Any:
        return asyncio.to_thread(deed)
