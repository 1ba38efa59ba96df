"""The primary of a replicated pair is killed with kill -9 and the standby promoted, while agents work.

Synchronous pair: workers go on at the promoted server, and nothing acknowledged may be lost or doubled. Asynchronous
pair: the standby is held back, so that acknowledged commits are really lost; agents that hold receipts of the lost
history (zombies) must be refused.
"""

from __future__ import annotations

import argparse
import random
import shutil
import tempfile
import time
from collections import Counter
from pathlib import Path

import psycopg

from tests.reliability import results
from tests.reliability.chaos_worker import Steadfast
from tests.reliability.failover_lost import Lost, lose
from tests.reliability.ground import end_when_told
from tests.reliability.storm import Storm, ends, judged, make_store
from tests.reliability.storm_answers import Verdict
from tests.reliability.storm_worker import NAMED
from tests.servers.replication import Pair
from tests.servers.valkey_replication import ValkeyPair

GROWTH = 30_000  # bytes that the workers' logs grow by between two blows: more than a hundred answers
AIMING = 2.0  # seconds
PAIRS: dict[str, type[Pair | ValkeyPair]] = {"postgres": Pair, "valkey": ValkeyPair}


class Failovers(Storm):
    def fail_over(self, times: int, pair: Pair) -> None:
        for slot in range(len(self.lives)):
            self.start(slot)
        for number in range(times):
            pair.be_synchronous()
            self.wait_for_answers(GROWTH)
            if number % 2 == 0:
                pair.hold_back()  # so that some commits are done on the primary alone, and not yet answered
            self.counts["aimed"] += self.wait_for_commit(pair)
            pair.kill_primary()
            began = time.monotonic()
            pair.promote()
            self.wait_for_answers(GROWTH)
            print(f"failover {number + 1}: workers go on after {time.monotonic() - began:.1f} s", flush=True)
            self.counts["failovers"] += 1
            pair.follow()

    def wait_for_commit(self, pair: Pair) -> bool:
        """Until one is done on the primary and waits for the standby; whether there was one."""
        until = time.monotonic() + AIMING
        with psycopg.connect(pair.primary.url, autocommit=True) as link:
            while time.monotonic() < until:
                if link.execute("SELECT 1 FROM pg_stat_activity WHERE wait_event = 'SyncRep' LIMIT 1").fetchone():
                    return True
        return False


def synchronous(folder: Path, times: int, processes: int, seed: int) -> Verdict:
    """What became of the work of all, after so many failovers."""
    with Pair() as pair:
        (folder / NAMED).write_text(f"{pair.url}?schema=storm")
        make_store(folder)
        failing = Failovers(folder, processes, seed, Steadfast)
        with ends(failing):
            failing.fail_over(times, pair)
        result = judged(folder, failing)
    result.counts["failovers"] = failing.counts["failovers"]
    result.counts["failovers while a commit waited for the standby"] = failing.counts["aimed"]
    return result


def asynchronous(times: int, kind: type[Pair | ValkeyPair] = Pair) -> Lost:
    total = Lost()
    for number in range(times):
        with kind() as pair:
            one = lose(pair)
        print(f"lossy failover {number + 1}:", *(f"{n}={v}" for n, v in one.told().items()), flush=True)
        total += one
    return total


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="failover", description=__doc__)
    parser.add_argument("--sync", type=int, default=10, help="failovers of a synchronous pair")
    parser.add_argument("--async", type=int, default=5, dest="lossy", help="of an asynchronous one")
    parser.add_argument("--processes", type=int, default=4)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 30))
    parser.add_argument("--store", choices=PAIRS, default="postgres", help="valkey: asynchronous alone")
    wanted = parser.parse_args(argv)
    end_when_told()
    print(f"seed {wanted.seed}", flush=True)
    failed = False
    if wanted.sync and wanted.store == "postgres":
        folder = Path(tempfile.mkdtemp(prefix="tenure-failover-"))
        began = time.monotonic()
        result = synchronous(folder, wanted.sync, wanted.processes, wanted.seed)
        for kind, text in result.findings[:50]:
            print(f"{kind}: {text}")
        for name, number in sorted(result.counts.items()):
            print(f"{number:8} {name}")
        failed = bool(result.findings)
        if failed:
            print(f"the workers' logs are in {folder}")
        else:
            shutil.rmtree(folder)
        kinds = Counter(kind for kind, _ in result.findings)
        named = {kind.replace(" ", "_"): kinds.pop(kind, 0) for kind in ("lost", "double", "falsely stale", "limbo")}
        count = result.counts
        numbers: dict[str, results.Figure] = {
            "failovers": count["failovers"], "unknown": count["answers unknown"], "claims": count["claims"],
            "accepted": count["accepted"], **named, "other": kinds.total(),
            "seconds": round(time.monotonic() - began),
        }  # fmt: skip
        results.tell("failover", numbers, part="synchronous")
    if wanted.lossy:
        began = time.monotonic()
        total = asynchronous(wanted.lossy, PAIRS[wanted.store])
        for text in total.findings:
            print(text)
        failed = failed or bool(total.findings)
        numbers = {"failovers": wanted.lossy, **total.told(), "other": len(total.findings)}
        results.tell(
            "failover",
            numbers | {"seconds": round(time.monotonic() - began)},
            part="asynchronous",
            variant="" if wanted.store == "postgres" else wanted.store,
        )
    return 1 if failed else 0
