"""A backup put in the place of a store: checked first, in a new epoch, and nothing that was there is lost."""

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import apsw
import pytest

from tenure.client.restore import Restored, restore
from tenure.core import commands as c
from tenure.core.errors import InvalidInput, SchemaMismatch, StoreCorrupt, StoreUnavailable
from tenure.stores.sqlite import Sqlite
from tenure.testing import FakeClock
from tenure.testing.factories import PROJECT, Dice, Scene

CLOCK = FakeClock()
MOMENT = time.gmtime(1_800_000_000)
ASIDE = "before-restore-20270115T080000Z"


def opened(path: Path, seed: int = 0) -> Scene:
    return Scene(Sqlite(str(path), clock=CLOCK), CLOCK, seed=seed)


def restored(backup: Path, store: Path) -> Restored:
    return restore(str(backup), str(store), clock=CLOCK, random=Dice(50), moment=lambda: MOMENT)


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return tmp_path / "home" / "store.db"


@pytest.fixture
def backup(store: Path, tmp_path: Path) -> Path:
    """Of a store in which one task is held and one is open; the store has gone on since."""
    scene = opened(store)
    scene.add("held")
    scene.add("open")
    (tmp_path / "receipt").write_text(scene.take("A-001"))
    scene.store.backup(str(tmp_path / "backup.db"))
    scene.finish("A-002", agent="bo")
    scene.store.close()
    return tmp_path / "backup.db"


def listing(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir() if not path.name.endswith((".lock", ".turn", "-shm"))}


def test_the_backup_is_the_store_and_its_live_claims_have_ended(backup: Path, store: Path, tmp_path: Path) -> None:
    before = backup.read_bytes()
    done = restored(backup, store)
    assert (done.store, done.ended) == (str(store), ["A-001-held"])
    scene = opened(store, seed=1)
    assert not scene.store.is_copy
    with scene.store.begin("local", write=False) as tx:
        assert tx.epoch == done.epoch
    assert scene.states("A-001", "A-002") == ["ready", "ready"]
    last = scene.last_claim("A-001")
    assert (last.reason, last.state, last.counted, scene.task("A-001").attempts) == ("ERROR", "error", False, 0)
    receipt = (tmp_path / "receipt").read_text()
    assert scene.do(c.Renew, receipt=receipt).outcome == "STALE_EPOCH"
    assert scene.submit(receipt, "hours of work").outcome == "STALE_EPOCH"
    assert [(r.data, r.accepted) for r in scene.results("A-001")] == [("hours of work", False)]
    assert [e.message for e in scene.events(kind="epoch.started")] == [f"restored from {backup}"]
    assert scene.claim("A-001", "cy").generation == 2
    assert scene.engine.verify() == scene.store.check() == []
    assert backup.read_bytes() == before
    scene.store.close()


def test_what_was_there_is_kept_whole_under_another_name(backup: Path, store: Path) -> None:
    done = restored(backup, store)
    aside = Path(f"{store}.{ASIDE}")
    assert done.aside == str(aside)
    assert listing(store.parent) == {store.name, aside.name}
    again = opened(aside)
    assert again.states("A-001", "A-002") == ["claimed", "completed"]  # what came after the backup is all there
    assert again.engine.verify() == []
    again.store.close()


def test_what_was_still_in_the_log_of_the_store_is_kept_too(backup: Path, store: Path) -> None:
    scene = opened(store)
    scene.add("only in the log beside the database")
    assert Path(f"{store}-wal").stat().st_size > 0
    os.close(os.open(store, os.O_RDONLY))
    copies = {name: store.with_name(name).read_bytes() for name in (store.name, f"{store.name}-wal")}
    scene.store.close()
    for name, content in copies.items():  # as a kill leaves it
        store.with_name(name).write_bytes(content)
    done = restored(backup, store)
    kept = opened(Path(str(done.aside)))
    assert kept.state("A-003") == "ready"
    kept.store.close()


def test_where_there_is_no_store_the_backup_becomes_one(backup: Path, tmp_path: Path) -> None:
    target = tmp_path / "new" / ".tenure" / "tenure.db"
    target.parent.parent.mkdir()
    assert restored(backup, target).aside is None
    scene = opened(target)
    assert scene.state("A-001") == "ready"
    assert target.stat().st_mode & 0o777 == 0o600
    scene.store.close()


def test_a_new_epoch_begins_even_in_the_very_inode_of_the_backup_s_store(backup: Path, tmp_path: Path) -> None:
    """A removed file's inode is given to the next one: the place alone does not tell."""
    target = tmp_path / "other.db"
    first = restored(backup, target).epoch
    connection = apsw.Connection(str(backup))
    connection.execute("UPDATE meta SET place = ?", [f"{target.stat().st_dev}:{target.stat().st_ino}"])
    connection.close()
    target.unlink()
    second = restored(backup, target).epoch
    assert first != second or Dice(50).token(4) == Dice(50).token(4)
    scene = opened(target)
    assert scene.state("A-001") == "ready"
    assert len(scene.events(kind="epoch.started")) == 1
    scene.store.close()


def test_a_damaged_store_is_replaced_and_kept_as_it_is(backup: Path, store: Path) -> None:
    store.write_bytes(b"not a database" * 100)
    Path(f"{store}-wal").write_bytes(b"its log")
    done = restored(backup, store)
    assert Path(str(done.aside)).read_bytes() == b"not a database" * 100
    assert Path(f"{done.aside}-wal").read_bytes() == b"its log"
    scene = opened(store)
    assert scene.state("A-001") == "ready"
    scene.store.close()


HOLDER = """
import sys
from tenure.stores.sqlite import Sqlite
store = Sqlite(sys.argv[1])
store.mark("local")
print("open", flush=True)
sys.stdin.read()
"""


@contextmanager
def held_open(path: Path) -> Iterator[None]:
    """Another process has the store open, and does nothing with it."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    with process:
        assert process.stdout is not None
        assert process.stdout.readline() == "open\n"
        yield


def test_a_store_that_others_have_open_is_left_alone(backup: Path, store: Path) -> None:
    before = listing(store.parent)
    with held_open(store):
        with pytest.raises(StoreUnavailable, match="open in another process") as refused:
            restored(backup, store)
        assert "nothing was changed" in refused.value.message
    assert listing(store.parent) | {f"{store.name}-wal"} == before | {f"{store.name}-wal"}
    scene = opened(store)
    assert scene.states("A-001", "A-002") == ["claimed", "completed"]
    scene.store.close()
    assert restored(backup, store).aside is not None


def test_a_damaged_store_that_others_have_open_is_left_alone(backup: Path, store: Path) -> None:
    apsw.Connection(str(store)).execute("PRAGMA wal_checkpoint(TRUNCATE)")
    with held_open(store):
        with store.open("r+b") as file:
            file.write(b"damaged!" * 10)
        with pytest.raises(StoreUnavailable, match="open in another process"):
            restored(backup, store)
    assert store.read_bytes()[:8] == b"damaged!"


def test_what_is_no_sound_backup_of_ours_is_refused_and_the_store_untouched(
    backup: Path, store: Path, tmp_path: Path
) -> None:
    text, cut, foreign, planted = (tmp_path / name for name in ("text", "cut", "foreign", "planted"))
    text.write_text("hello" * 1000)
    cut.write_bytes(backup.read_bytes()[:-20_000])
    apsw.Connection(str(foreign)).execute("CREATE TABLE photos (id)")
    shutil.copy(backup, planted)
    apsw.Connection(str(planted)).execute("CREATE TRIGGER x AFTER INSERT ON task BEGIN DELETE FROM event; END")
    before = store.read_bytes(), listing(store.parent)
    for bad, error in ((text, StoreCorrupt), (cut, StoreCorrupt), (foreign, SchemaMismatch), (planted, SchemaMismatch)):
        with pytest.raises(error, match=bad.name):
            restored(bad, store)
    for bad, what in ((tmp_path / "none", "no backup"), (store, "the store itself"), (tmp_path, "no backup")):
        with pytest.raises(InvalidInput, match=what):
            restored(bad, store)
    assert (store.read_bytes(), listing(store.parent)) == before


def test_a_backup_that_may_only_be_read_is_enough(backup: Path, store: Path) -> None:
    backup.chmod(0o400)
    backup.parent.chmod(0o700)
    assert restored(backup, store).ended == ["A-001-held"]
    assert not Path(f"{backup}-wal").exists()


def test_a_name_that_is_taken_is_not_written_over(backup: Path, store: Path) -> None:
    Path(f"{store}.{ASIDE}").write_text("precious")
    with pytest.raises(InvalidInput, match="refusing to overwrite"):
        restored(backup, store)
    assert Path(f"{store}.{ASIDE}").read_text() == "precious"
    assert opened(store).state("A-002") == "completed"


def test_a_log_without_its_database_is_never_mixed_with_the_restored_one(backup: Path, store: Path) -> None:
    store.unlink()
    Path(f"{store}-wal").write_bytes(b"of the lost one")
    with pytest.raises(InvalidInput, match="without its database"):
        restored(backup, store)
    assert listing(store.parent) == {f"{store.name}-wal"}


def test_a_server_s_store_is_told_how(backup: Path) -> None:
    with pytest.raises(InvalidInput) as told:
        restore(str(backup), "postgresql://tenure@db.example.com/work")
    assert "pg_restore" in (told.value.hint or "")
    assert PROJECT
