"""`secret rotate`: the keys that seal secrets."""

from __future__ import annotations

from argparse import Namespace
from typing import Any

from tenure.cli.main import Answer, Run, Usage, arg, options
from tenure.core import commands as c


@options(
    arg("--master", action="store_true", help="wrap the data keys of all projects by the current master key"),
    arg("--lost", action="store_true",
        help="give up, for ever, the secrets of all projects whose master key is lost"),
    arg("--reseal", action="store_true", help="also seal everything in this project again with its data key"),
)  # fmt: skip
def rotate(run: Run, given: Namespace) -> Answer:
    """Rotate the keys of secrets. New secrets get a new data key; earlier ones stay readable.

    With --master the data keys stay, and another master key wraps them. For your own SQLite store that key is made here
    and put before the old one in its file; elsewhere put the new one before the old one yourself, then run this.

    Without the master key that wraps the data keys nothing can be sealed or opened. If it is lost, make a new one, and
    --lost forgets the data keys: secrets can be set again then, but nothing that they sealed opens again, even if the
    key is found.
    """
    run.must_own()
    if given.master and given.lost:
        raise Usage("secret rotate: --master and --lost exclude each other", "first --lost, then --master")
    value: dict[str, Any] = {"project": run.project, "master": given.master}
    if given.master or given.lost:
        lines = _in_all_projects(run, lost=given.lost)
    else:
        lines = [run.client.rotate_data_key().check().message]
    if given.reseal:
        value["resealed"], _ = _reseal(run)
        lines.append(f"{run.project}: secrets sealed again: {value['resealed']}")
    return Answer({**value, "messages": lines}, "\n".join(lines))


def _in_all_projects(run: Run, *, lost: bool) -> list[str]:
    lines = []
    if not run.client.is_remote:
        source: Any = run.client.engine.context.sealer.source  # type: ignore[union-attr]  # the one of `tenure`
        if lost:
            source.keys(make=True)  # the file of an embedded store may be gone
        path = None if lost else source.renew()
        lines += [f"a new master key is in {path}: back it up; the keys before it stay there"] if path else []
    # "" is the store itself, which may have secrets too.
    for project in [*run.client.projects(), *([] if run.client.is_remote else [""])]:
        outcome = run.client.do(c.RotateDataKey(project=project, master=not lost, lost=lost))
        if outcome.outcome == "UPDATED":
            lines.append(outcome.message if project else f"the store{outcome.message}")
    nothing = "every data key opens: nothing is lost" if lost else "every data key is wrapped by the current master key"
    return lines or [nothing]


@options()
def seal(run: Run, given: Namespace) -> Answer:
    """Seal the texts of this project that are secret by their name and were stored as given, without a master key.

    Tasks, schedules, triggers and the ends of plans; a task that somebody holds is left, run it again later. The log,
    archived tasks and backups keep what they have: replace those secrets where they are used.
    """
    run.must_own()
    sealed, left = _reseal(run, plain=True)
    lines = [f"{run.project}: texts sealed: {sealed}"]
    lines += [*left[:5], *([f"… and {len(left) - 5} more"] if len(left) > 5 else [])]
    if sealed:
        lines.append("the log, archived tasks and backups still have them: replace these secrets where they are used")
    return Answer({"project": run.project, "sealed": sealed, "left": left}, "\n".join(lines))


def _reseal(run: Run, *, plain: bool = False) -> tuple[int, list[str]]:
    """How many were sealed, and a line about each task that was left."""
    count, left, after = 0, list[str](), None
    while True:
        outcome = run.client.reseal(after, plain=plain).check()
        count += (outcome.counts or {}).get("resealed", 0)
        left += outcome.warnings or ()
        after = outcome.next
        if after is None:
            return count, left
