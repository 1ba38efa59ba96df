"""What the parts of the engine's suite share: the scene, and what must hold at the end of every test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from tenure.stores.port import Clock, Store
from tenure.testing.clock import FakeClock
from tenure.testing.factories import Scene


class Stage:
    """Every test gets a `scene` on a new store."""

    def open_store(self, tmp_path: Path, clock: Clock) -> Store:
        """The store of this folder: a new one at first, later the same one again."""
        raise NotImplementedError

    @pytest.fixture
    def clock(self) -> FakeClock:
        return FakeClock()

    @pytest.fixture
    def scene(self, tmp_path: Path, clock: FakeClock) -> Iterator[Scene]:
        scene = Scene(self.open_store(tmp_path, clock), clock)
        yield scene
        if not scene.broken:
            assert scene.engine.verify() == []
            assert leaks(scene) == []
        scene.store.close()


def leaks(scene: Scene) -> list[str]:
    """Secrets that stand in the log."""
    log = b"".join(msgspec.json.encode(event) for event in scene.events()).lower()
    return [secret for secret in scene.secrets() if secret.lower().encode() in log]
