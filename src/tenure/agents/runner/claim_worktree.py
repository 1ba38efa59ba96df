"""The worktree of one claim of the runner: created before the agent starts, committed when it has ended."""

from __future__ import annotations

import os
from typing import Any

from msgspec import structs

from tenure.agents import git, worktrees
from tenure.agents.runner.outbox import Finished
from tenure.client import Client
from tenure.core.errors import InvalidInput, TenureError
from tenure.core.land_request import LandRequest


class ClaimWorktree:
    """`folder` is where the agent works: the runner's own folder, inside the worktree."""

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
        """Commit what the agent did not; returns branch and commits. CommitRefused where a git hook refuses."""
        worktrees.commit_all(self.made, message)
        return {"branch": self.branch, "commit": git.commit_id(self.made.path, "HEAD"), "base": self.made.base}

    def commits(self) -> int:
        """How many commits it has that its base does not."""
        return int(git.ask(self.made.path, "rev-list", "--count", f"{self.made.base}..HEAD"))

    def changed(self) -> git.Counted:
        return git.counted_between(self.made.path, self.made.base, "HEAD")

    def release(self) -> tuple[str, ...]:
        """Remove the worktree unless it holds something that is nowhere else; returns what that is."""
        try:
            return worktrees.release(self.made)
        except TenureError as error:
            return (error.message,)


def check(folder: str) -> None:
    """TenureError where no worktree can be created here."""
    git.find(folder)
    if git.commit_id(folder, "HEAD") is None:
        raise InvalidInput(
            "this repository has no commit yet, and a worktree needs one", "create the first commit, then try again"
        )


def with_request(finished: Finished) -> Finished:
    """What an earlier version kept to be landed, as a submit with a request for its landing."""
    assert finished.folder is not None
    commit = git.commit_id(finished.folder, f"refs/heads/{finished.branch}")
    request = LandRequest(commit=commit, onto=finished.onto) if commit and finished.onto else None
    return structs.replace(finished, what="submit", land=request)
