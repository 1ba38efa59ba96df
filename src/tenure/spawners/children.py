"""The processes that a spawner has started on this machine: one private file for each, and nothing else.

A file is written before its process may run its command (see `processes/detached.py`), under a name made of the spawn
id. So the same spawn never starts two processes, also after the spawner was killed at any point; and a file whose
process is gone proves that the process has ended.
"""

from __future__ import annotations

import os
import subprocess
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress

import msgspec

from tenure.core import limits
from tenure.processes import detached
from tenure.processes.bounded_run import unnamed_file
from tenure.processes.detached import ProcessId
from tenure.spawners.port import Spawned, SpawnFailed, SpawnUnknown, State
from tenure.user_state import listed, make_private_folder, read_record, safe_name, sync_folder

GRACE = limits.SPAWN_GRACE
KEPT = limits.SPAWN_FILE_KEPT
HOME = "home"  # the file with the id of the folder


class Child(msgspec.Struct, frozen=True, omit_defaults=True):
    """One file: which spawn, and which process."""

    spawn: str
    pid: int = 0
    start: str = ""
    host: str = ""
    handle: str = ""  # of a command that prints one, in place of a process

    @property
    def process(self) -> ProcessId:
        return ProcessId(self.pid, self.start, self.host)


class Exists(Exception):
    """Another call has recorded this spawn first."""


class Children:
    """Safe to use from several threads and processes: the file system decides who starts a spawn."""

    def __init__(self, folder: str, log: str | None = None) -> None:
        """`log`: a file that the output of the children is appended to; without one it is dropped."""
        self._folder, self._log = folder, log

    def start(
        self,
        spawn: str,
        argv: Sequence[str],
        *,
        cwd: str,
        env: Mapping[str, str],
        seconds: float,
        stdin: bytes = b"",
    ) -> ProcessId:
        """The process of this spawn: started now, or before. Raises SpawnFailed and SpawnUnknown."""
        known = self.find(spawn)
        if known is not None:
            return known.process
        self._forget_old()

        def record(process: ProcessId) -> None:
            self.record(Child(spawn, process.pid, process.start, process.host))

        try:
            with unnamed_file(stdin) as given, open(self._log or os.devnull, "ab", opener=_private) as output:
                return detached.start(
                    argv, cwd=cwd, env=env, grace=GRACE, seconds=seconds, record=record,
                    stdin=given.fileno() if stdin else None,
                    output=output.fileno() if self._log else subprocess.DEVNULL,
                )  # fmt: skip
        except Exists:
            other = self.find(spawn)
            if other is None:
                raise SpawnFailed(f"spawn {spawn} has just failed to start") from None
            return other.process
        except detached.StartUnknown as error:
            raise SpawnUnknown(f"{argv[0]}: {error}") from None
        except detached.NotStarted as error:
            self.forget(spawn)
            raise SpawnFailed(f"cannot start {argv[0]}: {error}") from None
        except OSError as error:
            self.forget(spawn)
            raise SpawnFailed(f"cannot start {argv[0]}: {error.strerror or error}") from None

    # --- the files ---

    def find(self, spawn: str) -> Child | None:
        return read_record(self._path(spawn), Child)

    def found(self, spawns: Sequence[str]) -> dict[str, Child | None]:
        """The files of these spawns; None where there is none. One that cannot be read is left out."""
        found: dict[str, Child | None] = {}
        for spawn in spawns:
            child = self.find(spawn)
            if child is not None or self._is_missing(spawn):
                found[spawn] = child
        return found

    def _is_missing(self, spawn: str) -> bool:
        try:
            os.stat(self._path(spawn))
        except FileNotFoundError:
            return True
        except OSError:
            return False
        return False

    def home(self) -> str:
        """The id of this folder of files, made once: another folder has other files. Empty: it cannot be read."""
        path = os.path.join(self._folder, HOME)
        with suppress(OSError):
            make_private_folder(self._folder)
            if not os.path.exists(path):
                self._write_once(path, uuid.uuid4().hex.encode())
            with open(path, encoding="ascii", errors="replace") as file:
                return file.read(100)
        return ""

    def all(self) -> Iterator[Child]:
        for name in listed(self._folder):
            child = read_record(os.path.join(self._folder, name), Child) if name.endswith(".json") else None
            if child is not None:
                yield child

    def record(self, child: Child) -> None:
        """Write the file, synced; Exists where there is one. Raises OSError."""
        make_private_folder(self._folder)
        if not self._write_once(self._path(child.spawn), msgspec.json.encode(child)):
            raise Exists

    def _write_once(self, path: str, content: bytes) -> bool:
        """Write a file, synced; False where there is one."""
        new = f"{path}.{os.getpid()}.{time.monotonic_ns()}"
        try:
            with open(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            os.link(new, path)  # fails where another was first, which a rename would not
        except FileExistsError:
            return False
        finally:
            with suppress(OSError):
                os.unlink(new)
        sync_folder(self._folder)
        return True

    def replace(self, child: Child) -> None:
        """Write the file again, with more."""
        from tenure.user_state import write_private

        write_private(self._path(child.spawn), msgspec.json.encode(child))

    def forget(self, spawn: str) -> None:
        with suppress(OSError):
            os.unlink(self._path(spawn))

    def lost(self) -> list[Child]:
        """The recorded children of this machine that do not run any more."""
        return [child for child in self.all() if child.pid and detached.state_of(child.process) == "ended"]

    def _forget_old(self) -> None:
        """Remove files of processes that ended long ago: until then a repeated request gets its answer."""
        before = time.time() - KEPT
        for child in list(self.all()):
            with suppress(OSError):
                is_old = os.stat(self._path(child.spawn)).st_mtime < before
                if is_old and child.pid and detached.state_of(child.process) == "ended":
                    self.forget(child.spawn)

    def _path(self, spawn: str) -> str:
        return os.path.join(self._folder, safe_name(spawn) + ".json")


def processes_of(found: Mapping[str, Child | None]) -> dict[str, Spawned | None]:
    """The answer of a spawner whose children are processes of this machine."""
    return {spawn: None if child is None else Spawned(handle=child.process.text) for spawn, child in found.items()}


def states_of(handles: Sequence[str]) -> dict[str, State]:
    """The state of processes of this machine, by their texts."""
    return {handle: _state(handle) for handle in handles}


def _state(handle: str) -> State:
    process = detached.process_id(handle)
    if process is None:
        return "unknown"
    state = detached.state_of(process)
    return "running" if state == "running" else "ended" if state == "ended" else "unknown"


def end(handle: str, graceful: bool) -> None:
    process = detached.process_id(handle)
    if process is None or detached.state_of(process) == "unknown":
        raise SpawnUnknown(f"{handle[:80]!r} is not a process of this machine")
    detached.end(process, graceful=graceful)


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)
