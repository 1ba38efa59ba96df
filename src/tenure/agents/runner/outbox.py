"""Finished work that the store has not answered yet: `outbox/` in the user's state folder, one file a claim.

It lies there and not beside the store, since whatever takes the store away must not take the results with it. Files
that an earlier version left in `.tenure/outbox` are found and sent too.

It is written, and synced, before the first try, and removed after a definite answer. So a result survives a store
that is away, a runner that is killed, and a host that goes down; it is sent later with the receipt of its own
generation. If another has taken over meanwhile, the store refuses it and keeps it as refused: the file has done its
part then too. A store that has never heard of the claim is another store: the file stays.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any, NamedTuple

import msgspec

from tenure.agents import process_table
from tenure.agents.runner.transcripts import private
from tenure.client import Client
from tenure.core import commands as c
from tenure.core.commands import Process, Totals
from tenure.core.errors import NotFound, StoreError, TenureError
from tenure.core.outcomes import Outcome
from tenure.user_state import store_states, sync_folder, writable_store_state


class Finished(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What is to be told of a claim: `submit`, `land`, `fail` or `release`."""

    what: str
    project: str
    key: str
    receipt: str
    request_id: str | None = None
    data: Any = None
    summary: str = ""
    error_class: str = "task"
    message: str = ""
    retry_after: float | None = None
    model: str | None = None
    usage: tuple[Totals, ...] = ()
    lines: int | None = None  # what the work has changed, where that can be counted
    test_files: int = 0
    folder: str | None = None  # to land: a folder of the repository, the branch with the work, the branch it is for
    branch: str | None = None
    onto: str | None = None
    process: Process | None = None  # the runner that will see to it as long as it lives


class Sent(NamedTuple):
    finished: Finished
    outcome: Outcome | None  # the store's answer, which may be a refusal
    error: TenureError | None  # why there will never be one


def send(client: Client, finished: Finished) -> Outcome:
    """The store's answer; a repeat gets the same one. TenureError where there is none, or the input is bad."""
    project, receipt = finished.project, finished.receipt
    if finished.what == "submit":
        return client.do(
            c.Submit(
                project=project,
                receipt=receipt,
                data=finished.data,
                summary=finished.summary,
                request_id=finished.request_id,
                usage=finished.usage,
                lines=finished.lines,
                test_files=finished.test_files,
            )
        )
    for totals in finished.usage:
        client.do(c.ReportUsage(project=project, receipt=receipt, **msgspec.structs.asdict(totals)))
    if finished.what == "land":
        from tenure.agents.runner.claim_worktree import land

        return land(client, finished)
    if finished.what == "fail":
        return client.do(
            c.Fail(
                project=project,
                receipt=receipt,
                error_class=finished.error_class,
                message=finished.message,
                retry_after=finished.retry_after,
                model=finished.model,
            )
        )
    return client.do(c.Release(project=project, receipt=receipt, reason=finished.message))


class Outbox:
    def __init__(self, home: str, url: str, environ: Mapping[str, str]) -> None:
        """`home` is the store's `.tenure`, `url` how the store is found."""
        self._url, self._environ = url, environ
        self._folders = [os.path.join(base, "outbox") for base in (*store_states(environ, url), home)]

    @property
    def folder(self) -> str:
        """Where new files go. Raises OSError where there is no room for them."""
        return os.path.join(writable_store_state(self._environ, self._url), "outbox")

    def put(self, finished: Finished) -> str:
        """Keep it, so that it outlives this process; the path of its file."""
        place = self.folder
        os.makedirs(place, mode=0o700, exist_ok=True)
        name = hashlib.sha256(f"{finished.project}\0{finished.receipt}".encode()).hexdigest()[:32]
        path = os.path.join(place, name + ".json")
        new = f"{path}.{os.getpid()}.new"
        with open(private(new), "wb") as file:
            file.write(msgspec.json.encode(finished))
            file.flush()
            os.fsync(file.fileno())
        os.replace(new, path)
        for folder in (place, os.path.dirname(place)):  # the second: the first may be new
            sync_folder(folder)
        return path

    def answered(self, path: str) -> None:
        """The store has given its answer. `path` may be empty: there was no room for a file."""
        with suppress(FileNotFoundError):  # somebody else has sent it too, and got the same answer
            os.unlink(path)

    def refused(self, path: str) -> None:
        """The store would not even look at it: it is put aside for a person, and not sent again."""
        with suppress(FileNotFoundError):
            os.replace(path, path + ".refused")

    def waiting(self) -> Iterator[tuple[str, Finished]]:
        """What lies there, of every project. A file that is not ours is left alone."""
        for path in self._paths():
            if path.endswith(".json"):
                try:
                    with open(path, "rb") as file:
                        yield path, msgspec.json.decode(file.read(), type=Finished)
                except (OSError, msgspec.MsgspecError):
                    continue

    def _sweep(self) -> None:
        """Take away what a writer was killed over: half a file, of which nobody has heard."""
        for path in self._paths():
            writer = path.removesuffix(".new").rpartition(".")[2]
            if path.endswith(".new") and writer.isdigit() and process_table.look_up(int(writer)) is None:
                with suppress(FileNotFoundError):
                    os.unlink(path)

    def aside(self) -> list[str]:
        """The files that the store would not even look at."""
        return [path for path in self._paths() if path.endswith(".refused")]

    def _paths(self) -> Iterator[str]:
        for folder in self._folders:
            with suppress(OSError):  # nothing was ever put there, or nothing can be
                yield from [os.path.join(folder, name) for name in sorted(os.listdir(folder))]

    def flush(self, client: Client) -> list[Sent]:
        """Send what lies there and nobody sees to. Stops, and keeps the rest, where the store gives no answer."""
        self._sweep()
        sent = []
        for path, finished in self.waiting():
            if _is_seen_to(finished.process):
                continue
            try:
                outcome = send(client, finished)
                sent.append(Sent(finished, outcome, None))
                if not is_unknown(finished, outcome):
                    self.answered(path)
            except StoreError:
                break
            except NotFound as error:  # the project: it is another store
                sent.append(Sent(finished, None, error))
            except TenureError as error:
                self.refused(path)
                sent.append(Sent(finished, None, error))
        return sent


def is_unknown(finished: Finished, outcome: Outcome) -> bool:
    """Has the store never heard of the claim, and so kept nothing of the result? Then it is another store."""
    is_result = finished.what in ("submit", "land")
    return is_result and outcome.outcome in ("STALE_EPOCH", "NOT_FOUND") and not outcome.work_lost


def _is_seen_to(process: Process | None) -> bool:
    """Does the runner that wrote it still run? Where that cannot be known it does not matter: a repeat is harmless."""
    if process is None or (process.host, process.boot) != (process_table.host(), process_table.boot_id()):
        return False
    return not process_table.has_ended(process.pid, process.start)
