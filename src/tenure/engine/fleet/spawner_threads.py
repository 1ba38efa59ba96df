"""Threads that call spawners: each has its own object, since a spawner is used by one thread at a time.

Starting has other threads than asking and ending: where every start hangs, a terminated agent is still ended in time.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from typing import TypeVar

from tenure.core.errors import TenureError, close_all
from tenure.spawners.port import Spawned, Spawner, SpawnRequest, State

T = TypeVar("T")
STARTING = 4  # threads of each spawner that start agents
ASKING = 1  # that ask about them and end them, each


class SpawnerThreads:
    def __init__(self, spawners: Mapping[str, Callable[[], Spawner]]) -> None:
        """`spawners` opens a new object of each, by name."""
        self._open = spawners
        self._pools: dict[tuple[str, str], ThreadPoolExecutor] = {}
        self._local = threading.local()
        self._opened: list[Spawner] = []
        self._homes: dict[str, str] = {}

    @property
    def known(self) -> frozenset[str]:
        return frozenset(self._open)

    def home(self, name: str) -> str:
        """Where the spawner remembers what it has started; empty where that is not known."""
        if not self._homes.get(name):
            with suppress(TenureError, OSError):  # a setting that is wrong now; its next call reports it
                spawner = self._open[name]()
                self._homes[name] = spawner.home()
                spawner.close()
        return self._homes.get(name, "")

    def spawn(self, name: str, request: SpawnRequest, timeout: float) -> Future[Spawned]:
        return self._run(name, "start", STARTING, lambda spawner: spawner.spawn(request, timeout))

    def find(self, name: str, spawns: Sequence[str]) -> Future[Mapping[str, Spawned | None]]:
        return self._run(name, "ask", ASKING, lambda spawner: spawner.find(spawns))

    def status(self, name: str, handles: Sequence[str]) -> Future[Mapping[str, State]]:
        return self._run(name, "ask", ASKING, lambda spawner: spawner.status(handles))

    def end(self, name: str, handle: str, graceful: bool) -> Future[None]:
        return self._run(name, "end", ASKING, lambda spawner: spawner.end(handle, graceful))

    def close(self) -> None:
        """Wait for nothing: the processes live on, and what a call under way starts is found by its claim."""
        pools = (partial(pool.shutdown, wait=False, cancel_futures=True) for pool in self._pools.values())
        with suppress(Exception):  # a library's own error must not keep the server from stopping
            close_all(*pools, *(spawner.close for spawner in self._opened))

    def _run(self, name: str, purpose: str, threads: int, call: Callable[[Spawner], T]) -> Future[T]:
        pool = self._pools.get((name, purpose))
        if pool is None:
            pool = self._pools[name, purpose] = ThreadPoolExecutor(threads, f"tenure-{purpose}-{name}")
        return pool.submit(self._call, name, call)

    def _call(self, name: str, call: Callable[[Spawner], T]) -> T:
        spawner: Spawner | None = getattr(self._local, "spawner", None)  # a thread belongs to one spawner
        if spawner is None:
            spawner = self._local.spawner = self._open[name]()
            self._opened.append(spawner)
        return call(spawner)
