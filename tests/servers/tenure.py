"""`tenure serve` as a process, on a given store."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.servers import forking, processes

FORKED = "FORKED_SERVERS"  # set in tests, also for the processes that they start


def with_master_key() -> dict[str, str]:
    """Settings of a server that opens what this process has sealed in its store."""
    return {"TENURE_MASTER_KEY_FILE": str(Path(os.environ["TENURE_STATE"], "master.key"))}


class TenureServer(processes.Server):
    """`store` is a URL or a path, `settings` are TENURE_* variables. `stop` does not remove the store."""

    is_forked = FORKED in os.environ  # whether it starts by a fork: in tests, not in measurements

    def __init__(
        self, store: str, *options: str, port: int | None = None, settings: dict[str, str] | None = None
    ) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="tenure-serve-", dir="/tmp"))
        self.log = self.folder / "log"
        self.port = port or processes.free_port()
        self.store = store
        self._options = options
        self.settings = settings or {}

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        self.log.touch()
        kept = {name: value for name, value in os.environ.items() if not name.startswith("TENURE_")}
        with self.log.open("ab") as out, Path(os.devnull).open("rb") as nothing:
            words = ["serve", "--port", str(self.port), *self._options]
            if self.is_forked:
                self.process = forking.forker().start(words, self._environ(kept), self.folder, nothing, out, out)
            else:
                self.process = subprocess.Popen(
                    [sys.executable, "-P", "-m", "tenure", *words], env=self._environ(kept), cwd=self.folder,
                    stdout=out, stderr=out, stdin=subprocess.DEVNULL,
                    preexec_fn=processes.end_with_us(),  # noqa: PLW1509 - it calls the kernel and nothing of Python's
                )  # fmt: skip
        processes.wait_until(self._listens, self.process, self.log)

    def _environ(self, kept: dict[str, str]) -> dict[str, str]:
        # Most tests are not about signing in, and send plain HTTP: callers on loopback need no key.
        ours = {"TENURE_URL": self.store, "HOME": str(self.folder), "TENURE_SERVE_AUTH": "open"}
        return {**kept, **ours, **self.settings}

    def _listens(self) -> bool:
        try:
            socket.create_connection(("127.0.0.1", self.port), timeout=1).close()
        except OSError:
            return False
        return True

    def kill(self) -> None:
        """As by kill -9 or a power cut."""
        assert self.process is not None
        self.process.kill()
        self.process.wait(10)

    def end(self) -> int:
        """Stop it as a supervisor does, by SIGTERM. Its exit code."""
        assert self.process is not None
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(20)

    def stop(self) -> None:
        if self.process is not None:
            processes.end(self.process, signal.SIGTERM)
        super().stop()
