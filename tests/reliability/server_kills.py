"""The server of a store is killed with kill -9 again and again while agents work; nothing is lost or done twice.

Workers outlive their connections: what is unknown they ask again with the same request id. The server is killed at a
random moment after some work was acknowledged, and starts on the files that it left. Of a Galera cluster the node that
all use is killed, the others go on, and it joins them again. At the end every answer that a
worker wrote down is compared with the store, and what is left is worked off.
"""

from __future__ import annotations

import argparse
import random
import shutil
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from tests.reliability import results
from tests.reliability.chaos_worker import Steadfast
from tests.reliability.ground import end_when_told
from tests.reliability.storm import Storm, ends, judged, make_store
from tests.reliability.storm_answers import Verdict
from tests.reliability.storm_worker import NAMED
from tests.servers.galera import Galera
from tests.servers.processes import StoreHost
from tests.servers.store_servers import SERVERS

KINDS: dict[str, Callable[[], StoreHost]] = {**{kind: server.new for kind, server in SERVERS.items()}, "galera": Galera}
GROWTH = 5000  # bytes that the workers' logs grow by between two kills: about twenty answers


class ServerKills(Storm):
    def kill_servers(self, times: int, server: StoreHost) -> None:
        for slot in range(len(self.lives)):
            self.start(slot)
        told_at = time.monotonic()
        for number in range(times):
            self.wait_for_answers(GROWTH)
            self.pause(self.dice.uniform(0, 0.03))  # anywhere in a commit
            server.kill()
            if server.goes_on:
                self.wait_for_answers(GROWTH)
            server.run()
            self.counts["kills"] += 1
            if time.monotonic() - told_at > 10:
                told_at = time.monotonic()
                print(f"{number + 1} kills", flush=True)
        self.wait_for_answers(GROWTH)


def kill_servers(folder: Path, store: str, kills: int, processes: int, seed: int) -> tuple[ServerKills, Verdict]:
    with KINDS[store]() as server:
        (folder / NAMED).write_text(server.place("kills"))
        make_store(folder)
        raging = ServerKills(folder, processes, seed, Steadfast)
        with ends(raging):
            raging.kill_servers(kills, server)
        result = judged(folder, raging)
    result.expect(result.counts["answers unknown"] > 0 or kills < 20, "error", "no answer was ever unknown")
    return raging, result


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="server_kills", description=__doc__)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--store", choices=KINDS, default="postgres")
    parser.add_argument("--processes", type=int, default=4)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 30))
    wanted = parser.parse_args(argv)
    end_when_told()
    folder = Path(tempfile.mkdtemp(prefix="tenure-kills-"))
    began = time.monotonic()
    print(f"seed {wanted.seed}, in {folder}", flush=True)
    raging, result = kill_servers(folder, wanted.store, wanted.kills, wanted.processes, wanted.seed)
    for kind, text in result.findings[:50]:
        print(f"{kind}: {text}")
    if not result.findings:
        shutil.rmtree(folder)
    count, kinds = result.counts, Counter(kind for kind, _ in result.findings)
    named = {kind.replace(" ", "_"): kinds.pop(kind, 0) for kind in ("lost", "double", "falsely stale", "limbo")}
    numbers: dict[str, results.Figure] = {
        "kills": raging.counts["kills"], "unknown": count["answers unknown"],
        "found_done": count["unknown, then found done"], "claims": count["claims"], "accepted": count["accepted"],
        **named, "other": kinds.total(), "seconds": round(time.monotonic() - began),
    }  # fmt: skip
    results.tell("server_kills", numbers, variant=wanted.store)
    return 1 if result.findings else 0
