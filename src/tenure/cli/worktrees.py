"""`worktree add|list|remove` and `land`: a checkout for each claim, and merging its commits."""

from __future__ import annotations

import os
from argparse import Namespace
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tenure.cli.answers import OF_KIND, outcome_text
from tenure.cli.holder_verbs import RECEIPT, SEEN, TASK
from tenure.cli.main import Answer, Run, Usage, answered, arg, options
from tenure.cli.option_kinds import contents, json_value
from tenure.core.errors import NotFound
from tenure.core.land_request import JUDGE
from tenure.core.lifecycle import CLAIMED, RUNNING, VALIDATING
from tenure.core.safe_text import shell_word

if TYPE_CHECKING:
    from tenure.agents.land import Landing
    from tenure.agents.landings import Landed
    from tenure.agents.worktrees import Found, Record, Worktree

_OVER = ("ended", "stale")


def _receipt(run: Run, given: Namespace) -> str:
    """The receipt to present; inside a worktree, with no task named, its task is meant."""
    from tenure.agents.worktrees import record_here

    here = record_here(run.folder)
    if given.task is None and here is not None and here.project == run.project:
        given.task = here.key
    return run.receipt(given)


# --- add ----------------------------------------------------------------------------------------------------


@options(
    TASK,
    RECEIPT,
    arg("--base", metavar="COMMIT", help="begin from this branch or commit (else from the branch it will land on)"),
    arg("--onto", metavar="BRANCH", help="the branch it will land on (else --base if that is one, else the current)"),
)
def add(run: Run, given: Namespace) -> Answer:
    """Create a worktree for the task you hold, on its own branch: `.tenure/worktrees/B-003-gen2`.

    Your checkout is not touched. Work and commit there, then `tenure land`. A claim has one worktree: a second
    call prints its path.
    """
    from tenure.agents import fences, git, worktrees
    from tenure.core.ids import parse_receipt

    receipt = _receipt(run, given)
    parsed = parse_receipt(receipt)
    key = run.client.show(parsed.name)["key"]
    try:
        made = worktrees.make(
            run.folder, run.home.folder, key, parsed.generation, given.base, client=run.client, receipt=receipt,
            onto=given.onto,
        )  # fmt: skip
    except fences.NotHeld as error:
        run.receipts.settle(receipt, error.outcome)
        return answered(error.outcome)
    left = worktrees.left_behind(run.folder, key, made.branch, made.onto)
    value = {
        "task": key, "generation": parsed.generation, "path": git.shown(made.path), "branch": made.branch,
        "base": made.base, "onto": made.onto, "note": made.note,
        "left_behind": [{"branch": name, "commits": count} for name, count in left],
    }  # fmt: skip
    return Answer(value, lambda: _made(made, key, left))


def _made(made: Worktree, key: str, left: Iterable[tuple[str, int]]) -> str:
    from tenure.agents.git import shown
    from tenure.cli.text_format import counted

    lines = [
        shown(made.path),
        f"  {key} on {made.branch}, from {made.base[:12]}",
        f"  commit there, then `tenure land` puts it on {made.onto or 'the branch you name with --onto'}",
    ]
    for name, count in left:
        lines.append(f"  an earlier generation left {counted(count, 'commit')} on {name}; `--base` continues there")
    return "\n".join([*lines, f"  {made.note}"] if made.note else lines)


# --- list ---------------------------------------------------------------------------------------------------


@options()
def list_(run: Run, given: Namespace) -> Answer:
    """List the worktrees of claims: task, agent, whether the claim is live, commits not landed yet."""
    from tenure.cli.status import unlanded_work

    rows = _rows(run)
    waiting = unlanded_work(run)
    return Answer(rows, lambda: "\n".join([_table(rows), *(f"{one.text}; {one.way}" for one in waiting)]))


def _rows(run: Run) -> list[dict[str, Any]]:
    from tenure.agents import git, worktrees

    found = list(worktrees.ours(git.find(run.folder).top))
    states = _claims(run, [each.record for each in found if each.record])
    rows = []
    for each in found:
        record, tree = each.record, each.tree
        branch = record.branch if record else tree.branch
        claim, agent = states.get(record.claim, ("unknown", None)) if record else ("unknown", None)
        rows.append(
            {
                "path": git.shown(tree.path), "branch": branch, "task": record.key if record else None,
                "generation": record.generation if record else None, "onto": record.onto if record else None,
                "claim": claim, "agent": agent, "is_missing": tree.is_missing,
                "changes": 0 if tree.is_missing else len(git.changes(tree.path)),
                "commits": worktrees.unlanded(run.folder, tree, branch),
            }
        )  # fmt: skip
    return rows


def _claims(run: Run, records: list[Record]) -> dict[str, tuple[str, str | None]]:
    """Claim → live, ended (the last one, but over) or stale (a later one came), and who has the task now."""
    mine = [record for record in records if record.project == run.project]
    states: dict[str, tuple[str, str | None]] = {}
    for record, task in zip(mine, run.client.states([record.task for record in mine]) if mine else (), strict=True):
        if task["outcome"] == "OK":
            is_held = task["state"] in (CLAIMED, RUNNING)
            is_last = task["generation"] == record.generation
            states[record.claim] = ("stale" if not is_last else "live" if is_held else "ended", task["agent"])
    return states


def _table(rows: list[dict[str, Any]]) -> str:
    from tenure.cli.text_format import table

    if not rows:
        return "no worktrees; `tenure worktree add` creates one for the task you hold"
    return table(
        (
            (
                row["task"], row["generation"], row["claim"], row["agent"], row["commits"],
                "gone" if row["is_missing"] else row["changes"], row["branch"], row["path"],
            )
            for row in rows
        ),
        ("task", "gen", "claim", "held by", "unlanded", "changed", "branch", "path"),
    )  # fmt: skip


# --- remove -------------------------------------------------------------------------------------------------


@options(
    arg("task", nargs="?", help="whose worktrees; all generations of it"),
    arg("--ended", action="store_true", help="every worktree whose claim is over"),
)
def remove(run: Run, given: Namespace) -> Answer:
    """Remove worktrees whose content is also elsewhere.

    A worktree with uncommitted changes, with commits on no other branch, or of a live claim stays, with a message
    that names the reason. The branch is removed with its worktree.
    """
    from tenure.agents import git, worktrees

    if (given.task is None) == (not given.ended):
        raise Usage("worktree remove: name a task, or pass --ended", "`tenure worktree list` shows what there is")
    found = list(worktrees.ours(git.find(run.folder).top))
    states = _claims(run, [each.record for each in found if each.record])
    if given.task is not None:
        id = run.client.show(given.task)["id"]
        found = [each for each in found if each.record and each.record.task == id]
    else:
        found = [each for each in found if each.record and states.get(each.record.claim, ("", None))[0] in _OVER]
    removed, kept = [], []
    for each in found:
        reasons = _reasons(run, each, states) or worktrees.remove(run.folder, each)
        row = {"path": git.shown(each.tree.path), "branch": each.record.branch if each.record else None}
        if reasons:
            kept.append({**row, "in_the_way": reasons})
        else:
            removed.append(row)
    return Answer({"removed": removed, "kept": kept}, lambda: _removed(removed, kept), OF_KIND["denied"] if kept else 0)


def _reasons(run: Run, found: Found, states: dict[str, tuple[str, str | None]]) -> list[str]:
    here = os.path.realpath(run.folder)
    if os.path.commonpath([here, os.path.realpath(found.tree.path)]) == os.path.realpath(found.tree.path):
        return ["you are in it; start elsewhere"]
    claim, agent = states.get(found.record.claim, ("unknown", None)) if found.record else ("unknown", None)
    return [f"its claim is live, held by {agent}"] if claim == "live" else []


def _removed(removed: list[dict[str, Any]], kept: list[dict[str, Any]]) -> str:
    lines = [f"removed {row['path']}" for row in removed]
    for row in kept:
        lines += [f"kept {row['path']}", *(f"  {reason}" for reason in row["in_the_way"])]
    if any("commits" in reason for row in kept for reason in row["in_the_way"]):
        lines.append("land such commits, or keep them under another name: git branch NAME BRANCH")
    return "\n".join(lines) if lines else "nothing to remove"


# --- land ---------------------------------------------------------------------------------------------------


@options(
    TASK,
    RECEIPT,
    arg("--from", dest="source", metavar="BRANCH", help="what to land (else what this worktree, or the claim's, has)"),
    arg("--onto", metavar="BRANCH", help="where to (else the branch that the worktree was made for)"),
    arg("-s", "--summary", type=contents, default="", metavar="TEXT", help="a summary of the work, in a line or two"),
    arg("--result", type=json_value, metavar="JSON", help="more of the result: JSON, @FILE, or - for stdin"),
    arg("-m", "--message", type=contents, metavar="TEXT", help="of the merge commit (else the task's title)"),
    SEEN,
)
def land(run: Run, given: Namespace) -> Answer:
    """Merge commits into their branch: yours, and submit the result; or those of a result that has passed.

    A holder lands its own task. A person lands results that wait for it: the one of TASK, or without TASK each one that
    was made in a worktree of this repository; `tenure run` and `tenure daemon` do so too.
    The merge is made without a checkout; with conflicts nothing is moved, and the files are named. If the branch is
    checked out somewhere, that tree is updated too, and changes in it are kept; where they overlap, nothing is
    moved. After an interruption it can be repeated: nothing lands twice.
    """
    from tenure.agents import land
    from tenure.agents.git import shown
    from tenure.cli.signing import key_of

    passed = _passed(run, given)
    if passed is not None:
        return passed
    receipt = _receipt(run, given)
    run.client.signing_key = key_of(run)
    landed = land.land(
        run.client, receipt, run.folder, source=given.source, onto=given.onto, summary=given.summary,
        result=given.result, message=given.message, seen=given.seen,
    )  # fmt: skip
    run.receipts.settle(receipt, landed.outcome)
    value = {name: part for name, part in landed._asdict().items() if name != "outcome"}
    value["checkout"] = None if landed.checkout is None else shown(landed.checkout)
    return answered(landed.outcome, lambda: _landed(landed), landing=value)


def _landed(landed: Landing) -> str:
    from tenure.agents.git import shown

    outcome, lines = landed.outcome, []
    if landed.commit is not None:
        lines.append(f"landed on {landed.branch} as {landed.commit[:12]}")
    if landed.checkout is not None:
        lines.append(f"  {shown(landed.checkout)} was updated with it")
    lines += [
        f"  generation {earlier['generation']} ({earlier['agent']}) had landed {earlier['new'][:12]} there before you"
        for earlier in landed.earlier
    ]
    if landed.not_run:
        why = "an agent can write them, or they need a checkout of the merge"
        lines.append(f"  hooks not run: {', '.join(landed.not_run)} ({why})")
    lines.append(outcome_text(outcome))
    if outcome.ok:
        lines.append("  `tenure worktree remove --ended` removes landed worktrees")
    return "\n".join(lines)


# --- results that have passed -------------------------------------------------------------------------------


def _passed(run: Run, given: Namespace) -> Answer | None:
    """What became of results that have passed; None where the caller lands as a holder."""
    from tenure.agents.landings import Lander
    from tenure.agents.result_checker import tools_for
    from tenure.agents.worktrees import record_here

    if given.receipt or given.source or given.onto or run.who.role == "agent":
        return None
    lander = Lander(run.client, run.folder, lambda: tools_for(run.folder, run.environ))
    if given.task is None:
        if run.receipts.live() or record_here(run.folder) is not None:
            return None
        found = [done for one in lander.mine() if (done := lander.land(one["task"])) is not None]
        others = [one for one in lander.waiting() if one["key"] not in {done.key for done in found}]
        return _settled(found, others)
    task = run.client.show(given.task.partition("@")[0])
    check: Mapping[str, Any] = task.get("validation") or {}
    if task["state"] != VALIDATING or check.get("phase") == JUDGE or not check.get("land"):
        return None
    landed = lander.land(task["id"], by_name=True)
    if landed is None:
        commit, onto = check["land"]["commit"], check["land"]["onto"]
        raise NotFound(
            f"{task['key']} is to be landed on {onto}, and commit {commit[:12]} is not in this repository",
            "land it in a checkout of the repository that has it, or fetch it",
        )
    return _settled([landed], [])


def _settled(found: Sequence[Landed], others: Sequence[Mapping[str, Any]]) -> Answer:
    from tenure.agents.landings import LANDED
    from tenure.client.wire import outcome_value

    lines = [f"{done.key}: {done.message}" for done in found]
    lines += [
        f"{one['key']} asks to be landed on {one['land']['onto']}: tenure land {shell_word(one['key'])}"
        for one in others
    ]
    values = [
        {"task": done.key, "what": done.what, "message": done.message, **outcome_value(done.outcome)} for done in found
    ]
    code = 0 if all(done.what == LANDED for done in found) else OF_KIND["denied"]
    return Answer(values, "\n".join(lines) or "nothing waits to be landed in this repository", code)
