"""Reports that the store has not answered yet: `outbox/` in the user's state folder, one file per claim.

The folder is not beside the store, so that results survive the deletion of the store's folder. Files that an earlier
version left in `.tenure/outbox` are sent too.

A file is written and synced before the first try, and removed after a definite answer. So a result survives an
unavailable store, a killed runner and a crashed host; it is sent later with the receipt of its generation. If
another agent has claimed the task meanwhile, the store refuses the result and keeps it as refused, which is a definite
answer. A store that does not know the claim is a different store: the file stays.
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
    """The report of a claim's end: `submit`, `land`, `fail` or `release`."""

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
    lines: int | None = None  # changed lines, where they can be counted
    test_files: int = 0
    folder: str | None = None  # for `land`: a folder of the repository, the source branch and the target branch
    branch: str | None = None
    onto: str | None = None
    process: Process | None = None  # the runner that sends it as long as it runs


class Sent(NamedTuple):
    finished: Finished
    outcome: Outcome | None  # the store's answer, which may be a refusal
    error: TenureError | None  # why there is no answer


def send(client: Client, finished: Finished) -> Outcome:
    """The store's answer; a repeat gets the same one. TenureError where there is none, or the input is not valid."""
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
        """`home` is the store's `.tenure`, `url` its URL."""
        self._url, self._environ = url, environ
        self._folders = [os.path.join(base, "outbox") for base in (*store_states(environ, url), home)]

    @property
    def folder(self) -> str:
        """The folder of new files. Raises OSError where it cannot be written."""
        return os.path.join(writable_store_state(self._environ, self._url), "outbox")

    def put(self, finished: Finished) -> str:
        """Write the report to a file that outlives this process; returns its path."""
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
        for folder in (place, os.path.dirname(place)):  # the parent too: the folder may be new
            sync_folder(folder)
        return path

    def answered(self, path: str) -> None:
        """The store has answered: remove the file. `path` is empty where it could not be written."""
        with suppress(FileNotFoundError):  # another process has sent it too, and got the same answer
            os.unlink(path)

    def refused(self, path: str) -> None:
        """The store rejects the input: set the file aside for a person, and do not send it again."""
        with suppress(FileNotFoundError):
            os.replace(path, path + ".refused")

    def waiting(self) -> Iterator[tuple[str, Finished]]:
        """The waiting reports of every project. Unreadable files are left alone."""
        for path in self._paths():
            if path.endswith(".json"):
                try:
                    with open(path, "rb") as file:
                        yield path, msgspec.json.decode(file.read(), type=Finished)
                except (OSError, msgspec.MsgspecError):
                    continue

    def _sweep(self) -> None:
        """Remove partial files of killed writers."""
        for path in self._paths():
            writer = path.removesuffix(".new").rpartition(".")[2]
            if path.endswith(".new") and writer.isdigit() and process_table.look_up(int(writer)) is None:
                with suppress(FileNotFoundError):
                    os.unlink(path)

    def aside(self) -> list[str]:
        """The files that were set aside."""
        return [path for path in self._paths() if path.endswith(".refused")]

    def _paths(self) -> Iterator[str]:
        for folder in self._folders:
            with suppress(OSError):  # the folder does not exist
                yield from [os.path.join(folder, name) for name in sorted(os.listdir(folder))]

    def flush(self, client: Client) -> list[Sent]:
        """Send the reports whose runner has ended. Stops, and keeps the rest, where the store does not answer."""
        self._sweep()
        sent = []
        for path, finished in self.waiting():
            if _is_handled(finished.process):
                continue
            try:
                outcome = send(client, finished)
                sent.append(Sent(finished, outcome, None))
                if not is_unknown(finished, outcome):
                    self.answered(path)
            except StoreError:
                break
            except NotFound as error:  # the project is unknown: a different store
                sent.append(Sent(finished, None, error))
            except TenureError as error:
                self.refused(path)
                sent.append(Sent(finished, None, error))
        return sent


def is_unknown(finished: Finished, outcome: Outcome) -> bool:
    """Is the claim unknown to the store, so that it kept nothing of the result? Then it is a different store."""
    is_result = finished.what in ("submit", "land")
    return is_result and outcome.outcome in ("STALE_EPOCH", "NOT_FOUND") and not outcome.work_lost


def _is_handled(process: Process | None) -> bool:
    """Does the runner that wrote it still run? False where that cannot be known: a repeat is harmless."""
    if process is None or (process.host, process.boot) != (process_table.host(), process_table.boot_id()):
        return False
    return not process_table.has_ended(process.pid, process.start)
