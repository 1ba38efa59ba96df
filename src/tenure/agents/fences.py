"""The fence in git: one ref per task, which names the claim that may land.

`refs/tenure/land/<task id>` points at a small blob that names one claim. A landing moves its branch in a transaction
that also compares this ref with the claim's own blob, so a claim that lost the fence cannot move a branch any more,
whatever it had recorded before. Only the store knows the holder, so a claim that takes the fence

    1. reads it,
    2. asks the store whether its receipt is live,
    3. moves it, only from the value it read,

and starts over if it was moved meanwhile. That order is the proof. Let a claim N follow a claim M. If N took the fence
before M read it, then N was claimed before M asked, and the store refuses M. If N took it after M read it, M's move
fails. The fence therefore never goes from a claim to an earlier one, also after a restore of the store, where
generations repeat: the blob has a digest of the receipt, and no two claims share that.

Fences are never removed: a claim that saw no ref could create a removed one again.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from typing import NamedTuple

from tenure.agents import git
from tenure.core import limits
from tenure.core.errors import TenureError
from tenure.core.ids import parse_receipt
from tenure.core.outcomes import Outcome

PREFIX = "refs/tenure/land/"
MOST_TRIES = limits.FENCE_TRIES


class NotHeld(TenureError):
    """The store refused the receipt; `outcome` is its answer."""

    code = "NOT_HELD"

    def __init__(self, outcome: Outcome) -> None:
        super().__init__(outcome.message or outcome.outcome, outcome.hint)
        self.outcome = outcome


class Fence(NamedTuple):
    """One claim's right to land."""

    ref: str
    value: str  # id of the claim's blob

    @property
    def verified(self) -> str:
        """For a transaction: abort unless this claim has the fence."""
        return f"verify {self.ref} {self.value}"


def claim_mark(receipt: str) -> str:
    """A digest that identifies this claim without revealing its receipt."""
    return hashlib.sha256(f"tenure claim {receipt}".encode()).hexdigest()[:32]


def fence_of(folder: str, task: str, key: str, receipt: str) -> Fence:
    """The fence of this claim; only its blob is written."""
    text = f"task {key}\ngeneration {parse_receipt(receipt).generation}\nclaim {claim_mark(receipt)}\n"
    return Fence(PREFIX + _safe(task), git.ask(folder, "hash-object", "-w", "--stdin", input=text))


def take(folder: str, fence: Fence, ask_store: Callable[[], Outcome]) -> None:
    """Move the fence to this claim; NotHeld where the store refuses its receipt."""
    refused: git.RefsMoved | None = None
    for _ in range(MOST_TRIES):
        before = git.ref_value(folder, fence.ref)
        outcome = ask_store()
        if not outcome.ok:
            raise NotHeld(outcome)
        if before == fence.value:
            return
        change = f"create {fence.ref} {fence.value}" if before is None else f"update {fence.ref} {fence.value} {before}"
        try:
            git.change_refs(folder, [change], "tenure: landing fence")
        except git.RefsMoved as error:
            refused = error
        else:
            return
    raise git.GitFailed(f"{fence.ref} could not be moved: {refused}", "see whether another git command is stuck")


def _safe(task: str) -> str:
    return task if re.fullmatch(r"[A-Za-z0-9_]{1,80}", task) else hashlib.sha256(task.encode()).hexdigest()[:40]
