"""Landing results that have passed: `run`, `daemon` and `tenure land` take them, and put their commits on the branch.

Who lands takes the validation in its last phase, as a checker takes it in its first; its receipt
fences the record in the store and the swap in git. Then the steps of land.py, and what came of them:

| it ended with | recorded in the store |
| --- | --- |
| the commit on the branch, by this landing or before it | passed: the result is accepted |
| a conflict with the branch | refused as a conflict: the attempt is given back |
| a check that fails on the merge | refused, as by that check |
| a checkout in the way (changed files, a rebase, another git command) | blocked: no try is counted |
| anything else of git | undecided: a try; after the last a person is asked |
| a receipt that does not count any more | nothing |

`run` and `daemon` land work of a worktree of this repository, on the branch that the worktree was made for:
any other branch is a person's to land, by name.
"""

from __future__ import annotations

import os
import shlex
import threading
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any, NamedTuple

from tenure.agents import checkouts, fences, git, worktrees
from tenure.agents.land import BranchMove, Landing, MergeConflict, Work, merge_message
from tenure.agents.result_checker import RenewedLease, ResultChecker, Tools, checks_files, submitted
from tenure.client import Client
from tenure.core import limits
from tenure.core.errors import NotAllowed, StoreError, TenureError
from tenure.core.land_request import JUDGE, LANDING
from tenure.core.outcomes import Outcome
from tenure.core.validation import INVALID_OUTPUT, LEASE, MERGE_CONFLICT

if TYPE_CHECKING:
    from tenure.validators.port import Verdict

BLOCKED_FOR = 30.0  # seconds until a way that was blocked is looked at again
LANDED, REFUSED, WAITS, DENIED = "landed", "refused", "waits", "denied"


class Landed(NamedTuple):
    """What became of one landing: landed, refused, waits (blocked, or to be tried again), or denied by the store."""

    key: str
    what: str
    message: str
    outcome: Outcome
    landing: Landing | None = None
    error_class: str | None = None  # of a refusal


class _Unfit(TenureError):
    """A check fails on the merge."""

    code = "CHECK_FAILED"

    def __init__(self, verdict: Verdict) -> None:
        super().__init__("; ".join(verdict.reasons))
        self.verdict = verdict


class _NotCheckedHere(TenureError):
    code = "NOT_CHECKED_HERE"


class Lander:
    """Lands the results of one project in one repository. Safe to use from several threads, with one `mutex`."""

    def __init__(
        self,
        client: Client,
        folder: str,
        tools: Callable[[], Tools] = Tools,
        *,
        mutex: threading.Lock | None = None,
        say: Callable[[str], object] = lambda _: None,
    ) -> None:
        """`mutex`: held while a result is landed."""
        self.client, self.folder, self._tools = client, folder, tools
        self._mutex, self._say = mutex or nullcontext(), say
        self._said: dict[str, str] = {}
        self._not_allowed: set[str] = set()

    # --- what waits ---

    def waiting(self, *, due: bool = False) -> list[Mapping[str, Any]]:
        """The results that have passed and whose commit is in this repository; those only that may be tried now."""
        found = [one for one in self.client.validations(limits.LISTED) if one["phase"] != JUDGE and one["land"]]
        if due and found:
            now = self.client.now()
            found = [one for one in found if one["holder"] is None and (one["retry_at"] or 0) <= now]
        try:
            return [one for one in found if self._is_here(one)] if found else []
        except (git.NoRepository, git.GitFailed):
            return []

    def mine(self, *, due: bool = False) -> list[Mapping[str, Any]]:
        """Those of them that were made in a worktree of this repository, and are for the branch it was made for."""
        found = [one for one in self.waiting(due=due) if one["id"] not in self._not_allowed]
        if not found:
            return []
        made = [each.record for each in worktrees.ours(git.find(self.folder).top)]
        return [one for one in found if any(record and self._is_of(record, one) for record in made)]

    def _is_of(self, record: worktrees.Record, one: Mapping[str, Any]) -> bool:
        same = (record.project, record.task, record.onto) == (self.client.project, one["task"], one["land"]["onto"])
        return same and _is_ancestor(self.folder, one["land"]["commit"], f"refs/heads/{record.branch}")

    def _is_here(self, one: Mapping[str, Any]) -> bool:
        if git.commit_id(self.folder, one["land"]["commit"]) is None:
            return False
        if one["phase"] != LANDING:
            return True
        # Only the repository that has the merge shows whether its branch was moved.
        recorded = [each for each in self.client.show(one["task"]).get("landings", ()) if _is_for(each, one)]
        return not recorded or any(git.commit_id(self.folder, each["new"]) for each in recorded)

    # --- landing ---

    def round(self, is_wanted: Callable[[], bool] = lambda: True) -> list[Landed]:
        """Land everything of this repository that waits and may be tried now."""
        landed = []
        for one in self.mine(due=True):
            if not is_wanted():
                break
            try:
                done = self.land(one["task"], is_wanted)
            except NotAllowed as error:  # the key of another may land it
                self._not_allowed.add(one["id"])
                self._say(f"not landed here: {error.message}")
                continue
            if done is not None:
                landed.append(done)
        return landed

    def waits(self) -> bool:
        """Whether something waits that this process will land: sooner or later, if its way is blocked now."""
        is_session = self.client.principal.role == "agent" and not self.client.is_remote
        return not is_session and bool(self.mine())

    def land(self, task: str, is_wanted: Callable[[], bool] = lambda: True, *, by_name: bool = False) -> Landed | None:
        """Land the result of this task; None where its commit is not in this repository, or was settled meanwhile.

        `by_name`: a person has named it, so it need not be what a worktree here was made for: its agent chose commit
        and branch.
        """
        with self._mutex:
            found = self.waiting() if by_name else self.mine()
            one = next((each for each in found if task in (each["task"], each["key"])), None)
            if one is None:
                return None
            taken = self.client.take_landing(one["task"], lease=LEASE, lander=self._name())
            if taken.outcome != "GRANTED":
                return Landed(one["key"], DENIED, taken.message, taken)
            done = self._land(taken, is_wanted)
        self._report(done)
        return done

    def _name(self) -> str:
        return f"{self.client.agent} ({os.uname().nodename}, pid {os.getpid()})"[:200]

    def _report(self, done: Landed) -> None:
        """Once for each reason: a way that is blocked is looked at again and again."""
        if self._said.get(done.key) != done.message:
            self._say(f"{done.key}: {done.message}")
        self._said[done.key] = done.message

    def _land(self, taken: Outcome, is_wanted: Callable[[], bool] = lambda: True) -> Landed:
        receipt, task, one = taken.receipt or "", taken.task or {}, taken.validation or {}
        key, onto = task["key"], one["land"]["onto"]
        was_recorded = one["phase"] == LANDING
        move: BranchMove | None = None
        with RenewedLease(self.client, receipt, LEASE, is_wanted) as lease:
            try:
                if not git.is_branch(self.folder, onto):
                    raise git.GitFailed(
                        f"there is no branch {onto!r} here", f"create it: git branch {shlex.quote(onto)}"
                    )
                work = Work(git.find(self.folder).top, one["land"]["commit"], None)
                move = BranchMove(
                    self.client, receipt, task, work, onto, merge_message(task, one.get("summary") or ""),
                    ask=lambda: self.client.renew_validation(receipt), generation=one["generation"],
                    check=lambda old, new: self._check_again(task, one, old, new, lease),
                )  # fmt: skip
                landing = move.run(move.on_branch)
            except fences.NotHeld as error:
                return Landed(key, DENIED, f"not landed: {error.outcome.message}", error.outcome)
            except StoreError:
                raise  # unknown: the next one who lands looks at the branch
            except TenureError as error:
                is_fenced = move is not None and move.is_fenced
                if was_recorded and not is_fenced:  # an earlier landing may still move the branch
                    return Landed(key, WAITS, f"not landed: {error.message}", Outcome(outcome="NO_TASK"))
                found = None
                if move and is_fenced and (was_recorded or move.is_recorded):
                    found = move.on_branch()
                    if found is None:
                        move.put_back()
                if found is None:
                    return self._ended(receipt, key, one, error, is_wanted())
                landing = found
            return self._passed(receipt, key, landing, lease)

    def _passed(self, receipt: str, key: str, landing: Landing, lease: RenewedLease) -> Landed:
        details = {"branch": landing.branch, "commit": landing.commit, "base": landing.base}
        outcome = submitted(lambda: self.client.judge(receipt, True, details=details), lease)
        if not outcome.ok:
            return Landed(key, DENIED, f"landed, and not accepted yet: {outcome.message}", outcome, landing)
        said = f"landed on {landing.branch} as {(landing.commit or '')[:12]}"
        return Landed(key, LANDED, said, outcome, landing._replace(outcome=outcome))

    def _ended(self, receipt: str, key: str, one: Mapping[str, Any], error: TenureError, is_wanted: bool) -> Landed:
        commit, onto = one["land"]["commit"], one["land"]["onto"]
        if isinstance(error, MergeConflict):
            files = checkouts.named(list(error.files))
            why = f"it conflicts with {onto} in {files}; the work is commit {commit}: merge {onto} into it"
            outcome = self.client.judge(receipt, False, [why], conflict=True)
            return Landed(key, REFUSED, f"not landed: {why}", outcome, error_class=MERGE_CONFLICT)
        if isinstance(error, _Unfit):
            verdict = error.verdict
            outcome = self.client.judge(receipt, False, verdict.reasons, verdict.details)
            return Landed(
                key,
                REFUSED,
                f"not landed: refused on {onto}: {error.message[:300]}",
                outcome,
                error_class=INVALID_OUTPUT,
            )
        is_blocked = isinstance(error, checkouts.InTheWay | _NotCheckedHere) or not is_wanted
        after = None if not is_blocked else BLOCKED_FOR if is_wanted else 0.0  # another process goes on at once
        outcome = self.client.undecided(receipt, error.message, after, blocked=is_blocked)
        return Landed(key, WAITS, f"waits to be landed on {onto}: {error.message}", outcome)

    # --- checks of the merge ---

    def _check_again(
        self, task: Mapping[str, Any], one: Mapping[str, Any], old: str, new: str, lease: RenewedLease
    ) -> None:
        """Repeat a machine's check of files where the branch has moved since; a person's verdict stands."""
        details = one["details"] or {}
        if checks_files(one["validator"]) and details.get("commit") and details.get("base") != old:
            checker = ResultChecker(self.client, self._tools(), say=self._say)
            obstacle = checker.obstacle(one)
            if obstacle is not None:
                raise _NotCheckedHere(f"{one['land']['onto']} has moved, and the check does not run here: {obstacle}")
            self._say(f"{task['key']}: {one['land']['onto']} has moved: {one['validator']} checks the merge")
            from tenure.agents.merged_trees import tree_of

            with tree_of(self.folder, new) as tree:
                verdict = checker.verdict(task, one, tree, lease.is_wanted)
            if not verdict.ok:
                raise _Unfit(verdict)


def _is_for(landing: Mapping[str, Any], one: Mapping[str, Any]) -> bool:
    return (landing["generation"], landing["branch"]) == (one["generation"], one["land"]["onto"])


def _is_ancestor(folder: str, commit: str, ref: str) -> bool:
    return git.ref_value(folder, ref) is not None and git.is_ancestor(folder, commit, ref)
