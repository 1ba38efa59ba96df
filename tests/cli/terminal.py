"""A terminal for tests: a command in a real pty, and what its screen shows, by a small emulation of what we write."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress

PATIENCE = 20.0
# The terminal's keys, such as Ctrl-C, reach only the session whose controlling terminal it is. A terminal's shell does
# not ignore SIGHUP, even where the tests were started by nohup.
TAKE_TERMINAL = (
    "import fcntl, os, signal as s, sys, termios as t; fcntl.ioctl(0, t.TIOCSCTTY, 0); s.signal(s.SIGHUP, s.SIG_DFL); "
    "os.execv(sys.argv[1], sys.argv[1:])"
)
_TOKEN = re.compile(r"\x1b\[([0-9;?]*)([@-~])|\x1b[^\[]|[\r\n]|[^\x1b\r\n]+", re.DOTALL)


class Screen:
    """Characters of a screen, and which lines are reversed. Knows the few sequences that tenure sends."""

    def __init__(self, columns: int, lines: int) -> None:
        self.resize(columns, lines)
        self.is_alternate = False
        self.is_cursor_shown = True
        self._frame: str | None = None  # the last whole one, while another is being written

    def resize(self, columns: int, lines: int) -> None:
        self.columns, self.lines = columns, lines
        self.clear()
        self.row = self.column = 0
        self.is_reversed = False

    def clear(self, first: int = 0) -> None:
        kept = self.cells[:first] if first else []
        self.cells = kept + [[" "] * self.columns for _ in range(self.lines - len(kept))]
        self.reversed = {row for row in (self.reversed if first else ()) if row < first}

    def feed(self, text: str) -> None:
        for token in _TOKEN.finditer(text):
            if token[2] is not None:
                self._control(token[1], token[2])
            elif token[0] == "\r":
                self.column = 0
            elif token[0] == "\n":
                self._down()
            elif not token[0].startswith("\x1b"):
                self._print(token[0])

    def _print(self, text: str) -> None:
        for character in text:
            if self.column == self.columns:
                self.column = 0
                self._down()
            self.cells[self.row][self.column] = character
            if self.is_reversed:
                self.reversed.add(self.row)
            self.column += 1

    def _down(self) -> None:
        if self.row + 1 < self.lines:
            self.row += 1
        else:
            self.cells = [*self.cells[1:], [" "] * self.columns]

    def _control(self, values: str, kind: str) -> None:
        if kind == "H":
            row, column = ([int(v or 1) for v in values.split(";")] + [1, 1])[:2] if values else (1, 1)
            self.row, self.column = row - 1, column - 1
            if values == "":  # a whole new frame
                self.reversed = set()
        elif kind == "J":
            self.clear(0 if values == "2" else self.row)
        elif kind == "K":
            self.cells[self.row] = [" "] * self.columns
        elif kind == "A":
            self.row = max(0, self.row - int(values or 1))
        elif kind == "m":
            parts = [int(v or 0) for v in values.split(";")]
            self.is_reversed = 7 in parts or (self.is_reversed and 0 not in parts)
        elif values == "?2026":
            self._frame = self._drawn() if kind == "h" else None
        elif values in ("?1049", "?25"):
            is_on = kind == "h"
            if values == "?25":
                self.is_cursor_shown = is_on
            else:
                self.is_alternate = is_on
                self.clear()

    @property
    def text(self) -> str:
        return self._drawn() if self._frame is None else self._frame

    def _drawn(self) -> str:
        return "\n".join("".join(row).rstrip() for row in self.cells)


class Terminal:
    """`with Terminal(words) as terminal`: press keys, wait for what the screen shall show; ends what it started."""

    def __init__(
        self, words: Sequence[str], *, environ: Mapping[str, str], columns: int = 100, lines: int = 30,
        cwd: str | os.PathLike[str] | None = None,
    ) -> None:  # fmt: skip
        self.screen = Screen(columns, lines)
        self.raw = ""
        self._decode_left = b""
        self.ours, theirs = pty.openpty()
        self._set_size(columns, lines)
        self.settings = termios.tcgetattr(theirs)
        self.process = subprocess.Popen(
            [sys.executable, "-S", "-c", TAKE_TERMINAL, *words], stdin=theirs, stdout=theirs, stderr=theirs, cwd=cwd,
            start_new_session=True, env={**environ, "TERM": "xterm-256color"},
        )  # fmt: skip
        self._theirs = theirs  # kept open, so that its settings can be asked for after the end

    def __enter__(self) -> Terminal:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        for side in (self.ours, self._theirs):
            with suppress(OSError):
                os.close(side)

    # --- doing ---

    def hang_up(self) -> int:
        """Take the terminal away, as a closed window does; how the process ended."""
        os.close(self._theirs)
        os.close(self.ours)
        return self.process.wait(PATIENCE)

    def press(self, keys: str) -> None:
        os.write(self.ours, keys.encode())

    def resize(self, columns: int, lines: int) -> None:
        self.screen.resize(columns, lines)
        self._set_size(columns, lines)

    def signal(self, number: int) -> None:
        self.process.send_signal(number)

    def _set_size(self, columns: int, lines: int) -> None:
        fcntl.ioctl(self.ours, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))

    # --- looking ---

    @property
    def text(self) -> str:
        return self.screen.text

    @property
    def selected(self) -> str:
        """The highlighted line of a list (the first line is the header's)."""
        rows = sorted(row for row in self.screen.reversed if row > 0)
        return "".join(self.screen.cells[rows[0]]).strip() if rows else ""

    @property
    def are_settings_back(self) -> bool:
        return termios.tcgetattr(self._theirs) == self.settings

    def until(self, is_there: Callable[[str], bool] | str) -> str:
        """What the screen shows once it has this text (or fulfils this); fails after a while."""
        test = (lambda text: is_there in text) if isinstance(is_there, str) else is_there
        deadline = time.monotonic() + PATIENCE
        while not test(self.text):
            assert time.monotonic() < deadline, f"never shown: {is_there}\n{self.text}"
            self._read(0.2)
            if self.process.poll() is not None:
                self._drain()
                assert test(self.text), f"ended with {self.process.returncode} before {is_there}\n{self.raw[-2000:]}"
        return self.text

    def ended(self) -> int:
        """The exit code, negative for a signal, once all that was written is on the screen."""
        deadline = time.monotonic() + PATIENCE
        while self.process.poll() is None:
            assert time.monotonic() < deadline, f"does not end\n{self.text}"
            self._read(0.05)
        self._drain()
        return int(self.process.returncode)

    def _drain(self) -> None:
        while self._read(0.0):
            pass

    def _read(self, seconds: float) -> bool:
        ready, _, _ = select.select([self.ours], [], [], seconds)
        if not ready:
            return False
        try:
            data = self._decode_left + os.read(self.ours, 65536)
        except OSError:
            return False
        # A character, or a sequence, may come in two parts.
        cut = max(data.rfind(b"\x1b"), 0) if b"\x1b" in data[-20:] and not _is_whole(data) else len(data)
        text, self._decode_left = data[:cut], data[cut:]
        try:
            decoded = text.decode()
        except UnicodeDecodeError as error:
            decoded, self._decode_left = text[: error.start].decode(), text[error.start :] + self._decode_left
        self.raw += decoded
        self.screen.feed(decoded)
        return True


def _is_whole(data: bytes) -> bool:
    last = data[data.rfind(b"\x1b") :]
    return re.match(rb"\x1b\[[0-9;?]*[@-~]|\x1b[^\[]", last) is not None
