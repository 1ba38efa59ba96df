"""When a worker that runs until its tasks are done ends."""

from __future__ import annotations

import threading

from tenure import Client, Context, NewTask, RetryPolicy, Worker
from tests.client.conftest import Place
from tests.client.test_worker import PATIENCE, until

SOON = RetryPolicy(strategy="fixed", initial_delay=1.0)


def ended(worker: Worker, **how: bool) -> threading.Thread:
    thread = threading.Thread(target=lambda: worker.run(**how))
    thread.start()
    return thread


def test_until_empty_waits_for_retries_and_for_tasks_that_others_hold(place: Place) -> None:
    with place.client() as mia:
        mia.add("Fails once", type="t", retry=SOON)
        held = mia.add("Held", type="t").task["key"]
        mia.add("After it", type="t", after=[held])
        mia.add("For others", type="u")
        grant = mia.claim(held).check()
        worker = Worker(place.url, "shop")

        @worker.task("t")
        def work(ctx: Context) -> int:
            if ctx.task["title"] == "Fails once" and ctx.attempt == 1:
                raise ValueError("once")
            return ctx.attempt

        thread = ended(worker, until_empty=True)
        until(mia, lambda: mia.show("A-001")["state"] == "completed")
        assert thread.is_alive()  # another holds the second, and the third waits for it
        mia.submit(grant.receipt, "by mia").check()
        thread.join(PATIENCE)
        assert not thread.is_alive()
        worker.close()
        assert mia.show("A-001")["result"]["data"] == 2
        assert mia.show("A-003")["state"] == "completed"
        assert mia.show("A-004")["state"] == "ready"


def test_until_empty_does_not_wait_for_people_or_for_start_times(place: Place) -> None:
    with place.client() as mia:
        mia.add_many([NewTask(title="Paused", type="t"), NewTask(title="Tomorrow", type="t", not_before_in=86400)])
        mia.add("Hopeless", type="t", max_attempts=1)
        mia.pause("A-001")
        worker = Worker(place.url, "shop")

        @worker.task("t")
        def work(ctx: Context) -> None:
            raise ValueError("never")

        thread = ended(worker, until_empty=True)
        thread.join(PATIENCE)
        assert not thread.is_alive()
        worker.close()
        states = [line["state"] for line in mia.states(["A-001", "A-002", "A-003"])]
        assert states == ["paused", "pending", "dead_lettered"]


def test_until_idle_ends_while_a_retry_is_due_later(place: Place) -> None:
    with place.client() as mia:
        mia.add("Fails once", type="t", retry=SOON)
        worker = Worker(place.url, "shop")

        @worker.task("t")
        def work(ctx: Context) -> None:
            if ctx.attempt == 1:
                raise ValueError("once")

        worker.run(until_idle=True)
        assert mia.show("A-001")["state"] in ("retrying", "ready")
        worker.run(until_empty=True)
        worker.close()
        assert mia.show("A-001")["state"] == "completed"


def test_a_worker_is_moved_to_another_store(place: Place) -> None:
    worker = Worker("https://tenure.example.com", "elsewhere")  # nothing is opened yet

    @worker.task("t")
    def work(ctx: Context, n: int) -> int:
        return n + 1

    worker.use(place.url, "shop")
    handle = work.enqueue(1)
    worker.run(until_empty=True)
    assert handle.result(timeout=PATIENCE) == 2
    worker.use("memory://moved", create=True)
    again = work.enqueue(n=2)
    worker.run(until_empty=True)
    assert again.result() == 3
    worker.close()
    with Client("memory://moved", create=True) as other:
        assert other.tasks() == []
