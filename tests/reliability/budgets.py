"""Many agents, each a process, against a budget for few tasks: exactly that is reserved, and settled to the cent.

Rush: all claim at once, and claim again until they are denied. Work: holders spend, hand in, fail, give back or are
killed, and claim again with what others have given back; nobody spends more than it has reserved, so at no moment may
what is spent and reserved be above the ceiling. Zombies: claims lapse, others take over, and the first holders come
back with a bill. Somebody else looks at the rows all the time, each time at one moment of the store.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import random
import shutil
import signal
import tempfile
import threading
import time
from collections import Counter
from contextlib import nullcontext
from multiprocessing.synchronize import Barrier, Event
from pathlib import Path

from tenure.client import Client
from tenure.client.caller import SystemRandom
from tenure.core.commands import NewTask
from tenure.core.money import NANO, parse_usd, usd_text
from tenure.core.records import Budget, Claim, RetryWords, Usage
from tenure.engine import Engine
from tenure.stores.open_store import open_store
from tests.reliability import results
from tests.reliability.ground import end_when_told
from tests.servers.postgres import PostgresServer

PROJECT = "proof"
PRICE = "0.10"
LEASE = 2.0  # seconds; those who are killed give back what they hold after it
LONG = 600.0  # a holder that lapses while it is slow would spend what it no longer has reserved
PATIENCE = 120.0
PROCESSES = multiprocessing.get_context("fork")


class Agent:
    """One process. What it has reported of each claim goes into its own file."""

    def __init__(self, url: str, folder: Path, number: int, seed: int) -> None:
        self.client = Client(url, PROJECT, agent=f"a{number}", session=f"s{number}")
        self.dice = random.Random(f"{seed}/{number}")
        self.file = folder / f"{number}.json"
        self.told: dict[str, int] = {}  # receipt → nano-dollars
        self.counts: Counter[str] = Counter()

    def claim(self, lease: float) -> str | None:
        answer = self.client.claim(lease=lease)
        self.counts[answer.outcome] += 1
        return answer.receipt

    def spend(self, receipt: str, cost: int) -> bool | None:
        """Report a running total; whether it came late. The note is written first: what was answered is never lost."""
        self.told[receipt] = max(self.told.get(receipt, 0), cost)
        self.save()
        return self.client.usage(receipt, "model", cost_usd=usd_text(cost)).late

    def save(self) -> None:
        new = self.file.with_suffix(".new")
        new.write_text(json.dumps({"told": self.told, "counts": self.counts}))
        new.replace(self.file)


def rush(agent: Agent) -> list[str]:
    held = []
    while (receipt := agent.claim(LONG)) is not None:
        held.append(receipt)
    return held


def work(agent: Agent, held: list[str], over: Event) -> None:
    """Spend at most what is reserved, and end each claim in some way."""
    price = parse_usd(PRICE)
    while not over.is_set():
        if not held:
            receipt = agent.claim(LONG)
            if receipt is None:
                time.sleep(agent.dice.random() * 0.05)
                continue
            held.append(receipt)
        receipt = held.pop()
        most = agent.dice.choice((price, price // 20, price // 20))
        spent = sorted(agent.dice.randrange(most + 1) for _ in range(agent.dice.randint(0, 2)))
        for cost in spent:
            agent.spend(receipt, cost)
        how = agent.dice.choices(("submit", "fail", "release", "die"), (12, 4, 4, 1))[0]
        agent.counts[how] += 1
        if how == "submit":
            agent.client.submit(receipt, how)
        elif how == "fail":
            agent.client.fail(receipt, how, retry_after=0.0)
        elif how == "release":
            agent.client.release(receipt)
        else:
            for one in (receipt, *held):  # the rush may have left it more than one
                agent.client.renew(one, LEASE)
            agent.save()
            os.kill(os.getpid(), signal.SIGKILL)
    for receipt in held:
        agent.client.release(receipt)


def live(url: str, folder: Path, number: int, seed: int, start: Barrier, rushed: Event, over: Event) -> None:
    agent = Agent(url, folder, number, seed)
    start.wait(PATIENCE)
    held = rush(agent)
    agent.save()
    (folder / f"{number}.rushed").touch()
    rushed.wait(PATIENCE)
    work(agent, held, over)
    agent.save()
    agent.client.close()


class Watch:
    """Looks at one moment of the store after another."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.wrong: list[str] = []
        self.looks = 0
        self.highest = 0
        self.is_strict = True  # nobody spends what it has not reserved
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Watch:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._over.wait(0.01):
            self.wrong += self.look()

    def look(self) -> list[str]:
        with self.engine.store.begin("local", write=False) as tx:
            (budget,) = tx.load(Budget, ((PROJECT, "project"),))
            held = sum(
                (c.funds or {}).get("project", 0) for c in tx.find(Claim, {"project": PROJECT, "state": "active"})
            )
            spent = sum(row.cost or 0 for row in tx.find(Usage, {"project": PROJECT}))
        self.looks += 1
        wrong = []
        if budget.reserved != held:
            wrong.append(f"{budget.reserved} reserved, live claims hold {held}")
        if budget.consumed != spent:
            wrong.append(f"{budget.consumed} spent, usage says {spent}")
        total = budget.consumed + budget.reserved
        self.highest = max(self.highest, total if self.is_strict else 0)
        if self.is_strict and total > budget.allocated:
            wrong.append(f"{budget.consumed} spent and {budget.reserved} reserved of {budget.allocated}")
        return wrong


class Proof:
    def __init__(self, url: str, folder: Path, agents: int, budget: int, seconds: float, seed: int) -> None:
        self.url, self.folder, self.agents, self.budget = url, folder, agents, budget
        self.seconds, self.seed = seconds, seed
        self.allocated = budget * parse_usd(PRICE)
        self.counts: Counter[str] = Counter()
        with Client(
            url, PROJECT, agent="proof", session="proof", create=True
        ) as client:  # closed before anybody is forked
            client.init()
            client.set_budget(usd=usd_text(self.allocated), default_estimate=PRICE)
            for _ in range(2):
                # No failure is the last: a zombie's heir must find the task, not a dead letter.
                work = NewTask(title="work", max_attempts=1000, retry=RetryWords(poison=0))
                client.plan([work] * max(agents, 2 * budget))

    def row(self) -> Budget:
        with self.engine.store.begin("local", write=False) as tx:
            (row,) = tx.load(Budget, ((PROJECT, "project"),))
        return row

    def run(self) -> list[str]:
        start, rushed, over = PROCESSES.Barrier(self.agents), PROCESSES.Event(), PROCESSES.Event()
        team = [
            PROCESSES.Process(target=live, args=(self.url, self.folder, n, self.seed, start, rushed, over))
            for n in range(self.agents)
        ]
        for one in team:
            one.start()
        self.client = Client(self.url, PROJECT, agent="proof", session="proof")
        self.engine = Engine(open_store(self.url), SystemRandom())
        with Watch(self.engine) as watch:
            try:
                wrong = self._rushed()
                rushed.set()
                time.sleep(self.seconds)
            finally:
                over.set()
                for one in team:
                    one.join(PATIENCE)
                    if one.is_alive():
                        one.kill()
            watch.is_strict = False
            wrong += self._zombies()
        wrong += watch.wrong + self._settled()
        self.counts.update({"looks": watch.looks, "highest_cents": watch.highest * 100 // NANO})
        self.engine.store.close()
        self.client.close()
        return wrong

    def _rushed(self) -> list[str]:
        """Everybody has been denied: exactly the budget is reserved."""
        give_up = time.monotonic() + PATIENCE
        while len(list(self.folder.glob("*.rushed"))) < self.agents:
            if time.monotonic() > give_up:
                return ["the rush never ended"]
            time.sleep(0.02)
        granted = sum(json.loads(f.read_text())["counts"].get("GRANTED", 0) for f in self.folder.glob("*.json"))
        self.counts["granted_in_the_rush"] = granted
        row = self.row()
        wrong = [] if granted == self.budget else [f"{granted} claims were granted; the budget is for {self.budget}"]
        if (row.consumed, row.reserved) != (0, self.allocated):
            wrong.append(f"after the rush: {row.consumed} spent, {row.reserved} reserved of {self.allocated}")
        return wrong

    def _zombies(self) -> list[str]:
        """Holders that lapsed come back with a bill while others hold their tasks."""
        wrong = []
        time.sleep(LEASE + 0.5)  # those who were killed have given back what they held
        self.client.set_budget(usd=usd_text(self.row().consumed + 4 * parse_usd(PRICE)))
        for number in range(3):
            zombie = Agent(self.url, self.folder, 1000 + number, self.seed)
            old = zombie.claim(1.0)
            if old is None:
                return [*wrong, "there was nothing for a zombie to claim"]
            key = old.partition("@")[0]
            time.sleep(1.1)
            heir = self.client.claim(key, lease=LONG)
            if heir.receipt is None:
                return [*wrong, f"{key}: the heir of a zombie was not granted: {heir.outcome} {heir.message}"]
            before = self._funds(key)
            if zombie.spend(old, parse_usd("0.05")) is not True:
                wrong.append(f"{key}: a zombie's bill did not come late")
            if self._funds(key) != before:
                wrong.append(f"{key}: a zombie's bill touched the reservation of its heir")
            self.counts["zombies"] += 1
            self.client.release(heir.receipt)
            zombie.client.close()
        return wrong

    def _funds(self, key: str) -> dict[str, int] | None:
        task = self.client.show(key)
        with self.engine.store.begin("local", write=False) as tx:
            (claim,) = tx.load(Claim, ((PROJECT, f"{task['id']}@{task['generation']}"),))
        return claim.funds

    def _settled(self) -> list[str]:
        """Nothing is reserved any more, and what was spent is what agents have reported, to the nano-dollar."""
        patience = time.monotonic() + 5 * LEASE  # on a busy machine an agent may have renewed just before its end
        while self.engine.sweep() and self.row().reserved and time.monotonic() < patience:
            time.sleep(0.1)
        told = 0
        for file in self.folder.glob("*.json"):
            said = json.loads(file.read_text())
            told += sum(said["told"].values())
            self.counts.update({k: v for k, v in said["counts"].items() if k in ("submit", "fail", "release", "die")})
        row = self.row()
        wrong = [] if row.reserved == 0 else [f"{row.reserved} is still reserved"]
        if row.consumed != told:
            wrong.append(f"{row.consumed} spent, agents reported {told}")
        return wrong + self.engine.verify()


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="budgets", description=(__doc__ or "").split("\n\n", maxsplit=1)[0])
    parser.add_argument("--agents", type=int, default=100)
    parser.add_argument("--budget", type=int, default=37, help="tasks that it is for")
    parser.add_argument("--seconds", type=float, default=20.0, help="of work after the rush")
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 30))
    parser.add_argument("--store", choices=("sqlite", "postgres"), default="sqlite")
    wanted = parser.parse_args(argv)
    end_when_told()
    folder = Path(tempfile.mkdtemp(prefix="tenure-budgets-"))
    began = time.monotonic()
    print(f"seed {wanted.seed}, in {folder}", flush=True)
    with PostgresServer(settings={"max_connections": "300"}) if wanted.store == "postgres" else nullcontext() as server:
        url = str(folder / "store.db") if server is None else f"{server.url}?schema=budgets"
        proof = Proof(url, folder, wanted.agents, wanted.budget, wanted.seconds, wanted.seed)
        wrong = proof.run()
    for text in wrong[:50]:
        print(text)
    if not wrong:
        shutil.rmtree(folder)
    numbers: dict[str, results.Figure] = dict(sorted(proof.counts.items()))
    numbers |= {"wrong": len(wrong), "seconds": round(time.monotonic() - began)}
    results.tell("budgets", numbers, variant=wanted.store if wanted.store != "sqlite" else "")
    return 1 if wrong else 0
