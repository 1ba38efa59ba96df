"""One run of one case: two workers, a stall, a take-over, a wake-up; and the tool's records of it."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from bench.zombies.roster import Case
from tests.servers.postgres import PostgresServer
from tests.servers.processes import Server, end_with_us

ROOT = Path(__file__).resolve().parents[2]
TAKE_OVER = 25.0  # seconds that the tool's recovery may take; all are set to about five
STEP = 30.0  # seconds that any other step may take

AFTER = "after"  # the zombie completes after the other has finished
DURING = "during"  # the zombie completes while the other works
ORDERS = (AFTER, DURING)


class CaseFailed(Exception):
    """The scenario could not be played; the text says why."""


class Found(NamedTuple):
    """What one order of one case showed."""

    takes_over: bool
    completion: str  # accepted, refused (the tool reported it), no effect (it did not); "" where nobody took over
    said: str  # the line in which it refused
    holder: str  # the same of the other's completion, where the zombie came before it
    result: str | None  # that stands at the end
    is_own: bool  # kept by the handler in a table of the application, since the tool keeps none
    trace: str
    records: list[dict[str, Any]]  # before the zombie's completion, after it, at the end


class Play:
    """The processes of one run. Everything that was started is ended by `close`."""

    def __init__(self, case: Case, python: Path, place: dict[str, str], server: Server | None) -> None:
        self.case = case
        self.place = place
        self.folder = Path(place["folder"])
        self._python = python
        self._server = server
        self._workers: dict[str, subprocess.Popen[bytes]] = {}
        self._server_mark = 0

    def do(self, part: str) -> Any:
        done = subprocess.run(
            self._command(part), env=self._environment("R"), cwd=self.folder, capture_output=True, text=True,
            timeout=60, check=False,
        )  # fmt: skip
        if done.returncode:
            raise CaseFailed(f"{part}: {(done.stderr.strip().splitlines() or ['no word'])[-1]}")
        return json.loads(done.stdout) if done.stdout.strip() else None

    def start(self, me: str) -> None:
        with self.log(me).open("ab") as out:
            self._workers[me] = subprocess.Popen(
                self._command("work"), env=self._environment(me), cwd=self.folder, stdin=subprocess.DEVNULL,
                stdout=out, stderr=out, start_new_session=True,
                preexec_fn=end_with_us(),  # noqa: PLW1509 - one call into libc, no lock is taken
            )  # fmt: skip

    def stop(self, me: str) -> None:
        """As a machine that is suspended: every process of the worker stands still."""
        os.killpg(self._workers[me].pid, signal.SIGSTOP)

    def wake(self, me: str) -> None:
        os.killpg(self._workers[me].pid, signal.SIGCONT)

    def cue(self, me: str) -> None:
        (self.folder / f"{me}.cue").touch()

    def has(self, mark: str) -> bool:
        return (self.folder / mark).exists()

    def end(self, me: str) -> None:
        """Ask the worker to finish what it has and go, and wait until it has."""
        worker = self._workers[me]
        worker.terminate()
        try:
            worker.wait(STEP)
        except subprocess.TimeoutExpired:
            raise CaseFailed(f"worker {me} did not end on SIGTERM") from None
        self._workers.pop(me)

    def wait(self, what: str, is_so: Callable[[], bool], seconds: float = STEP) -> bool:
        until = time.monotonic() + seconds
        while not is_so():
            for me, worker in self._workers.items():
                if worker.poll() is not None:
                    raise CaseFailed(f"{what}: worker {me} ended with {worker.returncode}: {self._last_words(me)}")
            if time.monotonic() > until:
                return False
            time.sleep(0.05)
        return True

    def must(self, what: str, is_so: Callable[[], bool]) -> None:
        if not self.wait(what, is_so):
            raise CaseFailed(f"{what}: not within {STEP:.0f} s")

    def log(self, me: str) -> Path:
        return self.folder / f"{me}.log"

    def refusal_of(self, me: str) -> str:
        """The line with which the tool or its server refused that worker since `mark`, if one did."""
        if not self.case.refusal:
            return ""
        texts = [self.log(me).read_text(errors="replace")]
        if isinstance(self._server, PostgresServer):
            texts.append(self._server.log.read_text(errors="replace")[self._server_mark :])
        for line in (line for text in texts for line in text.splitlines()):
            if re.search(self.case.refusal, line):
                return line.strip()
        return ""

    def mark(self) -> None:
        """From here on the server's log is read."""
        if self._server is not None:
            self._server_mark = len(self._server.log.read_text(errors="replace"))

    def close(self) -> None:
        for worker in self._workers.values():
            # The group that start_new_session made; stopped processes are killed too.
            with suppress(ProcessLookupError):
                os.killpg(worker.pid, signal.SIGKILL)
            worker.wait()

    def _command(self, part: str) -> list[str]:
        return [str(self._python), "-P", "-m", f"bench.zombies.cases.{self.case.module}", part]

    def _environment(self, me: str) -> dict[str, str]:
        env = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "CELERY", "DBOS"))}
        return {**env, "PYTHONPATH": str(ROOT), "ZOMBIE_PLACE": json.dumps(self.place), "ZOMBIE_ME": me}

    def _last_words(self, me: str) -> str:
        lines = self.log(me).read_text(errors="replace").strip().splitlines()
        return lines[-1] if lines else ""


def play(case: Case, order: str, python: Path, place: dict[str, str], server: Server | None) -> Found:
    """Worker A takes the job and stalls, B takes over; A completes after B has finished, or while B works."""
    own = Play(case, Path(sys.executable) if case.is_ours else python, place, server)
    try:
        own.do("set_up")
        own.start("A")
        own.do("enqueue")
        own.must("A begins", lambda: own.has("A.began"))
        own.stop("A")
        own.start("B")
        if not own.wait("B takes over", lambda: own.has("B.began"), TAKE_OVER):
            own.cue("A")
            own.wake("A")
            own.must("A completes", lambda: own.do("records")["is_finished"])
            last = own.do("records")
            return Found(False, "", "", "", *_result(last), last["trace"], [last])
        if order == AFTER:
            own.cue("B")
            own.must("B finishes", lambda: own.do("records")["is_finished"])
        before = own.do("records")
        own.mark()
        own.cue("A")
        own.wake("A")
        own.must("A returns", lambda: own.has("A.returns"))
        own.end("A")
        after, refusal = own.do("records"), own.refusal_of("A")
        completion, holder = judged(before, after, refusal), ""
        if order == DURING:
            own.mark()
            own.cue("B")
            own.must("B returns", lambda: own.has("B.returns"))
        own.end("B")
        last = own.do("records")
        if order == DURING:
            holder = judged(after, last, own.refusal_of("B"))
        return Found(True, completion, refusal, holder, *_result(last), last["trace"], [before, after, last])
    finally:
        own.close()


def judged(before: dict[str, Any], after: dict[str, Any], refusal: str) -> str:
    """Accepted is what changed the tool's own account of the job; what handlers wrote elsewhere is not its business."""
    if any(before.get(part) != after.get(part) for part in ("is_finished", "result", "rows")):
        return "accepted"
    return "refused" if refusal else "no effect"


def _result(records: dict[str, Any]) -> tuple[str | None, bool]:
    if "own_result" in records:
        return records["own_result"], True
    return records.get("result"), False
