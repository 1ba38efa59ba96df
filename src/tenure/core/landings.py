"""Landings: what a holder is about to put on a branch, checked before it is recorded.

The merge commit is made without moving a branch; (branch, old, new) is recorded under the receipt; then the ref is
updated, only from `old`. Whether that happened only git knows: is `new` reachable from the branch?
"""

from __future__ import annotations

import re

from tenure.core.commands import Land
from tenure.core.errors import InvalidInput

COMMIT = r"[0-9a-f]{40}|[0-9a-f]{64}"
_COMMIT = re.compile(COMMIT)
# git check-ref-format: characters that no ref has, and sequences that mean something else to git
_NOT_IN_A_REF = re.compile(r"[\x00-\x20\x7f~^:?*\[\\]|\.\.|@\{|//|/\.|\.lock(?:/|$)")


def check_landing(landing: Land) -> Land:
    check_branch(landing.branch)
    check_commit(landing.old, "old")
    check_commit(landing.new, "new")
    if len(landing.old) != len(landing.new):
        raise InvalidInput(f"old has {len(landing.old)} digits, new {len(landing.new)}: both must have the same length")
    if landing.old == landing.new:
        raise InvalidInput(f"old and new are the same commit, {landing.new[:12]}: there is nothing to land")
    if is_nothing(landing.new):
        raise InvalidInput("new must be a commit, not all zeros; a landing never deletes a branch")
    return landing


def check_commit(id: str, what: str) -> str:
    if not _COMMIT.fullmatch(id):
        raise InvalidInput(
            f"{what} {id[:70]!r} must be 40 or 64 lower-case hexadecimal digits", "`git rev-parse` prints it"
        )
    return id


def is_nothing(id: str) -> bool:
    """All zeros, git's "no such ref": `old` of a branch that does not exist yet."""
    return not id.strip("0")


def check_branch(branch: str) -> str:
    """Check a branch's own name, by git's rules."""
    if branch.startswith("refs/"):
        raise InvalidInput(f"branch {branch[:60]!r} must be the name without refs/heads/", "as in main or team/parser")
    if (
        not 1 <= len(branch) <= 200
        or branch.startswith(("-", "/", "."))
        or branch.endswith(("/", "."))
        or branch in ("@", "HEAD")
        or _NOT_IN_A_REF.search(branch)
    ):
        raise InvalidInput(f"branch {branch[:60]!r} is not a valid git branch name", "as in main or team/parser")
    return branch
