"""What a disk may hold after a power cut: folders of files, built from recorded operations.

A file's bytes are certain once the file was synced, a name once its folder was. All that was written since may be
there or not: none of it, all of it, a beginning of it with the last write torn, some writes without those before them,
or single sectors of each. A rename in one folder is one step; between two folders it is two.
"""

from __future__ import annotations

import random
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from tests.reliability.disk_trace import Create, Link, MakeFolder, Operation, Rename, Sync, Truncate, Unlink, Write

SECTOR = 512
MODES = ("dropped", "kept", "torn", "reordered", "sectors")
FOLDER = -1  # stands where a file's number would be


class Step(NamedTuple):
    """One change of names in one folder: path → file, or None where the name goes."""

    folder: str
    names: dict[str, int | None]


class _File:
    """Its synced bytes, and the writes and cuts (offset, data; None: cut at the offset) since the last sync."""

    def __init__(self, synced: bytes = b"") -> None:
        self.synced = bytearray(synced)
        self.since: list[tuple[int, bytes | None]] = []
        self.now = bytearray(synced)
        self.position = len(synced)

    def change(self, offset: int, data: bytes | None) -> None:
        self.since.append((offset, data))
        _apply(self.now, offset, data)

    def sync(self) -> None:
        self.synced = bytearray(self.now)
        self.since.clear()

    def held(self, mode: str, dice: random.Random) -> bytearray:
        if mode == "dropped" or not self.since:
            return self.synced
        if mode == "kept":
            return self.now
        held = bytearray(self.synced)
        if mode == "torn":
            last = dice.randrange(len(self.since))
            for offset, data in self.since[:last]:
                _apply(held, offset, data)
            offset, data = self.since[last]
            if data is not None:
                _apply(held, offset, data[: SECTOR * dice.randint(0, len(data) // SECTOR)])
        elif mode == "reordered":
            for offset, data in self.since:
                if dice.random() < 0.5:
                    _apply(held, offset, data)
        else:
            for offset, data in self.since:
                for at in range(0, len(data or b"-"), SECTOR):
                    if dice.random() < 0.5:
                        _apply(held, offset + at, None if data is None else data[at : at + SECTOR])
        return held


def _apply(content: bytearray, offset: int, data: bytes | None) -> None:
    if data is None:
        del content[offset:]
    if len(content) < offset:
        content.extend(bytes(offset - len(content)))
    if data is not None:
        content[offset : offset + len(data)] = data


class Disk:
    """Follows the operations; at any moment it can tell what the disk may hold."""

    def __init__(self, base: Path, root: Path, *, ignores_syncs: bool = False) -> None:
        """`base`: what lay at `root`, synced, before the first operation."""
        self.root = str(root)
        self.ignores_syncs = ignores_syncs
        self.files: list[_File] = []
        self.synced: dict[str, int] = {}
        self.steps: list[Step] = []
        for path in sorted(base.rglob("*")):
            self.synced[str(root / path.relative_to(base))] = FOLDER if path.is_dir() else self._new(path.read_bytes())
        self.names = dict(self.synced)

    def _new(self, content: bytes = b"") -> int:
        self.files.append(_File(content))
        return len(self.files) - 1

    def follow(self, operation: Operation) -> None:
        if isinstance(operation, Write):
            file = self._file(operation.path)
            if file is None:
                return
            offset = file.position if operation.offset is None else operation.offset
            file.change(offset, operation.data)
            if operation.offset is None:
                file.position += len(operation.data)
        elif isinstance(operation, Truncate):
            if (file := self._file(operation.path)) is not None:
                file.change(operation.size, None)
        elif isinstance(operation, Create):
            self._create(operation)
        elif isinstance(operation, Sync):
            self._sync(operation.path)
        elif isinstance(operation, MakeFolder):
            self._step({operation.path: FOLDER})
        elif isinstance(operation, Unlink):
            self._step({operation.path: None})
        elif isinstance(operation, Link):
            self._step({operation.new: self.names[operation.old]})
        else:
            self._rename(operation)

    def _file(self, path: str) -> _File | None:
        number = self.names.get(path, FOLDER)
        return None if number == FOLDER else self.files[number]

    def _create(self, operation: Create) -> None:
        if operation.path not in self.names:
            self._step({operation.path: self._new()})
        elif operation.is_emptied and (file := self._file(operation.path)) is not None:
            file.change(0, None)
            file.position = 0

    def _rename(self, operation: Rename) -> None:
        names: dict[str, int | None] = {operation.old: None, operation.new: self.names[operation.old]}
        if _above(operation.old) == _above(operation.new):
            self._step(names)
        else:
            self._step({operation.new: names[operation.new]})
            self._step({operation.old: None})

    def _step(self, names: dict[str, int | None]) -> None:
        self.steps.append(Step(_above(next(iter(names))), names))
        _rename(self.names, names)

    def _sync(self, path: str) -> None:
        if self.ignores_syncs:
            return
        file = self._file(path)
        if file is not None:
            file.sync()
            return
        for step in self.steps:
            if step.folder == path:
                _rename(self.synced, step.names)
        self.steps = [step for step in self.steps if step.folder != path]

    def write(self, target: Path, mode: str, dice: random.Random) -> None:
        """An image of the root at `target`, which is emptied first."""
        shutil.rmtree(target, ignore_errors=True)
        target.mkdir(parents=True)
        names = dict(self.synced)
        for step in self._kept(mode, dice):
            _rename(names, step.names)
        for path, number in sorted(names.items()):
            if path.endswith("-shm"):
                continue
            place = target / path[len(self.root) + 1 :]
            if not place.parent.is_dir():
                continue  # in a folder whose own name did not last
            if number == FOLDER:
                place.mkdir(mode=0o700)
            else:
                place.write_bytes(self.files[number].held(mode, dice))
                place.chmod(0o600)

    def _kept(self, mode: str, dice: random.Random) -> Iterable[Step]:
        if mode == "dropped":
            return ()
        if mode == "torn":
            return self.steps[: dice.randint(0, len(self.steps))]
        return self.steps if mode == "kept" else [step for step in self.steps if dice.random() < 0.5]


def _above(path: str) -> str:
    return path.rpartition("/")[0]


def _rename(names: dict[str, int] | dict[str, int | None], changes: dict[str, int | None]) -> None:
    for path, number in changes.items():
        if number is None:
            names.pop(path, None)
        else:
            names[path] = number
