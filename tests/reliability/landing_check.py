"""What must hold when all landings are settled: the branch has what was accepted, and nothing else."""

from __future__ import annotations

import subprocess
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

from tests.reliability.landing_runner import BRANCH, opened, work_of


class Found(NamedTuple):
    wrong: list[str]
    counts: Counter[str]


def git(repository: Path, *words: str, text: str | None = None) -> str:
    asked = ["git", "-C", str(repository), *words]
    return subprocess.run(asked, input=text, capture_output=True, text=True, check=True).stdout.strip()


def found(folder: Path) -> Found:
    """Everything that is wrong, and how often what happened."""
    repository = folder / "shop"
    lines = [line.partition(" ") for line in (folder / "log").read_text().splitlines()]
    client = opened(folder, "checker")
    wrong = [rest for what, _, rest in lines if what == "wrong"]
    wrong += client.verify()
    counts: Counter[str] = Counter(what for what, _, _ in lines)
    on_branch = set(git(repository, "rev-list", BRANCH).split())
    accepted: dict[str, str] = {}  # commit → work
    named: set[str] = set()
    for task in client.tasks(limit=1000):
        history = client.history(task["key"])
        wrong += [f"{task['key']}: {what}" for what in _runs(history)]
        for claim in history:
            row = claim["validation"]
            if row is None:
                continue
            named.add(row["land"]["commit"])
            counts[row["state"]] += 1
            counts["conflicts"] += claim["error_class"] == "merge_conflict"
            is_passed, commit = row["state"] == "passed", row["land"]["commit"]
            if is_passed != (commit in on_branch):
                where = "is" if commit in on_branch else "is not"
                wrong.append(f"{task['key']} generation {claim['generation']}: {row['state']}, and {where} on {BRANCH}")
            if is_passed:
                accepted[commit] = work_of(task["key"], claim["generation"])
        passed = [claim for claim in history if claim["validation"] and claim["validation"]["state"] == "passed"]
        if len(passed) != (task["state"] == "completed"):
            wrong.append(f"{task['key']} is {task['state']}, and {len(passed)} results of it have passed")
    wrong += _branch(repository, accepted)
    wrong += _lost(repository, [rest.split() for what, _, rest in lines if what == "work"], named, client)
    client.close()
    return Found(wrong, counts)


def _runs(history: list[Any]) -> list[str]:
    """A claim follows a submitted result only where that was refused or withdrawn."""
    return [
        f"generation {claim['generation']} was followed by another, though its result is {claim['validation']['state']}"
        for claim in history[:-1]
        if claim["validation"] is not None and claim["validation"]["state"] not in ("refused", "withdrawn")
    ]


def _branch(repository: Path, accepted: dict[str, str]) -> list[str]:
    """Its own commits are the person's and one merge for each accepted work; its files are theirs."""
    wrong = []
    merged: Counter[str] = Counter()
    for line in git(repository, "log", "--first-parent", "--format=%P\t%s", BRANCH).splitlines():
        parents, _, subject = line.partition("\t")
        others = parents.split()[1:]
        merged.update(others)
        if not others and subject not in ("note", "first"):
            wrong.append(f"{BRANCH} has a commit of nobody: {subject}")
    wrong += [
        f"{BRANCH} has a merge of {commit}, which was not accepted" for commit in merged if commit not in accepted
    ]
    wrong += [
        f"{accepted[commit]} was landed {n} times" for commit, n in merged.items() if n > 1 and commit in accepted
    ]
    files = set(git(repository, "ls-tree", "-r", "--name-only", BRANCH, "work/").split())
    wrong += [f"{name} is on {BRANCH}, and was not accepted" for name in files - set(accepted.values())]
    wrong += [f"{name} was accepted, and is not on {BRANCH}" for name in set(accepted.values()) - files]
    left = git(repository, "status", "--porcelain")
    return wrong + ([f"the checkout is not as {BRANCH}: {left}"] if left else [])


def _lost(repository: Path, works: list[list[str]], named: set[str], client: Any) -> list[str]:
    """No commit is lost, not even when git collects what no ref has."""
    git(repository, "worktree", "prune")
    git(repository, "gc", "-q", "--prune=now")
    commits = "\n".join(work[2] for work in works)
    there = git(repository, "cat-file", "--batch-check", text=commits).splitlines()
    wrong = [f"a commit is lost: {work}" for work, line in zip(works, there, strict=True) if "commit" not in line]
    submitted = {
        (task["key"], str(claim["generation"])): claim["validation"]
        for task in client.tasks(limit=1000)
        for claim in client.history(task["key"])
    }
    wrong += [
        f"no result names the commit of {work}"
        for work in works
        if submitted.get((work[0], work[1])) is not None and work[2] not in named
    ]
    return wrong
