"""A process that does not lead sleeps: its mark is old, so waiting for news would return at once, again and again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tenure import Client
from tenure.engine.relay.hook_reader import HookReader
from tenure.engine.relay.leader_thread import PAUSE
from tenure.engine.relay.relay import Relay, Settings
from tenure.engine.relay.webhook_relay import WebhookRelay
from tenure.testing.memory_sink import MemorySink


class Ended:
    """An event that is set once somebody has waited for it."""

    def __init__(self) -> None:
        self.waits: list[float] = []

    def is_set(self) -> bool:
        return bool(self.waits)

    def wait(self, seconds: float) -> bool:
        self.waits.append(seconds)
        return True


@pytest.mark.parametrize("kind", ["relay", "webhooks", "hooks"])
def test_who_does_not_lead_does_not_wait_for_news(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    with Client(str(tmp_path / "tenure.db"), "p", create=True) as client:
        nobody: Any = None
        part: Any = {
            "relay": lambda: Relay(client.engine, Settings("s"), MemorySink, lambda: None, lambda: 0.0),
            "webhooks": lambda: WebhookRelay(client.engine, nobody, lambda: None),
            "hooks": lambda: HookReader(client.engine, {}, nobody, lambda: None),
        }[kind]()
        part._ended = Ended()
        monkeypatch.setattr(client.store, "wait", lambda *_: pytest.fail("it waits for news"))
        part._run()
        assert part._ended.waits == [PAUSE]
