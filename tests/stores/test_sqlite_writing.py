"""Writing: fair turns, whole commits, honest errors, and nothing left behind by those who die."""

import fcntl
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import apsw
import pytest

from tenure.core.errors import Bug, InvalidInput, OutcomeUnknown, StoreCorrupt, StoreUnavailable
from tenure.core.records import Agent, Task
from tenure.stores.port import Change
from tenure.stores.sqlite import Sqlite
from tenure.stores.sqlite import transaction as transactions
from tenure.stores.sqlite.errors import at_commit, translated
from tenure.testing.samples import event_of, row_of
from tenure.testing.suites.store_setting import add, logged, stored, write


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "store.db"


@pytest.fixture
def store(path: Path) -> Iterator[Sqlite]:
    store = Sqlite(str(path))
    yield store
    store.close()


def test_every_connection_syncs_each_commit_and_distrusts_the_schema(store: Sqlite) -> None:
    with store.begin("local", write=True), store.begin("local", write=False):
        pass  # two connections
    links = [store.connections.take() for _ in range(3)]
    for link in links:
        assert link.all("PRAGMA synchronous") == [(2,)]
        assert link.all("PRAGMA journal_mode") == [("wal",)]
        assert link.all("PRAGMA trusted_schema") == [(0,)]
        assert link.all("PRAGMA busy_timeout") == [(10_000,)]
        config = link.raw.config
        assert config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, -1) == 1
        assert config(apsw.SQLITE_DBCONFIG_ENABLE_TRIGGER, -1) == 0
        assert config(apsw.SQLITE_DBCONFIG_DEFENSIVE, -1) == 1
        link.close()


def test_a_writer_holds_the_write_lock_from_its_beginning(store: Sqlite, path: Path) -> None:
    """A deferred one would take it at the first write, and fail if somebody wrote in between."""
    other = apsw.Connection(str(path))
    with store.begin("local", write=True), pytest.raises(apsw.BusyError):
        other.execute("BEGIN IMMEDIATE")
    other.execute("BEGIN IMMEDIATE; ROLLBACK")


def test_the_clock_is_read_when_the_lock_is_held(path: Path) -> None:
    held = []

    def clock() -> int:
        probe = apsw.Connection(str(path))
        try:
            probe.execute("BEGIN IMMEDIATE; ROLLBACK")
        except apsw.BusyError:
            held.append(True)
        return 5

    Sqlite(str(path)).close()
    store = Sqlite(str(path), clock=clock)
    with store.begin("local", write=True) as transaction:
        assert transaction.now == 5
    assert held == [True]


def test_a_reader_sees_all_that_was_written_before_its_clock_was_read(path: Path) -> None:
    """Else a lease that was renewed in between would look expired."""
    other = Sqlite(str(path))

    def clock() -> int:
        add(other, row_of(Agent, project="p", id="just in time"))
        return 5

    with Sqlite(str(path), clock=clock).begin("local", write=False) as reading:
        assert [row.id for row in reading.find(Agent, {})] == ["just in time"]
        assert reading.now >= 5


def test_an_impatient_writer_says_that_the_store_is_away(path: Path) -> None:
    store, other = Sqlite(str(path)), Sqlite(str(path), patience=0.05)
    with store.begin("local", write=True), pytest.raises(StoreUnavailable):
        other.begin("local", write=True).__enter__()
    add(other, row_of(Agent, project="p", id="bo"))  # and gets its turn when there is one
    assert set(stored(store, Agent)) == {("p", "bo")}


def test_a_program_that_knows_no_turns_is_waited_for_and_then_named(path: Path) -> None:
    store = Sqlite(str(path), patience=0.05)
    other = apsw.Connection(str(path))
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(StoreUnavailable, match="another program"):
        add(store, row_of(Agent, project="p", id="bo"))
    assert stored(store, Agent) == {}  # readers are not held up
    other.execute("ROLLBACK")
    add(store, row_of(Agent, project="p", id="bo"))


def test_a_turn_that_was_given_up_is_not_lost(path: Path) -> None:
    """The one who waits too long leaves; whoever comes next still gets the turn, and so does the one who left."""
    store, other = Sqlite(str(path)), Sqlite(str(path), patience=0.02)
    for _ in range(3):
        with store.begin("local", write=True):
            for _ in range(2):
                with pytest.raises(StoreUnavailable):
                    other.begin("local", write=True).__enter__()
        for who in (other, store, other):
            with who.begin("local", write=True):
                pass


def test_a_writer_that_is_interrupted_while_it_waits_gives_up_its_turn(path: Path) -> None:
    store, other = Sqlite(str(path), patience=5), Sqlite(str(path))
    with other.begin("local", write=True):
        pass
    files = other.turn._files
    assert files is not None

    is_granted = files._is_granted

    def interrupted() -> bool:
        files._is_granted = is_granted  # type: ignore[method-assign]
        raise KeyboardInterrupt

    files._is_granted = interrupted  # type: ignore[method-assign]
    with store.begin("local", write=True), pytest.raises(KeyboardInterrupt):
        other.begin("local", write=True).__enter__()
    for who in (store, other, store):
        with who.begin("local", write=True):
            pass


def test_writers_get_on_without_the_side_files(store: Sqlite, path: Path) -> None:
    other = Sqlite(str(path))
    add(store, row_of(Agent, project="p", id="1"))
    for name in (".lock", ".turn"):
        path.with_name(path.name + name).unlink()
    third = Sqlite(str(path))
    for number, who in enumerate((store, other, third)):
        add(who, row_of(Agent, project="q", id=str(number)))
    assert len(stored(store, Agent)) == 4


def test_a_queue_that_does_not_move_is_passed_by_while_the_lock_is_free(store: Sqlite, path: Path) -> None:
    """Whoever is at its head may be stopped; the store must not be closed by that."""
    other = Sqlite(str(path), patience=30)
    with path.with_name("store.db.turn").open("w") as turn:
        fcntl.flock(turn, fcntl.LOCK_EX)
        for number in range(2):
            add(other, row_of(Agent, project="p", id=str(number)))
        with other.begin("local", write=True), pytest.raises(StoreUnavailable):
            add(Sqlite(str(path), patience=0.05), row_of(Agent, project="p", id="bo"))
    add(store, row_of(Agent, project="p", id="ann"))
    add(other, row_of(Agent, project="p", id="cy"))
    assert {id for _, id in stored(store, Agent)} == {"0", "1", "ann", "cy"}


HOLDS = """
import sys
from tenure.stores.sqlite import Sqlite
store = Sqlite(sys.argv[1])
with store.begin("local", write=True):
    print("holds", flush=True)
    sys.stdin.readline()
print("gave", flush=True)
sys.stdin.readline()
"""


@pytest.fixture
def holder(path: Path, store: Sqlite) -> Iterator[subprocess.Popen[str]]:
    """A process in the middle of a transaction that writes; it goes on with a line of input."""
    command = [sys.executable, "-c", HOLDS, str(path)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "holds\n"
    yield process
    process.kill()
    process.communicate()


def stop(process: subprocess.Popen[str]) -> None:
    process.send_signal(signal.SIGSTOP)
    os.waitid(os.P_PID, process.pid, os.WSTOPPED | os.WNOWAIT)


def test_the_error_names_the_process_that_holds_the_lock(holder: subprocess.Popen[str], path: Path) -> None:
    with pytest.raises(StoreUnavailable, match=rf"write lock within 0.05 s \(held by process {holder.pid}\)"):
        add(Sqlite(str(path), patience=0.05), row_of(Agent, project="p", id="bo"))


def test_a_stopped_writer_is_named_and_others_get_in_when_it_goes_on(holder: subprocess.Popen[str], path: Path) -> None:
    other = Sqlite(str(path), patience=0.05)
    stop(holder)
    threads = None
    for _ in range(4):
        with pytest.raises(StoreUnavailable, match=rf"\(held by process {holder.pid}, stopped\)") as caught:
            add(other, row_of(Agent, project="p", id="bo"))
        assert str(holder.pid) in (caught.value.hint or "")
        threads = threads or threading.active_count()
        assert threading.active_count() == threads, "each try left a thread behind"
        assert stored(other, Agent) == {}, "readers are not held up"
    holder.send_signal(signal.SIGCONT)
    assert holder.stdin is not None
    assert holder.stdout is not None
    holder.stdin.write("\n")
    holder.stdin.flush()
    assert holder.stdout.readline() == "gave\n"
    add(other, row_of(Agent, project="p", id="bo"))


def test_others_get_in_when_a_stopped_writer_is_killed(holder: subprocess.Popen[str], path: Path) -> None:
    other = Sqlite(str(path), patience=0.05)
    stop(holder)
    with pytest.raises(StoreUnavailable, match="stopped"):
        add(other, row_of(Agent, project="p", id="bo"))
    holder.kill()
    holder.wait()
    add(other, row_of(Agent, project="p", id="bo"))
    assert set(stored(other, Agent)) == {("p", "bo")}


def test_a_process_that_only_had_the_lock_before_is_not_named(store: Sqlite, path: Path) -> None:
    """Its pid may be another's by now: the start time tells."""
    lock = path.with_name("store.db.lock")
    add(store, row_of(Agent, project="p", id="bo"))
    assert lock.read_text().split()[0] == str(os.getpid())
    with lock.open("r+") as file:
        file.write(f"{os.getpid()} 1".rjust(39) + "\n")
        file.flush()
        fcntl.flock(file, fcntl.LOCK_EX)
        with pytest.raises(StoreUnavailable, match=r"write lock within 0\.05 s") as refused:
            add(Sqlite(str(path), patience=0.05), row_of(Agent, project="p", id="bo"))
    assert "held by" not in str(refused.value)


TAKES_TURNS = """
import sys, time
from tenure.core.records import Agent, replace
from tenure.stores.port import Change
from tenure.stores.sqlite import Sqlite
store, name, count = Sqlite(sys.argv[1]), sys.argv[2], 0
print("ready", flush=True)
sys.stdin.readline()
end = time.monotonic() + 1
while time.monotonic() < end:
    with store.begin("local", write=True) as transaction:
        (mine,) = transaction.load(Agent, [("p", name)])
        transaction.save([Change(mine, replace(mine, troubles=mine.troubles + 1))])
    count += 1
print(count)
"""


def test_eight_processes_all_get_their_share(store: Sqlite, path: Path) -> None:
    add(store, *[row_of(Agent, project="p", id=str(n), troubles=0) for n in range(8)])
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", TAKES_TURNS, str(path), str(n)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )
        for n in range(8)
    ]  # fmt: skip
    for process in processes:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("\n")
        process.stdin.flush()
    answers = [process.communicate(timeout=60) for process in processes]
    assert [error for _, error in answers] == [""] * 8  # "database is locked", for one
    shares = [int(count) for count, _ in answers]
    assert [stored(store, Agent)["p", str(n)].troubles for n in range(8)] == shares
    assert min(shares) >= 0.3 * max(shares), shares


DIES = """
import os, signal, sys
from tenure.stores.sqlite import Sqlite
from tenure.stores.port import Change
from tenure.core.records import Agent
from tenure.testing.samples import event_of, row_of
store = Sqlite(sys.argv[1])
with store.begin("local", write=True) as transaction:
    transaction.save([Change(None, row_of(Agent, project="p", id="acknowledged"))])
    transaction.append([event_of(id="acknowledged")])
with store.begin("local", write=True) as transaction:
    transaction.save([Change(None, row_of(Agent, project="p", id="never"))])
    transaction.append([event_of(id="never")])
    transaction.set_epoch("00000000")
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_process_killed_before_its_commit_leaves_no_trace(store: Sqlite, path: Path) -> None:
    with store.begin("local", write=False) as transaction:
        epoch = transaction.epoch
    died = subprocess.run([sys.executable, "-c", DIES, str(path)], check=False, timeout=60)
    assert died.returncode == -signal.SIGKILL
    assert set(stored(store, Agent)) == {("p", "acknowledged")}
    assert [e.id for e in logged(store)] == ["acknowledged"]
    with store.begin("local", write=True) as transaction:  # its locks are gone as well
        assert transaction.epoch == epoch
    assert store.check() == []


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")  # threads of other tests, from 3.12 on
def test_a_forked_child_is_refused_and_the_parent_goes_on(store: Sqlite, path: Path) -> None:
    add(store, row_of(Agent, project="p", id="1"))
    child = os.fork()
    if child == 0:
        refused = 0
        for attempt in (lambda: stored(store, Agent), lambda: store.mark("local"), lambda: Sqlite(str(path))):
            try:
                attempt()
            except StoreUnavailable:
                refused += 1
        os._exit(refused)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 3
    add(store, row_of(Agent, project="p", id="2"))
    assert len(stored(store, Agent)) == 2


@pytest.mark.parametrize("bad", ["\ud800", 2**63, -(2**63) - 1, object()])
def test_a_value_that_cannot_be_stored_is_a_plain_error_and_leaves_nothing(store: Sqlite, bad: Any) -> None:
    with pytest.raises(InvalidInput):
        write(store, Change(None, row_of(Agent, project="p", id="good")), Change(None, row_of(Agent, id="b", step=bad)))
    with pytest.raises(InvalidInput):
        write(store, events=[event_of(message=bad), event_of(id="good")])
    with pytest.raises(InvalidInput), store.begin("local", write=False) as transaction:
        transaction.find(Agent, {"step": bad})
    with pytest.raises(InvalidInput):
        add(store, row_of(Task, project="p", id="nested", tags=("\ud800",)))
    assert (stored(store, Agent), logged(store), stored(store, Task)) == ({}, [], {})


def test_nothing_runs_on_a_transaction_that_has_ended(store: Sqlite) -> None:
    with store.begin("local", write=True) as transaction:
        pass
    for use in (
        lambda: transaction.find(Agent, {}),
        lambda: transaction.save([Change(None, row_of(Agent, project="p", id="bo"))]),
        lambda: transaction.append([event_of()]),
    ):
        with pytest.raises(Bug):
            use()


def test_no_reader_keeps_the_log_from_being_cleared(store: Sqlite) -> None:
    """A cursor left open would: its snapshot holds every page that came after it."""
    add(store, *[row_of(Agent, project="p", id=str(n)) for n in range(50)])
    stored(store, Agent)
    with store.begin("local", write=False) as transaction:
        transaction.find(Agent, {}, limit=1)
        transaction.events({}, limit=1)
    link = store.connections.take()
    log, cleared = link.raw.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
    store.connections.give(link)
    assert (log, cleared) == (0, 0)


def test_a_row_of_single_commands_does_not_let_the_log_grow_for_ever(path: Path) -> None:
    log = path.with_name("store.db-wal")
    sizes = []
    for number in range(60):
        store = Sqlite(str(path))
        add(store, row_of(Agent, project="p", id=str(number), step="x" * 20_000))
        store.close()
        sizes.append(log.stat().st_size)
    assert max(sizes) < 700_000, sizes
    assert sizes.count(0) < 20  # and most commands do not pay for it


class _FullDisk:
    """A link whose disk is full, or broken, when it comes to the commit."""

    def __init__(self, link: Any, error: Exception) -> None:
        self.raw, self.executemany, self._link, self._error = link.raw, link.executemany, link, error
        self.close = link.close

    def execute(self, text: str, *values: Any) -> Any:
        if text == "COMMIT":
            raise self._error
        return self._link.execute(text, *values)


@pytest.mark.parametrize(("error", "expected"), [(apsw.FullError, StoreUnavailable), (apsw.IOError, OutcomeUnknown)])
def test_a_commit_that_fails_says_whether_it_may_have_happened(
    store: Sqlite, error: type[apsw.Error], expected: type[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    take = store.connections.take
    with monkeypatch.context() as broken:
        broken.setattr(store.connections, "take", lambda: _FullDisk(take(), error("disk")))
        with pytest.raises(expected):
            add(store, row_of(Agent, project="p", id="bo"))
    store.connections.close()
    again = Sqlite(store.path)
    assert stored(again, Agent) == {}
    add(again, row_of(Agent, project="p", id="bo"))


def test_a_full_disk_leaves_the_store_as_it_was(path: Path) -> None:
    """A limit on the size of files is the nearest thing to a full disk that needs no mount."""
    script = """
import resource, signal, sys
from tenure.core.errors import StoreUnavailable, OutcomeUnknown
from tenure.core.records import Agent
from tenure.stores.sqlite import Sqlite
from tenure.testing.samples import row_of
from tenure.testing.suites.store_setting import add, stored
store = Sqlite(sys.argv[1])
add(store, row_of(Agent, project="p", id="before"))
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (600_000, resource.RLIM_INFINITY))
try:
    add(store, *[row_of(Agent, project="p", id=str(n), step="x" * 2000) for n in range(2000)])
except (StoreUnavailable, OutcomeUnknown) as error:
    print(type(error).__name__)
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
add(store, row_of(Agent, project="p", id="after"))
print(sorted(key[1] for key in stored(store, Agent)), store.check())
"""
    ran = subprocess.run(
        [sys.executable, "-c", script, str(path)], capture_output=True, text=True, timeout=60, check=True
    )
    name, rows = ran.stdout.splitlines()
    assert name in ("StoreUnavailable", "OutcomeUnknown")
    assert rows == "['after', 'before'] []"


def test_every_kind_of_failure_has_a_name(tmp_path: Path) -> None:
    damaged = tmp_path / "store.db"
    damaged.write_bytes(b"not a database " * 500)
    for name in dir(apsw):
        error = getattr(apsw, name)
        if isinstance(error, type) and issubclass(error, apsw.Error):
            assert translated(error("x"), str(damaged)).definite is True
            assert at_commit(error("x"), str(damaged)).definite is (name != "IOError")


def test_waiting_looks_again_and_again_until_its_time_is_over(path: Path) -> None:
    now = [0.0]
    pauses = []

    def pause(condition: threading.Condition, seconds: float) -> None:
        pauses.append(seconds)
        now[0] += seconds

    store = Sqlite(str(path), monotonic=lambda: now[0], pause=pause)
    assert store.wait({"local": 0}, 0.05) == frozenset()
    assert pauses == pytest.approx([0.02, 0.02, 0.01])


def test_waiting_looks_less_often_once_nothing_was_written_for_a_while(path: Path) -> None:
    now = [0.0]
    pauses = []

    def pause(condition: threading.Condition, seconds: float) -> None:
        pauses.append(round(seconds, 3))
        now[0] += seconds

    store = Sqlite(str(path), monotonic=lambda: now[0], pause=pause)
    assert store.wait({"local": 0}, 3) == frozenset()
    assert pauses[0] == 0.02
    assert pauses[-2] == 0.05
    write(Sqlite(str(path)), events=[event_of()])
    assert store.wait({"local": 1}, 0.2) == frozenset()
    assert pauses[-2] == 0.02


def test_waiting_notices_what_another_process_wrote(path: Path) -> None:
    other = Sqlite(str(path))

    def pause(condition: threading.Condition, seconds: float) -> None:
        write(other, events=[event_of()])

    store = Sqlite(str(path), monotonic=lambda: 0.0, pause=pause)
    assert store.wait({"local": 0}, 1) == {"local"}


def test_an_error_while_beginning_gives_the_turn_back(store: Sqlite, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as broken:
        broken.setattr(transactions, "HEAD", "SELECT nothing FROM nowhere")
        with pytest.raises(Bug):
            store.begin("local", write=True).__enter__()
        broken.setattr(store, "clock", lambda: 1 // 0)
        broken.undo()
    add(store, row_of(Agent, project="p", id="bo"))


def test_importing_the_store_brings_nothing_heavy() -> None:
    heavy = {
        "asyncio",
        "pydantic",
        "sqlite3",
        "rich",
        "httpx",
        "pathlib",
        "hashlib",
        "multiprocessing",
        "urllib.request",
    }
    code = f"import sys, tenure.stores.sqlite; print(sorted({heavy!r} & set(sys.modules)))"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p and "site-packages" not in p)}
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment)
    assert ran.stdout.strip() == "[]"


def test_corruption_is_reported_only_where_the_file_is_damaged(store: Sqlite, path: Path, tmp_path: Path) -> None:
    """SQLite calls a read that the disk failed corruption too."""
    add(store, row_of(Agent, project="p", id="bo"))
    passing = translated(apsw.CorruptError("x"), str(path))
    assert isinstance(passing, StoreUnavailable)
    assert "sound" in passing.message
    assert isinstance(at_commit(apsw.CorruptError("x"), str(path)), OutcomeUnknown)
    store.backup(str(tmp_path / "copy.db"))
    content = bytearray((tmp_path / "copy.db").read_bytes())
    content[4096 * 3 : 4096 * 4] = b"\xff" * 4096
    (tmp_path / "copy.db").write_bytes(content)
    assert isinstance(translated(apsw.CorruptError("x"), str(tmp_path / "copy.db")), StoreCorrupt)
    assert isinstance(at_commit(apsw.CorruptError("x"), str(tmp_path / "copy.db")), StoreCorrupt)
    add(store, row_of(Agent, project="p", id="cy"))  # the locks of this process are still its own
    assert len(stored(store, Agent)) == 2


def test_a_connection_that_met_a_fault_is_not_used_again(store: Sqlite) -> None:
    add(store, row_of(Agent, project="p", id="bo"))
    link = store.connections.take()
    link.execute("PRAGMA query_only = ON")  # as one that was opened while the disk was full
    store.connections.give(link)
    with pytest.raises(StoreUnavailable):
        add(store, row_of(Agent, project="p", id="cy"))
    add(store, row_of(Agent, project="p", id="cy"))
    assert set(stored(store, Agent)) == {("p", "bo"), ("p", "cy")}
