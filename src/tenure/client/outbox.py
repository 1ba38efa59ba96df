"""The outbox: the last commands of claims that the store has not answered yet, one file each.

It is in the user's state folder, not beside the store: a lost disk must not take both. A file is written and synced,
and removed after a definite answer. So a result survives an unavailable store, a killed process and a crashed host. It
is sent later with its receipt. If the task has another holder by then, the store refuses the result and keeps it as
refused; that is an answer too. A store without any record of the claim is another store: then the file stays.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import Any, NamedTuple

import msgspec

from tenure.client.client import Client
from tenure.core import commands as c
from tenure.core.commands import Process, Totals
from tenure.core.errors import PASSING, NotAllowed, NotFound, TenureError
from tenure.core.land_request import LandRequest
from tenure.core.outcomes import Outcome
from tenure.user_state import store_states, sync_folder, writable_store_state


class Finished(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The last command of a claim: `submit`, `fail` or `release`; `land` of an earlier version is a submit too."""

    what: str
    project: str
    key: str
    receipt: str
    request_id: str | None = None
    data: Any = None
    summary: str = ""
    error_class: str = "task"
    message: str = ""
    trace: str = ""
    retry_after: float | None = None
    model: str | None = None
    usage: tuple[Totals, ...] = ()
    lines: int | None = None  # the size of the change, where it is known
    test_files: int = 0
    artifacts: tuple[str, ...] | None = None
    seen: int | None = None
    stopped: bool = False  # of `submit` and `release`
    folder: str | None = None  # of `land`: a folder of the repository, the branch with the work, the target branch
    branch: str | None = None
    onto: str | None = None
    land: LandRequest | None = None  # of `submit`: the commit that is to be on a branch before the result counts
    judged: bool = False  # the contract checks the data itself, so that nothing may be added to it
    process: Process | None = None  # the runner that sends it while it lives


class Sent(NamedTuple):
    finished: Finished
    outcome: Outcome | None  # the answer, which may be a refusal
    error: TenureError | None  # why it will never be answered


# The fields that the outbox has of each command; the reason of a release is its message.
_FIELDS: dict[str, tuple[str, ...]] = {
    "submit": ("data", "summary", "request_id", "usage", "lines", "test_files", "artifacts", "seen", "stopped", "land"),
    "fail": ("message", "error_class", "trace", "retry_after", "model", "request_id"),
    "release": ("request_id", "stopped"),
}


def send(client: Client, finished: Finished) -> Outcome:
    """The outcome; a repeat gets the same one. Raises TenureError where there is none, or the input is not valid."""
    claim: dict[str, Any] = {"project": finished.project, "receipt": finished.receipt}
    fields = {name: getattr(finished, name) for name in _FIELDS.get(finished.what, ())}
    if finished.what == "submit":
        return client.do(c.Submit(**claim, **fields))
    send_usage(client, finished)
    return client.do(
        c.Fail(**claim, **fields) if finished.what == "fail" else c.Release(**claim, **fields, reason=finished.message)
    )


def of_command(command: c.Submit | c.Fail | c.Release, key: str) -> Finished:
    """The command in the form of the outbox."""
    what = type(command).__name__.lower()
    fields = {name: getattr(command, name) for name in _FIELDS.get(what, ())}
    if isinstance(command, c.Release):
        fields["message"] = command.reason
    return Finished(what=what, project=command.project, key=key, receipt=command.receipt, **fields)


def send_usage(client: Client, finished: Finished) -> Mapping[str, Any] | None:
    """What the claim has cost so far, as the store answers the last report; None without usage."""
    booked = None
    for totals in finished.usage:
        report = c.ReportUsage(project=finished.project, receipt=finished.receipt, **msgspec.structs.asdict(totals))
        booked = client.do(report).usage
    return booked


def is_unknown(finished: Finished, outcome: Outcome) -> bool:
    """Whether the store has no record of the claim, and so kept nothing of the result: it is another store."""
    is_result = finished.what in ("submit", "land")
    return is_result and outcome.outcome in ("STALE_EPOCH", "NOT_FOUND") and not outcome.work_lost


class Outbox:
    def __init__(self, url: str, environ: Mapping[str, str], *others: str) -> None:
        """`url` is how the store is found; `others` are further folders with an `outbox`."""
        self._url, self._environ = url, environ
        self._folders = [os.path.join(base, "outbox") for base in (*store_states(environ, url), *others)]

    @property
    def folder(self) -> str:
        """The folder of new files. Raises OSError where it cannot be created."""
        return os.path.join(writable_store_state(self._environ, self._url), "outbox")

    def put(self, finished: Finished) -> str:
        """Write it to disk; returns the path of its file."""
        place = self.folder
        os.makedirs(place, mode=0o700, exist_ok=True)
        name = hashlib.sha256(f"{finished.project}\0{finished.receipt}".encode()).hexdigest()[:32]
        path = os.path.join(place, name + ".json")
        new = f"{path}.{os.getpid()}.new"
        with open(_private(new), "wb") as file:
            file.write(msgspec.json.encode(finished))
            file.flush()
            os.fsync(file.fileno())
        os.replace(new, path)
        for folder in (place, os.path.dirname(place)):  # the second: the first may be new
            sync_folder(folder)
        return path

    def answered(self, path: str) -> None:
        """Remove the file after an answer. `path` may be empty: the file could not be written."""
        with suppress(FileNotFoundError):  # another process has sent it too, and got the same answer
            os.unlink(path)

    def refused(self, path: str) -> None:
        """The input was refused: set the file aside for a person, and do not send it again."""
        with suppress(FileNotFoundError):
            os.replace(path, path + ".refused")

    def waiting(self) -> Iterator[tuple[str, Finished]]:
        """The waiting commands of every project. Other files are ignored."""
        for path in self.paths():
            if path.endswith(".json"):
                try:
                    with open(path, "rb") as file:
                        yield path, msgspec.json.decode(file.read(), type=Finished)
                except (OSError, msgspec.MsgspecError):
                    continue

    def aside(self) -> list[str]:
        """The files whose input was refused."""
        return [path for path in self.paths() if path.endswith(".refused")]

    def paths(self) -> Iterator[str]:
        for folder in self._folders:
            with suppress(OSError):  # it does not exist, or cannot be read
                yield from [os.path.join(folder, name) for name in sorted(os.listdir(folder))]

    def flush(self, client: Client) -> list[Sent]:
        """Send all waiting commands. Stops, and keeps the rest, while the store is unavailable."""
        return self.sent(client, send, lambda finished: finished.what != "land")

    def sent(
        self, client: Client, send: Callable[[Client, Finished], Outcome], is_mine: Callable[[Finished], bool]
    ) -> list[Sent]:
        """Send the waiting commands that are `is_mine`, with `send`."""
        sent = []
        for path, finished in self.waiting():
            if not is_mine(finished):
                continue
            try:
                outcome = send(client, finished)
                sent.append(Sent(finished, outcome, None))
                if not is_unknown(finished, outcome):
                    self.answered(path)
            except PASSING:
                break
            except (NotFound, NotAllowed) as error:  # the project of another store, or another agent's key
                sent.append(Sent(finished, None, error))
            except TenureError as error:
                self.refused(path)
                sent.append(Sent(finished, None, error))
        return sent


def _private(path: str) -> int:
    """A descriptor of a new or emptied file that only the user may read."""
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
