"""A copied SQLite file is another store: it begins an epoch of its own, and no receipt is good in both."""

import shutil
from pathlib import Path

import pytest

from tenure.core import commands as c
from tenure.core.records import Project
from tenure.stores.sqlite import Sqlite
from tenure.testing import FakeClock
from tenure.testing.factories import PROJECT, Scene

CLOCK = FakeClock()


def opened(path: Path, seed: int = 0) -> Scene:
    return Scene(Sqlite(str(path), clock=CLOCK), CLOCK, seed=seed)


@pytest.fixture
def original(tmp_path: Path) -> Path:
    path = tmp_path / "store.db"
    scene = opened(path)
    scene.add("held")
    scene.add("done")
    scene.finish("A-002")
    scene.store.close()
    return path


def test_the_original_opened_again_goes_on_as_it_was(original: Path) -> None:
    scene = opened(original)
    receipt = scene.take("A-001")
    scene.store.close()
    again = opened(original)
    assert again.do(c.Renew, receipt=receipt).outcome == "RENEWED"
    again.store.close()


def test_a_copy_ends_the_claims_it_found_and_takes_no_old_receipt(original: Path, tmp_path: Path) -> None:
    first = opened(original)
    receipt = first.take("A-001")
    first.store.close()
    for suffix in ("", "-wal"):
        shutil.copy(f"{original}{suffix}", tmp_path / f"copy.db{suffix}")
    copy, first = opened(tmp_path / "copy.db", seed=1), opened(original)
    assert copy.do(c.Renew, receipt=receipt).outcome == "STALE_EPOCH"
    assert (copy.task("A-001").state, copy.last_claim("A-001").reason) == ("ready", "ERROR")
    assert first.do(c.Renew, receipt=receipt).outcome == "RENEWED"
    # the same generation in both: the epoch tells them apart
    second = copy.claim("A-001", "bo")
    first.do(c.Release, receipt=receipt)
    other = first.claim("A-001", "cy")
    assert second.generation == other.generation == 2
    assert copy.submit(other.receipt or "").outcome == "STALE_EPOCH"
    assert first.submit(second.receipt or "").outcome == "STALE_EPOCH"
    for scene in (copy, first):
        assert scene.engine.verify() == []
        scene.store.close()


def test_a_backup_that_is_restored_begins_an_epoch(original: Path, tmp_path: Path) -> None:
    scene = opened(original)
    scene.store.backup(str(tmp_path / "backup.db"))
    receipt = scene.take("A-001")
    scene.submit(receipt, "lost with the file")
    scene.store.close()
    restored = opened(tmp_path / "backup.db", seed=2)
    assert restored.state("A-001") == "ready"
    granted = restored.claim("A-001", "bo")
    assert granted.generation == 1  # handed out twice, which is why the number alone does not fence
    assert restored.submit(receipt, "late").outcome == "STALE_EPOCH"
    assert restored.submit(granted.receipt or "").outcome == "ACCEPTED"
    assert [e.project for e in restored.events(kind="epoch.started")] == [""]
    restored.store.close()
    again = opened(tmp_path / "backup.db", seed=3)
    assert len(again.events(kind="epoch.started")) == 1
    assert again.rows(Project)[0].id == PROJECT
    again.store.close()
