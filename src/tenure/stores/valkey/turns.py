"""Turns: writers of a project wait for each other, so that they seldom meet a conflict.

A turn decides nothing: the comparison of versions at the commit does. It is a key that the server deletes after a
while, whatever its holder does, and a writer that has waited too long continues without it.

A reader that was torn a few times takes a turn too, that of all projects where it reads everywhere: it sets a key that
writers respect, and waits for those who write already.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import Any

from tenure.core import limits
from tenure.stores.sql.server_errors import Lost
from tenure.stores.valkey.commit import FREE
from tenure.stores.valkey.connection import Command, Connection
from tenure.stores.valkey.keys import Keys

LASTS = round(limits.VALKEY_TURN * 1000)  # milliseconds; less than a writer's `now` may be used
# Seconds after which a command of the holder extends it, and no sooner: that is a write, which the server syncs.
_EXTENDED = limits.VALKEY_TURN / 3
_FIRST_PAUSE, _LONGEST_PAUSE = 0.0005, 0.01  # seconds between looks


class Tears(threading.local):
    """How often in a row the reads of this thread were torn, and where."""

    def __init__(self) -> None:
        self.count = 0
        self.projects: dict[str, None] = {}
        self.everywhere = False

    def note(self, projects: Iterable[str], *, everywhere: bool) -> None:
        self.count += 1
        self.projects.update(dict.fromkeys(projects))
        self.everywhere |= everywhere

    def end(self) -> None:
        if self.count:
            self.count, self.projects, self.everywhere = 0, {}, False


class Turns:
    def __init__(
        self,
        random: Callable[[int], bytes],
        patience: float,
        monotonic: Callable[[], float],
        pause: Callable[[float], object] = time.sleep,
    ) -> None:
        self.random, self.patience, self.monotonic, self.pause = random, patience, monotonic, pause
        self._here: dict[bytes, threading.Lock] = {}
        self._lock = threading.Lock()

    def writer(self, keys: Keys, projects: Iterable[str]) -> Turn:
        return Turn(self, sorted(map(keys.turn_of, projects)), keys, is_reader=False)

    def reader(self, keys: Keys, tears: Tears, projects: Iterable[str], *, everywhere: bool) -> Turn:
        if everywhere or tears.everywhere:
            return Turn(self, [keys.turn], keys, is_reader=True)
        return Turn(self, sorted(map(keys.turn_of, {*tears.projects, *projects})), keys, is_reader=True)

    def here(self, turn: bytes) -> threading.Lock:
        """Threads of this process wait here; only one of them asks the server."""
        with self._lock:
            return self._here.setdefault(turn, threading.Lock())


class Turn:
    """The turn of some projects, for one transaction."""

    def __init__(self, turns: Turns, wanted: list[bytes], keys: Keys, *, is_reader: bool) -> None:
        self._turns, self._keys, self._is_reader = turns, keys, is_reader
        self._wanted = wanted
        self.held: list[bytes] = []
        self._here: list[threading.Lock] = []
        self._until = self._extended = 0.0
        self._has_waited = False
        self.token = b""

    def wait_here(self) -> None:
        """Wait for the other threads of this process."""
        self._until = self._turns.monotonic() + self._turns.patience
        for wanted in self._wanted:
            lock = self._turns.here(wanted)
            if lock.acquire(timeout=max(0.0, self._until - self._turns.monotonic())):
                self._here.append(lock)

    def ask(self, connection: Connection, commands: Sequence[Command]) -> list[Any]:
        """The answers to the commands, once it has the turn, or has waited long enough."""
        if self._has_waited or not self._wanted:
            return self._ask_as_holder(connection, commands)
        self.token = b"%d:%s" % (connection.number, self._turns.random(8))
        take: list[Command] = [("SET", key, self.token, "NX", "PX", LASTS) for key in self._wanted]
        look: list[Command] = [("GET", self._keys.turn)]
        pause = _FIRST_PAUSE
        while True:
            self._extended = self._turns.monotonic()
            others, *answers = connection.ask([*look, *take, *commands])
            taken = answers[: len(take)]
            self.held = [key for key, done in zip(self._wanted, taken, strict=True) if done == b"OK"]
            is_free = others is None or self._is_reader
            if is_free and len(self.held) == len(take) and (not self._is_reader or self._are_done(connection)):
                break
            is_refused = any(isinstance(done, Exception) for done in taken)  # a full server: the commit reports it
            if is_refused or self._turns.monotonic() >= self._until:
                break
            self._free(connection)
            self._turns.pause(pause)
            if pause == _LONGEST_PAUSE:
                self._free_from_the_dead(connection)
            pause = min(pause * 1.5, _LONGEST_PAUSE)
        self._has_waited = True
        if self._is_reader:  # somebody may have written meanwhile
            return connection.ask(commands)
        return answers[len(take) :]

    def _ask_as_holder(self, connection: Connection, commands: Sequence[Command]) -> list[Any]:
        again: list[Command] = []
        if self.held and (now := self._turns.monotonic()) > self._extended + _EXTENDED:
            again, self._extended = [("PEXPIRE", key, LASTS) for key in self.held], now
        return connection.ask([*again, *commands])[len(again) :]

    def _are_done(self, connection: Connection) -> bool:
        """Whether nobody writes any more, for the reader of all projects."""
        if self._wanted != [self._keys.turn]:
            return True
        while True:
            (fields,) = connection.ask([("HKEYS", self._keys.versions)])
            turns = [self._keys.turn_of(field[1:].decode()) for field in fields if field[:1] == b":"]
            if not turns or connection.ask([("EXISTS", *turns)]) == [0]:
                return True
            if self._turns.monotonic() >= self._until:
                return False
            self._turns.pause(_FIRST_PAUSE)

    def _free_from_the_dead(self, connection: Connection) -> None:
        """End turns whose holders have no connection any more: killed processes need not be waited for."""
        keys = [self._keys.turn, *self._wanted]
        for key, token in zip(keys, connection.ask([("GET", key) for key in keys]), strict=True):
            if isinstance(token, bytes):
                number = token.partition(b":")[0]
                if connection.ask([("CLIENT", "LIST", "ID", number)]) == [b""]:
                    connection.ask([("EVAL", FREE, 1, key, token)])

    def _free(self, connection: Connection) -> None:
        if self.held:
            connection.ask([("EVAL", FREE, 1, key, self.token) for key in self.held])
            self.held = []

    def end(self, connection: Connection | None) -> None:
        """Give it back; without a connection, only here: the commit has done it, or the server will."""
        try:
            if connection is not None and connection.is_open:
                with suppress(Lost):
                    self._free(connection)
        finally:
            for lock in self._here:
                lock.release()
            self._here = []
