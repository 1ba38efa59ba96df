"""The server's log: one JSON object a line, to stderr or a file; words and colours where a person looks at a terminal.

Everything goes one way, what libraries log too, and on it `redacting.py` takes out what nobody may read. A log that
cannot be written never fails what it tells of.
"""

from __future__ import annotations

import logging
import os
import sys
import threading
import time
from collections.abc import Callable, MutableMapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, BinaryIO

import msgspec
import structlog

from tenure.core.commands import Principal
from tenure.core.errors import InvalidInput
from tenure.server.redacting import redacted

LEVELS = {"debug": logging.DEBUG, "info": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR}
# Asked for every few seconds by machines; a line each would bury the others.
QUIET = frozenset({"/health", "/health/coordinator", "/ready", "/metrics"})
_LOUD = ("uvicorn", "uvicorn.error", "uvicorn.asgi")

Fields = MutableMapping[str, Any]


class Log:
    """Safe to use from several threads. `info("listening", url=…)`, and so on for the other levels."""

    def __init__(
        self,
        level: str = "info",
        path: str | None = None,
        *,
        stream: BinaryIO | None = None,
        is_terminal: bool | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """`path`: a file that is appended to, and opened anew when it was moved away; else `stream`, else stderr."""
        if level not in LEVELS:
            raise InvalidInput(f"log level {level[:40]!r}: one of {', '.join(LEVELS)}")
        stream = stream or sys.stderr.buffer
        if is_terminal is None:
            is_terminal = path is None and stream.isatty()
        self.sink = Sink(path, stream)
        self._clock = clock
        processors: list[Any] = [self._stamped, structlog.processors.format_exc_info, _redacted]
        processors += [_printable, _for_people()] if is_terminal else [_as_json]
        self._logger = structlog.wrap_logger(
            self.sink, processors=processors, wrapper_class=structlog.make_filtering_bound_logger(LEVELS[level]),
            cache_logger_on_first_use=True,
        )  # fmt: skip
        self.debug, self.info = self._logger.debug, self._logger.info
        self.warning, self.error = self._logger.warning, self._logger.error
        self._through = _Through(self)
        self._before: list[tuple[logging.Logger, list[logging.Handler], int, bool]] = []

    def request(
        self, method: str, route: str, status: int, seconds: float, *, principal: Principal | None = None,
        trace_id: str | None = None, path: str | None = None, **more: Any,
    ) -> None:  # fmt: skip
        """The line of a request. `route` is the path as the table has it; `path` only where there was no route."""
        tell = self.debug if route in QUIET and status < 400 else self.info if status < 500 else self.error
        if principal is not None:
            more |= {"principal": principal.name, "role": principal.role, "address": principal.address}
        if path is not None:
            more["path"] = path
        tell("request", method=method, route=route, status=status, seconds=round(seconds, 6), trace_id=trace_id, **more)

    def take_over(self) -> None:
        """From here on what libraries log goes this way too; until `close`."""
        for name in ("", *_LOUD):
            logger = logging.getLogger(name)
            self._before.append((logger, logger.handlers, logger.level, logger.propagate))
            logger.handlers = [] if name else [self._through]
            logger.setLevel(logging.INFO if name else logging.WARNING)
            logger.propagate = True

    def close(self) -> None:
        while self._before:
            logger, handlers, level, propagate = self._before.pop()
            logger.handlers, logger.propagate = handlers, propagate
            logger.setLevel(level)
        self.sink.close()

    def tell_record(self, record: logging.LogRecord) -> None:
        self._logger.log(record.levelno, record.getMessage(), logger=record.name, exc_info=record.exc_info)

    def _stamped(self, _: Any, method: str, event: Fields) -> Fields:
        now = datetime.fromtimestamp(self._clock(), UTC).isoformat(timespec="milliseconds")
        first = {"time": now.replace("+00:00", "Z"), "level": method, "event": event.pop("event", "")}
        return first | {name: value for name, value in event.items() if value is not None}


class Sink:
    """Lines go to a file or a stream, whole and one after another. A line that cannot be written is only counted."""

    def __init__(self, path: str | None, stream: BinaryIO) -> None:
        self._path, self._stream = path, stream
        self._lock = threading.Lock()
        self.lost = 0
        if path is not None:
            self._stream = self._opened(path)

    def _opened(self, path: str) -> BinaryIO:
        # Only for us to read: it tells who did what.
        return os.fdopen(os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600), "ab", buffering=0)

    def write(self, line: bytes) -> None:
        with self._lock:
            try:
                if self._path is not None and self._was_moved(self._path):
                    old, self._stream = self._stream, self._opened(self._path)
                    old.close()
                self._stream.write(line + b"\n")
                self._stream.flush()
            except (OSError, ValueError):  # the disk is full, the reader has gone, or it was closed
                self.lost += 1

    debug = info = warning = error = critical = write

    def _was_moved(self, path: str) -> bool:
        """As programs that rotate logs do."""
        try:
            named = Path(path).stat()
        except FileNotFoundError:
            return True
        here = os.fstat(self._stream.fileno())
        return (named.st_dev, named.st_ino) != (here.st_dev, here.st_ino)

    def close(self) -> None:
        if self._path is not None:
            with self._lock:
                self._stream.close()


class _Through(logging.Handler):
    """What the standard library's loggers tell, told by ours."""

    def __init__(self, log: Log) -> None:
        super().__init__()
        self._log = log

    def emit(self, record: logging.LogRecord) -> None:
        try:
            self._log.tell_record(record)
        except Exception:  # noqa: BLE001 - a record whose arguments do not fit must not end who logged it
            self.handleError(record)


def _redacted(_: Any, __: str, event: Fields) -> Fields:
    clean: Fields = redacted(event)
    return clean


def _as_json(_: Any, __: str, event: Fields) -> bytes:
    return msgspec.json.encode(event)


def _printable(_: Any, __: str, event: Fields) -> Fields:
    """No text that came from outside moves a person's cursor, or says something in another line's name."""
    return {
        name: _escaped(value) if isinstance(value, str) and name != "exception" else value
        for name, value in event.items()
    }


def _escaped(text: str) -> str:
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def _for_people() -> Callable[[Any, str, Fields], bytes]:
    render = structlog.dev.ConsoleRenderer(
        colors="NO_COLOR" not in os.environ, timestamp_key="time", pad_event_to=0,
        exception_formatter=structlog.dev.plain_traceback,
    )  # fmt: skip

    def rendered(logger: Any, method: str, event: Fields) -> bytes:
        if event.get("event") == "request":
            event["event"] = f"{event.pop('method')} {event.pop('route')} {event.pop('status')}"
        return str(render(logger, method, event)).encode()

    return rendered
