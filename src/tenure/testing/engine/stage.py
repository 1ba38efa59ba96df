"""What the parts of the engine's suite share: the scene, and what must hold at the end of every test."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
import pytest

from tenure.stores.port import Store
from tenure.testing.clock import FakeClock
from tenure.testing.factories import Scene
from tenure.testing.secret_watch import plain_secrets
from tenure.testing.suites.store_setting import Setting


class Stage(Setting):
    """Every test gets a `scene` on a new store."""

    @pytest.fixture
    def scene(self, store: Store, clock: FakeClock) -> Iterator[Scene]:
        scene = Scene(store, clock)
        yield scene
        if not scene.broken:
            assert scene.engine.verify() == []
            assert leaks(scene) == []
            assert plain_secrets(scene) == []


def leaks(scene: Scene) -> list[str]:
    """Secrets that stand in the log."""
    log = b"".join(msgspec.json.encode(event) for event in scene.events()).lower()
    return [secret for secret in scene.secrets() if secret.lower().encode() in log]
