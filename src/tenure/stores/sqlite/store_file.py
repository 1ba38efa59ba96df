"""The file of a store: where it lies, who may read it, whether it is a copy, and whether its schema is ours.

**Schema.** `schema.sql` is the schema that the migrations create, as SQLite reports it, under their checksums (`./x
docs schema.sql` writes it). Comparing a file with this text needs no hashing and no second database; every command
opens the store first. Where the text differs, `schema.compare` decides by the migrations. A new file is created from
this text too: SQLite reads its whole schema again at each ALTER TABLE of a migration.
"""
# ruff: noqa: PTH101, PTH102, PTH104, PTH108, PTH112, PTH116, PTH118, PTH120, PTH123 - pathlib costs every command 7 ms at its start

from __future__ import annotations

import fcntl
import os
import sys
from collections.abc import Iterable
from contextlib import suppress
from functools import cache
from typing import TYPE_CHECKING, Any

import msgspec

from tenure.core.errors import SchemaMismatch, StoreCorrupt, StoreUnavailable
from tenure.user_state import sync_folder as _sync

if TYPE_CHECKING:
    from tenure.stores.sqlite.connections import SqliteConnection

_IN_USE = 128  # the byte of `-shm` that SQLite locks while a connection is open
MOUNTS = "/proc/self/mounts"
SNAPSHOT = os.path.join(os.path.dirname(__file__), "schema.sql")
STATISTICS = "\n-- statistics of the planner\n"  # what follows in the snapshot fills a new file
MASTER = "SELECT type, name, tbl_name, sql FROM sqlite_schema ORDER BY tbl_name, type DESC, name"
STEPS = "SELECT number, name, checksum, since FROM migration ORDER BY number"
META = "SELECT epoch, schema, place FROM meta"

# WAL needs memory that is shared between processes, and reliable locks; none of these file systems has both.
NETWORK = {
    *("9p", "afs", "beegfs", "ceph", "cifs", "coda", "davfs", "gfs", "gfs2", "glusterfs", "gpfs", "lustre", "ncpfs"),
    *("nfs", "nfs4", "ocfs2", "orangefs", "pvfs2", "smb", "smb2", "smb3", "smbfs"),
}
NETWORK_FUSE = {
    *("afs", "ceph", "ceph-fuse", "davfs2", "gcsfuse", "glusterfs", "goofys", "gvfsd-fuse", "httpfs", "juicefs", "mfs"),
    *("moosefs", "rclone", "s3fs", "s3ql", "seaweedfs", "smbnetfs", "sshfs"),
}


def refuse_network(path: str, mounts: str | None = None) -> None:
    """Raises StoreUnavailable where `path` lies on a network file system. `mounts`: the kernel's table unless given."""
    if mounts is None:
        if not sys.platform.startswith("linux"):
            return
        try:
            with open(MOUNTS, encoding="utf-8", errors="surrogateescape") as table:
                mounts = table.read()
        except OSError:
            return
    kind = filesystem_of(path, mounts)
    if kind in NETWORK or (kind.startswith("fuse.") and kind.removeprefix("fuse.") in NETWORK_FUSE):
        raise StoreUnavailable(
            f"{path} lies on a network file system ({kind}), where SQLite's locks and shared memory do not hold",
            "Put the store on a local disk, or use a server store for several machines.",
        )


def filesystem_of(path: str, mounts: str) -> str:
    """The type of the file system that `path` lies on, by a table like /proc/self/mounts."""
    best, kind = -1, ""
    for line in mounts.splitlines():
        parts = line.split(" ")
        if len(parts) < 3:
            continue
        point = parts[1]
        if "\\" in point:
            for escape, plain in (("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")):
                point = point.replace(escape, plain)
        inside = point in ("/", path) or path.startswith(point + "/")
        if inside and len(point) >= best:  # of two mounts on one point the later one counts
            best, kind = len(point), parts[2]
    return kind


def make_folder(path: str) -> None:
    """Create the folder of `path`, private. Its parents outlast a power cut; for the folder itself see `sync_new`."""
    folder = above = os.path.dirname(path)
    missing: list[str] = []
    while not os.path.isdir(above):
        missing.append(above)
        above = os.path.dirname(above)
    try:
        for new in reversed(missing):
            with suppress(FileExistsError):
                os.mkdir(new, 0o700 if new == folder else 0o777)
                if new == folder:
                    os.chmod(new, 0o700)  # whatever the umask
            if new != folder:
                sync_folder(new)
    except OSError as error:
        raise StoreUnavailable(f"{folder}: cannot be created: {error.strerror}") from error


def make_private(path: str, *, replace: bool = False) -> None:
    """A new empty file that only its owner may read. Raises FileExistsError where there is one, unless `replace`."""
    if replace:
        with suppress(FileNotFoundError):
            os.unlink(path)
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        os.fchmod(handle, 0o600)  # whatever the umask
    finally:
        os.close(handle)


def place_of(path: str) -> str:
    """Device and inode: a moved file keeps them, a copied one does not."""
    found = os.stat(path)
    return f"{found.st_dev}:{found.st_ino}"


def files_of(path: str) -> tuple[tuple[int, int], ...]:
    """Device and inode of the database and the two files beside it. Raises OSError where one is missing."""
    found = [os.stat(name) for name in names_of(path)]
    return tuple((file.st_dev, file.st_ino) for file in found)


def names_of(path: str) -> tuple[str, str, str]:
    return path, f"{path}-wal", f"{path}-shm"


def change_of(names: tuple[str, ...], files: tuple[tuple[int, int], ...]) -> str | None:
    """Which of the files was removed or replaced, for a message; None where each is in place."""
    for name, known in zip(names, files, strict=True):
        try:
            found = os.stat(name)
        except FileNotFoundError:
            return f"{name} was removed"
        except OSError as error:
            return f"{name} can no longer be reached: {error.strerror}"
        if (found.st_dev, found.st_ino) != known:
            return f"{name} was replaced by another file"
    return None


def is_one_file(path: str) -> bool:
    """Was it written without a log, as backups are? This process must not have it open: see `is_shared`."""
    with open(path, "rb") as file:
        return file.read(20)[18:] == b"\x01\x01"


def put_aside(path: str) -> None:
    """Rename the file to a name that is free."""
    number = 1
    while os.path.lexists(f"{path}.{number}.aside"):
        number += 1
    os.rename(path, f"{path}.{number}.aside")


def is_shared(index: str) -> bool:
    """Does another process have the store open? It then holds a lock on the index beside the file (`-shm`).

    This process must not have it open: closing the file here would release its locks.
    """
    handle = os.open(index, os.O_RDWR | os.O_CLOEXEC)
    try:
        fcntl.lockf(handle, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, _IN_USE)
    except OSError:
        return True
    else:
        return False
    finally:
        os.close(handle)


def sync_new(path: str) -> None:
    """Make a new file outlast a power cut, and its folder: another process may have created that without a sync."""
    sync_folder(path)
    sync_folder(os.path.dirname(path))


def sync_folder(path: str) -> None:
    """Make a new name in the folder of `path` outlast a power cut."""
    _sync(os.path.dirname(path))


# --- the schema ---


class FoundFile(msgspec.Struct, frozen=True):
    """The row of `meta` of an opened file."""

    epoch: str
    schema: int
    place: str


def look(connection: SqliteConnection, path: str) -> FoundFile | None:
    """The row of `meta` where the file's schema is ours; None where migrations are pending.

    Raises SchemaMismatch where it is neither.
    """
    connection.execute("BEGIN")  # one snapshot, even while another process upgrades
    try:
        objects = connection.all(MASTER)
        names = {name for _, name, _, _ in objects}
        if not {"meta", "migration"} <= names:
            listed = ", ".join(sorted(names)[:5]) or "no tables"
            raise SchemaMismatch(f"{path} is a database, but not a tenure store: it has {listed}", "Name another file.")
        steps, meta = connection.all(STEPS), connection.all(META)
    finally:
        connection.execute("ROLLBACK")
    if described(steps, objects) != snapshot()[0]:
        from tenure.stores.sqlite.schema import compare

        if not compare(steps, objects, path):
            return None
    if len(meta) != 1 or meta[0][1] != len(steps):
        raise StoreCorrupt(f"{path}: its table meta does not match its migrations")
    return FoundFile(*meta[0])


@cache
def snapshot() -> tuple[str, str]:
    """The schema as `described`, and the statement that fills the planner's statistics of a new file."""
    try:
        with open(SNAPSHOT, encoding="utf-8") as file:
            text, _, statistics = file.read().partition(STATISTICS)
    except FileNotFoundError:
        return "", ""
    return text, statistics


def described(steps: list[tuple[Any, ...]], objects: list[tuple[Any, ...]]) -> str:
    """Steps and schema as one text."""
    lines = headed(steps)
    for kind, name, table, text in objects:
        lines.append(f"\n-- {kind} {name} of {table}")
        if text is not None:
            lines.append(f"{text};")
    return "\n".join(lines) + "\n"


def headed(steps: Iterable[tuple[Any, ...]]) -> list[str]:
    """The first lines of the text: one a migration."""
    return [f"-- {name} {checksum} since {since}" for _, name, checksum, since in steps]
