"""Worker processes are killed with SIGKILL, or stopped past their leases; nothing acknowledged may be lost or doubled.

The workers share one SQLite file, as shipped, on a real disk, or one server, with the real clock and leases
of one second. Half of the kills aim at whoever is writing at that moment, so that many fall into the middle of a
commit. At the end every answer that a worker wrote down is compared with the store, and what is left is worked off.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path

import psycopg

from tenure.core import commands
from tests.reliability import results
from tests.reliability.ground import end_when_told
from tests.reliability.storm_answers import Verdict
from tests.reliability.storm_check import verdict
from tests.reliability.storm_worker import LEASE, NAMED, PROJECT, Worker, open_engine
from tests.servers.postgres import PostgresServer
from tests.servers.processes import PATIENCE, StoreHost
from tests.servers.store_servers import SERVERS

STOPPED_FOR = (LEASE + 0.1, LEASE + 0.6)  # seconds that a zombie sleeps
MOST_STOPPED = 2
STOPS = 0.12  # of all blows
AIMED = 0.5
# A backend that serves a worker's transaction.
AT_WORK = f"""
(SELECT pid, application_name FROM pg_stat_activity
 WHERE application_name LIKE '{NAMED}-%' AND backend_type = 'client backend' AND state <> 'idle' LIMIT 1) AS at_work
"""
LOOKS = 200  # at the kernel's table of locks, before a blow that aims is struck at random


class Storm:
    """Starts workers by fork, before anything of the store is open here.

    A forked worker is at work after 5 ms; a new interpreter takes 150 ms to import, and would mostly be killed at that.
    """

    def __init__(self, folder: Path, processes: int, seed: int, worker: type[Worker] = Worker) -> None:
        self.folder = folder
        self.worker = worker
        self.seed = seed
        self.dice = random.Random(seed)
        self.lives = [0] * processes
        self.slots: dict[int, int] = {}  # process id → slot
        self.stopped: dict[int, float] = {}  # process id → when it goes on
        self.counts: Counter[str] = Counter()
        self.errors: list[str] = []

    def start(self, slot: int) -> None:
        life = self.lives[slot]
        self.lives[slot] += 1
        pid = in_child(lambda: self.worker(self.folder, slot, life, str(self.seed)).live())
        self.slots[pid] = slot

    def rage(self, kills: int, rate: float) -> None:
        """Until so many workers were killed, at about so many a second."""
        for slot in range(len(self.lives)):
            self.start(slot)
        told_at = began = time.monotonic()
        while self.counts["kills"] < kills:
            self.pause(self.dice.expovariate(rate))
            self.wake_up()
            if self.dice.random() < STOPS and len(self.stopped) < MOST_STOPPED:
                self.stop()
            else:
                self.kill()
            if time.monotonic() - told_at > 10:
                told_at = time.monotonic()
                done, stops = self.counts["kills"], self.counts["stops"]
                print(f"{done} kills, {stops} stops, {done / (told_at - began):.1f} kills a second", flush=True)

    def pause(self, seconds: float) -> None:
        """Wait, and meanwhile start anew what ended without being killed."""
        until = time.monotonic() + seconds
        while signal.sigtimedwait((signal.SIGCHLD,), max(0.0, until - time.monotonic())) is not None:
            self.bury()

    def bury(self) -> None:
        for pid in list(self.slots):  # not any child: servers may be among them
            ended, status = os.waitpid(pid, os.WNOHANG)
            if ended:
                slot = self.slots.pop(pid)
                self.stopped.pop(pid, None)
                self.errors.append(f"worker {slot}-{self.lives[slot] - 1} ended by itself, with {status}")
                self.start(slot)

    def wake_up(self) -> None:
        for pid, until in list(self.stopped.items()):
            if until <= time.monotonic():
                del self.stopped[pid]
                os.kill(pid, signal.SIGCONT)
                self.counts["zombies"] += 1

    def stop(self) -> None:
        pid = self.dice.choice([pid for pid in self.slots if pid not in self.stopped])
        os.kill(pid, signal.SIGSTOP)
        if self.writer() == pid and self.dice.random() < 0.9:
            os.kill(pid, signal.SIGCONT)  # now and then is enough: while a writer sleeps, nothing can be killed at work
            return
        self.stopped[pid] = time.monotonic() + self.dice.uniform(*STOPPED_FOR)
        self.counts["stops"] += 1

    def kill(self) -> None:
        pid = self.aim() if self.dice.random() < AIMED else None
        if pid is None:
            pid = self.dice.choice(list(self.slots))
        else:
            self.counts["aimed"] += 1
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        self.stopped.pop(pid, None)
        self.counts["kills"] += 1
        self.start(self.slots.pop(pid))

    def aim(self) -> int | None:
        """Whoever writes, a little later: anywhere between the beginning of its transaction and the end."""
        for _ in range(LOOKS):
            pid = self.writer()
            if pid in self.slots and pid not in self.stopped:
                until = time.perf_counter() + self.dice.uniform(0, 0.0015)
                while time.perf_counter() < until:
                    pass  # no sleep is that short
                return pid
        return None

    def writer(self) -> int | None:
        """The process that the kernel says has the store's lock file; None where it has no such table, too."""
        try:
            wanted = f":{(self.folder / 'tenure.db.lock').stat().st_ino}"
            table = Path("/proc/locks").read_text("ascii")
        except OSError:
            return None
        for line in table.splitlines():
            kind, *_, pid, file, _, _ = line.split()[1:]
            if kind == "FLOCK" and file.endswith(wanted):
                return int(pid)
        return None

    def wait_for_answers(self, growth: int) -> None:
        """Until the workers' logs have grown by so many bytes since now: a few hundred are an answer."""
        enough = self.logged() + growth
        until = time.monotonic() + PATIENCE
        while self.logged() < enough:
            self.pause(0.01)
            if time.monotonic() > until:
                raise AssertionError("the workers are not answered any more")

    def logged(self) -> int:
        return sum(path.stat().st_size for path in (self.folder / "logs").iterdir())

    def end(self) -> None:
        for pid in self.slots:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
        self.slots.clear()


class StormOnPostgres(Storm):
    """The server tells who is in a transaction: workers give their process id as the name of the application."""

    def __init__(
        self, folder: Path, processes: int, seed: int, server: PostgresServer, worker: type[Worker] = Worker
    ) -> None:
        super().__init__(folder, processes, seed, worker)
        self.server = server

    def aim(self) -> int | None:
        name = self.asked_until(f"SELECT application_name FROM {AT_WORK}", seconds=1.0)
        pid = int(name.rpartition("-")[2]) if name is not None else None
        return pid if pid in self.slots and pid not in self.stopped else None

    def asked_until(self, statement: str, seconds: float) -> str | None:
        """The first answer that there is within so many seconds."""
        until = time.monotonic() + seconds
        with psycopg.connect(self.server.url, autocommit=True) as link:
            while time.monotonic() < until:
                row = link.execute(statement.encode()).fetchone()
                if row is not None and row[0] is not False:
                    return str(row[0])
        return None


def in_child(work: Callable[[], object]) -> int:
    """The id of a new process that does this and nothing else."""
    pid = os.fork()
    if pid:
        return pid
    code = 1
    try:
        work()
        code = 0
    except BaseException:  # noqa: BLE001  # a forked child must never return into its parent's code
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code)


def found(folder: Path) -> None:
    (folder / "logs").mkdir()
    engine = open_engine(folder)
    engine.do(commands.DefineProject(project=PROJECT))
    engine.store.close()


def make_store(folder: Path) -> None:
    """In a process of its own: a store that was open must not be used behind a fork."""
    _, status = os.waitpid(in_child(lambda: found(folder)), 0)
    assert status == 0, "no store could be made"


@contextmanager
def ends(raging: Storm) -> Iterator[None]:
    """Whatever happens in the block, the workers end with it; their ends wait to be asked for meanwhile."""
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGCHLD,))
    try:
        yield
    finally:
        raging.end()
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)


def judged(folder: Path, raging: Storm) -> Verdict:
    result = verdict(folder)
    for error in raging.errors:
        result.find("error", error)
    return result


def storm(
    folder: Path,
    kills: int,
    processes: int,
    rate: float,
    seed: int,
    server: StoreHost | None = None,
) -> tuple[Counter[str], Verdict]:
    """What was done to the workers, and what became of their work."""
    if server is not None:
        (folder / NAMED).write_text(server.place("storm"))
    make_store(folder)
    raging = Storm(folder, processes, seed)  # other servers do not say whose transaction is under way: the dice aim
    if isinstance(server, PostgresServer):
        raging = StormOnPostgres(folder, processes, seed, server)
    with ends(raging):
        raging.rage(kills, rate)
    return raging.counts, judged(folder, raging)


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="storm", description=__doc__)
    parser.add_argument("--kills", type=int, default=10_000)
    parser.add_argument("--processes", type=int, default=8)
    parser.add_argument("--rate", type=float, help="kills a second, about; 20, on a server 6")
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 30))
    parser.add_argument("--store", choices=("sqlite", *SERVERS), default="sqlite")
    parser.add_argument("--keep", action="store_true", help="leave the store and the logs where they are")
    wanted = parser.parse_args(argv)
    # A worker on a server has to connect, and its first statements are planned: it is at work after 50 ms, not 5.
    rate = wanted.rate or (6.0 if wanted.store in SERVERS else 20.0)
    end_when_told()
    folder = Path(tempfile.mkdtemp(prefix="tenure-storm-"))
    began = time.monotonic()
    print(f"seed {wanted.seed}, in {folder}", flush=True)
    with SERVERS[wanted.store].new() if wanted.store in SERVERS else nullcontext() as server:
        blows, result = storm(folder, wanted.kills, wanted.processes, rate, wanted.seed, server)
    seconds = time.monotonic() - began
    for kind, text in result.findings[:50]:
        print(f"{kind}: {text}")
    failed = bool(result.findings)
    if not (failed or wanted.keep):
        shutil.rmtree(folder)
    count = result.counts
    for name, number in sorted(count.items()):
        print(f"{number:8} {name}")
    kinds = Counter(kind for kind, _ in result.findings)
    named = {kind: kinds.pop(kind, 0) for kind in ("lost", "double", "limbo")}
    numbers: dict[str, results.Figure] = {
        "kills": blows["kills"], "aimed": blows["aimed"], "zombies": blows["zombies"] + count["submissions by heirs"],
        "claims": count["claims"], "accepted": count["accepted"], "refused": count["submissions refused"],
        **named, "other": kinds.total(), "seconds": round(seconds),
        "kills_per_second": round(blows["kills"] / seconds, 1),
    }  # fmt: skip
    results.tell("storm", numbers, variant=wanted.store if wanted.store != "sqlite" else "")
    return 1 if failed else 0
