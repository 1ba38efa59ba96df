"""Landing: merges commits into a branch under a receipt: of the task's holder, who then submits the result; or of who
lands a result that has passed (landings.py), which then is accepted.

    1. take the fence            fences.py: the store confirms that the receipt is live, git records the claim
    2. merge                     a commit that no ref points at; no checkout is touched. Conflicts end the landing
    3. record                    the store checks the receipt and records (branch, old, new), in one transaction
    4. swap                      one git transaction: fence still this claim's, branch still `old` → branch is `new`.
                                 A checkout of the branch is updated inside it, see checkouts.py
    5. submit, or pass           with branch, commit and base

If the branch moved between 2 and 4, the merge is repeated from its current tip, recorded and swapped again.

Interleavings of the receipts M and N, N the later one. Of holders, as of those who land what has passed:

* M recorded, N takes the fence, M swaps: refused by the fence. M asks the store again and is stale.
* M asked the store, N takes the fence, M tries to take it: git refuses, M asks again: stale.
* M asked the store, N was granted, M takes the fence, N takes it from M: M's swap is refused. Had M swapped before N
  took it, N finds it: N takes the fence first and looks at the branch after.
* M died between record and swap: nothing has moved. Who repeats it finds the record; if the branch is still at `old`
  and the work the same, its commit is used, else the merge is repeated. A lost answer to the record is the same.
* M died inside the swap, after the checkout was updated: the branch is at `old`, the checkout has the new files
  staged. A repeat finds them as it would write them, and continues.
* A user commits to the branch: `old` is no longer its tip, see above; a machine's check runs again on the new merge. A
  user edits a file in the checkout: the two-tree merge refuses before any ref has moved; a landing is blocked then,
  without a try. A user checks out the branch, or another instead: the landing notices it while the refs are locked, and
  starts over.
* The store is restored from a backup: all older receipts are of an earlier epoch, and the fence identifies them by
  digest, not by generations, which repeat.

Of holders:

* M recorded, N is claimed and has done nothing in git yet, M swaps: it lands, as if a moment earlier. M's result is
  refused if it comes after N's claim. N's worktree or landing either starts from M's landing, or that never happens.
* M swapped and died before submit: a repeat with M's receipt finds the commit on the branch and submits it (a late
  submit, if the lease has expired and nobody claimed since). If N was claimed meanwhile, N finds it as above.
* Two processes land with one receipt: one swaps; the other finds its work on the branch and submits the same result.

Of those who land what has passed:

* M recorded, N was granted and has done nothing in git yet, M swaps: N finds the commit on the branch, and it passes.
* M swapped and died: so does the next one who lands; also after a restore, as the work itself is on the branch.
* M died inside the swap, and who lands next refuses the landing or gives it up: the checkout is put back first.
* M recorded, N finds the way blocked and gives up: N has the fence, so M's swap is refused, and a task that is
  cancelled then is not on the branch. Who cannot take the fence gives up nothing that was recorded.
* Two who land: the second is not granted it.
* A cancel, reset or edit before the record: the store refuses the record. After it, it refuses the cancel.
* A person's pause: the record is refused. After the swap: the result is accepted once the task goes on.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

from tenure.agents import checkouts, fences, git, worktrees
from tenure.client import Client
from tenure.core import limits
from tenure.core.errors import InvalidInput, NotFound, TenureError
from tenure.core.ids import parse_receipt
from tenure.core.landings import check_branch
from tenure.core.lifecycle import PAUSED
from tenure.core.outcomes import Outcome
from tenure.core.validation import BEFORE, validator_of

if TYPE_CHECKING:
    from tenure.core.views import LandingView

MOST_TRIES = limits.LAND_TRIES
MOST_BUSY = limits.LAND_BUSY
PAUSE = 0.05

# Refusals after which submit refuses too: it keeps the result, so that a person can find the commits. An expired claim
# is not among them: its result could be accepted although the work is not on the branch.
_FOR_GOOD = ("STALE_GENERATION", "STALE_EPOCH")


class MergeConflict(TenureError):
    code = "MERGE_CONFLICT"

    def __init__(self, message: str, hint: str, files: tuple[str, ...]) -> None:
        super().__init__(message, hint)
        self.files = files


class NothingToLand(TenureError):
    code = "NOTHING_TO_LAND"


class BranchMoves(TenureError):
    code = "BRANCH_MOVES"


class HookRefused(TenureError):
    code = "HOOK_REFUSED"


class Landing(NamedTuple):
    """The landing: `outcome` is the store's last answer, `commit` is on `branch` unless it is None."""

    outcome: Outcome
    branch: str
    commit: str | None = None
    base: str | None = None  # the previous tip of the branch
    checkout: str | None = None  # the tree that was updated with it
    earlier: tuple[Mapping[str, Any], ...] = ()  # landings of earlier generations of this run that are on the branch
    not_run: tuple[str, ...] = ()  # hooks that a merge by git itself would have run


class Work(NamedTuple):
    folder: str  # a working tree of the repository
    commit: str
    began: str | None  # the base of the work, if a worktree has recorded it


def land(
    client: Client,
    receipt: str,
    folder: str,
    *,
    source: str | None = None,
    onto: str | None = None,
    summary: str = "",
    result: Any = None,
    message: str | None = None,
    seen: int | None = None,
    pause: Callable[[float], None] = time.sleep,
) -> Landing:
    """Merge a holder's commits into a branch and submit the result. May be repeated after any interruption.

    Lands `source` (a branch or commit), else what the worktree around `folder` has, else that of this claim's own
    worktree or branch, else what `folder` has checked out. The target is `onto`, else the branch that the worktree was
    made for. A receipt that is not live is returned as the outcome (for a superseded one the store records its
    commits); every other obstacle is raised, and nothing has moved then.
    """
    git.find(folder)
    task = client.show(parse_receipt(receipt).name)
    work, meant = _source(folder, task, receipt, source)
    branch = check_branch(onto or meant or _recorded_branch(task, receipt) or no_target())
    if not git.is_branch(folder, branch):
        raise NotFound(f"there is no branch {branch!r} here", "name another with --onto, or create it: git branch NAME")
    attempt = BranchMove(
        client, receipt, task, work, branch, message or merge_message(task, summary), seen=seen, pause=pause,
        ask=lambda: _asked(client, receipt), generation=parse_receipt(receipt).generation,
    )  # fmt: skip
    landed: Landing | None
    try:
        landed = attempt.run(attempt.landed_before)
    except fences.NotHeld as error:
        try:
            landed = attempt.landed_before()  # only the answer may have been lost: submit returns it
        except NothingToLand:
            return Landing(error.outcome, branch)
        if landed is None:
            if error.outcome.outcome not in _FOR_GOOD:
                return Landing(error.outcome, branch)
            kept = {"onto": branch, "commit": work.commit, "base": work.began, "landed": False}
            return Landing(client.submit(receipt, *with_commits(task, result, summary, kept)), branch)
    at = {"branch": branch, "commit": landed.commit, "base": landed.base}
    submitted = client.submit(receipt, *with_commits(task, result, summary, at), seen=seen)
    return landed._replace(outcome=submitted)


def no_target() -> str:
    raise InvalidInput(
        "unknown target branch: no worktree of this claim names one", "name it with --onto, as in --onto main"
    )


def _recorded_branch(task: Mapping[str, Any], receipt: str) -> str | None:
    generation = parse_receipt(receipt).generation
    landings = task.get("landings", ())
    return next((landing["branch"] for landing in landings if landing["generation"] == generation), None)


def _source(folder: str, task: Mapping[str, Any], receipt: str, source: str | None) -> tuple[Work, str | None]:
    """What to land, and the target branch of its worktree. NotClean if that tree has uncommitted changes."""
    here = worktrees.record_here(folder)
    own = worktrees.of_claim(folder, receipt)
    record = here if here and here.task == task["id"] else own.record if own else None
    meant = record.onto if record else None
    if source is not None:
        commit = git.commit_id(folder, source)
        if commit is None:
            raise InvalidInput(f"--from {source[:80]!r}: no such branch or commit here", "`git branch` lists branches")
        for tree in git.trees(folder):
            if tree.branch == source and not tree.is_missing:
                worktrees.check_clean(tree.path)
        return Work(git.find(folder).top, commit, record.base if record and record.branch == source else None), meant
    if here and here is not record and own is None:
        raise InvalidInput(
            f"this worktree is for {here.key}, not for {task['key']}", "name the branch with the work with --from"
        )
    if own is not None and here is not record:
        if own.tree.is_missing and own.tree.head and own.record:
            return Work(git.find(folder).top, own.tree.head, own.record.base), meant
        folder = own.tree.path
    worktrees.check_clean(folder)
    commit = git.commit_id(folder, "HEAD")
    if commit is None:
        raise NothingToLand("there is no commit yet", "commit the work, then land it")
    return Work(git.find(folder).top, commit, record.base if record else None), meant


def _asked(client: Client, receipt: str) -> Outcome:
    """Whether no later claim has the task. A paused one may be landed late: the record is judged by itself."""
    outcome = client.renew(receipt)
    is_last = outcome.outcome == "NO_CLAIM" and outcome.state == PAUSED
    return Outcome(outcome="OK") if is_last else outcome


def merge_message(task: Mapping[str, Any], summary: str) -> str:
    title = " ".join(task["title"].split())
    return f"{task['ref']}: {title}\n" + (f"\n{summary.strip()}\n" if summary.strip() else "")


def with_commits(task: Mapping[str, Any], result: Any, summary: str, at: Mapping[str, Any]) -> tuple[Any, str]:
    """Data and summary with the landing; in the summary alone where the contract checks the data itself."""
    if validator_of(task.get("output") or {}) in BEFORE:
        return result, named_in(summary, at)
    if isinstance(result, dict):
        return {**result, **at}, summary
    return (dict(at) if result is None else {**at, "result": result}), summary


def named_in(summary: str, at: Mapping[str, Any]) -> str:
    """The summary with branch and commit behind it."""
    text = f" (branch {at['branch']}, commit {at['commit']})"
    return summary[: limits.SUMMARY - len(text)] + text


class BranchMove:
    """Work on its way to a branch, under a receipt: of its holder, or of who lands a result that has passed.

    `ask` says whether the receipt still counts; `check` judges a merge before it is recorded.
    """

    def __init__(
        self,
        client: Client,
        receipt: str,
        task: Mapping[str, Any],
        work: Work,
        branch: str,
        message: str,
        *,
        ask: Callable[[], Outcome],
        generation: int,
        seen: int | None = None,
        check: Callable[[str, str], object] = lambda old, new: None,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        """`generation` is that of the claim whose work it is."""
        self.client, self.receipt, self.task, self.work, self.branch = client, receipt, task, work, branch
        self.generation, self.message, self.seen, self.pause = generation, message, seen, pause
        self.folder, self.ref = work.folder, f"refs/heads/{branch}"
        self.fence = fences.fence_of(self.folder, task["id"], task["key"], receipt)
        self.is_fenced = self.is_recorded = False
        self._ask, self._check = ask, check

    def run(self, before: Callable[[], Landing | None]) -> Landing:
        """The work is on the branch when this returns. NotHeld where the store refuses the receipt.

        `before` finds out whether it is there already.
        """
        busy = 0
        for _ in range(MOST_TRIES + MOST_BUSY):
            fences.take(self.folder, self.fence, self._ask)
            self.is_fenced = True
            landed = before()
            if landed is not None:
                return landed
            old = self.tip()
            checkout = checkouts.of_branch(self.folder, self.branch)
            new = self._recorded(old) or self._merged(old)
            if checkout is not None:
                checkouts.check(checkout, old, new)
            self._check(old, new)
            self.is_recorded = True  # also where its answer is lost
            outcome = self.client.land(self.receipt, self.branch, old, new, seen=self.seen)
            if not outcome.ok:
                raise fences.NotHeld(outcome)
            try:
                self._swap(old, new, checkout)
            except checkouts.Busy:
                busy += 1
                if busy >= MOST_BUSY:
                    raise
                self.pause(PAUSE)
            except git.RefsMoved as error:
                if self.tip() == old and git.ref_value(self.folder, self.fence.ref) == self.fence.value:
                    raise git.GitFailed(f"git will not move {self.branch}: {error.message}") from None
            else:
                return self._landing(new, old, outcome.landings or (), checkout)
        raise BranchMoves(
            f"{self.branch} moved {MOST_TRIES} times while this was landing", "nothing of yours was moved; land again"
        )

    def tip(self) -> str:
        tip = git.ref_value(self.folder, self.ref)
        if tip is None:
            raise NotFound(f"branch {self.branch} is gone")
        return tip

    def _swap(self, old: str, new: str, checkout: checkouts.Checkout | None) -> None:
        # From the checkout: the log of its HEAD then has the move as well.
        place = checkout.path if checkout else self.folder
        changes = [self.fence.verified, f"update {self.ref} {new} {old}"]
        with git.prepared(place, changes, f"tenure land {self.task['ref']} generation {self.generation}"):
            # Checked again: the tree may have been switched to another branch meanwhile.
            if checkouts.of_branch(self.folder, self.branch) != checkout:
                raise checkouts.Busy(f"{self.branch} is being checked out just now", "land again")
            if checkout is not None:
                checkouts.forward(checkout, old, new)

    def on_branch(self) -> Landing | None:
        """The landing, if a commit that was recorded for this work is on the branch, or the work itself is."""
        tip = self.tip()
        for landing in self._own_records():
            if git.commit_id(self.folder, landing["new"]) and git.is_ancestor(self.folder, landing["new"], tip):
                return self._landing(landing["new"], landing["old"], (), None)
        if not git.is_ancestor(self.folder, self.work.commit, tip):
            return None
        merge = self._brought_in_by(tip)
        new, old = merge or (self.work.commit, None)
        return self._landing(new, old, (), None)

    def put_back(self) -> None:
        """Take back what a landing that died inside its swap has left in the checkout: it is not made again.

        Only under the fence, and while the branch has none of it. What the user has changed there stays.
        """
        with suppress(checkouts.InTheWay):
            checkout = checkouts.of_branch(self.folder, self.branch)
            for landing in self._own_records():
                if checkout is not None and git.commit_id(self.folder, landing["new"]):
                    checkouts.forward(checkout, landing["new"], self.tip())

    def landed_before(self) -> Landing | None:
        """The landing, if the work is on the branch already; NothingToLand if there is no work."""
        tip = self.tip()
        if not git.is_ancestor(self.folder, self.work.commit, tip):
            return None
        if self.work.commit != self.work.began:
            merge = self._brought_in_by(tip)
            if merge is not None:
                return self._landing(*merge, self.task.get("landings", ()), None)
        if self.work.began is None:
            for landing in self._own_records():  # its worktree was removed
                if git.commit_id(self.folder, landing["new"]) and git.is_ancestor(self.folder, landing["new"], tip):
                    return self._landing(landing["new"], landing["old"], self.task.get("landings", ()), None)
        # Either the work was merged by hand or there is none: the graph does not show which.
        raise NothingToLand(
            f"{self.work.commit[:12]} is on {self.branch} already, so there is nothing to land",
            "commit the work, or name its branch with --from; `tenure done --commit ID` submits an existing commit",
        )

    def _brought_in_by(self, tip: str) -> tuple[str, str] | None:
        """The merge on the branch's first-parent line with the work as its other parent, and the commit before it."""
        trailer = "%(trailers:key=Tenure-Task,valueonly,separator=%x2C)"
        line = git.ask(self.folder, "log", "--first-parent", f"--format=%H %P\t{trailer}", tip, f"^{self.work.commit}")
        for entry in line.splitlines():
            ids, _, task = entry.partition("\t")
            commit, *parents = ids.split()
            # Without a worktree only the trailer shows that this was work for this task.
            if self.work.commit in parents[1:] and (self.work.began is not None or task == self.task["key"]):
                return commit, parents[0]
        return None

    def _own_records(self) -> list[LandingView]:
        landings = self.client.show(self.task["id"]).get("landings", ())
        own = (self.generation, self.branch)
        return [landing for landing in landings if (landing["generation"], landing["branch"]) == own]

    def _recorded(self, old: str) -> str | None:
        """The merge that this claim recorded earlier, if it is still the right one."""
        for landing in self._own_records():
            shape = git.call(self.folder, "show", "-s", "--format=%P%n%B", landing["new"])
            parents, _, message = shape.out.partition("\n")
            is_same = parents == f"{old} {self.work.commit}" and message.strip() == self._signed().strip()
            if shape.code == 0 and is_same:
                return str(landing["new"])
        return None

    def _signed(self) -> str:
        trailers = worktrees.trailers(self.task["key"], self.generation)
        return git.with_trailers(self.folder, self.message, trailers)

    def _merged(self, old: str) -> str:
        merge = git.merge(self.folder, old, self.work.commit)
        if merge.conflicts:
            raise MergeConflict(
                f"{self.task['key']} conflicts with {self.branch} in {checkouts.named(list(merge.conflicts))}",
                f"nothing was moved; merge {self.branch} into your branch, settle it there, commit, and land again",
                merge.conflicts,
            )
        return git.commit_tree(self.folder, merge.tree, [old, self.work.commit], self._hooked(self._signed()))

    def _hooked(self, message: str) -> str:
        """The message after the user's commit-msg hook; HookRefused where the hook refuses it."""
        if not git.hooks(self.folder, "commit-msg"):
            return message
        with tempfile.TemporaryDirectory(prefix="tenure-") as place:
            path = os.path.join(place, "MESSAGE")
            with open(path, "w", encoding="utf-8") as file:
                file.write(message)
            result = git.call(self.folder, "hook", "run", "commit-msg", "--", path)
            if result.code != 0:
                words = " / ".join(line.strip() for line in result.err.splitlines() if line.strip())
                raise HookRefused(
                    f"the commit-msg hook refused the merge's message: {words[:300] or f'exit {result.code}'}",
                    "nothing was moved; give another message with -m",
                )
            with open(path, encoding="utf-8") as file:
                return file.read()

    def _landing(
        self, new: str, old: str | None, landings: tuple[Mapping[str, Any], ...], checkout: checkouts.Checkout | None
    ) -> Landing:
        earlier = tuple(
            landing
            for landing in landings
            if landing["generation"] < self.generation
            and landing["run"] == self.task["run"]
            and landing["branch"] == self.branch
            and git.commit_id(self.folder, landing["new"])
            and git.is_ancestor(self.folder, landing["new"], new)
        )
        tree = checkout.path if checkout else None
        not_run = tuple(git.hooks_not_run(self.folder))
        return Landing(Outcome(outcome="OK"), self.branch, new, old, tree, earlier, not_run)
