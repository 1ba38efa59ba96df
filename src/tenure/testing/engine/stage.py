"""What the parts of the engine's suite share: the scene, and what must hold at the end of every test."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from unittest.mock import patch

import msgspec
import pytest

from tenure.core import queries as q
from tenure.core.records import Task
from tenure.engine.reads import task_pages
from tenure.engine.reads.query_table import read_query
from tenure.stores.port import Store
from tenure.testing.clock import FakeClock
from tenure.testing.factories import PROJECT, Scene
from tenure.testing.secret_watch import plain_secrets
from tenure.testing.suites.store_setting import Setting

PAGE, MOST_READ = 2, 16


class Stage(Setting):
    """Every test gets a `scene` on a new store."""

    @pytest.fixture
    def scene(self, store: Store, clock: FakeClock) -> Iterator[Scene]:
        scene = Scene(store, clock)
        yield scene
        if not scene.broken:
            assert scene.engine.verify() == []
            assert leaks(scene) == []
            assert last_changed(scene) == sorted_by_change(scene)
            assert plain_secrets(scene) == []


def leaks(scene: Scene) -> list[str]:
    """Secrets that stand in the log."""
    log = b"".join(msgspec.json.encode(event) for event in scene.events()).lower()
    return [secret for secret in scene.secrets() if secret.lower().encode() in log]


def last_changed(scene: Scene, **asked: Any) -> list[str]:
    """A page of the tasks that changed last, found by the end of the log even where both are short."""
    with patch.multiple(task_pages, MOST_SORTED=1, MOST_READ=MOST_READ):
        page = read_query(scene.engine, q.Tasks(project=PROJECT, order="-updated_at", limit=PAGE, **asked))
    return [task["id"] for task in page]


def sorted_by_change(scene: Scene) -> list[str]:
    tasks = [task for task in scene.rows(Task) if task.archived_at is None]
    tasks.sort(key=lambda task: (task.updated_at, task.id), reverse=True)
    return [task.id for task in tasks[:PAGE]]
