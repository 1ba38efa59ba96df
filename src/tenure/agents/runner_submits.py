"""The agent's own `tenure done` or `finish` under a runner that lands: its result with the commits of its worktree.

The store refuses a result of such a claim that asks for no landing. So whatever the agent has not committed
is committed as the runner would, and the result asks for these commits. The runner lands them when the agent has ended.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tenure.agents import git, worktrees
from tenure.agents.land import merge_message, with_commits
from tenure.client import Client
from tenure.core.ids import parse_receipt
from tenure.core.land_request import LandRequest
from tenure.core.outcomes import Outcome

Submit = Callable[[Any, str, LandRequest | None], Outcome]


def with_its_commits(
    client: Client, receipt: str, folder: str, data: Any, summary: str, denied: Outcome, submit: Submit
) -> Outcome:
    """The answer to `submit` with data, summary and the landing to ask for; `denied` where there is no worktree.

    `folder`: where the agent works.
    """
    task = client.show(parse_receipt(receipt).name)
    found = _worktree(folder, task, receipt)
    if found is None:
        return denied
    path, record = found
    try:
        worktrees.commit_all(path, merge_message(task, summary))
    except git.GitFailed as error:  # an agent's sandbox may keep it from writing there
        raise git.GitFailed(error.message, "end, and the runner submits your last message with your work") from None
    commit = git.commit_id(path, "HEAD")
    if commit is None or record.onto is None:
        return denied
    at = {"branch": record.onto, "commit": commit, "base": record.base}
    return submit(*with_commits(task, data, summary, at), LandRequest(commit=commit, onto=record.onto))


def _worktree(folder: str, task: Mapping[str, Any], receipt: str) -> tuple[str, worktrees.Record] | None:
    """The worktree around `folder`, if it is for this task; else that of the claim."""
    try:
        here = worktrees.record_here(folder)
        if here is not None and here.task == task["id"]:
            return git.find(folder).top, here
        own = worktrees.of_claim(folder, receipt)
    except git.NoRepository:
        return None
    return (own.tree.path, own.record) if own and own.record and not own.tree.is_missing else None
