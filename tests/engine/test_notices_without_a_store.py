"""People hear of a store that has been unavailable for five minutes: once, from the process that led."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tenure import Client
from tenure.core import notices
from tenure.core.errors import StoreUnavailable
from tenure.core.notices import Summary
from tenure.engine.relay.notice_reader import NoticeReader, Target
from tenure.server.coordinator import coordinator_of


class Channel:
    def __init__(self) -> None:
        self.sent: list[Summary] = []

    def send(self, summary: Summary) -> None:
        self.sent.append(summary)


class Unavailable:
    features: frozenset[str] = frozenset()
    is_copy = False

    def __getattr__(self, name: str) -> Any:
        raise StoreUnavailable("no answer")


class Process:
    def __init__(self, url: str) -> None:
        self.client = Client(url, "p", create=True)
        self.coordinator = coordinator_of(self.client.engine)
        self.coordinator.step()
        self.channel, self.now = Channel(), 1000.0
        targets = {"team": Target(self.channel)}
        self.reader = NoticeReader(self.client.engine, targets, self.coordinator.led, lambda: self.now)
        self.reader.step()

    def lose_the_store(self) -> None:
        self.store = self.client.engine.store
        self.client.engine.store = Unavailable()  # type: ignore[assignment]

    def wait(self, seconds: float) -> None:
        self.now += seconds
        self.reader.step()


def test_only_the_process_that_led_sends_one_notice(tmp_path: Path) -> None:
    leader, other = Process(str(tmp_path / "tenure.db")), Process(str(tmp_path / "tenure.db"))
    assert (leader.coordinator.term, other.coordinator.term) == (1, None)
    for process in (leader, other):
        process.lose_the_store()
        for seconds in (1, 200, 98):
            process.wait(seconds)
    assert leader.channel.sent == []
    for process in (leader, other):
        process.wait(60)
        process.wait(600)
    assert [summary.kind for summary in leader.channel.sent] == [notices.STORE_UNAVAILABLE]
    assert other.channel.sent == []
    for process in (leader, other):
        process.client.engine.store = process.store
        process.client.close()
