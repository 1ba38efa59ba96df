"""The file: where it may lie, who may read it, what becomes of one that is copied, cut off or broken."""

import os
import shutil
import stat
import threading
from pathlib import Path

import apsw
import pytest

from tenure.core.errors import InvalidInput, StoreCorrupt, StoreUnavailable
from tenure.core.records import Agent, Brief, Task
from tenure.stores.open_store import open_store
from tenure.stores.port import Change
from tenure.stores.sqlite import Sqlite
from tenure.stores.sqlite.store_file import filesystem_of
from tenure.testing import FakeClock
from tenure.testing.samples import event_of, row_of
from tenure.testing.suites.store_setting import add, logged, stored, write

MOUNTS = """\
/dev/vda / ext4 rw 0 0
server:/home /home nfs4 rw 0 0
/dev/vdb /home/local ext4 rw 0 0
me@host: /mnt/with\\040space fuse.sshfs rw 0 0
//host/share /share cifs rw 0 0
host /nine 9p rw 0 0
overlay /over overlay rw 0 0
/dev/vdc /over xfs rw 0 0
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "folder" / "store.db"


@pytest.fixture
def store(path: Path) -> Sqlite:
    return Sqlite(str(path))


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/srv/store.db", "ext4"),
        ("/home/bo/store.db", "nfs4"),
        ("/home/local/store.db", "ext4"),
        ("/home/localized/store.db", "nfs4"),
        ("/homestead/store.db", "ext4"),
        ("/mnt/with space/store.db", "fuse.sshfs"),
        ("/over/store.db", "xfs"),
    ],
)
def test_the_file_system_is_that_of_the_nearest_mount(path: str, kind: str) -> None:
    assert filesystem_of(path, MOUNTS) == kind


@pytest.mark.parametrize("kind", ["nfs", "nfs4", "cifs", "smb3", "9p", "afs", "ceph", "lustre", "fuse.sshfs"])
def test_a_network_file_system_is_refused(path: Path, kind: str) -> None:
    with pytest.raises(StoreUnavailable, match=kind.replace(".", r"\.")):
        Sqlite(str(path), mounts=f"host / {kind} rw 0 0\n")
    assert not path.parent.exists()


def test_what_we_make_is_private_whatever_the_umask(tmp_path: Path) -> None:
    old = os.umask(0)
    try:
        for mask in (0o000, 0o022, 0o077, 0o277):
            os.umask(mask)
            folder = tmp_path / f"{mask:o}" / "folder"
            store = Sqlite(str(folder / "store.db"))
            add(store, row_of(Agent, project="p", id="bo"))
            store.backup(str(folder / "backup.db"))
            assert stat.S_IMODE(folder.stat().st_mode) == 0o700
            names = {file.name: stat.S_IMODE(file.stat().st_mode) for file in folder.iterdir()}
            side = ("store.db-wal", "store.db-shm", "store.db.lock", "store.db.turn")
            assert names == dict.fromkeys(("store.db", *side, "backup.db"), 0o600)
            store.close()
    finally:
        os.umask(old)


def test_a_folder_that_was_there_keeps_its_mode(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    Sqlite(str(tmp_path / "store.db")).close()
    assert stat.S_IMODE(tmp_path.stat().st_mode) == 0o755


def test_a_store_that_is_not_there_is_made_only_when_asked(path: Path) -> None:
    with pytest.raises(StoreUnavailable, match="no store"):
        open_store(str(path), create=False)
    assert not path.parent.exists()
    open_store(str(path)).close()
    open_store(f"sqlite://{path}", create=False).close()


def test_a_store_under_two_names_has_one_lock(path: Path, tmp_path: Path) -> None:
    Sqlite(str(path)).close()
    link = tmp_path / "link.db"
    link.symlink_to(path)
    store = Sqlite(str(link))
    assert store.path == str(path)
    assert store.is_copy is False
    store.close()
    assert not (tmp_path / "link.db.lock").exists()


def test_a_copied_file_is_found_out_until_it_is_settled(store: Sqlite, path: Path, tmp_path: Path) -> None:
    add(store, row_of(Agent, project="p", id="bo"))
    store.backup(str(tmp_path / "copy.db"))
    assert Sqlite(str(path)).is_copy is False
    copy = Sqlite(str(tmp_path / "copy.db"))
    assert copy.is_copy is True
    assert Sqlite(str(tmp_path / "copy.db")).is_copy is True
    copy.settled_here()
    assert copy.is_copy is False
    assert Sqlite(str(tmp_path / "copy.db")).is_copy is False
    assert Sqlite(str(path)).is_copy is False


def test_a_moved_file_is_still_itself(store: Sqlite, path: Path, tmp_path: Path) -> None:
    store.close()
    path.rename(tmp_path / "moved.db")
    (path.parent / "store.db-wal").rename(tmp_path / "moved.db-wal")
    assert Sqlite(str(tmp_path / "moved.db")).is_copy is False


def test_every_new_store_has_an_epoch_of_its_own(tmp_path: Path) -> None:
    def epoch(store: Sqlite) -> str:
        with store.begin("local", write=False) as transaction:
            return transaction.epoch

    given = Sqlite(str(tmp_path / "given.db"), random=lambda n: b"\xab" * n)
    assert epoch(given) == "abababab"
    assert len({epoch(Sqlite(str(tmp_path / f"{n}.db"))) for n in range(3)}) == 3


@pytest.mark.parametrize("content", [b"", b"not a database at all, " * 100, b"SQLite format 3\x00" + b"\xff" * 4096])
def test_a_file_that_is_no_database_is_refused_and_left_as_it_is(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "store.db"
    path.write_bytes(content)
    with pytest.raises(StoreCorrupt):
        Sqlite(str(path))
    assert path.read_bytes() == content


def test_a_broken_page_is_an_error_and_never_a_new_file(store: Sqlite, path: Path) -> None:
    add(store, *[row_of(Task, project="p", id=str(n), ref=str(n)) for n in range(50)])
    store.close()
    shell = apsw.Connection(str(path))
    ((root,),) = shell.execute("SELECT rootpage FROM sqlite_schema WHERE name = 'task'").fetchall()
    shell.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    shell.close()
    whole = path.read_bytes()
    damaged = whole[: (root - 1) * 4096] + b"\x5a" * 4096 + whole[root * 4096 :]
    path.write_bytes(damaged)
    broken = Sqlite(str(path))
    with pytest.raises(StoreCorrupt):
        stored(broken, Task)
    with pytest.raises(StoreCorrupt):
        add(broken, row_of(Task, project="p", id="new", ref="new"))
    assert broken.check() != []
    broken.close()
    assert path.read_bytes() == damaged


def test_a_row_that_cannot_be_read_is_an_error(store: Sqlite, path: Path) -> None:
    add(store, row_of(Task, project="p", id="one"))
    shell = apsw.Connection(str(path))
    shell.execute("UPDATE task SET tags = '{broken'")
    with pytest.raises(StoreCorrupt):
        stored(store, Task)


def test_a_log_without_its_database_is_never_mixed_with_a_new_one(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    (tmp_path / "store.db-wal").write_bytes(b"left over")
    with pytest.raises(StoreCorrupt, match=r"store\.db-wal"):
        Sqlite(str(path))
    assert (tmp_path / "store.db-wal").read_bytes() == b"left over"
    assert not path.exists()


def test_a_making_that_was_cut_off_is_begun_anew(path: Path) -> None:
    path.parent.mkdir()
    (path.parent / "store.db.new").write_bytes(b"half of one")
    store = Sqlite(str(path))
    assert store.check() == []
    assert not (path.parent / "store.db.new").exists()


def test_many_who_open_a_missing_store_at_once_make_one(path: Path) -> None:
    start = threading.Barrier(6)
    epochs = []

    def open_it() -> None:
        start.wait(30)
        with Sqlite(str(path)).begin("local", write=True) as transaction:
            epochs.append(transaction.epoch)

    threads = [threading.Thread(target=open_it) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert len(epochs) == 6
    assert len(set(epochs)) == 1


def test_a_folder_we_may_not_write_is_a_plain_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreUnavailable):
        Sqlite(str(tmp_path / "file" / "store.db"))
    with pytest.raises(StoreUnavailable):
        Sqlite(str(tmp_path))


def test_a_backup_is_one_moment_of_a_store_in_use(store: Sqlite, tmp_path: Path) -> None:
    """Each commit adds an agent and an event: a backup that has unequal numbers saw half of one."""
    counts = set()
    for number in range(12):
        write_both(store, number)
        with store.begin("local", write=True) as transaction:
            transaction.append([event_of(id="not yet committed")])
            store.backup(str(tmp_path / f"{number}.db"))
        backup = Sqlite(str(tmp_path / f"{number}.db"))
        assert backup.check() == []
        counts.add((len(stored(backup, Agent)), len([e for e in logged(backup) if e.id == "both"])))
        assert [e.id for e in logged(backup)].count("not yet committed") == number
        backup.close()
    assert counts == {(n, n) for n in range(1, 13)}


def write_both(store: Sqlite, number: int) -> None:
    with store.begin("local", write=True) as transaction:
        transaction.save([Change(None, row_of(Agent, project="p", id=str(number)))])
        transaction.append([event_of(id="both")])


def test_a_backup_needs_no_other_file(store: Sqlite, tmp_path: Path) -> None:
    write(store, events=[event_of(id="in the log only")])
    store.backup(str(tmp_path / "backup.db"))
    assert sorted(file.name for file in tmp_path.iterdir()) == ["backup.db", "folder"]
    shutil.move(tmp_path / "backup.db", tmp_path / "elsewhere.db")
    assert [e.id for e in logged(Sqlite(str(tmp_path / "elsewhere.db")))] == ["in the log only"]


def test_check_names_rows_whose_task_is_gone(store: Sqlite) -> None:
    add(store, row_of(Brief, project="p", id="gone"))
    assert store.check() == ["1 rows of brief.id name a task that does not exist"]


def test_an_unknown_scheme_is_refused_with_those_that_exist() -> None:
    with pytest.raises(InvalidInput) as refusal:
        open_store("carrier-pigeon://loft")
    assert "memory" in str(refusal.value.hint)
    assert "sqlite" in str(refusal.value.hint)
    with pytest.raises(InvalidInput):
        open_store("sqlite://")


def test_a_url_may_be_escaped_and_names_the_store(tmp_path: Path) -> None:
    clock = FakeClock()
    store = open_store(f"sqlite://{tmp_path}/with%20space.db", clock=clock)
    assert store.url == f"sqlite://{tmp_path}/with space.db"
    assert (tmp_path / "with space.db").exists()
    with store.begin("local", write=False) as transaction:
        assert transaction.now == clock.now
    assert open_store("memory://", clock=clock).url == "memory://"
