"""A broker's library that raises, and messages that nobody of us has sent, end no worker."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from tenure import Client, Worker
from tenure.client.worker import message_source
from tenure.client.worker.message_source import MessageSource
from tenure.sinks import names
from tenure.sinks.port import Received, SinkUnavailable
from tenure.sinks.subscriptions import Subscription

SUBSCRIPTION = Subscription("workers", 1)


class Odd:
    """Hands out each message once, and raises before the first."""

    def __init__(self, *messages: Received) -> None:
        self.messages, self.settled, self.has_raised = list(messages), [], False

    def fetch(self, most: int, timeout: float) -> list[Received]:
        if not self.has_raised:
            self.has_raised = True
            raise KeyError("a bug of the library")
        given, self.messages = self.messages[:most], self.messages[most:]
        return given

    def acknowledge(self, received: Received) -> None:
        self.settled.append(received.id)
        raise LookupError("a bug of the library")

    def reject(self, received: Received, delay: float) -> None:
        raise LookupError("a bug of the library")

    def close(self) -> None:
        raise LookupError("a bug of the library")


def message(id: str, name: str, **payload: Any) -> Received:
    return Received(id=id, name=name, body=msgspec.json.encode({"project": "shop", "payload": payload}))


def test_what_a_library_raises_is_an_unavailable_source() -> None:
    source = MessageSource("nats://x", SUBSCRIPTION, "shop", "next", lambda *_: Odd())
    with pytest.raises(SinkUnavailable, match="KeyError"):
        source.next_request(1)
    source.acknowledge(message("1", names.EXECUTE))
    source.close()


@pytest.mark.parametrize("take", ["next", "task"])
def test_no_message_ends_a_worker(tmp_path: Path, take: str, monkeypatch: pytest.MonkeyPatch) -> None:
    command = f"x.{names.INSTANCE}.y"
    odd = Odd(
        Received(id="bytes", name=names.EXECUTE, body=b"\xff\x00"),
        message("no task", names.EXECUTE, task_id={"a": 1}),
        message("a task with NUL", names.EXECUTE, task_id="a\0b"),
        message("a long task", names.EXECUTE, task_id="x" * 5000),
        message("no time", command, action="ping", message="m1", expires_at=["soon"]),
        message("no zone", command, action="ping", message="m2", expires_at="2031-01-01"),
        message("an id with NUL", command, action="ping", message="m\0"),
        message("a long id", command, action="ping", message="m" * 5000),
    )
    monkeypatch.setattr(message_source, "FETCH", 0.01)
    monkeypatch.setattr(MessageSource.__init__, "__defaults__", (lambda *_: odd,))
    store = str(tmp_path / "store.db")
    with Client(store, "shop", create=True) as client:
        client.init()
        client.add("Work", type="t")
        worker = Worker(store, "shop", source="nats://127.0.0.1:1", take=take, concurrency=9)
        worker.task("t")(lambda ctx: "done")
        worker.command("ping")(lambda context: None)
        worker.run(until_idle=True)
        worker.close()
        assert client.show("A-001")["state"] == "completed"
    assert {"bytes", "no time", "no zone", "an id with NUL", "a long id"} <= set(odd.settled)
