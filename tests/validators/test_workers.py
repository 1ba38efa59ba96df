"""The processes that check: begun late, kept, ended in time, replaced; and nobody else waits for them."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tenure.core import limits
from tenure.validators import workers as module
from tenure.validators.port import Output, Undecided
from tenure.validators.schemas import JsonSchema
from tenure.validators.workers import Workers
from tests.processes.marks import children
from tests.validators.test_schemas import never_ending

FAST = {"schema": {"type": "integer"}}


@pytest.fixture
def pool() -> Iterator[Workers]:
    workers = Workers(most=2)
    yield workers
    workers.close()


def is_running(pid: int) -> bool:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] != "Z"


def test_none_is_begun_before_it_is_needed_and_one_serves_many(pool: Workers) -> None:
    assert pool.pids() == []
    for n in range(20):
        assert JsonSchema(pool).judge(FAST, Output(n)).ok
    assert len(pool.pids()) == 1


def test_one_that_computes_too_long_is_gone_and_replaced(pool: Workers, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "ITS_OWN", 60.0)  # its own alarm comes later: here it is ended from outside
    schemas = JsonSchema(pool)
    schemas.judge(FAST, Output(1))
    [before] = pool.pids()
    began = time.monotonic()
    assert schemas.judge({"schema": never_ending()}, Output(8)).details == {"limit": "time"}
    assert 0.9 < time.monotonic() - began < 3
    assert not is_running(before)
    assert schemas.judge(FAST, Output(1)).ok
    assert pool.pids() != [before]


def test_one_that_takes_too_much_memory_ends_and_is_replaced() -> None:
    pool = Workers(memory=200 << 20, seconds=30.0)
    schemas = JsonSchema(pool)
    try:
        verdict = schemas.judge({"schema": {"items": {"type": "integer"}}}, Output([[]] * 5_000_000))
        assert not verdict.ok
        assert verdict.details == {"limit": "memory"}
        assert verdict.reasons == ("checking by the schema takes too much memory",)
        assert schemas.judge(FAST, Output(1)).ok
    finally:
        pool.close()


def test_one_that_somebody_kills_is_replaced_and_the_answer_is_right(pool: Workers) -> None:
    schemas = JsonSchema(pool)
    schemas.judge(FAST, Output(1))
    os.kill(pool.pids()[0], signal.SIGKILL)
    assert schemas.judge(FAST, Output(1)).ok
    assert not schemas.judge(FAST, Output("x")).ok


def test_others_go_on_while_hostile_ones_are_checked(pool: Workers) -> None:
    """Four threads keep every worker busy to its limit; the longest pause of a thread that does other work is short."""
    schemas = JsonSchema(pool)
    schemas.judge(FAST, Output(1))
    threads = [
        threading.Thread(target=schemas.judge, args=({"schema": never_ending()}, Output([n] * 100_000)))
        for n in range(4)
    ]
    for thread in threads:
        thread.start()
    longest, done = 0.0, 0
    while any(thread.is_alive() for thread in threads):
        began = time.monotonic()
        sum(range(1000))
        time.sleep(0)  # lets another thread have its turn, and waits for none
        longest = max(longest, time.monotonic() - began)
        done += 1
    print(f"other work: {done} steps, the longest took {longest * 1000:.1f} ms")
    assert longest < 0.5
    assert done > 1000


def test_a_caller_that_finds_no_free_worker_may_retry(monkeypatch: pytest.MonkeyPatch) -> None:
    pool = Workers(most=1)
    schemas = JsonSchema(pool)
    schemas.judge(FAST, Output(1))
    monkeypatch.setattr(limits, "CHECK_WAIT", 0.05)
    slow = threading.Thread(target=schemas.judge, args=({"schema": never_ending()}, Output(8)))
    slow.start()
    while pool.pids():
        time.sleep(0)
    try:
        with pytest.raises(Undecided) as raised:
            schemas.judge(FAST, Output(1))
        assert raised.value.again
    finally:
        slow.join()
        pool.close()


def test_a_worker_that_does_not_start_is_reported(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "broken.py").write_text("raise SystemExit(1)")
    monkeypatch.setattr(module, "CHECKER", tmp_path / "broken.py")
    pool = Workers()
    for _ in range(4):  # nothing is used up by it
        with pytest.raises(Undecided, match="does not start"):
            JsonSchema(pool).judge(FAST, Output(1))


def test_it_sees_nothing_of_the_environment(monkeypatch: pytest.MonkeyPatch, pool: Workers) -> None:
    monkeypatch.setenv("SECRET_KEY", "secret")
    JsonSchema(pool).judge(FAST, Output(1))
    [above] = children(pool.pids()[0])
    [checker] = children(above)
    environ = Path(f"/proc/{checker}/environ").read_bytes()
    assert {entry.partition(b"=")[0] for entry in environ.split(b"\0") if entry} == {b"PYTHONPATH", b"PWD"}


OWNER = """
import sys, threading
from tenure.validators.workers import Workers
from tenure.validators.schemas import JsonSchema
from tenure.validators.port import Output
sys.path.insert(0, sys.argv[1])
from tests.processes.marks import children
from tests.validators.test_schemas import never_ending
pool = Workers()
schemas = JsonSchema(pool)
schemas.judge({"schema": True}, Output(1))
pid = pool.pids()[0]
if sys.argv[2] == "busy":
    threading.Thread(target=schemas.judge, args=({"schema": never_ending()}, Output(8)), daemon=True).start()
    while pool.pids():
        pass
print(pid, flush=True)
sys.stdin.read()
"""


@pytest.mark.parametrize("state", ["idle", "busy"])
def test_none_outlives_the_one_that_began_it(state: str) -> None:
    command = [sys.executable, "-c", OWNER, str(Path(__file__).parents[2]), state]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as owner:
        assert owner.stdout is not None
        pid = int(owner.stdout.readline())
        assert is_running(pid)
        owner.kill()
        owner.wait()
    until = time.monotonic() + 10
    while is_running(pid) and time.monotonic() < until:
        os.sched_yield()
    assert not is_running(pid)


FORKED = """
import os
from tenure.validators.port import Output
from tenure.validators.schemas import JsonSchema
from tenure.validators.workers import shared
def right():
    return all(JsonSchema().judge({"schema": {"const": n}}, Output(n)).ok for n in range(50))
assert right()
own = shared()
child = os.fork()
assert right() and (shared() is own) == (child != 0)
if child:
    assert os.waitpid(child, 0)[1] == 0
"""


def test_a_forked_process_gets_its_own() -> None:
    done = subprocess.run([sys.executable, "-c", FORKED], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
