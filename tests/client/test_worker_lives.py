"""Whatever a function raises is how its attempt failed: the worker lives, and no claim waits for its lease."""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import Callable
from typing import Any, cast

import pytest

from tenure import AsyncContext, Context, Failure, NewTask, RetryLater, Worker
from tenure.client.worker.mail_commands import CommandContext
from tests.client.conftest import Place
from tests.client.test_worker import running, until

LARGE = 100 * 1024 * 1024


class Unset(Exception):
    def __str__(self) -> str:
        return f"status {self.code}"  # type: ignore[attr-defined]


class SaysNothing(Exception):
    __str__ = cast("Any", lambda self: None)


class Exits(Exception):
    __repr__ = __str__ = cast("Any", lambda self: sys.exit("out of __str__"))


class Recurses(Exception):
    def __str__(self) -> str:
        return str(self)


class Spelled(str):
    def __getitem__(self, key: Any) -> str:
        raise RuntimeError("no part of it")

    replace = encode = __format__ = __getitem__  # type: ignore[assignment]


class SaysSpelled(Exception):
    def __str__(self) -> str:
        return Spelled("spelled\0")


class Nameless(type):
    @property
    def __name__(cls) -> str:  # type: ignore[override]
        raise RuntimeError("no name")


class OfNoName(Exception, metaclass=Nameless):
    pass


class Noted(Exception):
    @property
    def __notes__(self) -> list[str]:
        raise RuntimeError("no notes")


class HalfMade(Failure):
    def __init__(self) -> None:
        self.code = 500


class OddClass(Failure):
    @property
    def error_class(self) -> str:  # type: ignore[override]
        raise RuntimeError("no class")


def nested(depth: int) -> Exception:
    error: Exception = Unset("innermost")
    for _ in range(depth):
        error = ExceptionGroup("a group \0", [error, ValueError("\udce9")])
    return error


# What is raised, and a part of what the store keeps of it.
ERRORS: dict[str, tuple[Callable[[], BaseException], str]] = {
    "attribute not set": (Unset, "Unset: (its text cannot be read: AttributeError)"),
    "text is None": (SaysNothing, "SaysNothing: (its text cannot be read: TypeError)"),
    "exits in its text": (Exits, "Exits: (its text cannot be read: SystemExit)"),
    "recursion in its text": (Recurses, "Recurses: (its text cannot be read: RecursionError)"),
    "a text of another class": (SaysSpelled, "SaysSpelled: spelled\\x00"),
    "no name": (OfNoName, "an exception without a name"),
    "notes that raise": (Noted, "Noted"),
    "NUL": (lambda: ValueError("bad \0 byte"), "ValueError: bad \\x00 byte"),
    "a lone surrogate": (lambda: OSError(2, "no file", "caf\udce9"), "caf\\udce9"),
    "huge": (lambda: ValueError("x" * LARGE), "ValueError: xxx"),
    "a group in groups": (lambda: nested(200), "a group \\x00"),
    "recursion": (lambda: RecursionError("too deep"), "RecursionError: too deep"),
    "no memory": (MemoryError, "MemoryError"),
    "exit": (lambda: SystemExit(1), "SystemExit: 1"),
    "interrupt": (KeyboardInterrupt, "KeyboardInterrupt"),
    "the end of a generator": (GeneratorExit, "GeneratorExit"),
    "a cancellation of its own": (asyncio.CancelledError, "CancelledError"),
    "half a failure": (HalfMade, ""),
    "a failure without a class": (OddClass, ""),
    "a failure with NUL": (lambda: Failure("bad \0", error_class="ta\0sk"), "bad \\x00"),
    "a delay that is no number": (lambda: Failure("soon", retry_after=float("nan")), "soon"),
    "a delay that no store takes": (lambda: RetryLater(-1.0, "before"), "before"),
}


@pytest.mark.parametrize("is_async", [False, True], ids=["blocking", "async"])
def test_no_exception_ends_a_worker_or_leaves_a_claim(place: Place, is_async: bool) -> None:
    worker = Worker(place.url, "shop", concurrency=3)

    @worker.task("blocking")
    def fails(ctx: Context, error: str) -> None:
        raise ERRORS[error][0]()

    @worker.task("async")
    async def afails(ctx: AsyncContext, error: str) -> None:
        await asyncio.sleep(0)
        raise ERRORS[error][0]()

    fails_here = afails if is_async else fails
    keys = {name: fails_here.configure(max_attempts=1).enqueue(name).key for name in ERRORS}
    worker.run(until_idle=True)
    worker.close()
    with place.client() as mia:
        for name, key in keys.items():
            (entry,) = mia.history(key)
            assert (entry["release_reason"], mia.show(key)["state"]) == ("FAILED", "dead_lettered"), name
            assert ERRORS[name][1] in entry["error"], name
            assert entry["error_class"] == "task", name
        assert mia.verify() == [] if place.server is None else True


def test_eight_workers_live_after_the_exception_that_cannot_be_written(place: Place) -> None:
    with place.client() as mia:
        mia.add("Work", type="t", max_attempts=2, retry={"strategy": "immediate"})
        lived = 0
        for number in range(8):
            worker = Worker(place.url, "shop", agent=f"w{number}")

            @worker.task("t")
            def work(ctx: Context) -> None:
                raise Unset

            worker.run(until_idle=True)
            worker.close()
            lived += 1
        assert (lived, mia.show("A-001")["state"], len(mia.history("A-001"))) == (8, "dead_lettered", 2)


def test_a_failure_that_the_store_refuses_is_sent_again_with_less(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The store takes no text of an error at all, as after a check that this client does not know."""
    from tenure.core import inputs
    from tenure.core.commands import Fail

    worker = Worker(place.store, "shop")
    validated = inputs.validated

    def strict(command: Any) -> Any:
        if isinstance(command, Fail) and (command.trace or "bad" in command.message):
            raise inputs.InvalidInput("fail: it has a text")
        return validated(command)

    @worker.task("t")
    def work(ctx: Context) -> None:
        raise ValueError("bad")

    key = work.configure(max_attempts=1).enqueue().key
    monkeypatch.setattr(inputs, "validated", strict)
    worker.run(until_idle=True)
    monkeypatch.undo()
    worker.close()
    with place.client() as mia:
        (entry,) = mia.history(key)
        assert entry["error"] == "the function failed; the store refused the text of its error"


class Unreadable(dict[str, int]):
    def __len__(self, *_: object) -> int:
        raise RuntimeError("not countable")

    __iter__ = items = values = __bool__ = __eq__ = __len__  # type: ignore[assignment]
    __hash__ = None  # type: ignore[assignment]


RESULTS: dict[str, Callable[[Context], Any]] = {
    "NUL": lambda ctx: "\0",
    "a lone surrogate": lambda ctx: "\udce9",
    "an object": lambda ctx: object(),
    "values that cannot be read": lambda ctx: Unreadable(a=1),
    "a summary with a surrogate": lambda ctx: setattr(ctx, "summary", "\udce9"),
    "a summary that is no text": lambda ctx: setattr(ctx, "summary", object()),
    "a huge summary": lambda ctx: setattr(ctx, "summary", "x" * 1_000_000),
    "totals that cannot be read": lambda ctx: setattr(ctx, "usage_totals", None),
    "progress with NUL": lambda ctx: ctx.progress(1, "a\0b"),
    "progress with a surrogate": lambda ctx: ctx.progress(1, "\udce9"),
    "a checkpoint with a surrogate": lambda ctx: ctx.checkpoint({"a": "\udce9"}),
    "a checkpoint of objects": lambda ctx: ctx.checkpoint({"a": object()}),
    "usage of a model with NUL": lambda ctx: ctx.spend("m\0", fresh=1),
    "usage that is no number": lambda ctx: ctx.spend("m", cost_usd="sNaN"),
    "a subtask with a surrogate": lambda ctx: ctx.spawn(NewTask(title="\udce9")),
    "a question with NUL": lambda ctx: ctx.ask("a\0?"),
    "mail with a surrogate": lambda ctx: ctx.message("\udce9"),
    "a file that is not there": lambda ctx: ctx.fetch("nothing"),
    "an artifact of no content": lambda ctx: ctx.artifact("a", None),  # type: ignore[arg-type]
}


def test_nothing_that_a_function_hands_over_ends_a_worker_or_leaves_a_claim(place: Place) -> None:
    worker = Worker(place.url, "shop", concurrency=3)

    @worker.task("t")
    def work(ctx: Context, what: str) -> Any:
        return RESULTS[what](ctx)

    keys = {name: work.configure(max_attempts=1).enqueue(name).key for name in RESULTS}
    worker.run(until_idle=True)
    worker.close()
    with place.client() as mia:
        for name, key in keys.items():
            (entry,) = mia.history(key)
            assert (entry["release_reason"], mia.show(key)["state"]) == ("FAILED", "dead_lettered"), name
        (unread,) = mia.history(keys["values that cannot be read"])
        assert (unread["error_class"], unread["error"]) == (
            "invalid_output", "the result: RuntimeError: not countable",
        )  # fmt: skip


def test_a_log_handler_that_raises_ends_no_worker(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    from tenure.client.worker import attempt

    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("the log is full")

    monkeypatch.setattr(attempt.log, "warning", broken)
    monkeypatch.setattr(attempt.log, "log", broken)
    worker = Worker(place.store, "shop")

    @worker.task("t")
    def work(ctx: Context) -> None:
        raise ValueError("bad")

    key = work.configure(max_attempts=1).enqueue().key
    worker.run(until_idle=True)
    worker.close()
    with place.client() as mia:
        assert mia.history(key)[0]["error"] == "ValueError: bad"


@pytest.mark.parametrize("error", ["attribute not set", "NUL", "exit", "a cancellation of its own"])
@pytest.mark.parametrize("is_async", [False, True], ids=["blocking", "async"])
def test_a_command_that_raises_is_answered(place: Place, error: str, is_async: bool) -> None:
    worker = Worker(place.url, "shop", agent="ann")
    worker.task("t")(lambda ctx: None)

    def ping(context: CommandContext) -> None:
        raise ERRORS[error][0]()

    async def aping(context: CommandContext) -> None:
        raise ERRORS[error][0]()

    worker.command("ping")(aping if is_async else ping)
    with place.client() as mia, running(worker) as thread:
        mia.register()
        until(mia, lambda: any(agent["name"] == "ann" for agent in mia.agents()))
        mia.send("please", "ann", action="ping")
        until(mia, lambda: bool(mia.inbox()))
        assert ERRORS[error][1] in mia.inbox()[0]["text"]
        assert thread.is_alive()


def test_the_program_s_own_loop_outlives_a_function_that_exits(place: Place) -> None:
    async def play() -> None:
        worker = Worker(place.url, "shop")

        @worker.task("t")
        async def work(ctx: AsyncContext) -> None:
            sys.exit(1)

        key = (await work.configure(max_attempts=1).enqueue_async()).key
        await worker.arun(until_idle=True)
        await asyncio.to_thread(worker.close)
        keys.append(key)

    keys: list[str] = []
    asyncio.run(play())
    with place.client() as mia:
        assert mia.history(keys[0])[0]["error"] == "SystemExit: 1"


def test_without_a_thread_the_task_is_given_back(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    worker = Worker(place.url, "shop", agent="ann")
    worker.task("t")(lambda ctx: None)
    with place.client() as mia:
        mia.add("Work", type="t")
        start = threading.Thread.start

        def few(thread: threading.Thread) -> None:
            if thread.name.startswith("task "):
                raise RuntimeError("can't start new thread")
            start(thread)

        monkeypatch.setattr(threading.Thread, "start", few)
        worker.run(until_idle=True)
        monkeypatch.undo()
        worker.close()
        (entry,) = mia.history("A-001")
        assert (entry["error_class"], mia.show("A-001")["state"]) == ("environment", "ready")


def test_error_texts_are_cut_and_stay_readable() -> None:
    from tenure.core.error_texts import described, trace_text

    error = ValueError("bad \0" + "x" * LARGE)
    assert described(error, 20) == "ValueError: bad \\x00"
    with pytest.raises(ValueError, match="bad"):
        raise error
    trace = trace_text(error, error.__traceback__, 300)
    assert trace.startswith("Traceback")
    assert len(trace) < 700
    assert trace.rstrip().endswith("xxx")
