"""The access log of a server: a line for every operation, reads and refusals too, in a chain of hashes.

Each process has its own file, readable by its owner alone, or a stream. `core/access_chain.py` has the form of a
line, and the check. A line that cannot be written does not fail its request: the next line that can be written says
how many were lost, and the server's log says why.
"""

from __future__ import annotations

import fcntl
import os
import sys
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from glob import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from tenure.config import BadConfig
from tenure.core import limits
from tenure.core.access_chain import LOST, TORN, Head, digest_of, follows, line_after, read_line, torn_part
from tenure.core.commands import Command, Principal
from tenure.core.compliance import access_log_days
from tenure.core.errors import TenureError
from tenure.core.outcomes import Outcome
from tenure.core.queries import Query
from tenure.core.redaction import without_secrets
from tenure.server.auth.request_source import CALLER

if TYPE_CHECKING:
    from tenure.server.requests import Request

STREAM = "-"
DAY = 86_400
MOST_KEYS = limits.ACCESS_KEYS
LONGEST_KEY = limits.ACCESS_TEXT
_READ = 64 * 1024  # of the end of a file, to find its last line
# Asked for by machines every few seconds; they read no rows.
_QUIET = frozenset({"/health", "/health/coordinator", "/ready", "/"})
_NO_ROUTE = ("", "/")  # unknown to the API; the dashboard's files


class AccessLog:
    """Safe to use from several threads."""

    def __init__(
        self,
        path: str,
        tenant: str,
        *,
        size: float = limits.ACCESS_LOG_SIZE,
        days: float = limits.ACCESS_LOG_DAYS,
        worker: int | None = None,
        warn: Callable[..., object] = lambda *_, **__: None,
        presets: Callable[[], Iterable[str]] = tuple,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """`size`: megabytes after which a file is put aside; `days`: how long such a file is kept, 0: for ever.

        `presets` gives the retention presets of the projects: the longest holds where it is longer than `days`.
        `worker` is the number of this process, where the server has several. `warn` gets a message for the server's
        log. Raises BadConfig where the file cannot be written, or another process writes to it.
        """
        self.path = path if worker is None or path == STREAM else _of_worker(path, worker)
        self._tenant, self._worker, self._warn, self._clock = tenant, worker, warn, clock
        self._largest, self._days, self._presets = int(size * 1_000_000), days, presets
        self._lock = threading.Lock()
        self._head = Head()
        self._lost = 0
        self._file: BinaryIO = sys.stdout.buffer
        if path != STREAM:
            try:
                self._file = _opened(self.path)
                self._resume()
            except OSError as error:
                raise BadConfig(f"serve.access_log: {self.path}: {error.strerror}") from None

    # --- lines ---

    def request(self, request: Request, status: int, seconds: float, address: str | None, **more: Any) -> None:
        """A request that was answered, or refused."""
        if request.route in _QUIET and status < 400:
            return
        operations = [fields_of(*done) for done in request.operations]
        fields: dict[str, Any] = {"method": request.scope["method"], "route": request.route or "none"}
        if request.route in _NO_ROUTE:
            fields["path"] = without_secrets(request.scope["path"])[:LONGEST_KEY]
        fields |= {"status": status, "seconds": round(seconds, 6), "project": _safe(request.fields.get("project"))}
        fields |= {"address": address, "trace_id": request.trace.id, **more}
        if len(operations) == 1:
            fields |= operations[0]
        elif operations:
            fields["operations"] = operations
        if "keys" not in fields and "task" in request.fields:
            fields |= _keys([request.fields["task"]])
        refused: Principal | None = request.scope.get(CALLER)
        self.write({**fields, **_of_principal(request.principal if request.is_known else refused)})

    def operation(self, given: Command | Query, answer: Any, principal: Principal, route: str) -> None:
        """A command or query inside of a request, with its outcome, view or error: a call of a tool."""
        fields = {"route": route, "address": principal.address, "project": given.project, **fields_of(given, answer)}
        self.write({**fields, **_of_principal(principal)})

    def write(self, fields: Mapping[str, Any]) -> None:
        now = datetime.fromtimestamp(self._clock(), UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
        entry = {name: value for name, value in fields.items() if value not in (None, [], ())}
        with self._lock:
            if self._lost:
                entry[LOST] = self._lost
            line = line_after(self._head, {"time": now, "tenant": self._tenant, **entry})  # its own tenant wins
            try:
                self._rotate(len(line))
                written = self._file.write(line + b"\n")
                self._file.flush()
                if written != len(line) + 1:
                    raise OSError(0, "only a part was written")
            except (OSError, ValueError) as error:
                self._lost += 1
                if self._lost == 1:
                    self._warn("the access log cannot be written", error=str(error), file=self.path)
                self._drop_torn_part()
                return
            self._head, self._lost = Head(self._head.number + 1, digest_of(line)), 0

    def close(self) -> None:
        if self._file is not sys.stdout.buffer:
            with self._lock:
                self._file.close()

    # --- the file ---

    def _resume(self) -> None:
        """Continue the chain of an existing file; a part of a line at its end is named in the next line."""
        self._head, part = _last_line(self._file)
        if part and follows(self._head, part):  # whole but for its line break
            self._file.write(b"\n")
            self._head = Head(self._head.number + 1, digest_of(part))
            part = b""
        entry: dict[str, Any] = {"event": "started", "worker": self._worker, "pid": os.getpid()}
        if part:
            self._file.write(b"\n")
            entry[TORN] = torn_part(part)
        self.write(entry)

    def _rotate(self, more: int) -> None:
        """Put the file aside once it is full; go on in a new one where somebody else has moved it."""
        if self._file is sys.stdout.buffer:
            return
        here = os.fstat(self._file.fileno())
        named = None
        with suppress(FileNotFoundError):
            named = os.stat(self.path)  # noqa: PTH116 - for each line: pathlib takes three times as long
        is_moved = named is None or (named.st_dev, named.st_ino) != (here.st_dev, here.st_ino)
        if not is_moved and (here.st_size == 0 or here.st_size + more < self._largest):
            return
        if not is_moved:
            os.rename(self.path, f"{self.path}.{self._head.number:012d}")  # noqa: PTH104 - as above
        before, self._file = self._file, _opened(self.path)
        before.close()
        self._delete_old()

    def _delete_old(self) -> None:
        path = Path(self.path)
        try:
            kept = access_log_days(self._days, self._presets()) * DAY
        except TenureError:
            return  # the presets are not known: nothing is deleted
        for old in path.parent.glob(f"{escape(path.name)}.{'[0-9]' * 12}"):
            with suppress(OSError):
                if kept and old.stat().st_mtime < self._clock() - kept:
                    old.unlink()

    def _drop_torn_part(self) -> None:
        """Cut off a part of a line: without its line break it would swallow the next line."""
        with suppress(OSError, ValueError):
            if self._file is not sys.stdout.buffer:
                _, part = _last_line(self._file)
                if part:
                    os.ftruncate(self._file.fileno(), os.fstat(self._file.fileno()).st_size - len(part))


def check_place(path: str) -> None:
    """Raise BadConfig where no file can be written, before a server begins to listen."""
    folder = Path(path).absolute().parent
    if path != STREAM and not (folder.is_dir() and os.access(folder, os.W_OK)):
        raise BadConfig(f"serve.access_log: the folder {folder} does not exist, or cannot be written")


def _safe(name: str | None) -> str | None:
    return None if name is None else without_secrets(name)[:LONGEST_KEY]


def _of_worker(path: str, worker: int) -> str:
    file = Path(path)
    return str(file.with_name(f"{file.stem}-w{worker}{file.suffix}"))


def _opened(path: str) -> BinaryIO:
    """Its owner's alone, and this process's: two writers would break the chain."""
    number = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(number)
        raise BadConfig(
            f"serve.access_log: {path} is written by another process", "each server needs its own file"
        ) from None
    return os.fdopen(number, "r+b", buffering=0)


def _last_line(file: BinaryIO) -> tuple[Head, bytes]:
    """The last whole line of the file, as the head of its chain; and what follows it."""
    end = file.seek(0, os.SEEK_END)
    start = end
    tail = b""
    while start > 0:
        size = min(_READ, start)
        start = file.seek(start - size)
        tail = (file.read(size) or b"") + tail
        lines = tail.split(b"\n")
        for line in reversed(lines[1:-1] if start else lines[:-1]):
            found = read_line(line)
            if found is not None:
                return Head(found.number, digest_of(line)), lines[-1]
    return Head(), tail.rpartition(b"\n")[2]


# --- operations ---------------------------------------------------------------------------------------------


def fields_of(given: Command | Query, answer: Any) -> dict[str, Any]:
    """A command with its outcome, or a query with the number of its rows; and the tasks that it returned or named."""
    is_command = isinstance(given, Command)
    fields = {"command" if is_command else "query": type(given).__struct_config__.tag}
    if isinstance(answer, TenureError):
        return {**fields, "outcome": answer.code, **_keys(_named(given))}
    if is_command:
        return {**fields, "outcome": answer.outcome, **_keys(_returned(answer) or _named(given))}
    rows = answer if isinstance(answer, list) else [answer]
    keys = [row["key"] for row in rows if isinstance(row, dict) and isinstance(row.get("key"), str)]
    return {**fields, **_keys(keys or _named(given)), "rows": len(rows)}


def _returned(outcome: Outcome) -> list[str]:
    views = [outcome.task, *(outcome.tasks or ()), *(claim.task for claim in outcome.claims or ())]
    return [str(view["key"]) for view in views if view is not None and "key" in view]


def _named(given: Command | Query) -> list[str]:
    """The tasks that it names; of a receipt only the task."""
    found: list[str] = []
    receipt = getattr(given, "receipt", None)
    if isinstance(receipt, str):
        found.append(receipt.partition("@")[0])
    for field in ("task", "tasks", "needs"):
        value = getattr(given, field, None)
        values: Sequence[Any] = (value,) if isinstance(value, str) else value if isinstance(value, tuple) else ()
        found += [one for one in values if isinstance(one, str)]
    return found


def _keys(keys: Sequence[str]) -> dict[str, Any]:
    more = len(keys) - MOST_KEYS
    fields = {"keys": [without_secrets(key)[:LONGEST_KEY] for key in keys[:MOST_KEYS]]}  # a caller may name a receipt
    return {**fields, **({"keys_left_out": more} if more > 0 else {})}


def _of_principal(principal: Principal | None) -> dict[str, Any]:
    if principal is None:
        return {"principal": None}
    names = {"principal": principal.name, "role": principal.role or None, "key": principal.key}
    names |= {"tenant": principal.tenant, "agent": principal.agent, "session": principal.session}
    return names | ({"user": principal.person} if principal.role == "agent" else {})  # in whose name the key was made
