"""Worktrees: one checkout per claim, on a branch that names the generation.

`.tenure/worktrees/B-003-gen2` on `tenure/B-003-implement-repositories/gen2`. Its private git folder has a
record (`tenure.json`, readable by the user alone) that is removed with it: the task, the claim, the base commit, the
branch it will land on, and the claim's receipt.

A worktree starts from its target branch *after* the claim has taken the fence (`fences.py`): either the base contains
the landing of an earlier generation, or that landing can no longer happen.

Nothing is removed that exists nowhere else: no tree with changes, no commit that is on no other branch.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from typing import NamedTuple

import msgspec

from tenure.agents import fences, git
from tenure.agents.checkouts import named
from tenure.client import Client
from tenure.core.errors import InvalidInput, TenureError
from tenure.core.ids import parse_key, parse_receipt
from tenure.locations import upward
from tenure.user_state import read_record, write_private

FOLDER = "worktrees"
BRANCHES = "tenure/"  # prefix of every branch that is created here
RECORD = "tenure.json"


class NotClean(TenureError):
    code = "TREE_NOT_CLEAN"


class CommitRefused(TenureError):
    code = "COMMIT_REFUSED"


class Record(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The claim of a worktree. `claim` is a digest that identifies the claim without revealing its receipt."""

    project: str
    task: str  # its id
    key: str
    generation: int
    claim: str
    branch: str
    base: str
    onto: str | None = None


class Worktree(NamedTuple):
    path: str
    branch: str
    base: str  # the base commit
    onto: str | None = None  # the branch it will land on; None: named when it lands
    note: str | None = None  # a warning


class Found(NamedTuple):
    """A worktree of a claim, in its current state."""

    tree: git.Tree
    record: Record | None  # None: created by hand, or its creation was interrupted


# --- names --------------------------------------------------------------------------------------------------


def branch_of(key: str, generation: int, mark: str = "") -> str:
    """`tenure/B-003-implement-repositories/gen2`; a subtask's `::2` is `.2` here, since git allows no colon."""
    return f"{BRANCHES}{_plain(key)}/gen{generation}{mark}"


def _plain(key: str) -> str:
    name = key.replace("::", ".")
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_-]*(\.[0-9]+)*", name):
        raise InvalidInput(f"{key[:80]!r} is not a task's key", "as in B-003-implement-repositories")
    return name


def _folder_name(key: str, generation: int, mark: str) -> str:
    parsed = parse_key(key)
    return f"{_plain(parsed.ref if parsed else key)}-gen{generation}{mark}"


# --- records ---------------------------------------------------------------------------------


def _record_in(git_folder: str) -> Record | None:
    return read_record(os.path.join(git_folder, RECORD), Record)


def record_here(folder: str) -> Record | None:
    """The record of the worktree that contains `folder`. Starts no process."""
    for place in upward(folder):
        if os.path.lexists(os.path.join(place, ".git")):
            private = git.private_folder(place)
            if private is None or os.path.exists(os.path.join(private, "commondir")):
                return _record_in(private) if private else None
            # a submodule: its worktree is above
    return None


def _write(path: str, record: Record) -> None:
    private = git.private_folder(path)
    if private is None:
        raise git.GitFailed(f"{git.shown(path)} is not a linked worktree")
    write_private(os.path.join(private, RECORD), msgspec.json.encode(record))


def ours(folder: str) -> Iterator[Found]:
    """The worktrees of the repository that were created for claims."""
    for tree in git.trees(folder):
        record = _record_in(tree.git_folder)
        if record or (tree.branch or "").startswith(BRANCHES):
            yield Found(tree, record)


def of_claim(folder: str, receipt: str) -> Found | None:
    mark = fences.claim_mark(receipt)
    return next((found for found in ours(folder) if found.record and found.record.claim == mark), None)


# --- creation -------------------------------------------------------------------------------------------------


def make(
    root: str,
    home_folder: str,
    key: str,
    generation: int,
    base: str | None = None,
    *,
    client: Client,
    receipt: str,
    onto: str | None = None,
) -> Worktree:
    """A worktree for the claim that `receipt` proves; the one it has, if it has one. NotHeld for a receipt not live.

    It begins from `base`, else from the branch it will land on: `onto`, else the branch that `base` names, else the
    one that is checked out at `root`. The caller's own checkout is not touched.
    """
    if parse_receipt(receipt).generation != generation:
        raise InvalidInput(f"{key}: the receipt is not of generation {generation}")
    repository = git.find(root)
    task = client.show(key)
    found = of_claim(root, receipt)
    fence = fences.fence_of(repository.top, task["id"], task["key"], receipt)
    fences.take(repository.top, fence, lambda: client.renew(receipt))
    if found is not None and found.record is not None and not found.tree.is_missing:
        return Worktree(found.tree.path, found.record.branch, found.record.base, found.record.onto)
    target = onto or _target(root, base)
    if target is not None and not git.is_branch(root, target):
        raise _no_start(root, target)
    began = git.commit_id(root, base or (f"refs/heads/{target}" if target else "HEAD"))
    if began is None:
        raise InvalidInput(f"--base {base!r}: no such commit here") if base else _no_start(root, target)
    path, branch, note = _add(repository, home_folder, task["key"], generation, receipt, began)
    record = Record(
        project=client.project,
        task=task["id"],
        key=task["key"],
        generation=generation,
        branch=branch,
        base=began,
        onto=target,
        claim=fences.claim_mark(receipt),
    )
    _write(path, record)
    return Worktree(path, branch, began, target, note)


def _no_start(root: str, target: str | None) -> InvalidInput:
    if git.commit_id(root, "HEAD") is None:
        return InvalidInput(
            "this repository has no commit yet, and a worktree needs one", "create the first commit, then try again"
        )
    return InvalidInput(f"there is no branch {target!r} here", "name an existing branch with --onto")


def _target(root: str, base: str | None) -> str | None:
    """The target branch of work that starts here."""
    if base is not None and not base.startswith(BRANCHES) and git.is_branch(root, base):
        return base
    # Work that starts inside a worktree is for that worktree's target, not for its unlanded branch.
    record = record_here(root)
    return record.onto if record else git.branch_here(root)


def _add(
    repository: git.Repository, home_folder: str, key: str, generation: int, receipt: str, base: str
) -> tuple[str, str, str | None]:
    """Path and branch of a new worktree. Where another store or project uses the name, the claim's digest is added."""
    os.makedirs(os.path.join(home_folder, FOLDER), mode=0o700, exist_ok=True)
    marked = f"-{fences.claim_mark(receipt)[:6]}"
    result = git.GitResult(0, "", "")
    for mark in ("", marked):
        branch = branch_of(key, generation, mark)
        path = os.path.join(os.path.realpath(home_folder), FOLDER, _folder_name(key, generation, mark))
        is_there = git.is_branch(repository.top, branch)
        if mark == marked and os.path.exists(path):  # of this claim: its creation was interrupted
            trees = [tree for tree in git.trees(repository.top) if (tree.path, tree.branch) == (path, branch)]
            if trees and trees[0].locked is None:
                return path, branch, None
        if os.path.exists(path) or (is_there and mark != marked):
            continue
        words = [path, branch] if is_there else ["-b", branch, path, base]
        result = git.worktree(repository.top, "add", "-q", *words)
        if result.code == 0:
            return path, branch, None
        if result.code < 128 and "fatal:" not in result.err and os.path.exists(os.path.join(path, ".git")):
            # A failed post-checkout hook does not remove the worktree, but must be reported.
            return path, branch, f"the post-checkout hook failed: {result.line}"
        if not git.is_branch(repository.top, branch) and not os.path.exists(path):
            break
    raise git.GitFailed(
        f"{key}: no worktree could be created for generation {generation}: {result.line}",
        "another command may be creating it; `tenure worktree list` shows the worktrees",
    )


def left_behind(folder: str, key: str, branch: str, onto: str | None) -> list[tuple[str, int]]:
    """Branches of other generations of the task with commits that are not on the target, and how many."""
    listed = git.ask(folder, "for-each-ref", "--format=%(refname)", f"refs/heads/{BRANCHES}{_plain(key)}/")
    left = []
    for ref in listed.splitlines():
        name = ref.removeprefix("refs/heads/")
        if name != branch:
            count = int(git.ask(folder, "rev-list", "--count", ref, *(["--not", f"refs/heads/{onto}"] if onto else [])))
            if count:
                left.append((name, count))
    return left


def left_unsaved(folder: str, key: str, path: str) -> list[str]:
    """Worktrees of other claims of the task with uncommitted changes: their agents were killed."""
    found = []
    for other in ours(folder):
        is_of_task = other.record is not None and other.record.key == key
        if is_of_task and os.path.realpath(other.tree.path) != os.path.realpath(path) and git.changes(other.tree.path):
            found.append(other.tree.path)
    return found


# --- changes ------------------------------------------------------------------------------


def commit_all(worktree: Worktree | str, message: str) -> str | None:
    """Commit all changes of the worktree; returns the commit's id, or None if there are none.

    Hooks that the user has for all repositories run. If one refuses, CommitRefused: the changes stay staged.
    """
    path = worktree if isinstance(worktree, str) else worktree.path
    if not git.changes(path):
        return None
    git.add_all(path)
    record = record_here(path)
    if record is not None:
        message = git.with_trailers(path, message, trailers(record.key, record.generation))
    result = git.call(path, "commit", "-q", "-F", "-", input=message, environ=git.identity(path))
    if result.code != 0:
        last = [line.strip() for line in (result.err or result.out).splitlines() if line.strip()][-3:]
        raise CommitRefused(
            f"git commit in {git.shown(path)} was refused: {' / '.join(last) or f'exit {result.code}'}",
            "the changes are still staged; fix what the hook reports, then commit",
        )
    return git.commit_id(path, "HEAD")


def trailers(key: str, generation: int) -> dict[str, str]:
    return {"Tenure-Task": key, "Tenure-Generation": str(generation)}


def check_clean(folder: str) -> None:
    """NotClean if the tree around `folder` has uncommitted changes."""
    changed = git.changes(folder)
    if changed:
        raise NotClean(
            f"{git.shown(git.find(folder).top)} has uncommitted changes: {named(changed)}",
            "commit them (or have git ignore them), then try again",
        )


def check_done(folder: str, clean_tree: bool, commit: str | None) -> str | None:
    """The full id of `commit`, after the checks that a project may require before a submit."""
    git.find(folder)
    found = None
    if commit is not None:
        found = git.commit_id(folder, commit)
        if found is None:
            raise InvalidInput(f"--commit {commit[:80]!r}: no such commit here", "`git log` shows what there is")
    if clean_tree:
        check_clean(folder)
    return found


# --- removal --------------------------------------------------------------------------------------------


def in_the_way(folder: str, tree: git.Tree, branch: str | None) -> list[str]:
    """Why this tree, and its branch with it, must not be removed."""
    reasons = []
    if tree.locked is not None:
        reasons.append(f"git has it locked{': ' + tree.locked if tree.locked else ''}")
    if not tree.is_missing:
        changed = git.changes(tree.path)
        if changed:
            reasons.append(f"uncommitted changes: {named(changed)}")
    count = unlanded(folder, tree, branch)
    if count:
        reasons.append(f"commits that are on no other branch: {count}, up to {(tree.head or '')[:12]}")
    return reasons


def unlanded(folder: str, tree: git.Tree, branch: str | None) -> int:
    """How many commits of the tree and its branch are on no other branch."""
    tips = {tip for tip in (tree.head, branch and git.ref_value(folder, f"refs/heads/{branch}")) if tip}
    others = [f"--exclude={branch}"] if branch else []
    return int(git.ask(folder, "rev-list", "--count", *tips, "--not", *others, "--branches", "--remotes"))


def _holder(folder: str, commit: str, branch: str | None) -> str | None:
    """Another branch that contains the commit."""
    listed = git.ask(
        folder, "for-each-ref", f"--contains={commit}", "--format=%(refname)", "refs/heads", "refs/remotes"
    )
    return next((ref for ref in listed.splitlines() if ref != f"refs/heads/{branch}"), None)


def remove(folder: str, found: Found) -> list[str]:
    """Remove the worktree and its branch; or keep both and return the reasons."""
    tree, branch = found.tree, found.record.branch if found.record else found.tree.branch
    reasons = in_the_way(folder, tree, branch)
    if reasons:
        return reasons
    common = git.find(folder).common
    result = git.worktree(common, "remove", tree.path)
    if result.code != 0:
        return [result.line.partition(", use --force")[0]]
    if branch is not None:
        _drop_branch(common, branch)
    return []


def _drop_branch(folder: str, branch: str) -> None:
    """Remove a branch whose commits another branch contains, checked in the same transaction."""
    ref = f"refs/heads/{branch}"
    tip = git.ref_value(folder, ref)
    holder = _holder(folder, tip, branch) if tip else None
    value = git.ref_value(folder, holder) if holder else None
    if tip and value:
        try:
            git.change_refs(folder, [f"verify {holder} {value}", f"delete {ref} {tip}"], "tenure: landed")
        except git.RefsMoved:
            return  # one of them moved: the branch stays


def release(worktree: Worktree | str) -> tuple[str, ...]:
    """Remove a worktree that is clean and landed; returns the reasons why it stays, if it does."""
    path = os.path.realpath(worktree if isinstance(worktree, str) else worktree.path)
    found = next((each for each in ours(path) if os.path.realpath(each.tree.path) == path), None)
    if found is None:
        return (f"{git.shown(path)} is not a worktree of a claim",)
    return tuple(remove(path, found))
