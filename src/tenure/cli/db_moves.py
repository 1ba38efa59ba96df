"""`db archive|copy|restore`: move finished tasks to the archive, copy a project, restore a backup."""

from __future__ import annotations

import os
from argparse import Namespace
from typing import TYPE_CHECKING

from tenure.cli.main import Answer, Run, arg, options
from tenure.cli.option_kinds import seconds
from tenure.cli.text_format import counted
from tenure.config import without_password
from tenure.core.errors import NotAllowed

if TYPE_CHECKING:
    from tenure.client.copy import Copies


def _must_own(run: Run) -> None:
    if run.who.role != "owner":
        raise NotAllowed(f"{run.verb}: needs the role owner", "ask a person to do it")


@options(
    arg("--older-than", type=seconds, metavar="AGE", help="finished longer ago than this, as 30d (else archive_after)"),
    arg("--dry-run", action="store_true", help="print how many would move, without moving them"),
)
def archive(run: Run, given: Namespace) -> Answer:
    """Move finished tasks that no open task refers to into the archive; delete those whose retention is over.

    Sweeps do the same by themselves, after the project's limit `archive_after` (90 days). An archived task is still
    found by its name, with its log; `list --archived` lists it. A command that changes it brings it back.
    """
    _must_own(run)
    if given.dry_run:
        ahead = run.client.could_archive(older=given.older_than)
        said = f"{counted(ahead.tasks, 'task')} would be moved"
        if ahead.held_back:
            said += f", {ahead.held_back} more once every reader of the log has passed their events"
        return Answer({"would_move": ahead.tasks, "held_back": ahead.held_back, "dry_run": True}, said)
    moved = run.client.archive_finished(older=given.older_than)
    value = {
        "moved": moved.tasks,
        "bytes": moved.bytes,
        "pruned": moved.pruned,
        "failed": moved.failed,
        "held_back": moved.held_back,
    }
    lines = [f"{counted(moved.tasks, 'task')} moved into the archive, {moved.bytes} bytes"]
    if moved.pruned:
        lines.append(f"{counted(moved.pruned, 'task')} deleted from it: history_retention is over")
    if moved.held_back:
        lines.append(f"{counted(moved.held_back, 'task')} stay: a reader of the log has not passed their events yet")
    lines += [f"{task} stays: {why}" for task, why in moved.failed.items()]
    return Answer(value, "\n".join(lines), 10 if moved.failed else 0)


@options(
    arg("source", metavar="FROM", help="the store to copy from: a path or a URL"),
    arg("target", metavar="TO", help="the store to copy to; created if missing"),
    arg("--artifacts", metavar="URL", help="where to store the bytes of artifacts (else the setting)"),
    arg("--no-verify", action="store_true", help="do not verify both stores afterwards"),
)
def copy(run: Run, given: Namespace) -> Answer:
    """Move a project (all of them without --project) to another store, as from SQLite to PostgreSQL.

    Refused while claims are live, and where the other store has a project of that name. A project is copied as a
    whole or not at all. Claiming is stopped in the first store; earlier receipts are void (STALE_EPOCH).
    """
    _must_own(run)
    source, target = (_store_named(run, url) for url in (given.source, given.target))
    from tenure.client.copy import copy as copied

    done = copied(
        source, target, given.project, verified=not given.no_verify, artifacts=run.setting("artifacts"),
        artifacts_to=given.artifacts,
    )  # fmt: skip
    value = {
        "from": without_password(source), "to": without_password(target),
        "projects": [
            {"project": one.project, "rows": one.rows, "events": one.events, "epoch": one.epoch} for one in done.copied
        ],
        "findings": done.findings,
    }  # fmt: skip
    shown = without_password(source), without_password(target)
    return Answer(value, lambda: _told(done, *shown), 10 if done.findings else 0)


def _store_named(run: Run, url: str) -> str:
    return url if "://" in url else os.path.join(run.folder, url)


def _told(done: Copies, source: str, target: str) -> str:
    lines = []
    for one in done.copied:
        tasks = one.rows["task"] + one.rows["archived"]
        rows = sum(one.rows.values())
        lines.append(f"{one.project}: {counted(tasks, 'task')}, {rows} rows and {one.events} events are in {target}")
    lines += [f"claiming is stopped in {source}; its data is unchanged", "to use the other store:"]
    lines += [
        f"  export TENURE_URL={target}",
        "  (or `url` in tenure.toml, which each person allows with `tenure trust`)",
    ]
    if done.is_verified:
        lines += done.findings or ["both stores were verified"]
    return "\n".join(lines)


@options(
    arg("backup", help="a file that `tenure db backup` made"),
    arg("--to", metavar="PATH", help="the store to replace (else the one found here)"),
)
def restore(run: Run, given: Namespace) -> Answer:
    """Replace the store by a backup, in a new epoch. The previous store is kept under another name.

    The backup is checked first. Claims that were live in it end without a lost attempt; earlier receipts are void
    (STALE_EPOCH), and results submitted with them are kept. Refused while another process has the store open.
    """
    _must_own(run)
    from tenure.client.restore import restore as restored

    url = _store_named(run, given.to) if given.to else run.home.url
    done = restored(os.path.join(run.folder, given.backup), url)
    value = {"store": done.store, "aside": done.aside, "epoch": done.epoch, "ended": done.ended}
    lines = [f"{done.store} is restored, in epoch {done.epoch}"]
    if done.aside:
        lines.append(f"the previous store is in {done.aside}")
    if done.ended:
        lines.append(f"{counted(len(done.ended), 'claim')} of the backup ended: {', '.join(done.ended[:5])}")
    return Answer(value, "\n".join(lines))
