"""Finished work whose commits only its own worktree has: a result that waits for its verdict, or was accepted.

A result that asks to be landed is not among them: the store names it to those who land.
"""

from __future__ import annotations

import shlex
from typing import NamedTuple

from tenure.agents import git, worktrees
from tenure.client import Client
from tenure.core import limits
from tenure.core.lifecycle import COMPLETED, VALIDATING


class Unlanded(NamedTuple):
    key: str
    state: str  # validating or completed
    branch: str
    onto: str | None
    commits: int

    @property
    def way(self) -> str:
        """How a person lands it, in the checkout of the branch that it is for."""
        return f"git merge {shlex.quote(self.branch)}"

    @property
    def text(self) -> str:
        said = "accepted" if self.state == COMPLETED else "waits for its verdict"
        here = f"{self.commits} commit{'' if self.commits == 1 else 's'} on {self.branch}"
        return f"{self.key} {said}, not landed{f' on {self.onto}' if self.onto else ''}: {here}"


def unlanded(folder: str, client: Client) -> list[Unlanded]:
    """What waits in this repository, of the client's project."""
    try:
        found = [(one, one.record) for one in worktrees.ours(git.find(folder).top)]
    except (git.NoRepository, git.GitFailed):
        return []
    mine = [(one.tree, record) for one, record in found if record is not None and record.project == client.project]
    asked = {one["task"] for one in client.validations(limits.LISTED) if one["land"]} if mine else set()
    waiting = []
    for (tree, record), task in zip(mine, client.states([r.task for _, r in mine]) if mine else (), strict=True):
        is_last = task["outcome"] == "OK" and task["generation"] == record.generation
        if is_last and record.task not in asked and task["state"] in (VALIDATING, COMPLETED):
            count = worktrees.unlanded(folder, tree, record.branch)
            if count:
                waiting.append(Unlanded(record.key, task["state"], record.branch, record.onto, count))
    return waiting
