"""The server's log: one JSON object per line, to stderr or a file; readable text with colours on a terminal.

Records of libraries pass through it too, and `redacted` removes secrets from all of them. A log that cannot be
written never fails a request.
"""

from __future__ import annotations

import logging
import os
import sys
import threading
import time
from collections.abc import Callable, Mapping, MutableMapping
from contextlib import ExitStack
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, BinaryIO

import msgspec
import structlog

from tenure.core import limits, redaction
from tenure.core.commands import Principal
from tenure.core.errors import InvalidInput, close_all
from tenure.core.redaction import GONE
from tenure.core.secret_names import names_credential
from tenure.core.tenant_records import HOME
from tenure.processes.thread_errors import reported

LEVELS = {"debug": logging.DEBUG, "info": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR}
# Requested by machines every few seconds; their lines would hide the others.
# "/" is the dashboard: opening a page fetches dozens of its files.
QUIET = frozenset({"/health", "/health/coordinator", "/ready", "/metrics", "/"})
_UVICORN = ("uvicorn", "uvicorn.error", "uvicorn.asgi")

Fields = MutableMapping[str, Any]


class ServerLog:
    """Safe to use from several threads. `info("listening", url=…)`, and so on for the other levels."""

    def __init__(
        self,
        level: str = "info",
        path: str | None = None,
        *,
        stream: BinaryIO | None = None,
        is_terminal: bool | None = None,
        clock: Callable[[], float] = time.time,
        worker: int | None = None,
    ) -> None:
        """`path`: a file to append to, reopened after a log rotation; else `stream`, else stderr.

        `worker` is the number of this process, where the server has several: each line names it.
        """
        if level not in LEVELS:
            raise InvalidInput(f"log level must be one of {', '.join(LEVELS)} (got {level[:40]!r})")
        stream = stream or sys.stderr.buffer
        if is_terminal is None:
            is_terminal = path is None and stream.isatty()
        self.sink = LogSink(path, stream)
        self._clock, self._worker = clock, worker
        processors: list[Any] = [self._stamped, structlog.processors.format_exc_info, _redacted]
        processors += [_printable, _for_terminal()] if is_terminal else [_as_json]
        self._logger = structlog.wrap_logger(
            self.sink,
            processors=processors,
            wrapper_class=structlog.make_filtering_bound_logger(LEVELS[level]),
            cache_logger_on_first_use=True,
        )
        self.debug, self.info = self._logger.debug, self._logger.info
        self.warning, self.error = self._logger.warning, self._logger.error
        self._through = _LibraryHandler(self)
        self._while_open = ExitStack()
        self._before: list[tuple[logging.Logger, list[logging.Handler], int, bool]] = []

    def request(
        self, method: str, route: str, status: int, seconds: float, *, principal: Principal | None = None, **more: Any
    ) -> None:
        """Log a request. `route` is the path with placeholders; `more` has `trace_id`, and `path` without a route."""
        write = self.debug if route in QUIET and status < 400 else self.info if status < 500 else self.error
        if principal is not None:
            more |= {"principal": principal.name, "role": principal.role, "address": principal.address}
            more |= {} if principal.tenant in (None, HOME) else {"tenant": principal.tenant}
        write("request", method=method, route=route, status=status, seconds=round(seconds, 6), **more)

    def take_over(self) -> None:
        """Pass records of libraries, and errors that end a thread, through this log too, until `close`."""
        for name in ("", *_UVICORN):
            logger = logging.getLogger(name)
            self._before.append((logger, logger.handlers, logger.level, logger.propagate))
            logger.handlers = [] if name else [self._through]
            logger.setLevel(logging.WARNING)  # uvicorn's reports of its start and end repeat ours
            logger.propagate = True
        self._while_open.enter_context(reported(self._thread_ended))

    def _thread_ended(self, text: str, error: BaseException) -> None:
        self.error(text, part="threads", exc_info=error)

    def close(self) -> None:
        while self._before:
            logger, handlers, level, propagate = self._before.pop()
            logger.handlers, logger.propagate = handlers, propagate
            logger.setLevel(level)
        close_all(self._while_open.close, self.sink.close)

    def log_record(self, record: logging.LogRecord) -> None:
        self._logger.log(record.levelno, record.getMessage(), logger=record.name, exc_info=record.exc_info)

    def _stamped(self, _: Any, method: str, event: Fields) -> Fields:
        now = datetime.fromtimestamp(self._clock(), UTC).isoformat(timespec="milliseconds")
        first = {"time": now.replace("+00:00", "Z"), "level": method, "event": event.pop("event", "")}
        if self._worker is not None:
            event.setdefault("worker", self._worker)
        return first | {name: value for name, value in event.items() if value is not None}


class LogSink:
    """Writes whole lines to a file or a stream. A line that cannot be written is counted in `lost`."""

    def __init__(self, path: str | None, stream: BinaryIO) -> None:
        self._path, self._stream = path, stream
        self._lock = threading.Lock()
        self.lost = 0
        if path is not None:
            self._stream = self._opened(path)

    def _opened(self, path: str) -> BinaryIO:
        # Readable by the owner alone: it records who did what.
        return os.fdopen(os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600), "ab", buffering=0)

    def write(self, line: bytes) -> None:
        with self._lock:
            try:
                if self._path is not None and self._was_moved(self._path):
                    old, self._stream = self._stream, self._opened(self._path)
                    old.close()
                self._stream.write(line + b"\n")
                self._stream.flush()
            except (OSError, ValueError):  # the disk is full, the pipe is broken, or it was closed
                self.lost += 1

    debug = info = warning = error = critical = write

    def _was_moved(self, path: str) -> bool:
        """Whether a log rotation has moved the file."""
        try:
            named = os.stat(path)  # noqa: PTH116 - for each line: pathlib takes three times as long
        except FileNotFoundError:
            return True
        here = os.fstat(self._stream.fileno())
        return (named.st_dev, named.st_ino) != (here.st_dev, here.st_ino)

    def close(self) -> None:
        if self._path is not None:
            with self._lock:
                self._stream.close()


class _LibraryHandler(logging.Handler):
    """Passes records of the standard library's loggers to ours."""

    def __init__(self, log: ServerLog) -> None:
        super().__init__()
        self._log = log

    def emit(self, record: logging.LogRecord) -> None:
        try:
            self._log.log_record(record)
        except Exception:  # noqa: BLE001 - a malformed record must not fail its caller
            self.handleError(record)


def _redacted(_: Any, __: str, event: Fields) -> Fields:
    return {clean: redacted(value, 1) for name, value in event.items() if (clean := _clean_name(name)) is not None}


@lru_cache(256)  # an entry's own fields have few names
def _clean_name(name: str) -> str | None:
    """The name without secrets; None where its value is one."""
    return None if names_credential(name) else without_secrets(name)


def _as_json(_: Any, __: str, event: Fields) -> bytes:
    return msgspec.json.encode(event)


def _printable(_: Any, __: str, event: Fields) -> Fields:
    """Escape control characters: text from outside must not move the cursor or fake another line."""
    return {
        name: _escaped(value) if isinstance(value, str) and name != "exception" else value
        for name, value in event.items()
    }


def _escaped(text: str) -> str:
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def _for_terminal() -> Callable[[Any, str, Fields], bytes]:
    render = structlog.dev.ConsoleRenderer(
        colors="NO_COLOR" not in os.environ,
        timestamp_key="time",
        pad_event_to=0,
        exception_formatter=structlog.dev.plain_traceback,
    )

    def rendered(logger: Any, method: str, event: Fields) -> bytes:
        if event.get("event") == "request":
            event["event"] = f"{event.pop('method')} {event.pop('route')} {event.pop('status')}"
        return str(render(logger, method, event)).encode()

    return rendered


# --- redaction: receipts, nonces, keys, tokens and passwords, by field name and by pattern ---


def without_secrets(text: str) -> str:
    """The text without anything that looks like a secret, at most limits.LOG_TEXT characters."""
    if len(text) > limits.LOG_TEXT:
        text = text[: limits.LOG_TEXT] + GONE
    return redaction.without_secrets(text)


def redacted(value: Any, depth: int = 0) -> Any:
    """The same for a value, without fields that have a secret's name."""
    if isinstance(value, str):
        return without_secrets(value)
    if value is None or isinstance(value, (bool, int, float)):
        return value
    if depth >= limits.LOG_DEPTH or isinstance(value, (bytes, bytearray)):
        return GONE  # bytes are a nonce or a body
    if isinstance(value, Mapping):
        return {
            without_secrets(str(name)): redacted(part, depth + 1)
            for name, part in value.items()
            if not names_credential(str(name))
        }
    if isinstance(value, (list, tuple, set, frozenset)):
        return [redacted(part, depth + 1) for part in value]
    return without_secrets(str(value))
