"""The argument of a worker's function: its task, and what it can report while it runs.

`Context` is for functions that block, `AsyncContext` for async ones: the same methods, awaited.
"""

from __future__ import annotations

import asyncio
import functools
import logging
import threading
from collections.abc import Callable, Coroutine, Mapping
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

import msgspec

from tenure.client.client import Client
from tenure.client.worker.failures import Failure, Suspended, may_pass
from tenure.client.worker.held_claim import HeldClaim
from tenure.core import commands as c
from tenure.core.commands import NewTask, Totals
from tenure.core.errors import TenureError
from tenure.core.lifecycle import ENDED
from tenure.core.outcomes import Outcome

if TYPE_CHECKING:
    from tenure.client.contents import Content


log = logging.getLogger("tenure.worker")

Done = TypeVar("Done")
Out = TypeVar("Out")
Dicts = TypeVar("Dicts")
Text = TypeVar("Text")
Data = TypeVar("Data")


class Amounts(NamedTuple):
    fresh: int = 0
    cached: int = 0
    written: int = 0
    output: int = 0
    cost: Decimal | None = None
    duration: float = 0.0

    def plus(self, other: Amounts, sign: int = 1) -> Amounts:
        fresh, cached, written, output = (a + sign * b for a, b in zip(self[:4], other[:4], strict=True))
        cost = self.cost if other.cost is None else (self.cost or Decimal(0)) + sign * other.cost
        return Amounts(fresh, cached, written, output, cost, self.duration + sign * other.duration)

    def used_by(self, model: str, operation: str) -> Totals:
        tokens = dict(zip(self._fields[:4], self[:4], strict=True))
        cost = None if self.cost is None else str(self.cost)
        return Totals(model=model, operation=operation, **tokens, cost_usd=cost, duration=self.duration)


class UsageTotals:
    """Reports carry totals since the claim, so that one may be sent twice.

    Amounts by model and operation under the current claim. A new claim begins with what the last one did not report.
    """

    def __init__(self) -> None:
        self._spent: dict[tuple[str, str], Amounts] = {}
        self._reported: dict[tuple[str, str], Amounts] = {}
        self._lock = threading.Lock()

    def add(self, model: str, amounts: Amounts, operation: str = "") -> None:
        with self._lock:
            self._spent[model, operation] = self._spent.get((model, operation), Amounts()).plus(amounts)

    def totals(self) -> tuple[Totals, ...]:
        with self._lock:
            return tuple(self._total(*pair).used_by(*pair) for pair in self._spent)

    def total(self, model: str, operation: str) -> Totals:
        with self._lock:
            return self._total(model, operation).used_by(model, operation)

    def grown_with(self, model: str, operation: str) -> list[str]:
        """The operations to report after one of them has grown: itself, and the total that includes it."""
        with self._lock:
            return list(dict.fromkeys((operation, *(what for one, what in self._spent if (one, what) == (model, "")))))

    def _total(self, model: str, operation: str) -> Amounts:
        """A report without an operation is the total of the model."""
        parts = [a for (one, what), a in self._spent.items() if one == model and operation in ("", what)]
        return functools.reduce(Amounts.plus, parts)

    def reported(self, model: str, operation: str) -> None:
        """The store has this total."""
        with self._lock:
            self._reported[model, operation] = self._spent[model, operation]

    def moved(self) -> None:
        with self._lock:
            rest = {pair: a.plus(self._reported.get(pair, Amounts()), -1) for pair, a in self._spent.items()}
            self._spent = {pair: a for pair, a in rest.items() if a != Amounts(cost=a.cost and Decimal(0))}
            self._reported = {}


class TaskContext(Generic[Done, Out, Dicts, Text, Data]):
    """Every method raises Cancelled once the function no longer holds the task. Set `summary` for the result's summary.

    A function that runs long without calling another method calls `check` now and then. What it returns after it was
    asked to stop, by an exception or by `cancelled`, is kept as refused.
    """

    def __init__(self, claim: HeldClaim, granted: Outcome) -> None:
        self._claim = claim
        self.task: dict[str, Any] = claim.task
        self.inputs: dict[str, Any] = granted.inputs or {}
        self.secrets: dict[str, str] = granted.secrets or {}  # of the task, by name
        self.models: tuple[str, ...] = granted.models or ()
        self.model: str | None = granted.model  # the one to use, where it is known
        self.tier: str | None = granted.tier  # of models: small, middle or top
        self.attempt: int = granted.attempt or 1
        # From earlier attempts: the last checkpoint, its author, and the artifacts.
        self.saved: dict[str, Any] | None = (granted.checkpoint or {}).get("data")
        self.saved_by: str | None = (granted.checkpoint or {}).get("agent")
        self.artifacts: tuple[Mapping[str, Any], ...] = granted.artifacts or ()
        self.summary = ""
        self.usage_totals = UsageTotals()
        claim.moved = self.usage_totals.moved

    @property
    def generation(self) -> int:
        """The fencing token of the claim; it grows when a lost claim is claimed again."""
        return self._claim.generation

    @property
    def receipt(self) -> str:
        """The proof of the claim, for other processes that write for it."""
        return self._claim.receipt

    @property
    def warning(self) -> str | None:
        """What the last answer warned of, as of a budget that is nearly used up; None where it did not."""
        return self._claim.warning

    @property
    def cancelled(self) -> bool:
        """Whether the function must stop. What it returns after it has read True is kept, but is not the result."""
        must_stop = self._claim.is_cancelled
        self._claim.has_noticed |= must_stop
        return must_stop

    @property
    def client(self) -> Client:
        """The client, for everything else; it blocks."""
        return self._claim.client

    def _run(self, action: Callable[[], Any]) -> Any:
        raise NotImplementedError

    def _present(self, kind: type[c.Command], **fields: Any) -> Outcome:
        project = self._claim.client.project
        return self._claim.present(lambda receipt: kind(project=project, receipt=receipt, **fields))  # type: ignore[call-arg]

    def _report(self, make: Callable[[str], c.Command]) -> bool:
        """Report something optional; whether the store received it."""
        try:
            self._claim.try_once(make)
        except TenureError as error:
            if not may_pass(error):
                raise
            log.warning("%s: not reported: %s", self._claim.key, error.message)
            return False
        return True

    def check(self) -> Done:
        """Raise Cancelled where the function must stop: for loops, since it sends nothing."""
        raise NotImplementedError

    # --- reports ---

    def progress(self, percent: int | None = None, step: str | None = None, done_in: float | None = None) -> Done:
        """Report progress; `done_in` is an estimate in seconds. Skipped while the store is unavailable."""
        project = self._claim.client.project
        reported: Done = self._run(
            lambda: self._report(
                lambda receipt: c.Progress(
                    project=project, receipt=receipt, percent=percent, step=step, done_in=done_in
                )
            )
        )
        return reported

    def change(self) -> str | None:
        """The diff of the task's description since the last call; None if it has not changed.

        Calling it means that the result is for the new text. A result for an outdated text is not accepted, and the
        task is done again with the new text.
        """
        news = self._claim.change
        if news is None or news.brief == self._claim.seen:
            return None
        self._claim.seen = news.brief
        return news.diff

    def checkpoint(self, data: Mapping[str, Any]) -> Out:
        """Save what another attempt needs to continue from here; it finds it as `saved`."""
        kept: Out = self._run(lambda: self._present(c.SaveCheckpoint, data=dict(data)))
        return kept

    def artifact(self, name: str, content: Content, *, type: str | None = None) -> Out:
        """Store a named output: bytes, a Path, or a file opened for bytes. Dependent tasks get it."""
        client = self._claim.client
        put: Out = self._run(
            lambda: self._claim.insist(lambda receipt: client.put_artifact(receipt, name, content, type=type))
        )
        return put

    def fetch(self, name: str, task: str | None = None, *, generation: int | None = None) -> Data:
        """The bytes of an artifact: of a task in `inputs`, by its key, or of this task's earlier attempts."""

        def get() -> bytes:
            return self._claim.client.get_artifact(task or self.task["key"], name, generation=generation).read()

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
        operation: str = "",
    ) -> Done:
        """Add the cost of one model call: tokens, dollars, seconds; `operation` says what for. The context keeps the
        totals.

        While the store is unavailable the totals only grow; the next call or the result reports them.
        """

        def add() -> None:
            cost = None if cost_usd is None else Decimal(str(cost_usd))
            self.usage_totals.add(model, Amounts(fresh, cached, written, output, cost, duration), operation)
            for part in self.usage_totals.grown_with(model, operation):
                if self._report(functools.partial(self._usage, model, part)):
                    self.usage_totals.reported(model, part)

        reported: Done = self._run(add)
        return reported

    def _usage(self, model: str, operation: str, receipt: str) -> c.ReportUsage:
        totals = self.usage_totals.total(model, operation)
        return c.ReportUsage(project=self._claim.client.project, receipt=receipt, **msgspec.structs.asdict(totals))

    def spawn(self, *tasks: NewTask, wait: bool = False) -> Out:
        """Create subtasks with unique names; those that an earlier call created are returned, not created again.

        With `wait` the function ends here while one of them is open, and is called again when all have ended. Then this
        call returns, with their outputs and failures in `inputs`.
        """

        def create() -> Outcome:
            made = self._present(c.Spawn, tasks=tuple(tasks))
            if wait and any(task["state"] not in ENDED for task in made.tasks or ()):
                raise self._suspended(c.Wait)
            return made

        made: Out = self._run(create)
        return made

    def ask(self, question: str) -> Text:
        """Ask a person. The function ends here and is called again with the answer; then this call returns it.

        A question is identified by its text: use the same text each time.
        """

        def answer() -> str:
            for entry in reversed(self.task.get("answers") or ()):
                if str(entry["question"]).removeprefix("question: ") == question:
                    return str(entry["answer"])
            raise self._suspended(c.Ask, question=question)

        answered: Text = self._run(answer)
        return answered

    def _suspended(self, kind: type[c.Command], **fields: Any) -> Suspended:
        self._claim.is_ending = True
        outcome = self._present(kind, **fields)
        if not outcome.ok:
            self._claim.is_ending = False
            raise Failure(f"{outcome.outcome}: {outcome.message}")
        self._claim.end()
        return Suspended()

    def message(self, text: str, to: str = "@all", *, type: str = "chat") -> Out:
        """Write to an agent, `@all`, `@leader`, `@idle` or `@track:B`."""
        sent: Out = self._run(lambda: self._claim.client.send(text, to, type=type))
        return sent

    def messages(self) -> Dicts:
        """This worker's unread mail, marked as read."""

        def read() -> list[dict[str, Any]]:
            return [dict(message) for message in self._claim.client.read().messages or ()]

        mail: Dicts = self._run(read)
        return mail


class Context(TaskContext[None, Outcome, list[dict[str, Any]], str, bytes]):
    def check(self) -> None:
        """Raise Cancelled where the function must stop: for loops, since it sends nothing."""
        self._claim.check()

    def _run(self, action: Callable[[], Any]) -> Any:
        return action()


class AsyncContext(
    TaskContext[
        Coroutine[Any, Any, None],
        Coroutine[Any, Any, Outcome],
        Coroutine[Any, Any, list[dict[str, Any]]],
        Coroutine[Any, Any, str],
        Coroutine[Any, Any, bytes],
    ]
):
    async def check(self) -> None:
        """Raise Cancelled where the function must stop. Other functions run meanwhile."""
        await asyncio.sleep(0)  # other functions may run, and a cancellation arrives
        self._claim.check()

    def _run(self, action: Callable[[], Any]) -> Any:
        return asyncio.to_thread(action)
