"""Hundreds of dead letters in a minute become at most two messages to each channel, and every letter is counted.

The Slack-compatible receiver is a real HTTP server, the mail server a real SMTP server with TLS. The store's clock runs
ten times as fast, so that a minute takes six seconds.
"""

from __future__ import annotations

import argparse
import re
import shutil
import socket
import tempfile
import time
from email import message_from_bytes
from pathlib import Path
from typing import Any

import msgspec
from aiosmtpd.controller import Controller

from tenure.core import commands as c
from tenure.core.commands import NewTask
from tenure.engine import Context, Engine
from tenure.engine.duties.coordinator import SOONEST, Coordinator
from tenure.engine.relay.notice_reader import NoticeReader, Target
from tenure.sinks.addresses import networks_of
from tenure.sinks.http_sender import HttpSender
from tenure.sinks.slack import SlackChannel
from tenure.sinks.smtp import MailChannel
from tenure.stores.sqlite import Sqlite
from tests.reliability import results
from tests.reliability.ground import end_when_told
from tests.reliability.relay import checked
from tests.reliability.storm_worker import PROJECT, SystemRandom
from tests.sinks.receivers import Receiver, authority

SPEED = 10
MINUTE = 60.0
LASTS = 40.0  # real seconds until every letter must have been told
BATCH = 25
FIRST_NUMBER = re.compile(r"(\d+) tasks")


class Inbox:
    def __init__(self) -> None:
        self.mails: list[bytes] = []

    async def handle_DATA(self, _server: Any, _session: Any, envelope: Any) -> str:  # noqa: N802 - the library's name
        self.mails.append(envelope.content)
        return "250 taken"


def counted(texts: list[str]) -> int:
    """The letters that messages are about: the number of their title, or one."""
    found = [FIRST_NUMBER.search(text) for text in texts]
    return sum(int(one.group(1)) if one else 1 for one in found)


def bury(engine: Engine, letters: int) -> None:
    """As many dead letters, over a minute of the store."""
    began = time.monotonic()
    for done in range(0, letters, BATCH):
        some = min(BATCH, letters - done)
        checked(engine.run([c.Add(project=PROJECT, task=NewTask(title="fragile", max_attempts=1))] * some))
        claims = [c.ClaimNext(project=PROJECT, agent=f"a{n}", session=f"a{n}", lease=3600) for n in range(some)]
        receipts = [outcome.receipt or "" for outcome in checked(engine.run(claims))]
        checked(engine.run([c.Fail(project=PROJECT, receipt=r, message="broke") for r in receipts]))
        time.sleep(max(0.0, began + (done + some) / letters * MINUTE * 0.95 / SPEED - time.monotonic()))


def run(folder: Path, letters: int) -> tuple[dict[str, list[str]], list[str], float]:
    began = time.time_ns() // 1000
    store = Sqlite(f"{folder}/tenure.db", clock=lambda: began + (time.time_ns() // 1000 - began) * SPEED)
    engine = Engine(store, SystemRandom(), Context(pause=time.sleep))
    engine.do(c.DefineProject(project=PROJECT))
    coordinator = Coordinator(
        engine, "one", lambda: time.monotonic() * SPEED, lease=30.0 * SPEED, looks=SOONEST * SPEED
    )
    coordinator.step()
    authorities, tls = authority(folder, "localhost")
    inbox, errors = Inbox(), list[str]()
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    server = Controller(inbox, hostname="127.0.0.1", port=port, tls_context=tls, require_starttls=True)
    server.start()
    http = HttpSender(allow_http=True, networks=networks_of(["127.0.0.0/8"]), resolve=lambda *_: ["127.0.0.1"])
    with Receiver() as slack:
        targets = {
            "slack": Target(SlackChannel(slack.url, http, allow_http=True)),
            "mail": Target(
                MailChannel(
                    f"smtp://localhost:{port}/?from=tenure@example.org&to=ann@example.org", authorities=authorities
                )
            ),
        }
        reader = NoticeReader(engine, targets, coordinator.led, lambda: time.monotonic() * SPEED, failed=errors.append)
        reader.step()  # from here on
        reader.start()
        at = time.monotonic()
        bury(engine, letters)
        took = (time.monotonic() - at) * SPEED

        def told() -> dict[str, list[str]]:
            mails = [str(message_from_bytes(mail)["subject"]) for mail in inbox.mails]
            return {"slack": [msgspec.json.decode(one.body)["text"] for one in slack.requests], "mail": mails}

        until = time.monotonic() + LASTS
        while any(counted(texts) < letters for texts in told().values()) and time.monotonic() < until:
            coordinator.step()
            time.sleep(0.1)
        found = told()
        reader.stop()
    server.stop()
    coordinator.resign()
    errors += engine.verify()
    store.close()
    return found, errors, took


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="notices", description=__doc__)
    parser.add_argument("--letters", type=int, default=500)
    wanted = parser.parse_args(argv)
    end_when_told()
    folder = Path(tempfile.mkdtemp(prefix="tenure-notices-"))
    began = time.monotonic()
    found, wrong, took = run(folder, wanted.letters)
    for name, texts in found.items():
        if counted(texts) != wanted.letters:
            wrong.append(f"{name}: {counted(texts)} letters in {len(texts)} messages: {texts[:5]}")
        if len(texts) > 2 and took <= MINUTE * 1.05:
            wrong.append(f"{name}: {len(texts)} messages")
    if took > MINUTE * 1.05:
        wrong.append(f"the letters took {took:.0f} s, not a minute: the machine is too slow for this speed")
    for text in wrong:
        print(text)
    shutil.rmtree(folder)
    numbers: dict[str, results.Figure] = {
        "letters": wanted.letters, "within_seconds": round(took), "to_slack": len(found["slack"]),
        "by_mail": len(found["mail"]), "counted": min(counted(texts) for texts in found.values()), "wrong": len(wrong),
        "seconds": round(time.monotonic() - began),
    }  # fmt: skip
    results.tell("notices", numbers)
    return 1 if wrong else 0
