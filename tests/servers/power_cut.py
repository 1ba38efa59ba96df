"""Power cuts: a server that was killed finds its files as they were when each was last synced."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from tests.servers import processes
from tests.servers.mariadb import MariadbServer
from tests.servers.processes import StoreHost
from tests.servers.valkey import ValkeyServer

SOURCE = Path(__file__).with_suffix(".c")
KINDS = ("mariadb", "valkey", "redis")


class Disk:
    """Beside a folder, the folder as it is after a power cut."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.synced = Path(tempfile.mkdtemp(prefix="tenure-synced-", dir=folder.parent))
        self.library = self.synced.with_suffix(".so")
        compiler = processes.found_or_installed("gcc")
        subprocess.run(
            [compiler, "-O2", "-shared", "-fPIC", "-o", self.library, SOURCE, "-ldl", "-lpthread"], check=True
        )

    @property
    def environment(self) -> dict[str, str]:
        """For the server: its writes go to the folder, and on a sync to the other one too."""
        return {
            "LD_PRELOAD": str(self.library), "POWER_CUT_FROM": f"{self.folder}/", "POWER_CUT_TO": f"{self.synced}/",
        }  # fmt: skip

    def is_synced(self, user: str | None) -> None:
        """Everything that is there now counts as synced."""
        shutil.rmtree(self.synced)
        _copy(self.folder, self.synced, user)

    def cut(self, user: str | None) -> None:
        """What was not synced is gone."""
        shutil.rmtree(self.folder)
        _copy(self.synced, self.folder, user)

    def remove(self) -> None:
        shutil.rmtree(self.synced, ignore_errors=True)
        self.library.unlink(missing_ok=True)


def _copy(source: Path, target: Path, user: str | None) -> None:
    shutil.copytree(source, target, symlinks=True)
    for path in (target, *target.rglob("*")):
        processes.give(path, user)


class PowerCuts:
    """A durable server whose power is cut by `cut`. With `weak`, one that syncs a commit some time later."""

    def __init__(self, kind: str, *, is_weak: bool = False) -> None:
        self.server: StoreHost
        if kind == "mariadb":
            weaker = {"innodb-flush-log-at-trx-commit": "2"} if is_weak else {}
            # On a disk: in memory it would map its log, which the library does not see.
            self.server = MariadbServer(Path("/tmp"), settings={"innodb-use-native-aio": "OFF", **weaker})
            self.data = self.server.data
        else:
            program = "redis-server" if kind == "redis" else None
            self.server = ValkeyServer(is_durable=True, place=processes.fast_folder(1 << 30), named=program)
            self.server.settings["appendfsync"] = "everysec" if is_weak else "always"
            self.data = self.server.folder
        self.user: str | None = None

    def place(self, name: str) -> str:
        return self.server.place(name)

    def start(self) -> None:
        self.server.start()
        self.user = getattr(self.server, "user", None)
        self.disk = Disk(self.data)
        self.sync()

    def sync(self) -> None:
        """End the server in order and start it again: everything is on the disk."""
        assert self.server.process is not None
        processes.end(self.server.process)
        self._run()

    def _run(self) -> None:
        self.disk.is_synced(self.user)
        os.environ.update(self.disk.environment)
        try:
            self.server.run()
        finally:
            for name in self.disk.environment:
                del os.environ[name]

    def cut(self) -> None:
        self.server.kill()
        self.disk.cut(self.user)
        self._run()

    def stop(self) -> None:
        self.server.stop()
        if hasattr(self, "disk"):
            self.disk.remove()
