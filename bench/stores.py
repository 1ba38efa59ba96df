"""Claims and submits on every store, in the same run, all durable, all on the same disk."""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import redis

from bench.report import Figure, show
from tenure.core import commands
from tenure.core.commands import Command, NewTask
from tenure.core.outcomes import Outcome
from tenure.engine import Context, Engine
from tenure.stores.open_store import open_store
from tests.servers.mariadb import MariadbServer
from tests.servers.postgres import PostgresServer
from tests.servers.valkey import ValkeyServer

BATCH = 100
SQLITE = "SQLite"
ORDINARY = "PostgreSQL, ordinary path"


class Chance:
    def token(self, size: int) -> bytes:
        return os.urandom(size)

    def fraction(self) -> float:
        return 0.5


class Player:
    """One engine on one store, with a hundred agents."""

    def __init__(self, url: str, tasks: int, context: Context) -> None:
        self.engine = Engine(open_store(url), Chance(), context)
        self.engine.do(commands.DefineProject(project="p"))
        while tasks > 0:
            made = tuple(NewTask(title=f"t{n}") for n in range(min(500, tasks)))
            self.engine.do(commands.Plan(project="p", tasks=made))
            tasks -= 500

    def cycle(self, count: int, batch: int) -> tuple[float, float]:
        """Seconds that the claims of `count` tasks took, and their submits."""
        claimed = submitted = 0.0
        for start in range(0, count, batch):
            agents = range(start % BATCH, start % BATCH + batch)
            asked = [commands.ClaimNext(project="p", agent=f"a{n}", session=f"s{n}") for n in agents]
            held, seconds = timed(lambda asked=asked: self._run(asked, "GRANTED"))  # type: ignore[misc]
            claimed += seconds
            done = [commands.Submit(project="p", receipt=str(one.receipt), data="ok") for one in held]
            submitted += timed(lambda done=done: self._run(done, "ACCEPTED"))[1]  # type: ignore[misc]
        return claimed, submitted

    def _run(self, batch: list[Command], wanted: str) -> list[Outcome]:
        answers = self.engine.run(batch)
        wrong = [a for a in answers if not isinstance(a, Outcome) or a.outcome != wanted]
        assert not wrong, wrong[0]
        return [a for a in answers if isinstance(a, Outcome)]


def timed(action: Callable[[], list[Outcome]]) -> tuple[list[Outcome], float]:
    began = time.perf_counter()
    made = action()
    return made, time.perf_counter() - began


def used_by(url: str) -> float:
    """Bytes that the server's data takes."""
    with redis.Redis.from_url(url) as link:
        found = link.info("memory")
    return float(found["used_memory_dataset"])


@contextmanager
def servers(given: argparse.Namespace) -> Iterator[dict[str, str]]:
    place = Path(given.folder or tempfile.gettempdir())
    with ExitStack() as ours:
        folder = ours.enter_context(tempfile.TemporaryDirectory(prefix="tenure-bench-", dir=given.folder))
        postgres = given.url or ours.enter_context(PostgresServer.measured(place)).url
        postgres += f"{'&' if '?' in postgres else '?'}schema=bench_{os.getpid()}"
        mariadb = ours.enter_context(MariadbServer.measured(place))
        valkey = ours.enter_context(ValkeyServer(is_durable=True, place=place))
        yield {
            SQLITE: f"sqlite://{folder}/store.db",
            "PostgreSQL": postgres,
            ORDINARY: f"{postgres}_ordinary",
            "MariaDB": mariadb.place("bench"),
            "Valkey": valkey.url(),
        }


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="./x bench stores", description=__doc__)
    parser.add_argument("--singles", type=int, default=300, help="tasks claimed and submitted one at a time, a round")
    parser.add_argument("--batches", type=int, default=10, help=f"batches of {BATCH}, a round")
    parser.add_argument("--rounds", type=int, default=3, help="of each store in turn; the best of each counts")
    parser.add_argument("--url", help="a PostgreSQL server that runs already; else one is started")
    parser.add_argument("--folder", help="where files go")
    parser.add_argument("--json", action="store_true", help="one object a line")
    given = parser.parse_args(argv)
    best: dict[tuple[str, str], float] = {}
    with servers(given) as urls:
        tasks = (given.rounds * (given.singles + given.batches * BATCH)) + 400
        players = {name: Player(url, tasks, Context(fast_path=name != ORDINARY)) for name, url in urls.items()}
        for player in players.values():  # agents become known, statements are prepared
            player.cycle(BATCH, 1)
            player.cycle(BATCH, BATCH)
        for _ in range(given.rounds):
            for name, player in players.items():
                for size, count in ((1, given.singles), (BATCH, given.batches * BATCH)):
                    for verb, seconds in zip(("claims", "submits"), player.cycle(count, size), strict=True):
                        what = f"{verb}, {'one at a time' if size == 1 else f'{size} a batch'}"
                        best[what, name] = max(best.get((what, name), 0.0), count / seconds)
        memory = used_by(urls["Valkey"]) / tasks
        for player in players.values():
            assert player.engine.verify(with_replay=False) == []
            player.engine.store.close()
    figures = [
        Figure(f"{name}: {what}", value, "1/s", best[what, base], value / best[what, base], goal)
        for name, base, goal in (
            (SQLITE, SQLITE, ""),
            ("PostgreSQL", SQLITE, ""),
            (ORDINARY, SQLITE, ""),
            ("MariaDB", SQLITE, ""),
            ("Valkey", SQLITE, ""),
            ("MariaDB", ORDINARY, "≥ 0.5"),
        )
        for (what, whose), value in best.items()
        if whose == name
    ]
    figures.append(Figure("Valkey: memory of a task", memory, "bytes"))
    show(figures, as_json=given.json)
    print("(baseline: SQLite; of MariaDB's last lines PostgreSQL's ordinary path)") if not given.json else None
    return 0
