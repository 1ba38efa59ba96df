"""An idle worker in another process: from the beginning of the call that adds a task until its claim is in hand."""

from __future__ import annotations

import random
import sys
import time
from pathlib import Path
from typing import NamedTuple

from bench.ground import WrongAnswer
from bench.peers.measuring import GAP, IDLE
from bench.peers.talking import Talk
from bench.postgres.ground import Ground
from tenure.client import Client
from tenure.core.records import Claim, Task


class PickUps(NamedTuple):
    """In milliseconds."""

    p50: float
    p99: float


def ours(ground: Ground, folder: Path, looks: int) -> PickUps:
    name = ground.schema()
    place = {"folder": str(folder), "postgres": ground.server.create(name), "setting": "postgres"}
    try:
        found = _looked(Path(sys.executable), "tenure", place, looks)
        with Client(place["postgres"], "bench") as client, client.store.begin("local", write=False) as tx:
            claims = [c.task for c in tx.find(Claim, {"project": "bench"})]
            states = tx.count(Task, {"project": "bench"}, "state")
        if len(claims) != looks or len(set(claims)) != looks or states != {"completed": looks}:
            raise WrongAnswer(f"{looks} tasks were added; the store has {len(claims)} claims, and {states}")
        return found
    finally:
        ground.server.drop(name)


def theirs(ground: Ground, folder: Path, looks: int, python: Path, module: str, setting: str = "") -> PickUps:
    name = ground.schema()
    place = {"folder": str(folder), "postgres": ground.server.create(name), "setting": setting}
    try:
        return _looked(python, module, place, looks)
    finally:
        ground.server.drop(name)


def _looked(python: Path, module: str, place: dict[str, str], looks: int) -> PickUps:
    log = Path(place["folder"]) / f"{module}.log"
    jobs = list(range(looks))
    with Talk(python, module, place, log) as client, Talk(python, module, place, log) as worker:
        client.ask("set_up")
        worker.ask("drain", count=0)
        time.sleep(IDLE)  # it has found nothing, and waits
        sent = client.ask("send", jobs=jobs, gaps=[random.uniform(*GAP) for _ in jobs])["sent"]
        executed = worker.ask("finish", count=looks)["executed"]
    if sorted(job for job, _ in executed) != jobs:
        raise WrongAnswer(f"{module}: {looks} jobs were added, {len(executed)} were executed")
    began = dict(executed)
    waits = sorted((began[job] - at) * 1e3 for job, at in sent)
    return PickUps(waits[looks // 2], waits[int(looks * 0.99)])
