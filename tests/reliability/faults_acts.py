"""What is done while a system call fails: each act has a folder to begin with, and can be repeated."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import apsw

from tenure.agents.runner.outbox import Finished
from tenure.artifacts.local import LocalArtifacts
from tenure.core import commands
from tenure.core.commands import NewTask
from tenure.engine import Engine
from tenure.stores.sqlite import Sqlite
from tenure.testing import FakeClock
from tests.reliability.powerloss_work import HOME, STORE, SeededChance, digest, digest_of, make_first_schema, outbox_in

PROJECT = "faults"
BACKUP = "backup.db"
CONTENT = b"content " * 3_000


def opened(folder: Path, *, create: bool = False) -> Sqlite:
    store = Sqlite(str(folder / STORE), clock=FakeClock(), random=SeededChance(1).token, create=create)
    store.is_copy = False  # each try works on a copy of the folder, which is nothing that this is about
    return store


def run(store: Sqlite, command: commands.Command) -> str:
    """A new engine with the same chance for each try: what is done has the same rows, whenever it succeeds."""
    return Engine(store, SeededChance(2)).do(command).outcome


class Act(NamedTuple):
    name: str
    prepare: Callable[[Path], None]
    act: Callable[[Path, list[Sqlite]], str]  # the second holds the open store, for a repeat in the same process
    is_repeatable: bool = False  # to find it done after an error is no harm: there is no answer that could be untrue


def nothing(folder: Path) -> None:
    """It begins with an empty folder."""


def with_tasks(folder: Path, *, tasks: int = 3) -> None:
    store = opened(folder, create=True)
    engine = Engine(store, SeededChance(3))
    engine.do(commands.DefineProject(project=PROJECT))
    for number in range(tasks):
        engine.do(commands.Add(project=PROJECT, task=NewTask(title=f"t{number}", description="d" * 9_000)))
    receipt = engine.do(claim_next("held")).receipt
    (folder / "receipt").symlink_to(receipt or "")  # a link is read without a call that is made to fail
    store.connections.close()  # and not the store, which might clear its log
    store.turn.close()


def with_a_long_log(folder: Path) -> None:
    with_tasks(folder, tasks=40)


def claim_next(request: str) -> commands.Command:
    return commands.ClaimNext(project=PROJECT, agent="ann", session="s", lease=60.0, request_id=request)


def store_of(folder: Path, held: list[Sqlite]) -> Sqlite:
    if not held:
        held.append(opened(folder))
    return held[0]


def claim(folder: Path, held: list[Sqlite]) -> str:
    return run(store_of(folder, held), claim_next("claim"))


def submit(folder: Path, held: list[Sqlite]) -> str:
    receipt = str((folder / "receipt").readlink())
    data = {"text": "r" * 9_000}
    return run(store_of(folder, held), commands.Submit(project=PROJECT, receipt=receipt, data=data, request_id="done"))


def renew(folder: Path, held: list[Sqlite]) -> str:
    receipt = str((folder / "receipt").readlink())
    return run(store_of(folder, held), commands.Renew(project=PROJECT, receipt=receipt, lease=90.0, request_id="renew"))


def add(folder: Path, held: list[Sqlite]) -> str:
    return run(
        store_of(folder, held),
        commands.Add(project=PROJECT, task=NewTask(title="new", description="n" * 20_000), request_id="add"),
    )


def init(folder: Path, held: list[Sqlite]) -> str:
    if not held:
        held.append(opened(folder, create=True))
    return "OPEN"


def close(folder: Path, held: list[Sqlite]) -> str:
    store_of(folder, held).close()
    held.clear()
    return "CLOSED"


def backup(folder: Path, held: list[Sqlite]) -> str:
    store_of(folder, held).backup(str(folder / BACKUP))
    return "COPIED"


def put(folder: Path, held: list[Sqlite]) -> str:
    with LocalArtifacts(folder / HOME / "artifacts").begin(largest=1 << 20) as writing:
        writing.write(CONTENT)
        return writing.keep().digest


def keep(folder: Path, held: list[Sqlite]) -> str:
    outbox_in(folder).put(Finished(what="submit", project=PROJECT, key="F-1", receipt="r", data=CONTENT.hex()))
    return "KEPT"


ACTS = {
    act.name: act
    for act in (
        Act("claim", with_tasks, claim),
        Act("submit", with_tasks, submit),
        Act("renew", with_tasks, renew),
        Act("add", with_tasks, add),
        Act("init", nothing, init, is_repeatable=True),
        Act("upgrade", make_first_schema, init, is_repeatable=True),
        Act("close", with_a_long_log, close, is_repeatable=True),
        Act("backup", with_tasks, backup, is_repeatable=True),
        Act("artifact", with_tasks, put, is_repeatable=True),
        Act("outbox", with_tasks, keep, is_repeatable=True),
    )
}


def state_of(act: Act, folder: Path) -> str:
    """What the act is about, as one text: rows, or bytes. Raises where something is broken or half there."""
    if act.name == "artifact":
        place = LocalArtifacts(folder / HOME / "artifacts")
        sha = hashlib.sha256(CONTENT).hexdigest()
        return "nothing" if place.size(sha) is None else hashlib.sha256(b"".join(place.read(sha))).hexdigest()
    if act.name == "outbox":
        # A repeat may lie in another folder than the first try, with the same receipt: it counts once.
        return " ".join(sorted({finished.receipt for _, finished in outbox_in(folder).waiting()})) or "nothing"
    if act.name == "backup":
        return backup_state(folder / BACKUP)
    path = folder / STORE
    if not path.exists():
        return "nothing"
    if act.name == "upgrade":
        connection = apsw.Connection(str(path))
        try:
            return digest_of(connection)
        finally:
            connection.close()
    store = opened(folder)
    try:
        return digest(store)
    finally:
        store.close()


def backup_state(path: Path) -> str:
    if not path.exists():
        return "nothing"
    connection = apsw.Connection(str(path))
    try:
        return digest_of(connection) if connection.execute("PRAGMA integrity_check").get == "ok" else "damaged"
    except apsw.Error as error:
        return f"damaged: {error}"
    finally:
        connection.close()
