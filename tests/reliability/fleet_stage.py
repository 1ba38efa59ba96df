"""What the parts of the proof `fleet` share: a store with a pool, a server on it, and a watch over both.

The watch reads the rows and the process table all the time. It counts the spawns that are able to claim, the processes
that exist, and the money that is spent or reserved, each at one moment.
"""

from __future__ import annotations

import os
import random
import shlex
import signal
import socket
import subprocess
import sys
import threading
import time
import uuid
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Any

from tenure.client import Client
from tenure.core import pools
from tenure.core.commands import NewTask
from tenure.core.records import Budget, RetryPolicy, Spawn
from tests.processes.marks import marked
from tests.servers.processes import end_with_us, free_port

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
PROJECT = "fleet"
AFTER_OFFER = 10.0  # seconds in which a spawn that claimed nothing, or a surplus process, must be over
PATIENCE = 600.0


class Stage:
    """One part: `settings` are lines of tenure.toml besides the program `bot`."""

    def __init__(
        self, folder: Path, url: str, *, size: int, offer: float, work: float, seed: int, settings: str = "",
        spawner: str = "local", dies: int = 0, pool_count: int = 1,
    ) -> None:  # fmt: skip
        """`dies`: one in so many agents kills its runner; 0: none."""
        self.folder, self.url, self.size, self.offer, self.seed = folder, url, size, offer, seed
        folder.mkdir()
        self.mark = uuid.uuid4().hex
        self.port = free_port()
        self.down: list[tuple[float, float]] = []  # when no server listened
        self._ended_at: float | None = None
        self.server: subprocess.Popen[bytes] | None = None
        self.words = [
            sys.executable, str(HERE / "fleet_agent.py"), str(folder), str(work), str(seed), str(dies),
        ]  # fmt: skip
        text = f'[programs.bot]\nagent = "{shlex.join(self.words)}"\noptions = ["--grace", "1"]\n{settings}\n'
        text += f'[spawners.local]\nlog = "{folder / "children"}"\n'
        (folder / "tenure.toml").write_text(text)
        self.client = Client(url, PROJECT, agent="proof", session="proof", create=True)
        self.client.init()
        self.pools = [f"bots{number}" for number in range(pool_count)]
        for pool in self.pools:
            self.client.set_pool(pool, "bot", size=size, spawner=spawner)
        self.wrong: list[str] = []
        self.figures: Counter[str] = Counter()
        self._tenure("trust", "--yes")

    def environ(self) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith("TENURE_")}
        return kept | {
            "TENURE_URL": self.url, "TENURE_PROJECT": PROJECT, "TENURE_STATE": str(self.folder / "state"),
            "TENURE_SERVE_AUTH": "open", "HOME": str(self.folder), "PROOF_MARK": self.mark,
            "PYTHONPATH": os.pathsep.join((str(ROOT), *sys.path)), "FLEET_OFFER": str(self.offer),
        }  # fmt: skip

    def _tenure(self, *words: str) -> None:
        subprocess.run(
            [sys.executable, "-P", "-m", "tenure", *words], cwd=self.folder, env=self.environ(), check=True,
            stdout=subprocess.DEVNULL,
        )  # fmt: skip

    def add(self, count: int, dice: random.Random | None = None) -> None:
        """With dice they are a graph: each depends on up to two of the ten before it."""
        retry, names = RetryPolicy(strategy="immediate", poison=0), [f"t{number}" for number in range(count)]
        needs = [dice.sample(names[:n][-10:], min(n, dice.randint(0, 2))) if dice else () for n in range(count)]
        self.client.plan(
            [
                NewTask(title="work", name=name, depends_on=tuple(needed), max_attempts=1000, retry=retry)
                for name, needed in zip(names, needs, strict=True)
            ]
        )
        self.figures["tasks"] += count

    # --- the server ---

    def serve(self, kill: str = "") -> None:
        """Start it, and wait until it listens. `kill`: the point of a spawn where it dies, and at which spawn."""
        began = self._ended_at or time.time()
        with (self.folder / "log").open("ab") as log:
            self.server = subprocess.Popen(
                [sys.executable, "-P", str(HERE / "fleet_server.py"), "serve", "--port", str(self.port)],
                cwd=self.folder, env={**self.environ(), "FLEET_KILL": kill}, stdout=log, stderr=log,
                stdin=subprocess.DEVNULL,
                preexec_fn=end_with_us(),  # noqa: PLW1509 - it calls the kernel and nothing of Python's
            )  # fmt: skip
        while self.server.poll() is None and not self._listens():
            time.sleep(0.05)
        self.down.append((began, time.time()))
        self._ended_at = None

    def _listens(self) -> bool:
        with suppress(OSError), socket.create_connection(("127.0.0.1", self.port), timeout=1):
            return True
        return False

    def dies(self, pool: str, seconds: float) -> bool:
        """Wait until the server has been killed by a spawn of the pool; False where it lives on."""
        assert self.server is not None
        give_up = time.monotonic() + seconds
        while time.monotonic() < give_up:
            with suppress(subprocess.TimeoutExpired):
                code = self.server.wait(0.5)
                self._ended_at = time.time()
                return code == -signal.SIGKILL
            self.client.resume_pool(pool)  # an operator who does not wait for the pool to back off
        return False

    def kill_server(self) -> None:
        assert self.server is not None
        self.server.kill()
        self.server.wait()
        self._ended_at = time.time()

    def kill_one(self, dice: random.Random) -> bool:
        """Kill a process of a pool: an agent, its runner, or a supervisor of either. False where there is none."""
        found = marked(f"PROOF_MARK={self.mark}")
        victims = [pid for pid in found if self.server is None or pid != self.server.pid]
        with suppress(IndexError, ProcessLookupError):
            os.kill(dice.choice(victims), signal.SIGKILL)
            return True
        return False

    def close(self) -> None:
        if self.server is not None and self.server.poll() is None:
            self.server.terminate()
            with suppress(subprocess.TimeoutExpired):
                self.server.wait(20)
        for pid in marked(f"PROOF_MARK={self.mark}"):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.client.close()

    # --- waiting ---

    def until(self, is_done: Any, what: str, seconds: float = PATIENCE) -> bool:
        """Wait; a wait that is too long is a finding."""
        give_up = time.monotonic() + seconds
        while not is_done():
            if time.monotonic() > give_up:
                self.wrong.append(f"not within {seconds:g} s: {what} ({self.client.status()['tasks']})")
                return False
            time.sleep(0.05)
        return True

    def states(self) -> dict[str, int]:
        return dict(self.client.status()["tasks"])

    def free_tasks(self) -> int:
        """Ready tasks that are not offered."""
        return self.states().get("ready", 0) - len(self.client.spawns(state=(pools.STARTING,), limit=1000))

    def is_drained(self) -> bool:
        return self.states() == {"completed": self.figures["tasks"]}

    def is_quiet(self) -> bool:
        """Nothing of a pool is open, and none of its processes runs."""
        return not self.client.spawns(state=pools.OPEN) and not self.runners()

    def runners(self) -> list[tuple[str, str]]:
        """The pool and the spawn of each `tenure run` process."""
        found = []
        for pid in marked(f"PROOF_MARK={self.mark}"):
            with suppress(OSError):
                words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
                if b"--spawn" in words:
                    agent, spawn = (words[words.index(option) + 1].decode() for option in (b"--name", b"--spawn"))
                    found.append((pool_of(agent), spawn))
        return found

    # --- what must hold at the end ---

    def check(self) -> None:
        self.wrong += self.client.verify()
        spans: dict[str, list[tuple[int, int]]] = {pool: [] for pool in self.pools}
        for task in self.client.tasks(limit=1000):
            key, lineage = task["key"], self.client.history(task["key"])
            accepted = [result for result in self.client.results(key) if result["accepted"]]
            self.figures["claims"] += len(lineage)
            self.figures["accepted_twice"] += len(accepted) > 1
            if task["state"] == "completed" and len(accepted) != 1:
                self.wrong.append(f"{key}: {len(accepted)} accepted results")
            if accepted and accepted[0]["generation"] != lineage[-1]["generation"]:
                self.wrong.append(f"{key}: generation {accepted[0]['generation']} was accepted, and is not the last")
            for claim in lineage:
                spans[pool_of(claim["agent"])].append((claim["acquired_at"], claim["released_at"] or 1 << 62))
        together = max(map(overlap, spans.values()))
        self.figures["most_holding"] = max(self.figures["most_holding"], together)
        if together > self.size:
            self.wrong.append(f"{together} processes of a pool of {self.size} held tasks at once")
        self._check_offers()

    def _check_offers(self) -> None:
        """From the log: each spawn claims, ends or is lost in time, not counting the restarts of the server."""
        begun: dict[str, int] = {}
        longest = 0.0
        kinds = ("spawn.starting", "spawn.running", "spawn.ended", "spawn.lost")
        for event in self.client.log(kind=kinds, limit=10_000):
            spawn = event["details"]["spawn"]
            self.figures[event["kind"].replace(".", "_")] += 1
            if event["kind"] == "spawn.starting":
                begun[spawn] = event["time"]
            elif spawn in begun:
                longest = max(longest, self.served(begun.pop(spawn) / 1e6, event["time"] / 1e6))
        self.figures["longest_limbo_ms"] = round(longest * 1000)
        if longest > self.offer + AFTER_OFFER:
            self.wrong.append(f"a spawn was open for {longest:.1f} s; its offer lasts {self.offer:g} s")
        self.wrong += [f"spawn {spawn} was never closed" for spawn in begun]

    def served(self, begin: float, end: float) -> float:
        """The seconds of the span in which a server listened."""
        ended_at = self._ended_at
        down = [*self.down, *([] if ended_at is None else [(ended_at, end)])]
        return end - begin - sum(max(0.0, min(end, until) - max(begin, since)) for since, until in down)


def pool_of(agent: str) -> str:
    return agent.rpartition("-")[0]


def overlap(spans: list[tuple[int, int]]) -> int:
    """How many of the spans include one instant, at most."""
    steps = sorted([(begin, 1) for begin, _ in spans] + [(end, -1) for _, end in spans])
    most = now = 0
    for _, step in steps:  # at one instant an end comes before a begin
        now += step
        most = max(most, now)
    return most


class Watch:
    """Looks at the rows and the process table, one moment after another."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._surplus_since: float | None = None
        self._running: set[str] = set()
        self._orphans: dict[str, float] = {}  # running spawn without a process → since when
        self._error: BaseException | None = None

    def __enter__(self) -> Watch:
        self._client = Client(self.stage.url, PROJECT, agent="watch", session="watch")
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()
        self._client.close()
        if self._error is not None:
            self.stage.wrong.append(f"the watch failed: {self._error!r}")

    def _run(self) -> None:
        try:
            while not self._over.wait(0.05):
                self._look_at_rows()
                self._look_at_processes()
        except BaseException as error:  # noqa: BLE001 - reported by the main thread
            self._error = error

    def _look_at_rows(self) -> None:
        stage = self.stage
        with self._client.engine.store.begin("local", write=False) as tx:
            spawns, budgets = tx.find(Spawn, {"state": pools.OPEN}), tx.load(Budget, ((PROJECT, "project"),))
            now = tx.now
        self._running = {spawn.id for spawn in spawns if spawn.state == pools.RUNNING}
        able = max(Counter(spawn.pool for spawn in spawns if pools.is_live(spawn, now)).values(), default=0)
        stage.figures["looks"] += 1
        stage.figures["most_able"] = max(stage.figures["most_able"], able)
        if able > stage.size:
            stage.wrong.append(f"{able} spawns of a pool of {stage.size} are able to claim")
        for budget in budgets:
            if budget is not None and budget.consumed + budget.reserved > budget.allocated:
                stage.wrong.append(f"{budget.consumed} spent and {budget.reserved} reserved of {budget.allocated}")

    def _look_at_orphans(self, alive: set[str]) -> None:
        """A process that is gone must not keep its task for longer than an offer and ten seconds of a server."""
        stage, now = self.stage, time.time()
        self._orphans = {spawn: self._orphans.get(spawn, now) for spawn in self._running - alive}
        longest = max((stage.served(since, now) for since in self._orphans.values()), default=0.0)
        stage.figures["longest_orphan_ms"] = max(stage.figures["longest_orphan_ms"], round(longest * 1000))
        if longest > stage.offer + AFTER_OFFER:
            stage.wrong.append(f"a spawn without a process was running for {longest:.1f} s")

    def _look_at_processes(self) -> None:
        stage, now = self.stage, time.monotonic()
        runners = stage.runners()
        self._look_at_orphans({spawn for _, spawn in runners})
        count = max(Counter(pool for pool, _ in runners).values(), default=0)
        stage.figures["most_processes"] = max(stage.figures["most_processes"], count)
        if count <= stage.size:
            self._surplus_since = None
            return
        self._surplus_since = self._surplus_since or now
        lasted = now - self._surplus_since
        stage.figures["longest_surplus_ms"] = max(stage.figures["longest_surplus_ms"], round(lasted * 1000))
        if lasted > AFTER_OFFER:
            stage.wrong.append(f"{count} processes of a pool of {stage.size} for {lasted:.1f} s")
