"""Webhooks whose receiver fails and whose server is killed: at least once, in order per task, nothing to private hosts.

The receiver is up, slow, down, flapping, or redirects to a private address, by turns. Server processes are killed, also
between a round of deliveries and the write of their rows. Two more webhooks point inside: one by its name, one whose
name server gives another address the second time; a listener there counts connections. The stores' clock runs sixty
times as fast, so that a delivery is tried again after 83 ms instead of five seconds.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import signal
import socket
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from ipaddress import ip_network
from pathlib import Path
from typing import Any

import msgspec

from tenure.core import commands as c
from tenure.core.records import Delivery, Sink, Webhook, replace
from tenure.core.webhook_delivery import PARKED, Lanes
from tenure.engine import Context, Engine
from tenure.engine.duties.coordinator import SOONEST, Coordinator
from tenure.engine.relay.webhook_relay import WebhookRelay
from tenure.engine.relay.webhook_verbs import READER
from tenure.sinks.http_sender import HttpSender
from tenure.sinks.webhook import Result, WebhookSender
from tenure.stores.sqlite import Sqlite
from tenure.testing.factories import OWNER, SECRETS
from tests.reliability import relay, results
from tests.reliability.ground import end_when_told
from tests.reliability.relay import Blows, wait_for
from tests.reliability.relay_process import CALM
from tests.reliability.storm import ends, in_child
from tests.reliability.storm_worker import LEASE, PROJECT, SystemRandom, Worker
from tests.sinks.receivers import Receiver, Request, answer

SPEED = 60
BEGAN = "began"  # a file with the instant from which the clock runs fast
MODE = "mode"  # a file with what the receiver does
PORTS = "ports"  # a file with the receiver's port and the one inside
TAKEN = "taken"  # a file with what the receiver answered 200 to: task, sequence and message id
INSIDE_LOG = "inside"  # a file with a line for each connection that must never be made
STATE = "state"  # a file: whether everything is delivered
HERE, INSIDE = "127.0.0.1", "127.0.0.9"
MODES = ("up", "slow", "down", "flapping", "redirecting")
CUT = 0.1  # of the rounds: the process ends before what came of them is written
SENDING = 2.0  # seconds for one try


def opened(folder: Path) -> Engine:
    began = int((folder / BEGAN).read_text())

    def clock() -> int:
        return began + (time.time_ns() // 1000 - began) * SPEED

    context = replace(SECRETS, pause=time.sleep, allow_http=True)
    assert isinstance(context, Context)
    return Engine(Sqlite(f"{folder}/tenure.db", clock=clock), SystemRandom(), context)


# --- the receiver ---------------------------------------------------------------------------------------------


def receive(folder: Path, seed: int) -> None:
    """A process of its own, which is never killed: what it has answered is on file."""
    parent, dice = os.getppid(), random.Random(seed)
    inside = socket.create_server((INSIDE, 0))
    inside.settimeout(0.5)
    mutex = threading.Lock()

    def behave(sock: socket.socket, request: Request) -> bool | None:
        mode = (folder / MODE).read_text()
        if mode == "slow":
            time.sleep(dice.random() * 0.05)
        if mode == "down" or (mode == "flapping" and dice.random() < 0.2):
            return False  # hangs up
        if mode == "flapping" and dice.random() < 0.3:
            return answer(503)(sock, request)
        if mode == "redirecting":
            return answer(307, b"", f"Location: http://{INSIDE}:{inside.getsockname()[1]}/")(sock, request)
        if not request.headers["host"].startswith("receiver.test"):
            return answer()(sock, request)
        body = msgspec.json.decode(request.body)
        line = f"{body['payload']['task_id']} {body['sequence']} {request.headers['webhook-id']}\n"
        with mutex, (folder / TAKEN).open("a") as out:
            out.write(line)
        return answer()(sock, request)

    with Receiver(behave) as receiver, inside:
        (folder / PORTS).write_text(f"{receiver.port} {inside.getsockname()[1]}")
        while os.getppid() == parent:
            try:
                connection, _ = inside.accept()
            except TimeoutError:
                continue
            connection.close()
            with (folder / INSIDE_LOG).open("a") as out:
                out.write("a connection to a private address\n")


# --- the server -----------------------------------------------------------------------------------------------


class Cut(WebhookSender):
    """Ends its own process after a round, before its results are written."""

    def __init__(self, http: HttpSender, now: Callable[[], int], folder: Path, dice: random.Random) -> None:
        super().__init__(http, now, seconds=SENDING)
        self.folder, self.dice = folder, dice

    def send_round(self, url: str, keys: Sequence[bytes], lanes: Lanes, **how: Any) -> list[Result]:
        done = super().send_round(url, keys, lanes, **how)
        if self.dice.random() < CUT and not (self.folder / CALM).exists():
            os.kill(os.getpid(), signal.SIGKILL)
        return done


class Delivering(Worker):
    """A coordinator and the relay of webhooks, as `serve` has them."""

    def __init__(self, folder: Path, slot: int, life: int, seed: str) -> None:
        dice = random.Random(f"{seed}/{slot}/{life}")
        answers = {"receiver.test": [HERE], "inside.test": [INSIDE], "rebind.test": [HERE]}

        def resolve(host: str, port: int) -> list[str]:
            found = answers[host]
            if host == "rebind.test":
                answers[host] = [INSIDE]
            return found

        http = HttpSender(allow_http=True, networks=(ip_network(f"{HERE}/32"),), resolve=resolve)
        self.coordinator = Coordinator(
            opened(folder), f"s{slot}-{life}", lambda: time.monotonic() * SPEED, lease=LEASE * SPEED,
            looks=SOONEST * SPEED,
        )  # fmt: skip
        sender = Cut(http, lambda: time.time_ns() // 1000, folder, dice)
        self.relay = WebhookRelay(self.coordinator.engine, sender, self.coordinator.led)

    def live(self) -> None:
        parent = os.getppid()
        threading.Thread(target=self.lead, daemon=True).start()
        self.relay.start()
        while os.getppid() == parent:
            time.sleep(0.5)

    def lead(self) -> None:
        while True:
            time.sleep(min(0.1, self.coordinator.step() / SPEED))


def prepare(folder: Path) -> None:
    engine = opened(folder)
    engine.do(c.DefineProject(project=PROJECT), OWNER)
    port = (folder / PORTS).read_text().split()[0]
    for name, kinds in {"receiver": ("task.*",), "inside": ("task.completed",), "rebind": ("task.completed",)}.items():
        url = f"http://{name}.test:{port}/hook"
        engine.do(c.SetWebhook(project=PROJECT, webhook=name, url=url, kinds=kinds), OWNER)
    engine.store.close()


def note_state(folder: Path) -> None:
    engine = opened(folder)
    with engine.store.begin("local", write=False) as tx:
        (row,) = tx.load(Webhook, ((PROJECT, "receiver"),))
        (reader,) = tx.load(Sink, (("", READER),))
        last = tx.events({}, limit=1, last=True)[0].sequence
        waiting = tx.find(Delivery, {"project": PROJECT, "webhook": "receiver", "state": PARKED}, limit=1)
    is_behind = row.sequence is not None or reader.sequence < last or not row.enabled
    (folder / STATE).write_text("waits" if waiting or is_behind else "")
    engine.store.close()


def is_delivered(folder: Path) -> bool:
    _, status = os.waitpid(in_child(lambda: note_state(folder)), 0)
    assert status == 0, "the state of the webhook could not be read"
    return not (folder / STATE).read_text()


def write(folder: Path, events: int, seconds: float) -> None:
    relay.write(folder, events, seconds, engine=opened(folder), lease=3600)


# --- the run ------------------------------------------------------------------------------------------------


class Servers(Blows):
    def change(self) -> None:
        mode = self.dice.choice([mode for mode in MODES if mode != (self.folder / MODE).read_text()])
        (self.folder / MODE).write_text(mode)
        self.counts[mode] += 1


def delivered(folder: Path, events: int, kills: int, seed: int, seconds: float) -> Servers:
    blows = Servers(folder, 2, seed, None, Delivering)  # type: ignore[arg-type]  # there is no broker
    receiver = in_child(lambda: receive(folder, seed))
    try:
        with ends(blows):
            assert wait_for(blows, (folder / PORTS).exists, 20), "no receiver"
            assert os.waitpid(in_child(lambda: prepare(folder)), 0)[1] == 0, "the webhooks could not be set"
            for slot in range(2):
                blows.start(slot)
            writer = in_child(lambda: write(folder, events, seconds))
            is_written = False
            while not is_written or blows.counts["kills"] < kills:
                blows.pause(blows.dice.expovariate(kills / seconds))
                blows.change()
                blows.strike()
                is_written = is_written or relay.has_ended(writer)
            (folder / MODE).write_text("up")
            blows.calm()
            if not wait_for(blows, lambda: is_delivered(folder)):
                blows.errors.append("not everything was delivered")
    finally:
        os.kill(receiver, signal.SIGKILL)
        os.waitpid(receiver, 0)
    return blows


def judged(folder: Path, engine: Engine) -> tuple[Counter[str], list[str]]:
    with engine.store.begin("local", write=False) as tx:
        (row,) = tx.load(Webhook, ((PROJECT, "receiver"),))
        wanted = {e.id for e in tx.events({}, after=row.since, limit=10_000_000) if e.kind.startswith("task.")}
        rows = {name: tx.load(Webhook, ((PROJECT, name),))[0] for name in ("inside", "rebind")}
    counts: Counter[str] = Counter(events=len(wanted), lost=0, out_of_order=0, doubles=0)
    seen: set[str] = set()
    last: dict[str, int] = {}
    hooks = [line.split() for line in (folder / TAKEN).read_text().splitlines()]
    for task, sequence, message in hooks:
        if message in seen:
            counts["doubles"] += 1
            continue
        seen.add(message)
        if int(sequence) < last.get(task, 0):
            counts["out_of_order"] += 1
        last[task] = int(sequence)
    counts["lost"] = len(wanted - seen)
    counts["to_private_addresses"] = len((folder / INSIDE_LOG).read_text()) if (folder / INSIDE_LOG).exists() else 0
    wrong = [f"{name}: {counts[name]}" for name in ("lost", "out_of_order", "to_private_addresses") if counts[name]]
    if rows["inside"].delivered or not rows["inside"].tries:
        wrong.append("the webhook to a private name was delivered, or never tried")
    return counts, wrong + engine.verify()


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="webhooks", description=__doc__)
    parser.add_argument("--events", type=int, default=6_000)
    parser.add_argument("--kills", type=int, default=30)
    parser.add_argument("--seconds", type=float, default=30.0, help="over which the events are written")
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 30))
    wanted = parser.parse_args(argv)
    end_when_told()
    folder = Path(tempfile.mkdtemp(prefix="tenure-webhooks-"))
    began = time.monotonic()
    print(f"seed {wanted.seed}, in {folder}", flush=True)
    (folder / BEGAN).write_text(str(time.time_ns() // 1000))
    (folder / MODE).write_text("up")
    (folder / TAKEN).touch()
    blows = delivered(folder, wanted.events, wanted.kills, wanted.seed, wanted.seconds)
    engine = opened(folder)
    counts, wrong = judged(folder, engine)
    engine.store.close()
    wrong += blows.errors
    for text in wrong[:50]:
        print(text)
    if not wrong:
        shutil.rmtree(folder)
    numbers: dict[str, results.Figure] = {
        "events": counts["events"], "kills": blows.counts["kills"], "cuts": blows.counts["cuts"],
        "zombies": blows.counts["zombies"], **{mode: blows.counts[mode] for mode in MODES[1:]},
        "lost": counts["lost"], "doubles": counts["doubles"], "out_of_order": counts["out_of_order"],
        "to_private_addresses": counts["to_private_addresses"], "wrong": len(wrong),
        "seconds": round(time.monotonic() - began),
    }  # fmt: skip
    results.tell("webhooks", numbers)
    return 1 if wrong else 0
