"""A task that comes back to its worker: at once after its own ending, and unharmed after the worker was stopped."""

from __future__ import annotations

import asyncio
import threading
import time
from contextlib import suppress
from typing import Any

import pytest

from tenure import AsyncContext, Cancelled, Client, Context, NewTask, RetryPolicy, Worker
from tenure.client.worker.attempt import Attempt
from tenure.client.worker.functions import Handler
from tenure.core.commands import ClaimNext
from tenure.sinks.event_loop import EventLoop
from tenure.testing import FakeClock
from tests.client.conftest import Place
from tests.client.test_worker import PATIENCE, running, until

AT_ONCE = RetryPolicy(strategy="immediate")


def ends(client: Client, task: str) -> list[str]:
    return [entry["release_reason"] for entry in client.history(task)]


# --- at once ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("concurrency", "is_async"), [(4, False), (16, False), (4, True)])
def test_a_task_that_is_ready_again_at_once_is_done_at_once(place: Place, concurrency: int, is_async: bool) -> None:
    """The claim may be granted before the ended attempt has left: nothing is given back, and nobody cools off."""
    worker = Worker(place.url, "shop", concurrency=concurrency)
    here: set[str] = set()

    def work(ctx: Any) -> int:
        assert ctx.task["id"] not in here, "two functions for one task"
        here.add(ctx.task["id"])
        try:
            if ctx.attempt == 1:
                raise ValueError("once")
            return int(ctx.attempt)
        finally:
            here.discard(ctx.task["id"])

    async def awork(ctx: AsyncContext) -> int:
        return work(ctx)

    worker.task("t")(awork if is_async else work)
    with place.client() as mia:
        mia.add_many([NewTask(title=f"T{n}", type="t", retry=AT_ONCE) for n in range(60)])
        began = time.monotonic()
        worker.run(until_empty=True)
        worker.close()
        assert time.monotonic() - began < 60, "a cool-off lasts 300 s"
        assert mia.status()["tasks"] == {"completed": 60}
        assert {tuple(ends(mia, task["key"])) for task in mia.tasks(limit=100)} == {("FAILED", "COMPLETED")}


def test_a_function_that_waits_for_subtasks_is_called_again_only_when_it_has_left(place: Place) -> None:
    """Its last leaf ends while it still cleans up."""
    worker = Worker(place.url, "shop", concurrency=4)
    here, most, lock, leaf_done = 0, 0, threading.Lock(), threading.Event()

    @worker.task("parent")
    def parent(ctx: Context) -> str:
        nonlocal here, most
        with lock:
            here += 1
            most = max(most, here)
        try:
            ctx.spawn(NewTask(title="Leaf", name="leaf", type="leaf"), wait=True)
            return "whole"
        finally:
            if ctx.attempt == 1 and not leaf_done.is_set():
                with place.client("bo") as bo:
                    until(bo, lambda: bo.show("A-001::1")["state"] == "completed")
                leaf_done.set()
            with lock:
                here -= 1

    worker.task("leaf")(lambda ctx: "leaf")
    with place.client() as mia:
        mia.add("Parent", type="parent")
        with running(worker):
            until(mia, lambda: mia.show("A-001")["state"] == "completed")
        assert (mia.show("A-001")["result"]["data"], most) == ("whole", 1)
        assert ends(mia, "A-001") == ["WAITING", "COMPLETED"]


def test_an_attempt_begins_when_the_one_before_has_returned(place: Place) -> None:
    """As where its claim was granted before that: by the answer to a poll that waited already."""
    with place.client() as mia:
        mia.add("Work", type="t")
        granted, stopping, calls = mia.claim("A-001"), threading.Event(), []
        earlier, attempt = (Attempt(mia, granted, 300.0, (), None, stopping) for _ in range(2))
        thread = threading.Thread(target=attempt.run, args=(Handler(lambda ctx: calls.append(1), False), earlier))
        thread.start()
        thread.join(0.2)
        assert (thread.is_alive(), calls) == (True, [])
        earlier.returned.set()
        thread.join(PATIENCE)
        assert (mia.show("A-001")["state"], calls) == ("completed", [1])


def test_a_function_that_goes_on_after_its_claim_has_ended_is_stopped_at_its_next_call(place: Place) -> None:
    worker = Worker(place.url, "shop")
    stopped: list[str] = []

    @worker.task("t")
    def work(ctx: Context) -> str:
        with suppress(BaseException):
            ctx.ask("which colour?")
        try:
            ctx.progress(50)
        except Cancelled as error:
            stopped.append(str(error))
        return "any colour"

    with place.client() as mia:
        mia.add("Paint", type="t")
        worker.run(until_idle=True)
        worker.close()
        assert (mia.show("A-001")["state"], stopped) == ("paused", ["the claim has ended"])
        assert [(result["data"], result["accepted"]) for result in mia.results("A-001")] == [("any colour", False)]


def test_more_functions_at_once_than_one_claim_may_grant(place: Place) -> None:
    worker, met = Worker(place.url, "shop", concurrency=101), threading.Barrier(101)
    worker.task("t")(lambda ctx: met.wait(PATIENCE) >= 0)
    with place.client() as mia:
        mia.add_many([NewTask(title=f"T{n}", type="t") for n in range(101)])
        worker.run(until_idle=True)
        worker.close()
        assert mia.status()["tasks"] == {"completed": 101}


# --- stopped ------------------------------------------------------------------------------------------------


def test_what_a_stopped_worker_gives_back_goes_to_another_of_its_name_at_once(place: Place) -> None:
    with place.client() as mia:
        for kind in ("good", "async", "deaf"):
            mia.add(kind, type=kind)
        stopped, heir = Worker(place.url, "shop", concurrency=3, grace=0.5), Worker(place.url, "shop", concurrency=3)
        begun, let_go = threading.Barrier(4), threading.Event()

        @stopped.task("good")
        def good(ctx: Context) -> None:
            begun.wait(PATIENCE)
            while not let_go.wait(0.01):
                ctx.check()

        @stopped.task("async")
        async def waiting(ctx: AsyncContext) -> None:
            begun.wait(PATIENCE)
            await asyncio.sleep(PATIENCE)

        @stopped.task("deaf")
        def deaf(ctx: Context) -> str:
            begun.wait(PATIENCE)
            let_go.wait(PATIENCE)
            return "late"

        heir.task("good", "async", "deaf")(lambda ctx: "heir")
        with running(stopped) as thread:
            begun.wait(PATIENCE)
            stopped.stop(now=True)
            thread.join(PATIENCE)
            heir.run(until_empty=True)
            let_go.set()
        heir.close()
        for number in (1, 2, 3):
            assert ends(mia, f"A-00{number}") == ["STOPPED", "COMPLETED"]
            assert mia.show(f"A-00{number}")["attempts"] == 1


def test_a_claim_that_a_worker_gives_back_again_and_again_counts_in_the_end(place: Place) -> None:
    with place.client() as mia:
        mia.add("Work", type="t", max_attempts=2)
        for _ in range(12):
            grant = mia.claim()
            mia.release(grant.receipt or "", "a shutdown", stopped=True)
        assert (mia.show("A-001")["state"], len(mia.history("A-001"))) == ("dead_lettered", 12)


@pytest.mark.parametrize("is_async", [False, True], ids=["blocking", "async"])
@pytest.mark.parametrize("how", ["reads cancelled", "is raised at", "stays unaware"])
def test_what_a_function_returns_after_it_has_noticed_to_stop_is_kept_and_not_accepted(
    place: Place, how: str, is_async: bool
) -> None:
    worker = Worker(place.url, "shop", lease=300.0)
    begun, paused = threading.Event(), threading.Event()

    @worker.task("blocking")
    def work(ctx: Context) -> str:
        begun.set()
        assert paused.wait(PATIENCE)
        claim = ctx._claim
        until(ctx.client, lambda: claim.is_cancelled)
        if how == "reads cancelled":
            assert ctx.cancelled
        if how == "is raised at":
            with pytest.raises(Cancelled):
                ctx.check()
        return "99 of 1000"

    @worker.task("async")
    async def awork(ctx: AsyncContext) -> str:
        begun.set()
        if how == "stays unaware":  # it holds the loop until it has its result
            return work.function(ctx)
        try:
            await asyncio.sleep(PATIENCE)
        except asyncio.CancelledError:
            if how == "is raised at":
                with pytest.raises(Cancelled):
                    await ctx.check()
        return "99 of 1000"

    with place.client() as mia:
        mia.add("Work", type="async" if is_async else "blocking")
        with running(worker):
            assert begun.wait(PATIENCE)
            mia.pause("A-001", "think first")
            paused.set()
            until(mia, lambda: bool(mia.results("A-001")))
        (result,) = mia.results("A-001")
        is_late = how == "stays unaware"
        assert (result["data"], result["accepted"], result["late"]) == ("99 of 1000", is_late, True)
        assert mia.show("A-001")["state"] == ("completed" if is_late else "paused")


def test_half_a_result_at_a_shutdown_is_kept_and_the_task_is_ready_again(place: Place) -> None:
    worker, begun = Worker(place.url, "shop"), threading.Event()

    @worker.task("t")
    def work(ctx: Context) -> int:
        done = 0
        while not ctx.cancelled:
            begun.set()
            done += 1
        return done

    with place.client() as mia:
        mia.add("Work", type="t")
        with running(worker) as thread:
            assert begun.wait(PATIENCE)
            worker.stop(now=True)
            thread.join(PATIENCE)
        (result,) = mia.results("A-001")
        assert (result["accepted"], result["reason"], result["data"] > 0) == (False, "STOPPED", True)
        shown = mia.show("A-001")
        assert (shown["state"], shown["attempts"], ends(mia, "A-001")) == ("ready", 0, ["STOPPED"])
        assert mia.claim().outcome == "GRANTED"


def test_half_a_result_after_max_duration_is_a_counted_timeout() -> None:
    """The store's clock stands still: only the worker's can have ended the function."""
    with Client("memory://half", "shop", create=True, clock=FakeClock()) as mia:
        mia.add("Work", type="t", constraints={"max_duration": 1.0}, max_attempts=1)
        worker = Worker("memory://half", "shop", lease=3600.0)

        @worker.task("t")
        def work(ctx: Context) -> str:
            while not ctx.cancelled:
                threading.Event().wait(0.01)
            return "half"

        worker.run(until_idle=True)
        worker.close()
        (entry,) = mia.history("A-001")
        assert (entry["error_class"], mia.show("A-001")["state"]) == ("timeout", "dead_lettered")
        assert [(result["data"], result["accepted"]) for result in mia.results("A-001")] == [("half", False)]


def test_a_drained_task_is_given_back_at_once(place: Place) -> None:
    """Its claim lives: nothing would end it but the lease."""
    worker, begun = Worker(place.url, "shop", lease=3600.0), threading.Event()

    @worker.task("t")
    def work(ctx: Context) -> None:
        begun.set()
        while True:
            threading.Event().wait(0.01)
            ctx.check()

    with place.client() as mia:
        mia.add("Work", type="t")
        with running(worker):
            assert begun.wait(PATIENCE)
            mia.pause("A-001", drain=True)
            until(mia, lambda: mia.show("A-001")["state"] == "paused")
        assert ends(mia, "A-001") == ["STOPPED"]


def test_the_end_of_the_program_s_loop_is_no_failure(place: Place) -> None:
    """`asyncio.run` cancels the worker and its functions in one go."""
    worker, begun = Worker(place.url, "shop"), asyncio.Event()

    @worker.task("t")
    async def work(ctx: AsyncContext) -> None:
        begun.set()
        await asyncio.sleep(PATIENCE)

    async def play() -> None:
        running_worker = asyncio.create_task(worker.arun())
        await asyncio.wait_for(begun.wait(), PATIENCE)
        assert not running_worker.done()

    with place.client() as mia:
        mia.add("Work", type="t")
        asyncio.run(play())
        worker.close()
        assert ends(mia, "A-001") == ["STOPPED"]
        assert mia.claim().outcome == "GRANTED"


def test_a_cancellation_waits_for_the_turn_of_the_loop_that_stops_the_worker(place: Place) -> None:
    """The loop cancels the function first, and the worker in the same turn."""
    loop, stopping, waits = EventLoop("the test"), threading.Event(), threading.Event()

    def stop() -> None:
        waits.wait(5)  # the thread of the attempt is ahead
        stopping.set()

    async def work(ctx: AsyncContext) -> None:
        here = asyncio.get_running_loop()
        ask = here.call_soon_threadsafe

        def asked(*given: Any) -> Any:
            handle = ask(*given)
            waits.set()
            return handle

        here.call_soon_threadsafe = asked  # type: ignore[method-assign]
        here.call_soon(here.call_soon, stop)
        raise asyncio.CancelledError

    with place.client() as mia:
        mia.add("Work", type="t")
        Attempt(mia, mia.claim("A-001"), 300.0, (), loop.running(), stopping).run(Handler(work, True))
        assert ends(mia, "A-001") == ["STOPPED"]
    loop.close()


def test_a_claim_asks_for_no_more_tasks_than_one_may_grant(place: Place) -> None:
    worker = Worker(place.store, "shop", concurrency=1000)
    asked: list[int] = []
    claim_or_wait = worker.client.claim_or_wait

    def noted(command: ClaimNext, *how: Any, **more: Any) -> Any:
        asked.append(command.n)
        return claim_or_wait(command, *how, **more)

    worker.client.claim_or_wait = noted  # type: ignore[method-assign]
    worker.task("t")(lambda ctx: None)
    worker.run(until_idle=True)
    worker.close()
    assert asked == [100]
