"""`tenure gateway` as a process: another machine, with its own folder, home and state."""

from __future__ import annotations

import os
import shlex
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from tenure.core import signatures
from tenure.processes.supervisor_script import entry_of
from tenure.testing.suites.spawner import processes_of, until
from tests.servers import forking, processes
from tests.servers.tenure import FORKED

SECRET = signatures.spelled(signatures.STANDARD, b"k" * 32)


class GatewayServer(processes.Server):
    """`programs`: name → the words of its agent. `stop` ends its agents too."""

    is_forked = FORKED in os.environ
    host = "127.0.0.1"

    def __init__(
        self, programs: Mapping[str, Sequence[str]], *, options: Sequence[str] = (), settings: str = "", port: int = 0
    ) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="tenure-gateway-", dir="/tmp"))
        self.log, self.state = self.folder / "log", self.folder / "state"
        self.port = port or processes.free_port()
        self.more: dict[str, str] = {}  # of the environment
        self.children = self.state / "spawned" / "gateway"
        secret = self.folder / "secret"
        secret.write_text(SECRET)
        secret.chmod(0o600)
        self.config = self.folder / "tenure.toml"
        self.config.write_text(f'[gateway]\nlisten = "{self.host}:{self.port}"\nsecret_file = "{secret}"\n{settings}\n')
        self.allow(programs, options)

    def allow(self, programs: Mapping[str, Sequence[str]], options: Sequence[str] = ()) -> None:
        """Name programs that it may start: name → the words of its agent."""
        with self.config.open("a") as file:
            for name, words in programs.items():
                text = shlex.join(words).replace("\\", "\\\\").replace('"', '\\"')
                file.write(f'[programs.{name}]\nagent = "{text}"\noptions = {list(options)}\n')

    @property
    def url(self) -> str:
        return f"http://{self.host}:{self.port}"

    def words(self, *words: str) -> list[str]:
        """The command of a process of its machine."""
        return [sys.executable, "-P", "-m", "tenure", *words]

    def environ(self) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith("TENURE_")}
        ours = {"HOME": str(self.folder), "TENURE_STATE": str(self.state), "PYTHONPATH": os.pathsep.join(sys.path)}
        return kept | ours | self.more

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            self.words(*words), cwd=self.folder, env=self.environ(), text=True, capture_output=True, check=False
        )

    def start(self) -> None:
        if not self.log.exists():
            trusted = self.run("trust", "--yes")
            assert trusted.returncode == 0, trusted.stderr
            self.log.touch()
        with self.log.open("ab") as out, Path(os.devnull).open("rb") as nothing:
            if self.is_forked:
                self.process = forking.forker().start(["gateway"], self.environ(), self.folder, nothing, out, out)
            else:
                self.process = subprocess.Popen(
                    self.words("gateway"), cwd=self.folder, env=self.environ(), stdout=out, stderr=out,
                    stdin=subprocess.DEVNULL,
                    preexec_fn=processes.end_with_us(),  # noqa: PLW1509 - it calls the kernel and nothing of Python's
                )  # fmt: skip
        processes.wait_until(self._listens, self.process, self.log)

    def _listens(self) -> bool:
        try:
            socket.create_connection((self.host, self.port), timeout=1).close()
        except OSError:
            return False
        return True

    def spawns(self) -> list[str]:
        """The ids of the spawns that it has files of."""
        return [file.stem for file in self.children.glob("*.json")]

    def running(self) -> list[int]:
        """The processes of its agents."""
        return [pid for spawn in self.spawns() for pid in processes_of(spawn)]

    def kill(self) -> None:
        assert self.process is not None
        self.process.kill()
        self.process.wait(10)

    def kill_with_children(self) -> int:
        """As by a power cut of its machine: every process at once. How many agents' processes there were."""
        self.kill()
        pids = self.running()
        for pid in pids:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        # A process that is ending has no environment any more, and counts as running all the same.
        until(lambda: not any((entry := entry_of(pid)) and entry.lives for pid in pids), "every process to end")
        return len(pids)

    def end(self) -> int:
        assert self.process is not None
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(20)

    def stop(self) -> None:
        if self.process is not None:
            processes.end(self.process, signal.SIGTERM)
        for pid in self.running():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        super().stop()
