"""Servers and their store are stopped: a real Prometheus fires each of the shipped alerts, and ends it afterwards.

It scrapes one server twice, as the job `token` with the metrics token and as the job `key` with an API key. Every
duration of the rules is divided by one factor, which is printed; so are the seconds until each alert fires and ends.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from pathlib import Path

from tenure.client import Client
from tenure.core import commands as c
from tests.reliability.results import tell
from tests.servers import processes
from tests.servers.postgres import PostgresServer
from tests.servers.prometheus import Prometheus
from tests.servers.tenure import TenureServer

TOKEN = "5f" * 32
PATIENCE = 60.0  # seconds of this host, beside what the rules themselves wait
LONGEST_FOR = 7 * 60  # seconds: until the slowest of these alerts fires, without a factor
Alert = tuple[str, str]


def both(*names: str) -> frozenset[Alert]:
    return frozenset((name, job) for name in names for job in ("token", "key"))


AWAY, ONE_AWAY = both("TenureServersAway"), both("TenureServerAway")
STORE = both("TenureStoreAway", "TenureStoreAwayForOne")
NO_LEADER = both("TenureNoLeader")
ALL = AWAY | ONE_AWAY | STORE | NO_LEADER


def of_job(job: str, alerts: frozenset[Alert]) -> frozenset[Alert]:
    return frozenset(alert for alert in alerts if alert[1] == job)


class Drill:
    def __init__(self, store: PostgresServer, server: TenureServer, prometheus: Prometheus, factor: float) -> None:
        self.store, self.server, self.prometheus, self.factor = store, server, prometheus, factor
        self.figures: dict[str, int | float | str] = {"factor": factor}
        self.errors: list[str] = []

    def cause(
        self, name: str, causes: Callable[[], object], wanted: frozenset[Alert], unwanted: frozenset[Alert]
    ) -> None:
        """Do what causes the condition: each of `wanted` fires, and none of `unwanted`."""
        causes()
        self.figures[f"{name}_fired_s"] = self._until(f"{name}: fires", lambda firing: wanted <= firing, wanted)
        wrong = unwanted & self.prometheus.firing()
        self.errors += [f"{name}: {alert} of {job} fires too" for alert, job in sorted(wrong)]

    def end(self, name: str) -> None:
        """What caused it is over: every alert ends."""
        self.figures[f"{name}_ended_s"] = self._until(f"{name}: ends", lambda firing: not firing & ALL, frozenset())

    def _until(self, what: str, is_so: Callable[[set[Alert]], bool], wanted: frozenset[Alert]) -> float:
        began = time.monotonic()
        most = PATIENCE + LONGEST_FOR / self.factor
        while not is_so(firing := self.prometheus.firing()):
            if time.monotonic() - began > most:
                missing = sorted(wanted - firing) or sorted(firing & ALL)
                self.errors.append(f"{what}: not within {most:.0f} s: {missing}")
                break
            time.sleep(0.1)
        seconds = round(time.monotonic() - began, 1)
        print(f"{what} after {seconds} s")
        return seconds

    def run(self) -> None:
        self._until("at first nothing fires and both jobs answer", lambda firing: not firing & ALL, frozenset())
        until = time.monotonic() + PATIENCE
        while len(self.prometheus.values("up==1")) < 2 and time.monotonic() < until:
            time.sleep(0.1)
        self.cause("server_killed", self.server.kill, AWAY | ONE_AWAY | NO_LEADER, STORE)
        self.server.start()
        self.end("server_killed")
        assert self.store.process is not None
        stop = partial(processes.end, self.store.process)
        self.cause("store_stopped", stop, STORE | NO_LEADER, AWAY | ONE_AWAY)
        # A server that is started again remembers no key, so that of Prometheus is refused; the token still counts.
        refused = frozenset({("TenureServersAway", "key")})
        self.cause("restarted_meanwhile", self._restart, of_job("token", STORE) | refused, of_job("token", AWAY))
        self.store.run()
        self.end("store_stopped")

    def _restart(self) -> None:
        self.server.kill()
        self.server.start()


def drilled(factor: float, workers: int) -> Drill:
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="tenure-alerts-")))
        (folder / "token").write_text(TOKEN)
        store = stack.enter_context(PostgresServer())
        with Client(store.url, "alerts", create=True) as client:
            client.init()
            key = client.do(c.CreateKey(name="prometheus", role="viewer")).secret
        assert key is not None
        settings = {"TENURE_SERVE_AUTH": "required", "TENURE_SERVE_METRICS_TOKEN": str(folder / "token")}
        server = stack.enter_context(TenureServer(store.url, "--workers", str(workers), settings=settings))
        place = f"127.0.0.1:{server.port}"
        jobs = {"token": (place, TOKEN), "key": (place, key)}
        drill = Drill(store, server, stack.enter_context(Prometheus(jobs, factor)), factor)
        drill.run()
        if drill.errors:
            print(server.log.read_text(errors="replace")[-2000:])
        return drill


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="./x reliability alerts", description=__doc__)
    parser.add_argument(
        "--factor", type=float, default=30.0, help="what every duration of the rules is divided by (30)"
    )
    parser.add_argument("--workers", type=int, default=1, help="processes of the server (1)")
    given = parser.parse_args(argv)
    print(f"every duration of the rules is divided by {given.factor:g}: `for: 5m` is {300 / given.factor:g} s")
    drill = drilled(given.factor, given.workers)
    for error in drill.errors:
        print(error)
    tell("alerts", {**drill.figures, "workers": given.workers}, variant="workers" if given.workers > 1 else "")
    return int(bool(drill.errors))
