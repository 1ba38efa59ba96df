"""Connections, backends, the server and workers are broken on PostgreSQL; nothing acknowledged may be lost or doubled.

Worker processes share one project of a real server, through a proxy of ours that cuts answers off after their commit,
cuts requests in two, resets, swallows, holds up and delays; besides, backends are ended politely and with kill -9, the
server is shut down at once and started again, and workers are killed. A fault counts when it has hit something that
was under way. At the end every answer that a worker wrote down is compared with the store, and what is left is worked
off.
"""

from __future__ import annotations

import argparse
import os
import random
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Self

import psycopg

from tests.reliability import results
from tests.reliability.chaos_worker import Steadfast
from tests.reliability.ground import end_when_told
from tests.reliability.storm import AT_WORK, StormOnPostgres, ends, judged, make_store
from tests.reliability.storm_answers import Verdict
from tests.reliability.storm_worker import NAMED
from tests.reliability.wire_proxy import FAULTS
from tests.servers.postgres import PostgresServer
from tests.servers.processes import PATIENCE, end_with_us

# How many of each kind among a hundred.
SHARES = {
    "cut after the commit": 26, "cut before the commit": 10, "cut in a request": 10, "reset": 10, "half-open": 6,
    "black hole": 6, "delay": 5, "backend terminated": 10, "backend killed": 5, "server restarted": 4,
    "worker killed": 8,
}  # fmt: skip
SOON = 5.0  # seconds in which a fault must find its mark
TRIES = 3  # for each fault that is asked for
MARK = f"SELECT pid FROM {AT_WORK}"
TERMINATED = f"SELECT pg_terminate_backend(pid) FROM {AT_WORK}"


class Proxy:
    """The proxy's process, seen from here."""

    def __init__(self, server_port: int, seed: int) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.reliability.wire_proxy", str(server_port), str(seed)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1, preexec_fn=end_with_us(),  # noqa: PLW1509 - it calls the kernel and nothing of Python's
        )  # fmt: skip
        self.port = int(self._heard(PATIENCE) or 0)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.kill()
        self._process.communicate()

    def strike(self, fault: str) -> bool:
        """Whether it has hit something, within a few seconds."""
        self._say(fault)
        answer = self._heard(SOON)
        if answer is None:
            self._say("never mind")
            answer = self._heard(PATIENCE)
        return answer == "hit"

    def _say(self, line: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(f"{line}\n")

    def _heard(self, seconds: float) -> str | None:
        assert self._process.stdout is not None
        if not select.select([self._process.stdout], [], [], seconds)[0]:
            return None
        return self._process.stdout.readline().strip()


class Faults(StormOnPostgres):
    """Strikes faults one after another, each until it has hit."""

    shares: dict[str, int]  # how many of each kind among a hundred
    missed: Counter[str]

    def break_things(self, faults: int, rate: float) -> None:
        """So many faults, at most at about so many a second."""
        for slot in range(len(self.lives)):
            self.start(slot)
        self.pause(0.5)
        self.missed = Counter()
        left = deck(faults, self.dice, self.shares)
        tries = TRIES * faults
        told_at = began = time.monotonic()
        while left and tries:
            tries -= 1
            fault = left.pop()
            if self.strike(fault):
                self.counts[fault] += 1
            else:
                self.missed[fault] += 1
                left.insert(0, fault)
            self.pause(self.dice.expovariate(rate))
            if time.monotonic() - told_at > 10:
                told_at = time.monotonic()
                print(f"{faults - len(left)} faults in {told_at - began:.0f} s", flush=True)
        for fault in left:
            self.errors.append(f"a fault never found anything to hit: {fault}")

    def strike(self, fault: str) -> bool:
        """Whether it has hit something."""
        if fault == "worker killed":
            self.kill()
            return True
        if fault == "server restarted":
            return self.restart()
        return self.terminate() if fault == "backend terminated" else self.kill_backend()

    def terminate(self) -> bool:
        return self.asked_until(TERMINATED, SOON) is not None

    def kill_backend(self) -> bool:
        """The server cannot trust its shared memory after that: it ends every backend, and recovers from its log."""
        before = self.crashes()
        pid = self.asked_until(MARK, SOON)
        if pid is None:
            return False
        try:
            os.kill(int(pid), signal.SIGKILL)
        except ProcessLookupError:
            return False
        until = time.monotonic() + PATIENCE
        while self.crashes() == before and time.monotonic() < until:
            self.pause(0.02)
        self.wait_for_server()
        return self.crashes() > before

    def crashes(self) -> int:
        return self.server.log.read_text(errors="replace").count("was terminated by signal 9")

    def restart(self) -> bool:
        assert self.server.process is not None
        hit = self.asked_until(MARK, SOON) is not None
        self.server.process.send_signal(signal.SIGQUIT)
        self.server.process.wait(PATIENCE)
        self.server.run()
        return hit

    def wait_for_server(self) -> None:
        until = time.monotonic() + PATIENCE
        while time.monotonic() < until:
            try:
                psycopg.connect(self.server.url, connect_timeout=2).close()
            except psycopg.OperationalError:
                self.pause(0.02)
            else:
                return
        self.errors.append("the server did not come back")


class Chaos(Faults):
    """On the wire too."""

    def __init__(self, folder: Path, processes: int, seed: int, server: PostgresServer, proxy: Proxy) -> None:
        super().__init__(folder, processes, seed, server, Steadfast)
        self.shares = SHARES
        self.proxy = proxy

    def strike(self, fault: str) -> bool:
        return self.proxy.strike(fault) if fault in FAULTS else super().strike(fault)


def deck(faults: int, dice: random.Random, shares: dict[str, int]) -> list[str]:
    """So many faults, in these shares but each kind at least once if there is room, shuffled."""
    kinds = list(shares)
    rest = [kind for kind, share in shares.items() for _ in range(share * faults // 100)]
    more = dice.choices(kinds, list(shares.values()), k=faults)
    chosen = (kinds + rest + more)[:faults] if faults < sum(shares.values()) else (rest + more)[:faults]
    dice.shuffle(chosen)
    return chosen


def chaos(folder: Path, faults: int, processes: int, rate: float, seed: int) -> tuple[Faults, Verdict]:
    """What was struck, and what became of the work."""
    named = folder / NAMED
    with PostgresServer() as server, Proxy(server.port, seed) as proxy:
        direct = f"{server.url}?schema=storm"
        named.write_text(direct)
        make_store(folder)
        # TLS would hide the messages from the proxy
        named.write_text(direct.replace(f":{server.port}/", f":{proxy.port}/") + "&sslmode=disable&gssencmode=disable")
        raging = Chaos(folder, processes, seed, server, proxy)
        with ends(raging):
            raging.break_things(faults, rate)
        named.write_text(direct)
        result = judged(folder, raging)
    result.expect(result.counts["answers unknown"] > 0, "error", "no answer was ever unknown: nothing was proved")
    return raging, result


Proof = Callable[[Path, int, int, float, int], tuple[Faults, Verdict]]


def main(argv: list[str]) -> int:
    return prove("chaos", chaos, argv, __doc__ or "", rate=8.0)


def prove(name: str, proof: Proof, argv: list[str], about: str, *, rate: float) -> int:
    """Run it as its arguments say, and tell what it found."""
    parser = argparse.ArgumentParser(prog=name, description=about)
    parser.add_argument("--faults", type=int, default=500)
    parser.add_argument("--processes", type=int, default=6)
    parser.add_argument("--rate", type=float, default=rate, help="faults a second, at most")
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 30))
    parser.add_argument("--keep", action="store_true", help="leave the logs where they are")
    wanted = parser.parse_args(argv)
    end_when_told()
    folder = Path(tempfile.mkdtemp(prefix=f"tenure-{name}-"))
    began = time.monotonic()
    print(f"seed {wanted.seed}, in {folder}", flush=True)
    struck, result = proof(folder, wanted.faults, wanted.processes, wanted.rate, wanted.seed)
    hits, missed = struck.counts, struck.missed
    seconds = time.monotonic() - began
    for kind, text in result.findings[:50]:
        print(f"{kind}: {text}")
    if not (result.findings or wanted.keep):
        shutil.rmtree(folder)
    count = result.counts
    for what, number in sorted(count.items()):
        print(f"{number:8} {what}")
    for fault in struck.shares:
        print(f"{hits[fault]:8} {fault}: hit" + (f" (and {missed[fault]} that hit nothing)" if missed[fault] else ""))
    kinds = Counter(kind for kind, _ in result.findings)
    named = {kind.replace(" ", "_"): kinds.pop(kind, 0) for kind in ("lost", "double", "falsely stale", "limbo")}
    numbers: dict[str, results.Figure] = {
        "faults": sum(hits[fault] for fault in struck.shares), "kinds": sum(hits[fault] > 0 for fault in struck.shares),
        "unknown": count["answers unknown"], "found_done": count["unknown, then found done"],
        "claims": count["claims"], "accepted": count["accepted"], "refused": count["submissions refused"],
        **named, "other": kinds.total(), "seconds": round(seconds),
    }  # fmt: skip
    results.tell(name, numbers)
    return 1 if result.findings else 0
