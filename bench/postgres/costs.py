"""What a verb costs, independent of other load: processor time of both sides, write-ahead log, round trips."""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from tenure.stores.postgres.connection import Connection

# Of one database everybody but who asks.
_SERVING = """
SELECT pid FROM pg_stat_activity
 WHERE datname = current_database() AND backend_type = 'client backend' AND pid <> pg_backend_pid()
"""
_LOG = "SELECT (pg_current_wal_insert_lsn() - '0/0'::pg_lsn)::bigint"


class Cost(NamedTuple):
    """Microseconds and bytes per task; round trips of the whole run."""

    client: float
    server: float
    wall: float
    log: float
    round_trips: float

    @property
    def processor(self) -> float:
        """Seconds of both sides."""
        return (self.client + self.server) / 1e6


class Meter:
    """`link` is a separate connection; the measured code runs in the caller's thread."""

    def __init__(self, link: Any) -> None:
        self._link = link
        self._round_trips = 0
        self.costs: list[Cost] = []

    @contextmanager
    def counting(self) -> Iterator[None]:
        """Counts round trips inside the block."""
        real = Connection.run

        def run(link: Connection, *statements: Any, **how: Any) -> Any:
            self._round_trips += 1
            return real(link, *statements, **how)

        Connection.run = run  # type: ignore[method-assign]
        try:
            yield
        finally:
            Connection.run = real  # type: ignore[method-assign]

    @contextmanager
    def measuring(self, tasks: int) -> Iterator[None]:
        """One run over so many tasks."""
        self._round_trips = 0
        before = self._look()
        yield
        after = self._look()
        wall, client, server, log = ((b - a) / tasks for a, b in zip(before, after, strict=True))
        self.costs.append(Cost(client / 1e3, server / 1e3, wall / 1e3, log, self._round_trips))

    def median(self) -> Cost:
        return Cost(*(statistics.median(column) for column in zip(*self.costs, strict=True)))

    def _look(self) -> tuple[int, int, int, int]:
        """Nanoseconds: of the clock, of this thread, of the server's processes on a processor; bytes of the log."""
        log: int = self._link.execute(_LOG).fetchone()[0]
        server = sum(on_processor(pid) for (pid,) in self._link.execute(_SERVING).fetchall())
        return time.perf_counter_ns(), time.thread_time_ns(), server, log


def on_processor(process: int) -> int:
    """Nanoseconds."""
    try:
        return int(Path(f"/proc/{process}/schedstat").read_text().split()[0])
    except (OSError, ValueError):
        return 0  # it has ended, or this system does not report it
