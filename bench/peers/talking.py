"""Our side of the protocol with a peer: its processes, our commands, its answers."""

from __future__ import annotations

import json
import os
import queue
import signal
import subprocess
import threading
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tests.servers.processes import end_with_us

ROOT = Path(__file__).resolve().parents[2]
PATIENCE = 150.0  # more than a peer has for its own longest step


class PeerFailed(Exception):
    """A peer's command failed; the text is its reason."""


class Talk:
    """One process of a peer, in a separate process group that ends with `close`."""

    def __init__(self, python: Path, module: str, place: dict[str, str], log: Path) -> None:
        self._log = log.open("ab")
        env = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "CELERY", "DBOS"))}
        self._process = subprocess.Popen(
            # -P, and the root as the only path: a tool's own module of the same name must not be found here.
            [str(python), "-P", "-m", "bench.peers.speaking", module, json.dumps(place)],
            env={**env, "PYTHONPATH": str(ROOT)}, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._log,
            cwd=place["folder"], start_new_session=True, text=True,
            preexec_fn=end_with_us(),  # noqa: PLW1509 - one call into libc, no lock is taken
        )  # fmt: skip
        self._lines: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._listener = threading.Thread(target=self._listen, daemon=True)
        self._listener.start()

    def _listen(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._lines.put(line)
        self._lines.put("")

    def tell(self, do: str, **what: Any) -> None:
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps({"do": do, **what}) + "\n")
            self._process.stdin.flush()
        except OSError as error:
            raise PeerFailed(f"its process ended: {self._last_words()}") from error

    def hear(self) -> dict[str, Any]:
        try:
            line = self._lines.get(timeout=PATIENCE)
        except queue.Empty:
            raise PeerFailed(f"no answer within {PATIENCE:.0f} s") from None
        if not line:
            raise PeerFailed(f"its process ended: {self._last_words()}")
        answer: dict[str, Any] = json.loads(line)
        if "error" in answer:
            raise PeerFailed(str(answer["error"]))
        return answer

    def ask(self, do: str, **what: Any) -> dict[str, Any]:
        self.tell(do, **what)
        return self.hear()

    def close(self) -> None:
        assert self._process.stdin is not None
        with suppress(OSError, subprocess.TimeoutExpired):
            self._process.stdin.close()
            self._process.wait(5)
        # The group, since a tool's workers may be processes; it is ours, made by start_new_session.
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._listener.join()
        assert self._process.stdout is not None
        self._process.stdout.close()
        self._log.close()

    def _last_words(self) -> str:
        lines = Path(self._log.name).read_text(errors="replace").strip().splitlines()
        return lines[-1] if lines else f"exit code {self._process.poll()}"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
