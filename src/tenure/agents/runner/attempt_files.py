"""Files of one attempt in `.tenure/transcripts/PROJECT/KEY`, readable by the user alone.

The transcript is `gen-N.jsonl`, one file per generation. A line is `{"at": seconds since the start,
"from": "agent" | "errors" | "runner", "text": …}`, without what looks like a secret: everybody who may see the task
may read it while its claim lives. The file is bounded: further lines are only counted, and
the last of them are written when it is closed.

Input files are artifacts of the tasks that the task depends on, and of earlier attempts at it. They are deleted with
the claim: the store has them. Files that are too large are left to `tenure artifact get`.
"""

from __future__ import annotations

import os
import shutil
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import Any, BinaryIO

import msgspec

from tenure.client import Client
from tenure.core import limits
from tenure.core.artifacts import TRANSCRIPT
from tenure.core.errors import TenureError
from tenure.core.outcomes import Outcome
from tenure.core.redaction import Redacted
from tenure.user_state import make_private_folder, transcripts_of

LARGEST = limits.TRANSCRIPT_BYTES
TAIL_LINES = 200
TAIL_LINE = 4096  # bytes of a line in the tail

FROM = {"stdout": "agent", "stderr": "errors", "runner": "runner"}


class Transcript:
    def __init__(self, home: str, project: str, key: str, generation: int, *, largest: int = LARGEST) -> None:
        self.folder = transcripts_of(os.path.join(home, "transcripts"), project, key)
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
        self._clean = {stream: Redacted() for stream in FROM}

    def keep_prompt(self, text: str) -> str:
        """The path of the prompt's own file, beside the transcript."""
        with open(private(self.prompt), "w", encoding="utf-8", errors="replace") as file:
            file.write(text)
        return self.prompt

    def write(self, stream: str, line: bytes) -> None:
        text = self._clean[stream].line(line.decode(errors="replace"))
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


MOST = limits.FILES_BYTES
MOST_FILES = limits.FILES
EARLIER = "earlier"  # the folder of artifacts of the same task


class InputFiles:
    def __init__(self, folder: str) -> None:
        self.folder = folder
        self._room, self._files = MOST, 0

    def fetch(self, client: Client, granted: Outcome, say: Callable[[str], None]) -> Outcome:
        """The claim's answer with a `path` beside each artifact that was fetched."""
        if not any(_listed(granted)):
            return granted
        for task, folder, entry in _listed(granted):
            if entry["size"] > self._room or self._files >= MOST_FILES:
                continue
            try:
                make_private_folder(os.path.join(self.folder, folder))
                got = client.get_artifact(task, entry["name"], generation=entry["generation"])
                entry["path"] = str(got.save(os.path.join(self.folder, folder)))
            except (TenureError, OSError) as error:
                say(f"{entry['ref']} cannot be fetched: {getattr(error, 'message', error)}")
                continue
            self._room -= entry["size"]
            self._files += 1
        return granted

    def remove(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)


def _listed(granted: Outcome) -> Iterator[tuple[str, str, Any]]:
    """Task, folder and entry of each; smallest first, so that a large file does not use up the room."""
    found: list[tuple[str, str, Any]] = []
    for key, given in (granted.inputs or {}).items():
        listed = given.get("artifacts", ()) if isinstance(given, Mapping) else ()
        found += [(key, _plain(key), entry) for entry in listed]
    if granted.task is not None:
        found += [(granted.task["key"], EARLIER, entry) for entry in granted.artifacts or ()]
    return iter(sorted(found, key=lambda one: int(one[2]["size"])))


def _plain(key: str) -> str:
    return key.replace("::", "-")


def keep_transcript(client: Client, receipt: str, path: str, word: str) -> Outcome:
    from pathlib import Path

    return client.put_artifact(receipt, TRANSCRIPT, Path(path), type="application/jsonl", word=word)
