"""`logs`: print or follow the transcript of an agent that `tenure run` started."""

from __future__ import annotations

import os
import time
from argparse import Namespace
from collections.abc import Callable, Iterator, Mapping
from typing import Any, BinaryIO

from tenure.cli.answers import reader_left, say
from tenure.cli.main import Run, arg, options
from tenure.cli.text_format import plain
from tenure.core.errors import NotFound
from tenure.user_state import transcripts_of

POLL = 0.25  # seconds between two reads of a file that may grow
QUERY = 2.0  # seconds between two queries about the claim


@options(
    arg("task", metavar="TASK", help="which task"),
    arg("-f", "--follow", action="store_true", help="follow it until the claim ends"),
    arg("--generation", type=int, metavar="N", help="of this claim (the last one)"),
    arg("--raw", action="store_true", help="print the lines as they were written, as JSON"),
)
def logs(run: Run, given: Namespace) -> int:
    """Print what an agent of `tenure run` said and which tools it called.

    The transcript is a file beside the store while the agent runs, and an artifact of its claim afterwards.
    """
    task = run.client.show(given.task)
    generation = given.generation or task["generation"]
    path = None if run.client.is_remote else _path(run, task["key"], generation)
    try:
        if path is not None:
            with open(path, "rb") as file:
                _print(given, _lines(file, _ends(run, task["id"], generation) if given.follow else lambda: True))
        else:
            _print(given, _kept(run, task, generation))
    except BrokenPipeError:
        reader_left()
    return 0


def _path(run: Run, key: str, generation: int) -> str | None:
    place = transcripts_of(os.path.join(run.own_home.folder, "transcripts"), run.client.project, key)
    path = os.path.join(place, f"gen-{generation}.jsonl")
    return path if os.path.exists(path) else None


def _ends(run: Run, task: str, generation: int) -> Callable[[], bool]:
    """Whether the claim has ended; asks the store every two seconds at most."""
    asked = [0.0, False]

    def ended() -> bool:
        if time.monotonic() - asked[0] >= QUERY:
            entry = next((e for e in run.client.history(task) if e["generation"] == generation), None)
            asked[:] = [time.monotonic(), entry is None or entry["state"] != "active"]
        return bool(asked[1])

    return ended


def _lines(file: BinaryIO, ended: Callable[[], bool]) -> Iterator[str]:
    rest = b""
    while True:
        is_last = ended()  # asked first, so that the last lines are read
        while piece := file.read(65536):
            *whole, rest = (rest + piece).split(b"\n")
            yield from (line.decode(errors="replace") for line in whole)
        if is_last:
            return
        time.sleep(POLL)


def _kept(run: Run, task: Mapping[str, Any], generation: int) -> Iterator[str]:
    from tenure.core.artifacts import TRANSCRIPT

    try:
        kept = run.client.get_artifact(task["id"], TRANSCRIPT, generation=generation)
    except NotFound:
        raise NotFound(
            f"{task['key']}: generation {generation} has no transcript here",
            "`tenure run` writes one, on its own machine until the claim ends; `tenure history` lists the claims",
        ) from None
    with kept:
        yield from kept.read().decode(errors="replace").splitlines()


def _print(given: Namespace, lines: Iterator[str]) -> None:
    from tenure.agents.transcript_text import readable

    for line in lines:
        text = line if given.raw else readable(line)
        if text is not None:
            say(plain(text) if given.raw else "\n".join(plain(part) for part in text.splitlines()))
