"""A store whose files were removed, replaced or put back: what is acknowledged is in the file at the path."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import apsw
import pytest

from tenure.core import commands as c
from tenure.core.errors import OutcomeUnknown, StoreUnavailable
from tenure.core.records import Agent, Task
from tenure.stores.port import Change
from tenure.stores.sqlite import Sqlite
from tenure.stores.sqlite.store_file import place_of
from tenure.testing import FakeClock
from tenure.testing.factories import Scene
from tenure.testing.samples import event_of, row_of
from tenure.testing.suites.store_setting import add, stored, trial, write
from tenure.user_state import noted

CLOCK = FakeClock()


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TENURE_STATE", str(tmp_path / "state"))
    return tmp_path / "state"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / ".tenure" / "store.db"


@pytest.fixture
def store(path: Path) -> Sqlite:
    store = Sqlite(str(path))
    write(store, Change(None, row_of(Agent, project="p", id="bo")), events=[event_of(project="p")])
    return store


def remove_folder(path: Path) -> None:
    shutil.rmtree(path.parent)


def replace_file(path: Path) -> None:
    other = Sqlite(str(path.with_name("other.db")))
    other.close()
    path.with_name("other.db").replace(path)


def remove_log(path: Path) -> None:
    Path(f"{path}-wal").unlink()


def replace_log(path: Path) -> None:
    remove_log(path)
    Path(f"{path}-wal").touch()


def remove_index(path: Path) -> None:
    Path(f"{path}-shm").unlink()


GONE = r"was removed|was replaced"
EVENTS = [remove_folder, replace_file, remove_log, replace_log, remove_index]
every_event = pytest.mark.parametrize("happens", EVENTS, ids=lambda f: f.__name__)


@every_event
def test_a_write_is_refused_before_it_begins(store: Sqlite, path: Path, happens: Callable[[Path], None]) -> None:
    happens(path)
    for _ in range(2):
        with pytest.raises(StoreUnavailable, match=GONE) as refused, store.begin("local", write=True):
            pytest.fail("it began")
        assert refused.value.definite
        if happens in (replace_file, remove_index):
            return  # there is a file that can be opened again
    store.close()


@every_event
def test_a_commit_into_a_file_without_its_name_is_not_acknowledged(
    store: Sqlite, path: Path, happens: Callable[[Path], None]
) -> None:
    transaction = store.begin("local", write=True)
    tx = transaction.__enter__()
    tx.save([Change(None, row_of(Agent, project="p", id="cy"))])
    tx.append([event_of(project="p")])
    happens(path)
    with pytest.raises(OutcomeUnknown, match=GONE) as unknown:
        transaction.__exit__(None, None, None)
    assert not unknown.value.definite
    with pytest.raises(StoreUnavailable), store.begin("local", write=True):
        pytest.fail("it began")
    store.close()


@every_event
@pytest.mark.parametrize("ask", ["begin", "mark", "wait", "backup"])
def test_nobody_reads_from_a_file_without_its_name(
    store: Sqlite, path: Path, happens: Callable[[Path], None], ask: str
) -> None:
    looks: dict[str, Callable[[], object]] = {
        "begin": lambda: store.begin("local", write=False).__enter__(),
        "mark": lambda: store.mark("local"),
        "wait": lambda: store.wait({"local": 0}, 10.0),
        "backup": lambda: store.backup(str(path.parent.parent / "backup.db")),
    }
    happens(path)
    with pytest.raises(StoreUnavailable, match=GONE):
        looks[ask]()
    assert not (path.parent.parent / "backup.db").exists()
    store.close()


def test_a_file_that_comes_back_is_used_again(store: Sqlite, path: Path) -> None:
    aside = path.parent.with_name("aside")
    path.parent.rename(aside)
    with pytest.raises(StoreUnavailable, match="was removed"), store.begin("local", write=True):
        pass
    aside.rename(path.parent)
    with pytest.raises(StoreUnavailable) as again, store.begin("local", write=True):
        pass
    assert "Send the command again" in (again.value.hint or "")
    add(store, row_of(Agent, project="p", id="cy"))
    assert {id for _, id in stored(store, Agent)} == {"bo", "cy"}
    assert not store.is_copy
    store.close()


def test_a_log_that_was_removed_under_others_is_not_made_again(store: Sqlite, path: Path) -> None:
    """With a new log the index of the others would speak of pages that are not there."""
    remove_log(path)
    script = f"from tenure.stores.sqlite import Sqlite; Sqlite({str(path)!r})"
    other = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert "was removed while a process had the store open" in other.stderr
    assert not Path(f"{path}-wal").exists()
    store.close()
    lost = Sqlite(str(path))
    assert lost.is_copy  # the log had what this process has seen
    lost.close()


def test_another_link_is_not_opened_where_the_log_was_removed(store: Sqlite, path: Path) -> None:
    with store.begin("local", write=False):
        remove_log(path)
        with pytest.raises(StoreUnavailable), store.begin("local", write=False):
            pytest.fail("it began")
    assert not Path(f"{path}-wal").exists()


# --- what was put in its place --------------------------------------------------------------------------------


def scene_at(path: Path, seed: int = 0) -> Scene:
    return Scene(Sqlite(str(path), clock=CLOCK), CLOCK, seed=seed)


def test_another_store_in_the_place_takes_no_receipt_of_the_one_before(path: Path) -> None:
    scene = scene_at(path)
    scene.add("held")
    receipt = scene.take("A-001")
    backup = path.parent.parent / "backup.db"
    scene.store.backup(str(backup))
    remove_folder(path)
    with pytest.raises(StoreUnavailable):
        scene.submit(receipt)
    path.parent.mkdir(mode=0o700)
    shutil.copy(backup, path)
    with pytest.raises(StoreUnavailable, match="was removed") as opened:
        scene.submit(receipt)
    assert "Send the command again" in (opened.value.hint or "")
    assert scene.submit(receipt, "finished meanwhile").outcome == "STALE_EPOCH"
    assert (scene.task("A-001").state, scene.last_claim("A-001").reason) == ("ready", "ERROR")
    assert [r.data for r in scene.results("A-001")] == ["finished meanwhile"]  # kept as refused
    assert scene.engine.verify() == []
    scene.store.close()


def test_a_backup_begins_an_epoch_even_in_the_very_inode(path: Path, tmp_path: Path) -> None:
    scene = scene_at(path)
    scene.add("held")
    receipt = scene.take("A-001")
    backup = tmp_path / "backup.db"
    scene.store.backup(str(backup))  # nothing comes after it: no sequence tells
    scene.store.close()
    before = place_of(str(path))
    remove_log(path)
    remove_index(path)
    shutil.copyfile(backup, path)
    assert place_of(str(path)) == before
    again = scene_at(path, seed=1)
    assert again.do(c.Renew, receipt=receipt).outcome == "STALE_EPOCH"
    again.store.close()


def test_a_backup_copied_over_the_file_is_not_mixed_with_the_log_beside_it(path: Path, tmp_path: Path) -> None:
    scene = scene_at(path)
    scene.add("first")
    scene.store.backup(str(tmp_path / "backup.db"))
    scene.add("second")
    scene.store.close()
    assert Path(f"{path}-wal").stat().st_size > 0
    shutil.copyfile(tmp_path / "backup.db", path)
    again = scene_at(path, seed=1)
    assert [t.key for t in again.rows(Task)] == ["A-001-first"]
    assert again.engine.verify() == []
    assert again.store.check() == []
    assert Path(f"{path}-wal.1.aside").stat().st_size > 0
    again.store.close()


def test_a_file_that_says_less_than_was_noted_begins_an_epoch(path: Path, tmp_path: Path) -> None:
    """A plain copy, put back over the file: the inode is the same, and there is no mark."""
    scene = scene_at(path)
    scene.add("held")
    receipt = scene.take("A-001")
    copy = one_file(scene, path, tmp_path)
    scene = scene_at(path)
    scene.do(c.Release, receipt=receipt)
    other = scene.take("A-001", "bo")
    scene.store.close()
    remove_log(path)
    remove_index(path)
    shutil.copyfile(copy, path)
    again = scene_at(path, seed=1)
    assert again.do(c.Renew, receipt=receipt).outcome == "STALE_EPOCH"
    assert again.do(c.Renew, receipt=other).outcome == "STALE_EPOCH"
    again.store.close()


def test_who_opens_a_store_while_others_write_does_not_take_it_for_a_copy(
    path: Path, store: Sqlite, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another process commits and notes between two looks of the one that opens."""

    def read_late(place: str, environ: Mapping[str, str]) -> dict[str, int]:
        monkeypatch.setattr("tenure.stores.sqlite.store.noted", noted)
        other = Sqlite(str(path))
        write(other, Change(None, row_of(Agent, project="p", id="cy")), events=[event_of(project="p")])
        other.close()
        return noted(place, environ)

    monkeypatch.setattr("tenure.stores.sqlite.store.noted", read_late)
    opened = Sqlite(str(path))
    assert not opened.is_copy
    opened.close()
    store.close()


def test_a_file_of_an_earlier_epoch_begins_another(path: Path, tmp_path: Path) -> None:
    scene = scene_at(path)
    scene.add("held")
    receipt = scene.take("A-001")
    copy = one_file(scene, path, tmp_path)
    scene = scene_at(path)
    scene.engine.new_epoch("a person said so")
    scene.store.close()
    remove_log(path)
    remove_index(path)
    shutil.copyfile(copy, path)
    again = scene_at(path, seed=1)
    assert again.do(c.Renew, receipt=receipt).outcome == "STALE_EPOCH"
    again.store.close()


def test_two_stores_that_change_places_stay_what_they_are(path: Path, tmp_path: Path) -> None:
    """A note is about one file and one epoch: neither another file nor a new store is taken for an older state."""
    receipts = []
    for name in ("a", "b"):
        scene = scene_at(path, seed=ord(name))
        for _ in range(1 if name == "b" else 5):
            scene.add("task")
        receipts.append(scene.take("A-001"))
        scene.store.close()
        path.parent.rename(tmp_path / name)
    for name, receipt in zip("ab", receipts, strict=True):
        (tmp_path / name).rename(path.parent)
        scene = scene_at(path, seed=9)
        assert scene.do(c.Renew, receipt=receipt).outcome == "RENEWED"
        scene.store.close()
        path.parent.rename(tmp_path / name)


def test_what_was_not_committed_is_never_noted(store: Sqlite, path: Path) -> None:
    place = place_of(str(path))
    store.close()
    before = noted(place, os.environ)
    store = Sqlite(str(path))
    with trial(store) as tx:
        tx.append([event_of(project="p") for _ in range(10)])
    store.close()
    assert noted(place, os.environ) == before
    again = Sqlite(str(path))
    assert not again.is_copy
    again.close()


def test_a_process_notes_now_and_then_and_at_its_end(path: Path) -> None:
    now = [0.0]
    store = Sqlite(str(path), monotonic=lambda: now[0])
    place = place_of(str(path))

    def append() -> int:
        with store.begin("local", write=True) as tx:
            tx.append([event_of(project="p")])
            epoch.add(tx.epoch)
        return store.mark("local")

    epoch: set[str] = set()
    append()
    assert noted(place, os.environ) == {}
    now[0] = 1.0
    last = append()
    assert noted(place, os.environ) == {epoch.copy().pop(): last}
    last = append()
    store.close()
    assert list(noted(place, os.environ).values()) == [last]


def test_a_state_folder_that_cannot_be_written_keeps_nobody_from_working(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("TENURE_STATE", "TMPDIR"):
        (tmp_path / name).write_text("a file")
        monkeypatch.setenv(name, str(tmp_path / name))
    store = Sqlite(str(path))
    add(store, row_of(Agent, project="p", id="bo"))
    store.close()
    Sqlite(str(path)).close()


def one_file(scene: Scene, path: Path, tmp_path: Path) -> Path:
    """A copy of the store as any program copies a file, once its log is in it."""
    scene.store.close()
    connection = apsw.Connection(str(path))
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    connection.close()
    return Path(shutil.copyfile(path, tmp_path / "copy.db"))
