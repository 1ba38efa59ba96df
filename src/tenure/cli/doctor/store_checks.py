"""Checks of the store, its folder and its disk: schema, clock, permissions, git, trust, free space."""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING

from tenure.cli.doctor.findings import Finding, error, first_of, note, ok, warning
from tenure.cli.text_format import SECOND, counted, lasting
from tenure.core import limits
from tenure.core.errors import TenureError
from tenure.core.safe_text import shell_word

if TYPE_CHECKING:
    from tenure.cli.doctor.doctor import Patient

MOST_FILES = limits.DOCTOR_FILES
MEGABYTE = 1 << 20
LITTLE, SCARCE = 1 << 30, 100 << 20  # bytes of free space
LONG_LOG = 256 * MEGABYTE
TOLERATED = 2 * SECOND  # this host's clock may be that far behind the last event
SILLY = 1_700_000_000 * SECOND  # an earlier clock is wrong


def store(patient: Patient) -> Iterator[Finding]:
    if patient.client is None:
        return  # reported already
    projects = patient.client.projects()
    schema = None if patient.client.is_remote else getattr(patient.client.store, "schema", None)
    facts = [f"schema {schema}" if schema is not None else "", counted(len(projects), "project")]
    if is_file_store(patient.home.url):
        import apsw

        facts.insert(0, f"SQLite {apsw.sqlite_lib_version()}")
    yield ok("store", f"{patient.home.shown}: {', '.join(fact for fact in facts if fact)}")
    if patient.run.project not in projects:
        there = f"there are {first_of(projects)}" if projects else "it has none yet"
        yield error(
            "project",
            f"project {patient.run.project} is not in this store; {there}",
            "name another with --project, or create it with `tenure init`",
        )
    if is_file_store(patient.home.url):
        log = path_of(patient.home.url) + "-wal"
        if os.path.exists(log) and os.path.getsize(log) > LONG_LOG:
            yield note(
                "store",
                f"the log beside the store has {os.path.getsize(log) // MEGABYTE} MB: a reader keeps it open",
                "end commands that have been reading for long; then it shrinks by itself",
            )
        if os.path.exists(f"{log}.1.aside"):
            yield note(
                "store",
                f"a backup was copied over the store; its former log is {log}.1.aside",
                "it has the last commits of the former store; delete it when they are not needed",
            )


def copies(patient: Patient) -> Iterator[Finding]:
    """Whether an embedded store has a copy outside of its folder."""
    if patient.client is None or not is_file_store(patient.home.url):
        return
    from tenure.store_folder import copies_at

    path = os.path.realpath(path_of(patient.home.url))
    newest = max(copies_at(path, patient.run.environ), key=lambda copy: copy.made, default=None)
    size = os.path.getsize(path)
    if size > limits.COPY_LARGEST:
        most = limits.COPY_LARGEST // MEGABYTE
        yield warning(
            "copies",
            f"the store has {size // MEGABYTE} MB, and up to {most} MB are copied outside of its folder",
            "make backups of it with `tenure db backup FILE`",
        )
    elif newest is not None:
        made = time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(newest.made))
        yield ok("copies", f"the newest has everything up to event {newest.sequence}, {made}: {newest.path}")
    elif patient.run.setting("copies.every") <= 0:
        yield note("copies", "copies are off (copies.every is 0)", "`tenure db backup FILE` makes a backup")
    else:
        yield ok("copies", "there is none yet outside of its folder: `tenure run`, `daemon` and `serve` make them")


def reviews(patient: Patient) -> Iterator[Finding]:
    """What a verdict proves here."""
    if patient.client is not None and not patient.client.is_remote:
        text = "on a store without a server a review is a courtesy among the processes of one user, as its file is"
        yield ok("reviews", f"{text}; a server with keys makes it a guard")


def secrets(patient: Patient) -> Iterator[Finding]:
    """Whether this process can open the secrets that the store has, and none is stored as it is."""
    if patient.client is None or patient.client.is_remote:
        return  # the server has the key
    from tenure.core.records import DataKey, Trigger
    from tenure.engine.runtime.seals import Vault
    from tenure.engine.secrets import plain_values
    from tenure.engine.secrets.trigger_secrets import is_plain

    engine = patient.client.engine
    plain = [row.id for row in engine.read(lambda tx: tx.find(Trigger, {})) if is_plain(row)]
    if plain:
        yield warning(
            "secrets",
            f"the secrets of triggers {first_of(plain)} are stored as they are, from before 0.2",
            "give `serve` or `daemon` a master key, which seals them; or `tenure trigger rotate`",
        )
    if seen := plain_values.seen_in(engine):
        yield warning("secrets", *plain_values.told(seen))
    projects = sorted({row.project for row in engine.read(lambda tx: tx.find(DataKey, {}))})
    try:
        for project in projects:
            engine.read_settled((), lambda work: Vault(work, project).seals.check())  # noqa: B023 - called at once
    except TenureError as problem:
        yield error("secrets", problem.message, problem.hint or "")
        return
    if projects:
        yield ok("secrets", f"the master key opens those of {counted(len(projects), 'project')}")


def clock(patient: Patient) -> Iterator[Finding]:
    """The store's time never goes back by itself, and a clock that jumps ahead is refused."""
    if patient.client is None or patient.client.is_remote:
        return  # doctor on the server's host checks it
    state = patient.client.clock()
    whose = "this host's clock" if state.is_host else "the server's clock"
    if time.time_ns() // 1000 < SILLY:
        yield error("clock", f"this host's date is {time.strftime('%Y-%m-%d')}", "set its clock right")
    elif state.jump:
        yield error(
            "clock",
            f"{whose} jumped {lasting(state.jump / 1e6)} ahead: every write is refused (CLOCK_JUMP)",
            "have the clock set right (chrony, ntp); if it is right now, `tenure db clock --accept`",
        )
    elif state.behind > TOLERATED and state.is_host:
        yield warning(
            "clock",
            f"{whose} is {lasting(state.behind / 1e6)} behind the store's time, which continues without it",
            "have the clock set right (chrony, ntp); if it is right now, `tenure db clock --accept`",
        )
    elif state.behind > TOLERATED:
        yield warning(
            "clock",
            f"{whose} is {lasting(state.behind / 1e6)} behind the last event: the store's time stands still "
            "until then, and leases last longer",
            "set the server's clock right (chrony, ntp); the store continues by itself",
        )
    else:
        yield ok("clock", "not behind the last event")


def server(patient: Patient) -> Iterator[Finding]:
    """Settings of the database's server that the store's promises depend on."""
    if patient.client is None or patient.client.is_remote:
        return
    unsafe = getattr(patient.client.store, "unsafe_settings", None)
    if unsafe is None:
        return  # it was refused at opening
    found = unsafe()
    for setting in found:
        yield error("server", setting, "set it in the server's configuration; the how-to page of the store has all")
    if not found:
        yield ok("server", "its settings keep every acknowledged commit")


def is_file_store(url: str) -> bool:
    return "://" not in url or url.startswith("sqlite://")


def path_of(url: str) -> str:
    from urllib.parse import unquote

    return os.path.realpath(unquote(url.removeprefix("sqlite://")) if url.startswith("sqlite://") else url)


def permissions(patient: Patient) -> Iterator[Finding]:
    """Only the owner may read `.tenure` and the state of its store elsewhere: a receipt is a key."""
    from tenure.user_state import store_states

    for folder in dict.fromkeys((patient.home.folder, *store_states(patient.run.environ, patient.home.url))):
        if os.path.isdir(folder):
            yield from _permissions_of(folder)


def _permissions_of(folder: str) -> Iterator[Finding]:
    open_to_others, foreign = [], []
    for path in _within(folder):
        try:
            found = os.lstat(path)
        except FileNotFoundError:
            continue  # a side file that has just gone
        if stat.S_ISLNK(found.st_mode):
            continue
        if found.st_uid != os.getuid():
            foreign.append(os.path.relpath(path, os.path.dirname(folder)))
        # A closed folder closes what lies in it; the files' own modes still matter when they are moved or copied.
        if stat.S_IMODE(found.st_mode) & 0o077 and not _is_meant_open(path):
            open_to_others.append(os.path.relpath(path, os.path.dirname(folder)))
    if open_to_others:
        level = error if os.path.basename(folder) in open_to_others else warning
        yield level(
            "permissions",
            f"others may read {first_of(open_to_others)}",
            f"chmod -R go= {folder}",
        )
    if foreign:
        yield warning(
            "permissions",
            f"{first_of(foreign)} belongs to another user, who may lock you out",
            "let all agents run as one user, or use your own store",
        )
    if not open_to_others and not foreign:
        yield ok("permissions", f"only its owner can read {folder}")


def _is_meant_open(path: str) -> bool:
    """Not secret, or a checkout of the repository, whose files have the modes that git gives them."""
    return os.path.basename(path) == ".gitignore"


def _within(folder: str) -> Iterator[str]:
    """The folder and its content, without worktrees: those are the repository's."""
    yield folder
    count = 0
    for path, folders, files in os.walk(folder):
        if path == folder:
            folders[:] = [name for name in folders if name != "worktrees"]
        for name in (*folders, *files):
            yield os.path.join(path, name)
            count += 1
            if count == MOST_FILES:
                return


def git(patient: Patient) -> Iterator[Finding]:
    """git must never commit the store: a commit would publish receipts, and a checkout would replace the file."""
    from tenure.agents import git as program
    from tenure.agents.new_store import worktree_of

    folder = patient.home.folder
    if not os.path.isdir(folder) or worktree_of(folder) is None:
        return
    try:
        tracked = program.call(os.path.dirname(folder), "ls-files", "-z", "--", folder).out
        ignored = program.call(os.path.dirname(folder), "check-ignore", "--quiet", os.path.join(folder, "tenure.db"))
    except program.NoRepository:
        yield note("git", "git is not installed: not checked", "worktrees and landing need git 2.38 or newer")
        return
    if tracked:
        names = [name for name in tracked.split("\0") if name]
        yield error(
            "git",
            f"git tracks {first_of(names)}: a checkout would put an old store in the place of this one",
            "a person must remove it from git's index and keep the files",
        )
    elif ignored.code == 1:
        yield error(
            "git", f"git does not ignore {folder}", f"echo '*' >> {shell_word(os.path.join(folder, '.gitignore'))}"
        )
    else:
        yield ok("git", "git ignores the store")


def trust(patient: Patient) -> Iterator[Finding]:
    """Settings and stores of a cloned repository that the user has not allowed."""
    from tenure.locations import folders
    from tenure.store_folder import unreadable_of
    from tenure.trust.grants import Untrusted
    from tenure.trust.ownership import check_store

    run, found = patient.run, []
    checks: list[Callable[[Mapping[str, str]], None]] = [source.check for source in run.settings.sources.values()]
    checks.append(partial(check_store, patient.home))
    for check in checks:
        try:
            check(run.environ)
        except Untrusted as trouble:
            found.append(error("repository", trouble.message, trouble.hint or "`tenure trust --show` shows it"))
    unread = unreadable_of(folders(run.folder))
    if unread is not None:
        found.append(warning("repository", f"{unread.message}, so no settings in it count", unread.hint or ""))
    yield from found
    if not found:
        files = ", ".join(run.settings.sources)
        read = f"; read from {files}" if files else ""
        yield ok("repository", f"every setting here is yours or was allowed by you{read}")


def file_system(patient: Patient) -> Iterator[Finding]:
    from tenure.stores.sqlite import store_file

    if not is_file_store(patient.home.url):
        return
    try:
        with open(store_file.MOUNTS, encoding="utf-8", errors="surrogateescape") as file:
            kind = store_file.filesystem_of(path_of(patient.home.url), file.read())
    except OSError:
        return  # not Linux: opening the store has checked it
    if kind in store_file.NETWORK or kind.removeprefix("fuse.") in store_file.NETWORK_FUSE:
        yield error(
            "file system",
            f"the store is on a network file system ({kind}), where its locks do not work",
            "put the store on a local disk, and name it with TENURE_URL",
        )
    elif kind in ("tmpfs", "ramfs"):
        yield warning(
            "file system",
            f"the store is in memory ({kind}): a restart of the host loses it",
            "put it on a disk, or take backups with `tenure db backup`",
        )
    else:
        yield ok("file system", f"{kind or 'unknown'}, local")


def disk(patient: Patient) -> Iterator[Finding]:
    if not is_file_store(patient.home.url):
        return
    path = path_of(patient.home.url)
    there = os.path.dirname(path)
    if not os.path.isdir(there):
        return
    space = os.statvfs(there)
    free = space.f_bavail * space.f_frsize
    size = os.path.getsize(path) if os.path.exists(path) else 0
    message = f"{free // MEGABYTE} MB free; the store has {max(size // MEGABYTE, 1)} MB"
    if free < SCARCE or (space.f_files and not space.f_favail):
        yield error("disk", message, "make room on that disk: a full one refuses every write (none is lost)")
    elif free < LITTLE or free < 2 * size:
        yield warning("disk", message, "make room on that disk: an upgrade needs room for a copy of the store")
    else:
        yield ok("disk", message)
