"""The whole terminal, always restored: on return, error, Ctrl-C, Ctrl-Z and a signal to end.

`Fullscreen` is a context; inside it, `wait` returns keys and wake-ups, and `show` writes one frame at once. It does
not know the content.
"""

from __future__ import annotations

import codecs
import os
import re
import select
import signal
import sys
import termios
import tty
from contextlib import suppress
from types import FrameType, TracebackType

ENTER = "\x1b[?1049h\x1b[?25l\x1b[2J"  # the other screen, no cursor, empty
LEAVE = "\x1b[0m\x1b[?25h\x1b[?1049l"
HOME = "\x1b[H"
CLEAR = "\x1b[2J"
BEGIN, END = "\x1b[?2026h", "\x1b[?2026l"  # a frame is shown as a whole where the terminal can; else this is ignored
ENDING = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)


def is_possible() -> bool:
    """Both ends are a terminal that can do more than print."""
    return os.environ.get("TERM", "dumb") not in ("", "dumb") and sys.stdin.isatty() and sys.stdout.isatty()


class Fullscreen:
    """Use in the main thread, as a context, and once."""

    def __init__(self) -> None:
        self.keys = Keys()
        self.ended_by: int | None = None  # a signal to end has come: leave soon
        self._in, self._out = sys.stdin.fileno(), sys.stdout.fileno()
        self._woken, self._waker = os.pipe()
        self._before: list[object] = []
        self._handlers: dict[int, object] = {}
        self._shown = ""
        self._size = (0, 0)
        self._must_stop = False

    # --- taking and giving back ---

    def __enter__(self) -> Fullscreen:
        os.set_blocking(self._waker, False)
        os.set_blocking(self._woken, False)
        self._before = termios.tcgetattr(self._in)
        for number in (*ENDING, signal.SIGWINCH, signal.SIGTSTP):
            self._handlers[number] = signal.signal(number, self._on_signal)
        self._wakeup_before = signal.set_wakeup_fd(self._waker, warn_on_full_buffer=False)
        try:
            self._take()
        except BaseException:
            self._give_back()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # A second Ctrl-C must not keep the terminal from being given back.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        try:
            self._give_back()
        finally:
            signal.set_wakeup_fd(self._wakeup_before)
            for number, handler in self._handlers.items():
                signal.signal(number, handler)  # type: ignore[arg-type]  # what signal() gave
            os.close(self._woken)
            os.close(self._waker)

    def _take(self) -> None:
        tty.setcbreak(self._in)
        self._shown = ""
        self._write(ENTER)

    def _give_back(self) -> None:
        try:
            self._write(LEAVE)
            termios.tcsetattr(self._in, termios.TCSANOW, self._before)  # type: ignore[arg-type]  # what tcgetattr gave
        except (OSError, termios.error):
            pass  # the terminal has gone: there is nothing to give back

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        if number in ENDING:
            self.ended_by = number
        self._must_stop |= number == signal.SIGTSTP
        if number == signal.SIGINT:
            raise KeyboardInterrupt  # at once; where Python can only print it, in a callback, the mark is left

    def _stop(self) -> None:
        """Ctrl-Z: the shell gets its screen, and this view gets it again when it continues."""
        self._must_stop = False
        self._give_back()
        ours = signal.signal(signal.SIGTSTP, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGTSTP)
        signal.signal(signal.SIGTSTP, ours)
        self._take()

    # --- using it ---

    @property
    def size(self) -> tuple[int, int]:
        """Columns and lines, now."""
        try:
            size = os.get_terminal_size(self._out)
        except OSError:
            return 80, 24
        return max(size.columns, 1), max(size.lines, 1)

    def show(self, frame: str) -> None:
        """Write a frame of exactly the terminal's size; one that is there already is not written again."""
        if frame == self._shown and self.size == self._size:
            return
        clear = "" if self.size == self._size else CLEAR
        self._shown, self._size = frame, self.size
        try:
            self._write(f"{BEGIN}{clear}{HOME}{frame}{END}")
        except OSError:
            self._hung_up()

    def wake(self) -> None:
        """End a `wait` early; from any thread."""
        with suppress(OSError):  # full, so that it wakes anyway, or just closed
            os.write(self._waker, b"\0")

    def wait(self, seconds: float) -> tuple[list[str], bool]:
        """Keys that were pressed, and whether somebody called `wake`; empty and False after so many seconds."""
        if self.keys.is_partial:
            seconds = min(seconds, SOON)
        ready, _, _ = select.select([self._in, self._woken], [], [], max(seconds, 0.0))
        if self._must_stop:
            self._stop()
        is_woken = self._woken in ready and self._was_woken()
        if self._in not in ready:
            return (self.keys.flush() if not ready else []), is_woken
        try:
            data = os.read(self._in, 4096)
        except OSError:
            data = b""
        if not data:
            self._hung_up()
        return self.keys.feed(data), is_woken

    def _hung_up(self) -> None:
        """The terminal is gone: the same as SIGHUP."""
        self.ended_by = self.ended_by or signal.SIGHUP

    def _was_woken(self) -> bool:
        """Signals write their number into the same pipe; zero is `wake`'s."""
        try:
            return b"\0" in os.read(self._woken, 4096)
        except BlockingIOError:
            return False

    def _write(self, text: str) -> None:
        left = memoryview(text.encode("utf-8", "replace"))
        while left:
            left = left[os.write(self._out, left) :]


def end_by_signal(number: int) -> int:
    """End by the signal that was received, now that the terminal is restored; the exit code where that fails."""
    signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)
    return 128 + number


# A whole sequence: CSI with parameters, SS3 with one letter, or escape and one other character (Alt held down).
_SEQUENCE = re.compile(r"\x1b(?:\[[0-9;?]*[ -/]*[@-~]|O[A-Za-z]|[^\[O])")
_NAMES = {
    "\x1b[A": "up", "\x1bOA": "up", "\x1b[B": "down", "\x1bOB": "down", "\x1b[C": "right", "\x1bOC": "right",
    "\x1b[D": "left", "\x1bOD": "left", "\x1b[5~": "page_up", "\x1b[6~": "page_down", "\x1b[H": "home",
    "\x1bOH": "home", "\x1b[1~": "home", "\x1b[F": "end", "\x1bOF": "end", "\x1b[4~": "end",
    "\r": "enter", "\n": "enter", "\x7f": "backspace", "\b": "backspace", "\x15": "clear",
}  # fmt: skip
SOON = 0.05  # seconds within which the rest of a sequence comes; what comes later is another key


class Keys:
    """Names of keys from bytes as they come; an incomplete sequence is kept until its rest arrives."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._left = ""

    @property
    def is_partial(self) -> bool:
        return bool(self._left)

    def feed(self, data: bytes) -> list[str]:
        text = self._left + self._decoder.decode(data)
        self._left = ""
        found = []
        while text:
            if text[0] != "\x1b":
                found.append(_NAMES.get(text[0], text[0]))
                text = text[1:]
                continue
            sequence = _SEQUENCE.match(text)
            if sequence is None:
                self._left = text
                break
            found.append(_NAMES.get(sequence[0], ""))
            text = text[sequence.end() :]
        return [name for name in found if len(name) > 1 or (name and name.isprintable())]

    def flush(self) -> list[str]:
        """The rest when no more came in time: the escape key itself."""
        left, self._left = self._left, ""
        return ["escape"] if left else []
