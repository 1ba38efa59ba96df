"""What a worker of the storm writes down: each command before it is sent, each answer before the next step.

One append-only file for each life of a worker. A written line survives kill -9, since it is the kernel's by then; no
sync is needed, because the machine itself does not go down here. The heirs of a killed worker read its log: that is
how receipts and half-sent commands come into other processes.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from tenure.core import commands
from tenure.core.errors import TenureError
from tenure.core.outcomes import Outcome

GAVE_UP = "GAVE_UP"  # in place of an outcome: the store was away, nothing was done, and it was not sent again
# Of an answer, what the check at the end looks at.
KEPT = (
    "outcome", "again", "receipt", "generation", "current_generation", "lease_until", "result", "work_lost", "state",
)  # fmt: skip


class Asked(NamedTuple):
    """A command as it was sent, and its answer; None where the worker was killed before it had written it down."""

    id: str
    command: dict[str, Any]
    answer: dict[str, Any] | None
    unknown: int = 0  # times that the store could not say whether it was done

    def again(self) -> commands.Command:
        """The very same command, request id and all."""
        return msgspec.convert(self.command, commands.AnyCommand)


class Log:
    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)

    def inherit(self, receipts: dict[str, float]) -> None:
        """The first line: what this life was left by those before it, with the time from which to use each."""
        self._write([{"estate": receipts}])

    def asking(self, ids: Sequence[str], batch: Sequence[commands.Command]) -> None:
        self._write([{"ask": name, **msgspec.to_builtins(command)} for name, command in zip(ids, batch, strict=True)])

    def answered(self, ids: Sequence[str], answers: Sequence[Outcome | TenureError]) -> None:
        self._write([{"got": name, **_told(answer)} for name, answer in zip(ids, answers, strict=True)])

    def troubled(self, name: str, error: TenureError) -> None:
        """No answer yet: the store was away, or the answer to a commit was lost."""
        self._write([{"trouble": name, "code": error.code, "definite": error.definite}])

    def close(self) -> None:
        os.close(self._file)

    def _write(self, lines: list[dict[str, Any]]) -> None:
        data = b"".join(msgspec.json.encode(line) + b"\n" for line in lines)
        assert os.write(self._file, data) == len(data)


def _told(answer: Outcome | TenureError) -> dict[str, Any]:
    if isinstance(answer, TenureError):
        return {"error": f"{answer.code}: {answer.message}"}
    return {field: value for field in KEPT if (value := getattr(answer, field)) is not None}


def log_path(folder: Path, slot: int, life: int) -> Path:
    return folder / "logs" / f"{slot}-{life}.log"


def lines_of(path: Path) -> Iterator[dict[str, Any]]:
    """Whole lines: one that was cut off in the writing was never finished, so nobody has relied on it."""
    if path.exists():
        data = path.read_bytes()
        yield from (msgspec.json.decode(line) for line in data[: data.rfind(b"\n") + 1].splitlines())


def asked_in(path: Path) -> list[Asked]:
    """Everything that one life sent, in its order."""
    asked: dict[str, Asked] = {}
    for line in lines_of(path):
        if "ask" in line:
            name = line.pop("ask")
            asked[name] = Asked(name, line, None)
        elif "got" in line:
            name = line.pop("got")
            asked[name] = asked[name]._replace(answer=line)
        elif "trouble" in line and not line["definite"]:
            before = asked[line["trouble"]]
            asked[before.id] = before._replace(unknown=before.unknown + 1)
    return list(asked.values())


# --- what the dead leave ------------------------------------------------------------------------------------


class Estate(NamedTuple):
    receipts: dict[str, float]  # not answered for, and from what time on to use each
    unanswered: list[Asked]  # sent by the last life, without an answer


def estate_of(folder: Path, slot: int, life: int) -> Estate:
    """What the lives before this one left; one that was killed before it had inherited is passed over."""
    receipts: dict[str, float] = {}
    first = life - 1
    while first > 0 and not any("estate" in line for line in lines_of(log_path(folder, slot, first))):
        first -= 1
    unanswered: list[Asked] = []
    for earlier in range(first, life):
        path = log_path(folder, slot, earlier)
        for line in lines_of(path):
            receipts |= line.get("estate", {})
        unanswered = asked_in(path) or unanswered
        for asked in unanswered:
            _follow(asked, receipts)
    return Estate(receipts, [asked for asked in unanswered if asked.answer is None])


def _follow(asked: Asked, receipts: dict[str, float]) -> None:
    """A receipt is open from its grant until a word that ends the claim was answered."""
    answer = asked.answer or {}
    if answer.get("outcome") == "GRANTED" and "receipt" in answer:
        receipts[answer["receipt"]] = 0.0
    if asked.answer is not None and asked.command["command"] in ("submit", "fail", "release"):
        receipts.pop(asked.command["receipt"], None)
