"""Trees for checks: what the branch will be once a result has landed, not the work alone.

The check of a result that is to be landed runs where the merge is, and its verdict names the base and the commit, so
that who lands it knows whether the branch has moved since. Where the branch has not moved, that is the tree of the
work: then its own worktree is used, with everything that was installed there. Else a tree is made, and removed.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import count
from typing import Any, NamedTuple

from tenure import process_table
from tenure.agents import git, worktrees
from tenure.core.ids import fitted_name
from tenure.locations import find_folder

PREFIX = "check-"
_NUMBERS = count(1)


class Merged(NamedTuple):
    """`tree`: where the check runs; `about`: fields of the verdict that name the merge."""

    tree: str
    about: Mapping[str, Any]


def is_here(folder: str, land: Mapping[str, Any]) -> bool:
    """Whether this repository has the commit and the branch."""
    return git.commit_id(folder, land["commit"]) is not None and git.is_branch(folder, land["onto"])


@contextmanager
def merged(folder: str, land: Mapping[str, Any]) -> Iterator[Merged]:
    """A tree with the merge that will be made. Where it conflicts: with the work alone; the landing finds that."""
    commit, tip = land["commit"], git.ref_value(folder, f"refs/heads/{land['onto']}") or ""
    about = {"commit": commit, "base": tip}
    if git.is_ancestor(folder, tip, commit):
        own = _own_tree(folder, commit)
        if own is not None:
            yield Merged(own, about)
            return
        new = commit
    else:
        merge = git.merge(folder, tip, commit)
        if merge.conflicts:
            new, about = commit, {"commit": commit}
        else:
            words = ("commit-tree", merge.tree, "-p", tip, "-p", commit, "-m", "tenure: checked before it lands")
            new = git.ask(folder, *words, environ=git.identity(folder))
    with tree_of(folder, new) as tree:
        yield Merged(tree, about)


def _own_tree(folder: str, commit: str) -> str | None:
    """The worktree of a claim that has exactly this commit."""
    for found in worktrees.ours(folder):
        tree = found.tree
        if tree.head == commit and found.record and not tree.is_missing and not git.changes(tree.path):
            return tree.path
    return None


@contextmanager
def tree_of(folder: str, commit: str) -> Iterator[str]:
    """A new tree with this commit, for as long as it is needed."""
    top, place = git.find(folder).top, _place(folder)
    _sweep(top, place)
    own = process_table.described(os.getpid())
    mark = f"{own.pid}-{own.start}" if own else f"{os.getpid()}-0"
    path = os.path.join(place, f"{PREFIX}{fitted_name(process_table.host(), 'host')[:40]}-{mark}-{next(_NUMBERS)}")
    result = git.worktree(top, "add", "-q", "--detach", path, commit)
    if not os.path.exists(os.path.join(path, ".git")):
        raise git.GitFailed(f"no tree could be made for the check: {result.line}")
    try:
        yield path
    finally:
        _remove(top, path)


def _place(folder: str) -> str:
    home = find_folder(folder)
    if home is None:
        return os.path.realpath(tempfile.gettempdir())
    place = os.path.join(os.path.realpath(home), worktrees.FOLDER)
    os.makedirs(place, mode=0o700, exist_ok=True)
    return place


def _sweep(top: str, place: str) -> None:
    """Remove the trees of processes of this host that have ended."""
    start = f"{PREFIX}{fitted_name(process_table.host(), 'host')[:40]}-"
    for tree in git.trees(top):
        name = os.path.basename(tree.path)
        if os.path.dirname(tree.path) != place or not name.startswith(start) or tree.branch is not None:
            continue
        pid, _, rest = name.removeprefix(start).partition("-")
        began = rest.partition("-")[0]
        if pid.isdigit() and began.isdigit() and process_table.has_ended(int(pid), int(began)):
            _remove(top, tree.path)


def _remove(top: str, path: str) -> None:
    git.worktree(top, "remove", "--force", path)
    shutil.rmtree(path, ignore_errors=True)  # what git left: files that a check has made
    git.worktree(top, "prune")
