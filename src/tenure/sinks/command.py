"""Local commands: hooks that run after an event, and notices by command.

No shell; the event or notice is JSON on stdin; 10 s, then the whole process group is killed; four at once. A hook runs
at most once: nothing is kept about events whose hook did not run. Whether a command may run at all is decided by
`tenure trust`, before it gets here.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import msgspec

from tenure.core import limits
from tenure.core.child_environments import ChildKind, for_child
from tenure.core.notices import Summary
from tenure.processes.bounded_run import CommandRun, NotRun, run
from tenure.sinks.port import SinkUnavailable

AT_ONCE = limits.COMMANDS_AT_ONCE
MOST_WAITING = limits.HOOKS_WAITING
SECONDS = limits.COMMAND_SECONDS


class Job(NamedTuple):
    argv: Sequence[str]
    stdin: bytes


Ended = Callable[[Job, CommandRun | NotRun], None]


class CommandRunner:
    """Runs jobs in up to four threads, which end when there is nothing to do. Safe to share between threads."""

    def __init__(
        self, cwd: str, environ: Mapping[str, str], *, ended: Ended = lambda *_: None, seconds: float = SECONDS
    ) -> None:
        """`ended` hears what became of each job, in one of the threads."""
        self._cwd, self._env, self._ended, self._seconds = cwd, for_child(ChildKind.COMMAND, environ), ended, seconds
        self._waiting: deque[Job] = deque()
        self._running = 0
        self._changed = threading.Condition()
        self._is_closed = False
        self.dropped = 0  # jobs that never ran, because too many waited

    def start(self, argv: Sequence[str], stdin: bytes) -> None:
        """Queue a job; never waits. Where too many wait, the oldest is dropped."""
        with self._changed:
            if self._is_closed:
                return
            self._waiting.append(Job(argv, stdin))
            if len(self._waiting) > MOST_WAITING:
                self._waiting.popleft()
                self.dropped += 1
            if self._running < AT_ONCE:
                self._running += 1
                threading.Thread(target=self._work, name="tenure-command", daemon=True).start()

    def run(self, argv: Sequence[str], stdin: bytes) -> CommandRun:
        """Run a command now, in this thread. Raises NotRun."""
        return run(
            argv,
            cwd=self._cwd,
            env=self._env,
            seconds=self._seconds,
            stdin=stdin,
            is_wanted=lambda: not self._is_closed,
        )

    def wait(self, seconds: float) -> bool:
        """Wait until nothing runs or waits; False where that takes longer."""
        with self._changed:
            return self._changed.wait_for(lambda: not self._running, seconds)

    def close(self) -> None:
        """End what runs, drop what waits."""
        with self._changed:
            self._is_closed = True
            self._waiting.clear()

    def _work(self) -> None:
        while True:
            with self._changed:
                if not self._waiting:
                    self._running -= 1
                    self._changed.notify_all()
                    return
                job = self._waiting.popleft()
            try:
                result: CommandRun | NotRun = self.run(job.argv, job.stdin)
            except NotRun as error:
                result = error
            self._ended(job, result)


class CommandChannel:
    """Notices by a command of the user's own."""

    def __init__(self, argv: Sequence[str], runner: CommandRunner) -> None:
        self._argv, self._runner = argv, runner

    def send(self, summary: Summary) -> None:
        notice = {
            "kind": summary.kind, "count": summary.count, "title": summary.title, "lines": summary.lines,
            "is_digest": summary.is_digest,
        }  # fmt: skip
        try:
            done = self._runner.run(self._argv, msgspec.json.encode(notice))
        except NotRun as error:
            raise SinkUnavailable(f"the notice's command did not run: {error.message}") from error
        if done.limit is not None or done.exit != 0:
            why = "did not end in time" if done.limit else f"ended with {done.exit}"
            raise SinkUnavailable(f"the notice's command {self._argv[0]} {why}")

    def close(self) -> None:
        """The runner belongs to the caller."""
