"""Updates the working tree that has a branch checked out, when that branch moves.

If only the ref moved, the tree would look as if the user had reverted the new commits, and the next `commit -a` there
would revert them. So the tree is updated first, and the ref follows in the same prepared transaction: an interruption
in between leaves new files staged on the old commit, which loses nothing. Files are updated by git's two-tree merge,
which keeps the user's changes and refuses where they overlap; ignored files, which git would overwrite, are protected
in the same way.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from typing import NamedTuple

from tenure.agents import git
from tenure.core import limits
from tenure.core.errors import TenureError

_UNDER_WAY = {"MERGE_HEAD": "a merge", "CHERRY_PICK_HEAD": "a cherry-pick", "REVERT_HEAD": "a revert"}
_REBASES = ("rebase-merge", "rebase-apply")
MOST_NAMED = limits.FILES_NAMED


class InTheWay(TenureError):
    code = "CHECKOUT_IN_THE_WAY"


class Busy(InTheWay):
    """Another git command has locked that tree's index."""


class Checkout(NamedTuple):
    path: str
    git_folder: str


def of_branch(folder: str, branch: str) -> Checkout | None:
    """The tree that has this branch checked out; InTheWay where its state does not allow the branch to move."""
    trees = [tree for tree in git.trees(folder) if not (tree.is_bare or tree.is_missing)]
    for tree in trees:
        if _is_rebasing(tree.git_folder, branch):
            raise InTheWay(f"{branch} is being rebased in {git.shown(tree.path)}", "finish that first, then land again")
    found = [tree for tree in trees if tree.branch == branch]
    if len(found) > 1:
        places = ", ".join(git.shown(tree.path) for tree in found)
        raise InTheWay(f"{branch} is checked out more than once: {places}", "check out another branch in all but one")
    if not found:
        return None
    checkout = Checkout(found[0].path, found[0].git_folder)
    for name, what in _UNDER_WAY.items():
        if os.path.exists(os.path.join(checkout.git_folder, name)):
            raise InTheWay(
                f"{what} is in progress in {git.shown(checkout.path)}, where {branch} is checked out",
                "finish it first, then land again",
            )
    return checkout


def _is_rebasing(git_folder: str, branch: str) -> bool:
    for name in _REBASES:
        try:
            with open(os.path.join(git_folder, name, "head-name"), encoding="utf-8") as file:
                if file.read().strip() == f"refs/heads/{branch}":
                    return True
        except OSError:
            continue
    return False


def check(checkout: Checkout, old: str, new: str) -> None:
    """InTheWay if the tree cannot be updated from `old` to `new`. Writes nothing and takes no lock."""
    with tempfile.TemporaryDirectory(prefix="tenure-") as folder:
        index = os.path.join(folder, "index")
        try:
            shutil.copyfile(os.path.join(checkout.git_folder, "index"), index)
        except FileNotFoundError:  # there is no index yet
            return
        _forward(checkout, old, new, "--dry-run", environ={"GIT_INDEX_FILE": index})


def forward(checkout: Checkout, old: str, new: str) -> None:
    """Update index and files from `old` to `new`, keeping the user's changes; or InTheWay, and nothing is changed."""
    _forward(checkout, old, new)


def _forward(checkout: Checkout, old: str, new: str, *options: str, environ: dict[str, str] | None = None) -> None:
    place = checkout.path
    # Without a refresh a touched file would count as changed.
    git.call(place, "update-index", "-q", "--refresh", environ=environ)
    lost = _would_be_lost(place, old, new, environ)
    if lost:
        raise _in_the_way(checkout, named(lost))
    result = git.call(place, "read-tree", "-m", "-u", *options, old, new, environ=environ)
    if result.code == 0:
        return
    if "index.lock" in result.err:
        raise Busy(f"another git command is running in {git.shown(place)}", "land again when it has ended")
    wanted, mine = git.changed_between(place, old, new), git.changes(place)
    both = [path for path in mine if path in wanted or (path.endswith("/") and any(w.startswith(path) for w in wanted))]
    raise _in_the_way(checkout, named(both) if both else result.line)


def _would_be_lost(place: str, old: str, new: str, environ: dict[str, str] | None) -> list[str]:
    """What git's merge would overwrite silently: ignored files, and unstaged deletions."""
    deleted = git.paths(
        place, "diff-files", "--name-only", "--diff-filter=D", "--ignore-submodules=dirty", environ=environ
    )
    lost = sorted(git.changed_between(place, old, new).intersection(deleted)) if deleted else []
    added = git.paths(place, "diff-tree", "-r", "--name-only", "--no-renames", "--diff-filter=A", old, new)
    there = [path for path in (_occupied(place, path) for path in added) if path is not None]
    if there:
        tracked = set(git.paths(place, "ls-files", "--full-name", "--", ":/", environ=environ))
        if git.call(place, "config", "--type=bool", "--get", "core.ignoreCase").out.strip() == "true":
            lower = {path.lower() for path in tracked}  # on this file system Readme and README are one file
            there = [path for path in there if path.lower() not in lower]
        for path in dict.fromkeys(there):
            if os.path.isdir(os.path.join(place, path)) and not os.path.islink(os.path.join(place, path)):
                lost += git.paths(
                    place, "ls-files", "--others", "--full-name", "--", f":(top,literal){path}", environ=environ
                )
            elif path not in tracked:
                lost.append(path)
    return lost


def _occupied(place: str, path: str) -> str | None:
    """The existing file that `path` would overwrite: itself, or a file where it needs a folder."""
    parts = path.split("/")
    for count in range(1, len(parts)):
        above = "/".join(parts[:count])
        full = os.path.join(place, above)
        if os.path.islink(full) or os.path.isfile(full):
            return above
    return path if os.path.lexists(os.path.join(place, path)) else None


def _in_the_way(checkout: Checkout, what: str) -> InTheWay:
    return InTheWay(
        f"{git.shown(checkout.path)} has changes in files that this landing writes: {what}",
        "nothing was moved; commit them there or put them elsewhere, then land again (or --onto another branch)",
    )


def named(paths: list[str]) -> str:
    few = ", ".join(git.shown(path) for path in paths[:MOST_NAMED])
    return few + (f" and {len(paths) - MOST_NAMED} more" if len(paths) > MOST_NAMED else "")
