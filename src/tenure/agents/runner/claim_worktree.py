"""A worktree for one claim of the runner: made before the agent starts, committed when it has ended."""

from __future__ import annotations

import os
from copy import copy
from typing import Any

from tenure.agents import git, worktrees
from tenure.agents.runner.outbox import Finished
from tenure.client import Client
from tenure.core.errors import InvalidInput, TenureError
from tenure.core.outcomes import Outcome


class ClaimWorktree:
    """`folder` is where the agent works: in the worktree what the runner's own folder is in the repository."""

    def __init__(
        self, folder: str, home: str, key: str, generation: int, *, client: Client, receipt: str, onto: str | None
    ) -> None:
        self.made = worktrees.make(folder, home, key, generation, client=client, receipt=receipt, onto=onto)
        below = os.path.relpath(os.path.realpath(folder), git.find(folder).top)
        same = os.path.normpath(os.path.join(self.made.path, below))
        self.folder = same if os.path.isdir(same) else self.made.path
        self.branch = self.made.branch
        self.earlier = worktrees.left_behind(folder, key, self.made.branch, self.made.onto)
        self.unsaved = worktrees.left_unsaved(folder, key, self.made.path)

    def commit(self, message: str) -> dict[str, Any]:
        """Commit what the agent has not; where all of it is. CommitRefused where a hook of the user's says no."""
        worktrees.commit_all(self.made, message)
        return {"branch": self.branch, "commit": git.commit_id(self.made.path, "HEAD"), "base": self.made.base}

    def changed(self) -> git.Counted:
        """How much was committed since the agent began."""
        return git.counted_between(self.made.path, self.made.base, "HEAD")

    def release(self) -> tuple[str, ...]:
        """Take the worktree away unless something is in it that is nowhere else; what that is."""
        try:
            return worktrees.release(self.made)
        except TenureError as error:
            return (error.message,)


def check(folder: str) -> None:
    """TenureError where no worktree could be made here."""
    git.find(folder)
    if git.commit_id(folder, "HEAD") is None:
        raise InvalidInput(
            "this repository has no commit yet, and a worktree begins from one", "make the first commit, then try again"
        )


def land(client: Client, finished: Finished) -> Outcome:
    """Merge the claim's branch into its target and hand in; without commits there is only the result to hand in."""
    from tenure.agents import land

    assert finished.folder is not None
    client = copy(client)
    client.project = finished.project
    try:
        return land.land(
            client,
            finished.receipt,
            finished.folder,
            source=finished.branch,
            onto=finished.onto,
            summary=finished.summary,
            result=finished.data,
        ).outcome
    except land.NothingToLand:
        return client.submit(finished.receipt, finished.data, finished.summary, finished.request_id)
