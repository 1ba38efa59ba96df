"""A worker of `moves`: adds, claims and submits in a tenant that moves meanwhile, and comes back with old receipts.

It finds the tenant by its row, as a server does; now and then it writes straight to one of the two stores, as a process
would that has not heard of the move. Every acknowledged write is a line of its file, written after the answer.
"""

from __future__ import annotations

import json
import os
import random
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TextIO

from tenure.client.caller import SystemRandom
from tenure.client.transports.local import LazySealer
from tenure.core import commands as c
from tenure.core.errors import OutcomeUnknown, StoreUnavailable, TenantMoving, TenureError
from tenure.core.ids import parse_receipt
from tenure.core.outcomes import Outcome
from tenure.core.records import replace
from tenure.core.tenant_moves import frozen_by
from tenure.engine import Context, Engine
from tenure.engine.runtime.tenancy import TenantEngines
from tenure.stores.open_store import open_store
from tenure.stores.router import Router

TENANT, PROJECT = "acme", "p"
LEASE = 3600.0
KEPT = 30  # receipts that are kept to come back with
AGAIN = (TenantMoving, StoreUnavailable, OutcomeUnknown)


class Worker:
    def __init__(self, home: str, there: str, name: str, seed: int, out: TextIO) -> None:
        self.name, self.dice, self.out = name, random.Random(seed), out
        sealer: Any = LazySealer(home)
        context = Context(sealer=sealer, pause=time.sleep)
        self.engines = TenantEngines(
            Engine(open_store(home), SystemRandom(), context), time.monotonic, router=Router(open_store, time.monotonic)
        )
        # As a process that knows one store, and not that the tenant has moved.
        self.fixed = [Engine(open_store(url), SystemRandom(), replace(context, tenant=TENANT)) for url in (home, there)]
        self.receipts: list[str] = []
        self.count = 0

    def run(self, is_over: Callable[[], bool]) -> None:
        acts = (self.add, self.work, self.work, self.hold, self.haunt, self.astray)
        while not is_over():
            self.dice.choice(acts)()

    def drain(self) -> None:
        """Work until there is nothing to claim."""
        while self.work():
            pass

    def note(self, **told: Any) -> None:
        self.out.write(json.dumps(told) + "\n")
        self.out.flush()

    def sent(self, command: c.Command) -> Outcome:
        """The outcome; sent again with the same request id while the tenant moves."""
        command = replace(command, request_id=os.urandom(12).hex())
        while True:
            try:
                return self.engines.find(TENANT).do(command)
            except AGAIN as error:
                self.note(refused=error.code)
                time.sleep(0.02 + 0.05 * self.dice.random())

    def _title(self) -> str:
        self.count += 1
        return f"{self.name}-{self.count}"

    def add(self) -> None:
        title = self._title()
        outcome = self.sent(c.Add(project=PROJECT, task=c.NewTask(title=title)))
        if outcome.ok and outcome.task:
            self.note(added=outcome.task["key"])

    def astray(self) -> None:
        """Write to a store, whether or not it is the home. What it acknowledges counts as everything else."""
        try:
            outcome = self.dice.choice(self.fixed).do(c.Add(project=PROJECT, task=c.NewTask(title=self._title())))
        except TenureError as error:
            self.note(refused=error.code)
            return
        if outcome.ok and outcome.task:
            self.note(added=outcome.task["key"])

    def claim(self) -> str | None:
        return self.sent(c.ClaimNext(project=PROJECT, agent=self.name, session=self.name, lease=LEASE)).receipt

    def work(self) -> bool:
        receipt = self.claim()
        if receipt is None:
            return False
        data = f"{self.name} {os.urandom(6).hex()}"
        outcome = self.sent(c.Submit(project=PROJECT, receipt=receipt, data=data))
        self.note(submitted=parse_receipt(receipt).name, data=data, outcome=outcome.outcome)
        return True

    def hold(self) -> None:
        receipt = self.claim()
        if receipt is not None:
            self.receipts.append(receipt)
        if len(self.receipts) > KEPT:
            self.sent(c.Release(project=PROJECT, receipt=self.receipts.pop(0)))

    def haunt(self) -> None:
        """Come back with a receipt: void where the tenant's epoch is another by now."""
        if not self.receipts:
            return
        receipt = self.dice.choice(self.receipts)
        try:
            epoch = self.engines.find(TENANT).read(lambda tx: tx.epoch)
        except TenureError:
            return
        is_void = frozen_by(epoch) is None and parse_receipt(receipt).epoch != epoch
        verbs: list[c.Command] = [
            c.Renew(project=PROJECT, receipt=receipt), c.Progress(project=PROJECT, receipt=receipt, percent=50),
        ]  # fmt: skip
        if is_void:
            self.receipts.remove(receipt)
            verbs += [
                c.Submit(project=PROJECT, receipt=receipt, data="a zombie's"),
                c.Release(project=PROJECT, receipt=receipt),
            ]
        for verb in verbs:
            outcome = self.sent(verb)
            if is_void:
                self.note(zombie=receipt.partition(":")[0], outcome=outcome.outcome, ok=outcome.ok)


def main(argv: list[str]) -> None:
    home, there, name, seed, folder = argv
    stop, log = Path(folder) / "stop", Path(folder) / f"{name}.log"
    with log.open("w", encoding="utf-8") as out:
        worker = Worker(home, there, name, int(seed), out)
        worker.note(ready=name)
        worker.run(stop.exists)


if __name__ == "__main__":
    main(sys.argv[1:])
