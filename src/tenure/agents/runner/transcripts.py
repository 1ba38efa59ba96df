"""Transcripts: `.tenure/transcripts/KEY/gen-N.jsonl`, one file per generation, readable by the user alone.

A line is `{"at": seconds since the start, "from": "agent" | "errors" | "runner", "text": …}`, as it came. The file
is bounded: further lines are only counted, and the last of them are written when it is closed.
"""

from __future__ import annotations

import os
import threading
import time
from collections import deque
from contextlib import suppress
from typing import BinaryIO

import msgspec

from tenure.core import limits
from tenure.user_state import make_private_folder

LARGEST = limits.TRANSCRIPT_BYTES
TAIL_LINES = 200
TAIL_LINE = 4096  # bytes of a line in the tail

FROM = {"stdout": "agent", "stderr": "errors", "runner": "runner"}


class Transcript:
    def __init__(self, home: str, key: str, generation: int, *, largest: int = LARGEST) -> None:
        self.folder = os.path.join(home, "transcripts", key)
        make_private_folder(self.folder)
        self.beside = os.path.join(self.folder, f"gen-{generation}.")
        self.path = self.beside + "jsonl"
        self.prompt = self.beside + "prompt.md"
        self._file: BinaryIO = open(private(self.path), "wb")  # noqa: SIM115 closed with the agent
        self._began = time.monotonic()
        self._room = largest
        self._dropped = 0
        self._tail: deque[bytes] = deque(maxlen=TAIL_LINES)
        self._mutex = threading.Lock()  # the lease's thread writes too

    def keep_prompt(self, text: str) -> str:
        """The path of the prompt's own file, beside the transcript."""
        with open(private(self.prompt), "w", encoding="utf-8", errors="replace") as file:
            file.write(text)
        return self.prompt

    def write(self, stream: str, line: bytes) -> None:
        text = line.decode(errors="replace")
        at = round(time.monotonic() - self._began, 3)
        encoded = msgspec.json.encode({"at": at, "from": FROM[stream], "text": text})
        with self._mutex:
            if self._dropped == 0 and len(encoded) < self._room:
                try:
                    self._file.write(encoded + b"\n")
                    self._file.flush()  # people follow the file
                    self._room -= len(encoded) + 1
                    return
                except OSError:  # a full disk must not end the attempt
                    self._room = 0
            self._dropped += 1
            self._tail.append(encoded if len(encoded) <= TAIL_LINE else _cut(at, stream, text))

    def goes_on_as(self, generation: int) -> None:
        """The agent continues under another generation: link its transcript there."""
        link = os.path.join(self.folder, f"gen-{generation}.jsonl")
        with suppress(FileExistsError):
            os.symlink(os.path.basename(self.path), link)

    def flush(self) -> None:
        """Write everything to the file, including the last lines of a long transcript."""
        with self._mutex, suppress(OSError):
            if not self._file.closed:
                self._write_tail()
                self._file.flush()

    def close(self) -> None:
        self.flush()
        with suppress(OSError):
            self._file.close()

    def _write_tail(self) -> None:
        if self._dropped:
            left_out = {"from": "runner", "text": f"… {self._dropped - len(self._tail)} lines left out …"}
            self._file.writelines(line + b"\n" for line in (msgspec.json.encode(left_out), *self._tail))
            self._dropped, self._room = 0, 0
            self._tail.clear()

    def earlier(self) -> list[str]:
        """Paths of transcripts of other generations of the task, newest first."""
        found = {}
        with suppress(OSError):
            for entry in os.scandir(self.folder):
                number = entry.name.removeprefix("gen-").removesuffix(".jsonl")
                if number.isdecimal() and entry.path != self.path and not entry.is_symlink():
                    found[int(number)] = entry.path
        return [found[number] for number in sorted(found, reverse=True)]


def _cut(at: float, stream: str, text: str) -> bytes:
    return msgspec.json.encode({"at": at, "from": FROM[stream], "text": text[: TAIL_LINE // 2] + " …"})


def private(path: str) -> int:
    """A descriptor of a new or truncated file that only the user can read."""
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
