"""Workers outlive their server, and end as they are told: kill -9 under load, signals."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from pathlib import Path

from tenure import AsyncContext, Client, Context, Worker
from tests.client.conftest import Place
from tests.client.test_worker import PATIENCE, running, until

TASKS, KILLS = 120, 4


def test_work_in_hand_when_the_server_is_killed_is_handed_in_to_the_next(served: Place) -> None:
    assert served.server is not None
    begun, let_go = threading.Event(), threading.Event()
    with served.client() as mia:
        mia.add("Work", type="t")
        worker = Worker(served.url, "shop", lease=300.0)

        @worker.task("t")
        def work(ctx: Context) -> int:
            begun.set()
            assert let_go.wait(PATIENCE)
            return ctx.generation

        with running(worker):
            assert begun.wait(PATIENCE)
            served.server.kill()
            let_go.set()  # it has finished, and there is nobody to hand it to
            served.server.start()
            until(mia, lambda: mia.show("A-001")["state"] == "completed")
        assert mia.show("A-001")["result"]["data"] == 1


def test_no_task_is_lost_and_none_done_twice_while_its_server_is_killed_again_and_again(served: Place) -> None:
    """Four workers, half of them async, and a server that is killed in the middle of their requests."""
    assert served.server is not None
    with Client(served.store, "shop") as owner:
        for number in range(TASKS):
            owner.add(f"T{number}", type="t")
        done: list[tuple[str, int]] = []
        workers = [Worker(served.url, "shop", agent=f"w{n}", concurrency=3) for n in range(4)]

        def work(ctx: Context) -> int:
            ctx.progress(50)
            done.append((ctx.task["key"], ctx.generation))
            return ctx.generation

        async def awork(ctx: AsyncContext) -> int:
            await ctx.progress(50)
            done.append((ctx.task["key"], ctx.generation))
            return ctx.generation

        threads = []
        for number, worker in enumerate(workers):
            worker.task("t")(awork if number % 2 else work)
            threads.append(threading.Thread(target=worker.run))
            threads[-1].start()
        for kill in range(1, KILLS + 1):
            until(owner, lambda kill=kill: len(done) >= kill * TASKS // (KILLS + 2))
            served.server.kill()
            served.server.start()
        until(owner, lambda: owner.status()["tasks"] == {"completed": TASKS})
        for worker, thread in zip(workers, threads, strict=True):
            worker.stop()
            thread.join(PATIENCE)
            worker.close()
        lineages = [owner.history(task["key"]) for task in owner.tasks(limit=1000)]
        assert [len(lineage) for lineage in lineages] == [1] * TASKS, "no claim was lost on the way"
        assert all(lineage[0]["refused"] == [] for lineage in lineages)
        assert sorted(key for key, _ in done) == sorted({key for key, _ in done}), "no function was called twice"
        assert owner.verify() == []


SCRIPT = """
import sys, threading, tenure
worker = tenure.Worker(sys.argv[1], "shop")
begun = threading.Event()

@worker.task("t")
def work(ctx):
    print("begun", flush=True)
    while not ctx.cancelled:
        if sys.stdin.readline():
            return "finished"
    ctx.progress(1)

worker.run()
print("ended", flush=True)
"""


def started(place: Place) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", SCRIPT, place.url], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        cwd=Path(place.store).parent,
    )  # fmt: skip


def test_a_signal_lets_what_runs_finish(place: Place) -> None:
    with place.client() as mia, started(place) as process:
        mia.add("One", type="t")
        mia.add("Two", type="t")
        assert process.stdout is not None
        assert process.stdin is not None
        assert process.stdout.readline() == "begun\n"
        process.send_signal(signal.SIGTERM)
        process.stdin.write("go on\n")
        process.stdin.flush()
        assert process.stdout.readline() == "ended\n"
        assert process.wait(PATIENCE) == 0
        assert [s["state"] for s in mia.states(["A-001", "A-002"])] == ["completed", "ready"]


def test_a_second_signal_gives_the_task_back(place: Place) -> None:
    with place.client() as mia, started(place) as process:
        mia.add("One", type="t")
        assert process.stdout is not None
        assert process.stdout.readline() == "begun\n"
        process.send_signal(signal.SIGTERM)
        process.send_signal(signal.SIGINT)
        assert process.stdin is not None
        process.stdin.close()  # the function looks at its context again
        assert process.wait(PATIENCE) == 0
        assert mia.show("A-001")["state"] == "ready"
