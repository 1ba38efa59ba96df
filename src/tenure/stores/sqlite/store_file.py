"""The file itself: what file system it lies on, who may read it, and whether it is still where it was."""
# ruff: noqa: PTH101, PTH102, PTH104, PTH108, PTH112, PTH116, PTH120, PTH123 - pathlib costs every command 7 ms at its start

from __future__ import annotations

import fcntl
import os
import sys
from contextlib import suppress

from tenure.core.errors import StoreUnavailable

_IN_USE = 128  # the byte of `-shm` that SQLite has locked while a connection is open

MOUNTS = "/proc/self/mounts"

# WAL needs memory shared between all who have the file open, and locks that hold; none of these gives both.
NETWORK = {
    *("9p", "afs", "beegfs", "ceph", "cifs", "coda", "davfs", "gfs", "gfs2", "glusterfs", "gpfs", "lustre", "ncpfs"),
    *("nfs", "nfs4", "ocfs2", "orangefs", "pvfs2", "smb", "smb2", "smb3", "smbfs"),
}
NETWORK_FUSE = {
    *("afs", "ceph", "ceph-fuse", "davfs2", "gcsfuse", "glusterfs", "goofys", "gvfsd-fuse", "httpfs", "juicefs", "mfs"),
    *("moosefs", "rclone", "s3fs", "s3ql", "seaweedfs", "smbnetfs", "sshfs"),
}


def refuse_network(path: str, mounts: str | None = None) -> None:
    """Raises StoreAway where `path` lies on a network file system. `mounts` is read from the kernel unless given."""
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
        if inside and len(point) >= best:  # of two mounts on one point the later one is seen
            best, kind = len(point), parts[2]
    return kind


def make_folder(path: str) -> None:
    """The folder of `path`, private when we make it. Those above it survive a power cut; for itself see `sync_new`."""
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
        raise StoreUnavailable(f"{folder}: cannot be made: {error.strerror}") from error


def make_private(path: str, *, anew: bool = False) -> None:
    """A new empty file that only its owner may read. Raises FileExistsError where there is one, unless made `anew`."""
    if anew:
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
    """Which of the files is no longer at its name, in words; None where each of them is."""
    for name, known in zip(names, files, strict=True):
        try:
            found = os.stat(name)
        except FileNotFoundError:
            return f"{name} was removed"
        except OSError as error:
            return f"{name} cannot be reached any more: {error.strerror}"
        if (found.st_dev, found.st_ino) != known:
            return f"{name} was replaced by another file"
    return None


def is_one_file(path: str) -> bool:
    """Was it written without a log, as backups are? Our own process must not have it open: see `is_shared`."""
    with open(path, "rb") as file:
        return file.read(20)[18:] == b"\x01\x01"


def put_aside(path: str) -> None:
    """Give the file a name that nothing has."""
    number = 1
    while os.path.lexists(f"{path}.{number}.aside"):
        number += 1
    os.rename(path, f"{path}.{number}.aside")


def is_shared(index: str) -> bool:
    """Has another process the store open, by the lock it then holds on the index beside it (`-shm`)?

    Our own process must not have it open: to close the file here would let go of its locks.
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
    """Make a new file last through a power cut, and its folder: another process may have made that without a sync."""
    sync_folder(path)
    sync_folder(os.path.dirname(path))


def sync_folder(path: str) -> None:
    """Make a new name in the folder last through a power cut."""
    handle = os.open(os.path.dirname(path), os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
