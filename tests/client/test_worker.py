"""A worker calls functions with tasks, on a store and over a server."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tenure import AsyncContext, Cancelled, Client, Context, Failure, NewTask, Permanent, RetryLater, Worker
from tenure.core.commands import Command, Edit, Principal, Register, Submit
from tenure.core.errors import InvalidInput, StoreUnavailable
from tenure.core.ids import parse_receipt
from tenure.core.outcomes import Outcome
from tests.client.conftest import Place

PATIENCE = 20.0


@pytest.fixture
def mia(place: Place) -> Iterator[Client]:
    with place.client() as client:
        yield client


def worker_at(place: Place, **more: Any) -> Worker:
    return Worker(place.url, "shop", **more)


@contextmanager
def running(worker: Worker) -> Iterator[threading.Thread]:
    """The worker in a thread; stopped and closed at the end."""
    errors: list[BaseException] = []

    def run() -> None:
        try:
            worker.run()
        except BaseException as error:  # noqa: BLE001 raised below
            errors.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield thread
    finally:
        worker.stop()
        thread.join(PATIENCE)
        assert not thread.is_alive()
        worker.close()
    if errors:
        raise errors[0]


def until(client: Client, is_so: Callable[[], bool]) -> None:
    """Wait for events until it is so."""
    end = time.monotonic() + PATIENCE
    while True:
        mark = client.mark()
        if is_so():
            return
        assert time.monotonic() < end
        client.wait_for_news(mark, 0.5)


# --- functions and results ----------------------------------------------------------------------------------


def test_functions_get_their_tasks_and_what_they_return_is_the_result(place: Place, mia: Client) -> None:
    mia.add("Research", type="research", spec={"question": "why"})
    mia.add("Report", type="report", after=["A-001"])
    worker = worker_at(place, concurrency=2)

    @worker.task("research")
    def research(ctx: Context) -> dict[str, Any]:
        ctx.progress(50, "half way")
        ctx.summary = "found out"
        return {"question": ctx.task["spec"]["question"], "generation": ctx.generation, "attempt": ctx.attempt}

    @worker.task("report")
    async def report(ctx: AsyncContext) -> list[str]:
        await ctx.progress(step="writing")
        return sorted(ctx.inputs)

    worker.run(until_idle=True)
    worker.close()
    first, second = mia.show("A-001")["result"], mia.show("A-002")["result"]
    assert (first["data"], first["summary"]) == ({"question": "why", "generation": 1, "attempt": 1}, "found out")
    assert second["data"] == ["A-001-research"]
    assert [e["message"] for e in mia.log(task="A-001", kind="task.progress")] == ["half way"]


def test_a_worker_without_functions_says_so(place: Place) -> None:
    worker = worker_at(place)
    with pytest.raises(InvalidInput, match="no function"):
        worker.run()
    worker.close()


def test_only_tasks_that_some_function_is_for_are_claimed(place: Place, mia: Client) -> None:
    mia.add("Mine", type="mine")
    mia.add("Not mine", type="other")
    worker = worker_at(place)
    worker.task("mine")(lambda ctx: 1)
    worker.run(until_idle=True)
    assert [s["state"] for s in mia.states(["A-001", "A-002"])] == ["completed", "ready"]
    worker.task()(lambda ctx: "anything")
    worker.run(until_idle=True)
    assert mia.show("A-002")["result"]["data"] == "anything"
    worker.close()


def test_so_many_at_once_and_no_more(place: Place, mia: Client) -> None:
    for number in range(8):
        mia.add(f"T{number}", type="t")
    worker = worker_at(place, concurrency=3)
    busy, most, lock, met = 0, 0, threading.Lock(), threading.Barrier(3)

    @worker.task("t")
    def work(ctx: Context) -> None:
        nonlocal busy, most
        with lock:
            busy += 1
            most = max(most, busy)
            is_first = ctx.task["key"] in ("A-001-t0", "A-002-t1", "A-003-t2")
        if is_first:
            met.wait(PATIENCE)  # three are at work together
        with lock:
            busy -= 1

    worker.run(until_idle=True)
    worker.close()
    assert most == 3
    assert mia.status()["tasks"] == {"completed": 8}


def test_what_is_told_through_the_context_is_kept(place: Place, mia: Client) -> None:
    mia.add("Work", type="t")
    mia.register()
    worker = worker_at(place, agent="wanda")

    @worker.task("t")
    def work(ctx: Context) -> None:
        if ctx.saved is None:
            ctx.checkpoint({"next_action": "go on"})
            ctx.spend("opus", fresh=10, output=1, cost_usd="0.10")
            ctx.spend("opus", fresh=5, cost_usd=0.05, operation="review")
            ctx.spend("haiku", output=2, cost_usd=0.01, operation="review")
            ctx.message("hello", "mia")
            mia.send("hi", "wanda")
            assert [m["text"] for m in ctx.messages()] == ["hi"]
            raise Failure("once more", retry_after=0)
        assert (ctx.saved, ctx.attempt, ctx.generation) == ({"next_action": "go on"}, 2, 2)

    with running(worker):
        until(mia, lambda: mia.show("A-001")["state"] == "completed")
    spent = mia.show("A-001")["usage"]
    assert (spent["fresh"], spent["output"], float(spent["cost_usd"])) == (15, 3, 0.16)
    assert {row["operation"]: row["fresh"] + row["output"] for row in mia.spent("operation")} == {"": 11, "review": 7}
    assert [m["text"] for m in mia.inbox()] == ["hello"]


def test_a_function_that_waits_for_its_subtasks_is_called_again_with_what_they_made(place: Place, mia: Client) -> None:
    mia.add("Big", type="big")
    worker = worker_at(place)
    calls = []

    @worker.task("big")
    async def big(ctx: AsyncContext) -> dict[str, Any]:
        calls.append(ctx.generation)
        await ctx.spawn(*(NewTask(title=f"Part {n}", name=f"part-{n}", type="part") for n in (1, 2)), wait=True)
        return {key: part["data"] for key, part in ctx.inputs.items()}

    worker.task("part")(lambda ctx: ctx.task["title"])
    worker.run(until_idle=True)
    worker.close()
    assert calls == [1, 2]
    assert mia.show("A-001")["result"]["data"] == {"A-001-big::1": "Part 1", "A-001-big::2": "Part 2"}


@pytest.mark.parametrize("looks", [True, False])
def test_a_function_takes_notice_of_a_changed_description_or_is_run_again(
    place: Place, mia: Client, looks: bool
) -> None:
    mia.add("Paint", type="t", description="red")
    worker = worker_at(place)
    saw: list[str | None] = []

    def paint(ctx: Context) -> str:
        mia.do(Edit(project="shop", task="A-001", changes={"description": "blue"}))
        ctx.progress(50)
        saw.append(ctx.change() if looks else None)
        return "painted"

    worker.task("t")(paint)
    worker.run(until_idle=True)
    worker.close()
    assert ["+blue" in (diff or "") for diff in saw] == ([True] if looks else [False, False])
    shown, ends = mia.show("A-001"), [entry["release_reason"] for entry in mia.history("A-001")]
    assert (shown["state"], shown["attempts"]) == ("completed", 1)
    assert ends == (["COMPLETED"] if looks else ["STOPPED", "COMPLETED"])  # at once: it has not given the task up


def test_a_question_ends_the_function_until_it_is_answered(place: Place, mia: Client) -> None:
    mia.add("Ask", type="t")
    worker = worker_at(place)
    worker.task("t")(lambda ctx: f"painted {ctx.ask('which colour?')}")
    worker.run(until_idle=True)
    assert mia.show("A-001")["state"] == "paused"
    mia.answer("A-001", "blue")
    worker.run(until_idle=True)
    worker.close()
    assert mia.show("A-001")["result"]["data"] == "painted blue"


# --- failures -----------------------------------------------------------------------------------------------


def raising(error: BaseException) -> Callable[[Context], None]:
    def work(ctx: Context) -> None:
        raise error

    return work


@pytest.mark.parametrize(
    ("error", "error_class", "state"),
    [
        (ValueError("bad"), "task", "retrying"),
        (TimeoutError("slow"), "timeout", "retrying"),
        (RetryLater(30), "rate_limit", "retrying"),
        (Permanent("never"), "permanent", "dead_lettered"),
        (Failure("no disk", error_class="environment"), "environment", "ready"),
        (Failure("odd", error_class="odd"), "task", "retrying"),
    ],
)
def test_what_a_function_raises_is_how_its_attempt_failed(
    place: Place, mia: Client, error: Exception, error_class: str, state: str
) -> None:
    mia.add("Work", type="t")
    worker = worker_at(place)
    worker.task("t")(raising(error))
    worker.run(until_idle=True)
    worker.close()
    assert mia.show("A-001")["state"] == state
    (entry,) = mia.history("A-001")
    assert (entry["error_class"], str(error).split()[0] in entry["error"]) == (error_class, True)


def test_a_result_that_cannot_be_kept_is_the_functions_failure(place: Place, mia: Client) -> None:
    mia.add("Work", type="t")
    worker = worker_at(place)
    worker.task("t")(lambda ctx: float("nan"))
    worker.run(until_idle=True)
    worker.close()
    assert mia.history("A-001")[0]["error_class"] == "invalid_output"


# --- leases -------------------------------------------------------------------------------------------------


@pytest.mark.sampled
@pytest.mark.parametrize("is_async", [False, True])
def test_a_function_that_blocks_keeps_its_lease(place: Place, mia: Client, is_async: bool) -> None:
    mia.add("Long", type="t")
    worker = worker_at(place, lease=1.0)

    def work(ctx: Any) -> int:
        time.sleep(1.6)  # the work itself, which never lets go of its thread
        return int(ctx.generation)

    async def awork(ctx: AsyncContext) -> int:
        return work(ctx)

    worker.task("t")(awork if is_async else work)
    worker.run(until_idle=True)
    worker.close()
    (entry,) = mia.history("A-001")
    assert (mia.show("A-001")["result"]["data"], entry["release_reason"]) == (1, "COMPLETED")
    assert entry["renewals"] >= 2


def test_a_claim_that_is_lost_is_taken_again_and_the_work_goes_on(place: Place, mia: Client) -> None:
    mia.add("Work", type="t")
    worker = worker_at(place, lease=1.0)
    begun, let_go = threading.Event(), threading.Event()
    calls = []

    @worker.task("t")
    def work(ctx: Context) -> int:
        calls.append(ctx.generation)
        begun.set()
        assert let_go.wait(PATIENCE)
        ctx.progress(90)
        ctx.spend("opus", fresh=1)
        return ctx.generation

    with running(worker):
        assert begun.wait(PATIENCE)
        mia.recover("A-001", "its receipt was lost")
        until(mia, lambda: mia.show("A-001")["generation"] == 2)  # by the keeper, whatever the function does
        let_go.set()
        until(mia, lambda: mia.show("A-001")["state"] == "completed")
    assert mia.show("A-001")["result"]["data"] == 2
    assert (calls, mia.show("A-001")["attempts"]) == ([1], 1)
    assert [entry["release_reason"] for entry in mia.history("A-001")] == ["SUPERSEDED", "COMPLETED"]


def test_a_context_that_is_refused_takes_the_task_again_itself(place: Place, mia: Client) -> None:
    mia.add("Work", type="t")
    worker = worker_at(place, lease=300.0)  # the keeper will not see it for two minutes
    begun, let_go = threading.Event(), threading.Event()

    @worker.task("t")
    def work(ctx: Context) -> int:
        begun.set()
        assert let_go.wait(PATIENCE)
        ctx.progress(90)
        return ctx.generation

    with running(worker):
        assert begun.wait(PATIENCE)
        mia.recover("A-001", "its receipt was lost")
        let_go.set()
        until(mia, lambda: mia.show("A-001")["state"] == "completed")
    assert mia.show("A-001")["result"]["data"] == 2


def test_a_blocking_function_whose_task_is_taken_away_is_stopped_at_its_next_word(place: Place, mia: Client) -> None:
    mia.add("Work", type="t")
    worker = worker_at(place, lease=1.0)
    begun, stopped = threading.Event(), threading.Event()

    @worker.task("t")
    def work(ctx: Context) -> None:
        begun.set()
        try:
            while True:
                stopped.wait(0.01)
                ctx.progress(1)
        except Cancelled:
            assert ctx.cancelled
            stopped.set()
            raise

    with running(worker):
        assert begun.wait(PATIENCE)
        mia.cancel("A-001", "no need")
        assert stopped.wait(PATIENCE)
    assert mia.show("A-001")["state"] == "cancelled"


def test_an_async_function_whose_task_is_taken_away_is_cancelled(place: Place, mia: Client) -> None:
    mia.add("Work", type="t")
    worker = worker_at(place, lease=1.0)
    begun, stopped = threading.Event(), threading.Event()

    @worker.task("t")
    async def work(ctx: AsyncContext) -> None:
        begun.set()
        try:
            await asyncio.sleep(PATIENCE)
        except asyncio.CancelledError:
            stopped.set()
            raise

    with running(worker):
        assert begun.wait(PATIENCE)
        mia.do(Register(project="shop", agent="bo"))
        mia.reassign("A-001", "bo", 60.0)  # held out to another: it cannot be taken again
        assert stopped.wait(PATIENCE)
        until(mia, lambda: mia.claim("A-001").outcome == "DENIED_OFFERED")


# --- the end ------------------------------------------------------------------------------------------------


def test_a_stopped_worker_lets_what_runs_finish_and_takes_no_more(place: Place, mia: Client) -> None:
    mia.add("One", type="t")
    worker = worker_at(place)
    begun, let_go = threading.Event(), threading.Event()

    @worker.task("t")
    def work(ctx: Context) -> None:
        begun.set()
        assert let_go.wait(PATIENCE)
        ctx.progress(99)

    with running(worker) as thread:
        assert begun.wait(PATIENCE)
        mia.add("Two", type="t")
        worker.stop()
        let_go.set()
        thread.join(PATIENCE)
        assert [s["state"] for s in mia.states(["A-001", "A-002"])] == ["completed", "ready"]


def test_a_worker_that_must_stop_now_gives_its_tasks_back(place: Place, mia: Client) -> None:
    for name in ("good", "awaiting", "deaf"):
        mia.add(name, type=name)
    worker = worker_at(place, concurrency=3, grace=0.5)
    at_work, forever = threading.Barrier(4), threading.Event()

    @worker.task("good")
    def good(ctx: Context) -> None:
        at_work.wait(PATIENCE)
        while True:
            forever.wait(0.01)
            ctx.progress(1)

    @worker.task("awaiting")
    async def awaiting(ctx: AsyncContext) -> None:
        at_work.wait(PATIENCE)
        await asyncio.sleep(PATIENCE)

    @worker.task("deaf")
    def deaf(ctx: Context) -> None:
        at_work.wait(PATIENCE)
        forever.wait(PATIENCE)

    with running(worker) as thread:
        at_work.wait(PATIENCE)
        worker.stop(now=True)
        thread.join(PATIENCE)
        assert not thread.is_alive()
        assert mia.status()["tasks"] == {"ready": 3}
        forever.set()
    assert {entry["release_reason"] for n in (1, 2, 3) for entry in mia.history(f"A-00{n}")} == {"STOPPED"}


def test_an_event_loop_may_run_it_and_cancel_it(place: Place, mia: Client) -> None:
    mia.add("One", type="t")
    mia.add("Two", type="long")
    worker = worker_at(place, concurrency=2)
    home: list[bool] = []

    async def play() -> None:
        loop, begun = asyncio.get_running_loop(), asyncio.Event()

        @worker.task("t")
        async def work(ctx: AsyncContext) -> int:
            home.append(asyncio.get_running_loop() is loop)
            return 1

        @worker.task("long")
        async def long(ctx: AsyncContext) -> None:
            begun.set()
            await asyncio.sleep(PATIENCE)

        task = asyncio.create_task(worker.arun())
        await asyncio.wait_for(begun.wait(), PATIENCE)
        await asyncio.to_thread(until, mia, lambda: mia.show("A-001")["state"] == "completed")
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(play())
    worker.close()
    assert home == [True]
    assert [s["state"] for s in mia.states(["A-001", "A-002"])] == ["completed", "ready"]


def test_a_worker_is_seen_as_an_agent_and_leaves(place: Place, mia: Client) -> None:
    worker = worker_at(place, agent="wanda", capabilities=["python"])
    mia.add("Work", type="t", constraints={"required_capabilities": ["python"]})
    seen: list[Any] = []
    worker.task("t")(lambda ctx: seen.extend(a for a in mia.agents() if a["name"] == "wanda"))
    worker.run(until_idle=True)
    worker.close()
    assert [(a["type"], list(a["capabilities"])) for a in seen] == [("sdk", ["python"])]
    assert all(s["ended_at"] is not None for s in mia.sessions(agent="wanda"))


def test_a_result_goes_in_under_the_receipt_of_the_moment(
    place: Place, mia: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The claim is lost and taken again while the finished result waits for the store."""
    mia.add("Work", type="t")
    worker = worker_at(place, lease=1.0)
    worker.task("t")(lambda ctx: "done")
    do = worker.client.transport.do

    def away_at_first(command: Command, principal: Principal) -> Outcome:
        if isinstance(command, Submit) and parse_receipt(command.receipt).generation == 1:
            mia.recover("A-001", "its receipt was lost")
            raise StoreUnavailable("not now")
        return do(command, principal)

    monkeypatch.setattr(worker.client.transport, "do", away_at_first)
    with running(worker):
        until(mia, lambda: mia.show("A-001")["state"] == "completed")
    *lost, last = [entry["result_accepted"] for entry in mia.history("A-001")]
    assert last is True
    assert set(lost) == {None}


@pytest.mark.parametrize("graceful", [True, False], ids=["graceful", "now"])
def test_a_terminated_worker_ends_and_takes_nothing_more(place: Place, mia: Client, graceful: bool) -> None:
    mia.add("One", type="t")
    worker = worker_at(place, agent="ann")
    begun, let_go = threading.Event(), threading.Event()

    @worker.task("t")
    def work(ctx: Context) -> None:
        begun.set()
        assert let_go.wait(PATIENCE)
        ctx.progress(99)

    with running(worker) as thread:
        assert begun.wait(PATIENCE)
        mia.add("Two", type="t")
        mia.terminate("ann", graceful=graceful, reason="enough")
        let_go.set()
        thread.join(PATIENCE)
        assert not thread.is_alive()
    assert [s["state"] for s in mia.states(["A-001", "A-002"])] == ["completed" if graceful else "ready", "ready"]
    assert len(mia.history("A-001")) == 1
    (ann,) = [a for a in mia.agents() if a["name"] == "ann"]
    assert (ann["status"], ann["terminated_for"]) == ("offline", "enough")


def test_an_idle_worker_that_is_terminated_ends_and_so_does_the_next_of_its_name(place: Place, mia: Client) -> None:
    for _ in range(2):
        worker = worker_at(place, agent="ann")
        worker.task("t")(lambda ctx: None)
        with running(worker) as thread:
            until(mia, lambda: any(a["name"] == "ann" for a in mia.agents()))
            mia.terminate("ann")
            mia.add("Wake up", type="t")
            thread.join(PATIENCE)
            assert not thread.is_alive()
    assert mia.status()["tasks"] == {"ready": 2}


def test_a_function_without_a_context_is_refused_when_it_is_registered() -> None:
    worker = Worker("memory://", "shop", create=True)

    def lonely() -> None: ...

    with pytest.raises(InvalidInput, match="lonely takes no context"):
        worker.task("report")(lonely)  # type: ignore[call-overload]
    worker.close()


def test_the_interval_of_a_workers_heartbeats_is_an_argument(place: Place, mia: Client) -> None:
    worker = worker_at(place, heartbeat="12s")
    worker.task("never")(lambda ctx: None)
    worker.run(until_empty=True)
    worker.close()
    assert mia.agent_details("worker")["heartbeat"] == 12
