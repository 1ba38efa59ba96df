"""`daemon`, `db …`: the store itself."""

from __future__ import annotations

import os
from argparse import Namespace
from typing import TYPE_CHECKING

from tenure.cli.main import Answer, Run, Usage, arg, options
from tenure.cli.option_kinds import seconds
from tenure.cli.text_format import counted, lasting
from tenure.config import without_password
from tenure.core.errors import close_all
from tenure.core.records import DataKey
from tenure.core.safe_text import shell_word
from tenure.core.tenant_records import HOME

if TYPE_CHECKING:
    from tenure.client.copy import Copies
    from tenure.store_folder import LostStore


@options()
def upgrade(run: Run, given: Namespace) -> Answer:
    """Upgrade the store to this version's schema, as opening it does; a backup is made first.

    On PostgreSQL also the schemas of tenants that have their own; missing ones are created.
    """
    from tenure.client.transports.local import LocalTransport

    schema = getattr(run.client.store, "schema", None)
    transport = run.client.transport
    tenants = transport.open_schemas() if isinstance(transport, LocalTransport) else []
    text = f"{run.home.shown} has schema {schema}" + "".join(f"\ntenant {name}: the same" for name in tenants)
    return Answer({"store": run.home.shown, "schema": schema, "tenants": tenants}, text)


@options(arg("--every", type=seconds, default=2.0, metavar="SECONDS", help="longest time between sweeps (2)"))
def daemon(run: Run, given: Namespace) -> int:
    """Coordinate the store's projects until stopped. Optional: it makes events prompt.

    Every command settles expired leases, retries, delays and offers first; with the daemon their events come
    promptly, for readers of the log and `wait`. It is the same coordinator as in `serve`: of any
    number of both on one store, one leads, and another takes over within 30 s if it dies.

    Results that wait for a verdict are checked too: by the tests of this folder, where `tenure trust` allows them.
    Those that have passed are landed, where they were made in a worktree of this repository.
    While it leads it sends events to the sinks, webhooks and channels of the settings, and runs local hooks.
    """
    import signal
    import threading

    from tenure.cli.answers import kept_crash
    from tenure.cli.command_log import log_of
    from tenure.cli.leading import leader_of
    from tenure.cli.validation_verbs import validating_of
    from tenure.processes.thread_errors import reported

    ended = threading.Event()
    for name in (signal.SIGINT, signal.SIGTERM):
        signal.signal(name, lambda *_: ended.set())
    log = log_of(run)
    leader = leader_of(run, run.client.engine, lambda text: log.say("warning", text), looks=given.every)
    validating = validating_of(run, lambda text: log.say("info", text), lands=True)
    with reported(lambda text, error: log.say("error", f"{text} ({kept_crash(error, ['daemon']).hint})")):
        try:
            leader.start()
            validating.start()
            log.say("info", f"coordinating {run.home.shown}; Ctrl-C or SIGTERM ends it")
            ended.wait()
        finally:
            close_all(validating.stop, leader.stop)
    return 0


@options(arg("target", help="the file to write; it must not exist"))
def backup(run: Run, given: Namespace) -> Answer:
    """Back up the store while it is in use. A copy that is opened elsewhere begins a new epoch."""
    target = os.path.normpath(os.path.join(run.folder, given.target))
    run.client.backup(target)
    value: dict[str, object] = {"backup": target, "bytes": os.path.getsize(target)}
    text = f"the store is copied to {target}"
    if run.client.engine.read(lambda tx: tx.find(DataKey, {}, limit=1)):
        value["without"] = "master key"
        text += "\nthe master key is not in it: without a copy of that key its secrets cannot be opened"
    return Answer(value, text)


@options()
def check(run: Run, given: Namespace) -> Answer:
    """Check the store's bytes and every invariant of its rows; `doctor` checks everything else."""
    wrong = run.client.verify()
    return Answer({"ok": not wrong, "findings": wrong}, "\n".join(wrong) or "no errors found", 10 if wrong else 0)


@options(arg("--accept", action="store_true", help="accept the host's clock as right"))
def clock(run: Run, given: Namespace) -> Answer:
    """Show the difference between this host's clock and the store's time, and repair it after a wrong clock.

    The store's time never goes back by itself: after a clock that was ahead it continues from the last event. With
    --accept it is the host's again: times that were set ahead move back by as much, and claims that were made ahead
    end without a lost attempt.
    """
    if given.accept:
        run.must_own(" --accept")
        back, ended = run.client.accept_clock()
        text = "the clock is accepted" + (f"; the store's time went back by {lasting(back / 1e6)}" if back else "")
        lines = [text, *(f"  {key}: its claim ended, no attempt is lost" for key in ended)]
        return Answer({"back": back / 1e6, "ended": ended}, "\n".join(lines))
    state = run.client.clock()
    value = {"now": state.now, "behind": state.behind / 1e6, "jump": state.jump / 1e6, "host": state.is_host}
    whose = "this host's clock" if state.is_host else "the server's clock"
    if state.jump:
        text = (
            f"{whose} jumped {lasting(state.jump / 1e6)} ahead: nothing is written. Set it right; "
            "if it is right now, `tenure db clock --accept`"
        )
    elif state.behind and state.is_host:
        text = (
            f"{whose} is {lasting(state.behind / 1e6)} behind the store's time, which goes on from the last event. "
            "If the clock is right, `tenure db clock --accept`"
        )
    elif state.behind:
        text = f"{whose} is {lasting(state.behind / 1e6)} behind the last event: the store's time waits for it"
    else:
        text = f"{whose} is the store's time"
    return Answer(value, text)


@options(arg("-m", "--reason", required=True, metavar="TEXT", help="the reason, for the log"))
def new_epoch(run: Run, given: Namespace) -> Answer:
    """End every live claim and void all receipts of every tenant, as after a restore; with --tenant of one.

    Tenants with their own schema on the same server are included. Those with their own server are named, and not
    included: give them an epoch with --tenant, where their server lost commits too.
    """
    run.must_own()
    begun = run.client.new_epoch(given.reason, alone=run.setting("tenant") is not None)
    whose = f"tenant {begun.tenants[0]}" if len(begun.tenants) == 1 else counted(len(begun.tenants), "tenant")
    lines = [f"epoch {begun.epoch}: every earlier receipt of {whose} is void; tasks can be claimed again"]
    if begun.unrecorded:
        lines.append(f"not in the log of {', '.join(begun.unrecorded)}: claims end there with their leases")
    if begun.elsewhere:
        lines.append(f"not of {', '.join(begun.elsewhere)}: each has another store; --tenant NAME begins its epoch")
    value = {"epoch": begun.epoch, "tenants": [*begun.tenants]}
    value |= {"unrecorded": [*begun.unrecorded], "elsewhere": [*begun.elsewhere]}
    return Answer(value, "\n".join(lines))


@options(
    arg("--older-than", type=seconds, metavar="AGE", help="finished longer ago than this, as 30d (else archive_after)"),
    arg("--dry-run", action="store_true", help="print how many would move, without moving them"),
)
def archive(run: Run, given: Namespace) -> Answer:
    """Move finished tasks that no open task refers to into the archive; delete those whose retention is over.

    Sweeps do the same by themselves, after the project's limit `archive_after` (90 days). An archived task is still
    found by its name, with its log; `list --archived` lists it. A command that changes it brings it back.
    """
    run.must_own()
    if given.dry_run:
        ahead = run.client.could_archive(older=given.older_than)
        text = f"{counted(ahead.tasks, 'task')} would be moved"
        if ahead.held_back:
            text += f", {ahead.held_back} more once every reader of the log has passed their events"
        return Answer({"would_move": ahead.tasks, "held_back": ahead.held_back, "dry_run": True}, text)
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
    run.must_own()
    if run.setting("tenant") not in (None, HOME):
        raise Usage(f"db copy: copies projects of the tenant {HOME} alone (got {run.setting('tenant')})")
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
    return Answer(value, lambda: _copies_text(done, *shown), 10 if done.findings else 0)


def _store_named(run: Run, url: str) -> str:
    return url if "://" in url else os.path.join(run.folder, url)


def _copies_text(done: Copies, source: str, target: str) -> str:
    lines = []
    for one in done.copied:
        tasks = one.rows["task"] + one.rows["archived"]
        rows = sum(one.rows.values())
        lines.append(f"{one.project}: {counted(tasks, 'task')}, {rows} rows and {one.events} events are in {target}")
    lines += [f"claiming is stopped in {source}; its data is unchanged", "to use the other store:"]
    lines += [
        f"  export TENURE_URL={shell_word(target)}",
        "  (or `url` in tenure.toml, which each person allows with `tenure trust`)",
    ]
    if done.is_verified:
        lines += done.findings or ["both stores were verified"]
    return "\n".join(lines)


def _lost(run: Run) -> LostStore | None:
    """The store that was here, in a folder that has none: it is restored to where it was."""
    from tenure.store_folder import LostStore

    try:
        _ = run.home
    except LostStore as lost:
        return lost
    return None


def _make_folder(lost: LostStore) -> None:
    """What `init` puts beside a store: it was lost with it."""
    from tenure.agents import new_store
    from tenure.locations import DATABASE, FOLDER

    folder = os.path.dirname(lost.path)
    if (os.path.basename(folder), os.path.basename(lost.path)) == (FOLDER, DATABASE):
        new_store.make_folder(os.path.dirname(folder))
        if lost.project:
            new_store.keep_project(folder, lost.project)


@options(
    arg("backup", help="a file that `tenure db backup` made, or a copy of your state folder"),
    arg("--to", metavar="PATH", help="the store to replace (else the one found here)"),
)
def restore(run: Run, given: Namespace) -> Answer:
    """Replace the store by a backup, in a new epoch. The previous store is kept under another name.

    The backup is checked first. Claims that were live in it end without a lost attempt; earlier receipts are void
    (STALE_EPOCH), and results submitted with them are kept. Refused while another process has the store open.
    """
    run.must_own()
    from tenure.client.restore import restore as restored
    from tenure.store_folder import KnownStore, remember
    from tenure.stores.sqlite.store_file import place_of

    lost = _lost(run) if given.to is None else None
    url = _store_named(run, given.to) if given.to else run.home.url if lost is None else lost.path
    if lost is not None:
        _make_folder(lost)
    done = restored(os.path.join(run.folder, given.backup), url)
    remember(KnownStore(done.store, place_of(done.store), done.epoch, lost.project if lost else ""), run.environ)
    value = {"store": done.store, "aside": done.aside, "epoch": done.epoch, "ended": done.ended}
    lines = [f"{done.store} is restored, in epoch {done.epoch}"]
    if lost is not None:
        lines.append("artifacts that were beside it are in no copy: `tenure doctor --verify` lists those that are gone")
    if done.aside:
        lines.append(f"the previous store is in {done.aside}")
    if done.ended:
        lines.append(f"{counted(len(done.ended), 'claim')} of the backup ended: {', '.join(done.ended[:5])}")
    return Answer(value, "\n".join(lines))
