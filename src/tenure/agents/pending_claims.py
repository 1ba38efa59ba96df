"""Claims that were sent and not yet answered: their request ids, written before they are sent.

A command that is killed between the commit and the receipt leaves its id behind. The next claim of the same agent in
the same session, with the same arguments, sends that id again and gets the same claim. Only where the process that
wrote it has ended: two concurrent processes want two claims.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING

import msgspec

from tenure import user_state
from tenure.agents import process_table
from tenure.agents.private_files import write_private
from tenure.core import limits

if TYPE_CHECKING:
    from tenure.config import Home

_OLD = limits.CLAIM_UNANSWERED


class _Sent(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    words: str  # agent, session and arguments
    boot: str
    pid: int
    start: int
    at: float


class Request:
    """One claim's request id, kept until the receipt is stored."""

    def __init__(self, id: str, path: str | None, content: bytes, *, is_again: bool) -> None:
        self.id, self.is_again = id, is_again
        self._path, self._content = path, content

    def answered(self) -> None:
        if self._path is not None:
            with suppress(OSError):
                os.unlink(self._path)

    def unanswered(self) -> None:
        """The answer was lost: the next claim sends the same id."""
        if self._path is not None:
            with suppress(OSError):
                write_private(self._path, self._content)


def request(environ: Mapping[str, str], home: Home, words: str, within: float) -> Request:
    """A request id for a claim with these arguments: an unanswered one of the last `within` seconds, else a new one.

    Where no file can be written the id is not kept: storing the receipt will report the same problem.
    """
    left = _left_behind(environ, home, words, within)
    own = process_table.look_up(os.getpid())
    sent = _Sent(
        id=left or os.urandom(16).hex(),
        words=words,
        boot=process_table.boot_id(),
        pid=os.getpid(),
        start=own.start if own else 0,
        at=time.time(),
    )
    content = msgspec.json.encode(sent)
    path = None
    with suppress(OSError):
        folder = os.path.join(user_state.writable_store_state(environ, home.url), "requests")
        user_state.make_private_folder(folder)
        write_private(os.path.join(folder, sent.id), content)
        path = os.path.join(folder, sent.id)
    return Request(sent.id, path, content, is_again=left is not None)


def _left_behind(environ: Mapping[str, str], home: Home, words: str, within: float) -> str | None:
    for state in user_state.store_states(environ, home.url):
        folder = os.path.join(state, "requests")
        for name in _listed(folder) if user_state.is_own(state) else ():
            path = os.path.join(folder, name)
            sent = _read(path)
            if sent is None:
                continue
            age = time.time() - sent.at
            is_over = sent.boot == process_table.boot_id() and process_table.has_ended(sent.pid, sent.start)
            if sent.words == words and 0 <= age < within and is_over:
                try:
                    os.rename(path, f"{path}.{os.getpid()}")  # only one process gets it
                    os.unlink(f"{path}.{os.getpid()}")
                except OSError:
                    continue
                return sent.id
            if age > _OLD:
                with suppress(OSError):
                    os.unlink(path)
    return None


def _read(path: str) -> _Sent | None:
    try:
        with open(path, "rb") as file:
            return msgspec.json.decode(file.read(), type=_Sent)
    except (OSError, msgspec.DecodeError):
        return None


def _listed(folder: str) -> list[str]:
    try:
        return sorted(os.listdir(folder))
    except OSError:
        return []
