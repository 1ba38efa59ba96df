"""Receipts that a session keeps, one file a task: `.tenure/receipts/SESSION/TASK`, readable by the user alone.

They are looked up by session and task, never by folder, worktree or agent name: agents share folders and names, and a
zombie must not be handed the receipt of the one that took over. A receipt that was answered for good is kept as
`ended`: it is still presented when its task is named, so that a repeat gets the same answer.
"""

from __future__ import annotations

import os
import string
from collections.abc import Iterator

import msgspec

from tenure.core.errors import TenureError
from tenure.core.outcomes import Outcome

# After these the claim is over, whatever is tried with its receipt.
LAST_WORDS = frozenset(
    {
        "ACCEPTED", "VALIDATING", "STALE_GENERATION", "STALE_EPOCH", "FUTURE_GENERATION", "SESSION_MISMATCH",
        "NO_CLAIM", "TASK_ALREADY_COMPLETED", "TASK_CANCELLED",
    }
)  # fmt: skip
_PLAIN = frozenset(string.ascii_letters + string.digits + "-_.")


class NoReceipt(TenureError):
    code = "NO_RECEIPT"


class Kept(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    project: str
    task: str  # its id
    key: str
    receipt: str
    ended: str | None = None  # the outcome that ended it


class Receipts:
    """What one session holds in one project."""

    def __init__(self, home: str, project: str, session: str) -> None:
        self.folder = os.path.join(home, "receipts", _safe(session))
        self.project = project
        self.session = session

    def keep(self, task: str, key: str, receipt: str, ended: str | None = None) -> None:
        above = os.path.dirname(self.folder)
        for folder in (os.path.dirname(above), above, self.folder):  # makedirs gives its mode to the last one only
            os.makedirs(folder, mode=0o700, exist_ok=True)
        kept = Kept(project=self.project, task=task, key=key, receipt=receipt, ended=ended)
        write_private(os.path.join(self.folder, _safe(task)), msgspec.json.encode(kept))

    def settle(self, receipt: str, outcome: Outcome, *, ends: bool = False) -> Outcome:
        """Remember that a receipt has had its last word: it is no longer held, and hooks no longer renew it.

        `ends` says that the command gives the claim back if it is granted.
        """
        if outcome.outcome in LAST_WORDS or (ends and outcome.ok) or is_last_refusal(outcome):
            for kept in self.all():
                if kept.receipt == receipt:
                    self.keep(kept.task, kept.key, receipt, outcome.outcome)
        return outcome

    def forget(self) -> None:
        """Drop what this session keeps; for the end of a session."""
        for kept in self.all():
            os.unlink(os.path.join(self.folder, _safe(kept.task)))

    def all(self) -> Iterator[Kept]:
        try:
            names = sorted(os.listdir(self.folder))
        except FileNotFoundError:
            return
        for name in names:
            try:
                with open(os.path.join(self.folder, name), "rb") as file:
                    kept = msgspec.json.decode(file.read(), type=Kept)
            except (OSError, msgspec.DecodeError):
                continue  # just being replaced, or not ours
            if kept.project == self.project:
                yield kept

    def live(self) -> list[Kept]:
        return [kept for kept in self.all() if kept.ended is None]

    def find(self, task: str | None) -> Kept:
        """The receipt for a task named by id, key or a beginning of it; unnamed, the only one this session holds."""
        if task is None:
            held = self.live()
            if len(held) == 1:
                return held[0]
            if not held:
                raise NoReceipt(f"session {self.session} holds no task", "`tenure claim` takes one")
            names = ", ".join(kept.key for kept in held[:5])
            raise NoReceipt(f"session {self.session} holds {len(held)} tasks: {names}", "name the one you mean")
        kept, wanted = list(self.all()), task.upper()
        named = [one for one in kept if wanted in (one.task.upper(), one.key.upper(), ref_of(one.receipt).upper())]
        # `B-003-imp` may stand for a longer key; `B-003` is whole, and never stands for B-0031
        if not named and task.count("-") > 1:
            named = [one for one in kept if one.key.upper().startswith(wanted)]
        if len(named) != 1:
            raise NoReceipt(
                f"session {self.session} holds no receipt for {task}",
                "present it with --receipt, or claim the task; `tenure whoami` shows what this session holds",
            )
        return named[0]


def is_last_refusal(outcome: Outcome) -> bool:
    """The output was refused, and with it the attempt: there is nothing left to mend."""
    return outcome.outcome == "INVALID_OUTPUT" and outcome.directive != "continue"


def write_private(path: str, content: bytes) -> None:
    """Write a file for the user alone, by a rename: a reader sees the old content or the new, never half of it."""
    new = f"{path}.{os.getpid()}"
    with open(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
        file.write(content)
    os.replace(new, path)


def ref_of(receipt: str) -> str:
    """The short key that a receipt begins with."""
    return receipt.partition("@")[0]


def _safe(name: str) -> str:
    """A file name for any session or task; one that could be mistaken or leave the folder is named by its hash."""
    if name and set(name) <= _PLAIN and not name.startswith(".") and len(name) <= 100:
        return name
    import hashlib

    return "h-" + hashlib.sha256(name.encode()).hexdigest()[:40]
