"""Keys of secrets are rotated while others work: nobody meets a secret that does not open."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tenure.client.caller import SystemRandom
from tenure.core import commands as c
from tenure.core.commands import NewTask
from tenure.core.records import Brief, DataKey, Task
from tenure.core.sealed import SEALED
from tenure.engine import Context, Engine
from tenure.sealing.cipher import Cipher
from tenure.sealing.master_key import FILE, KeySource
from tenure.stores.port import Store
from tenure.stores.sqlite import Sqlite
from tenure.testing.clock import FakeClock
from tests.stores.test_postgres import open_store

WORKERS, EACH, ROTATIONS = 4, 12, 12


@pytest.fixture(params=["sqlite", "postgres"])
def opened(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[], Store]:
    if request.param == "postgres":
        request.getfixturevalue("postgres")
        return lambda: open_store(tmp_path, FakeClock())
    return lambda: Sqlite(str(tmp_path / "store.db"))


def with_keys(path: Path, *keys: str) -> None:
    """As an operator replaces the key file: whole."""
    new = path.with_suffix(".new")
    new.write_text("\n".join(keys))
    new.chmod(0o600)
    new.replace(path)


def test_workers_open_every_secret_while_all_keys_are_rotated(opened: Callable[[], Store], tmp_path: Path) -> None:
    keys = tmp_path / "keys"
    with_keys(keys, "00" * 32)
    store = opened()

    def engine() -> Engine:
        """Of a process of its own: it has read the key file when it began."""
        return Engine(store, SystemRandom(), Context(sealer=Cipher(KeySource({FILE: str(keys)}))))

    engine().do(c.DefineProject(project="p"))
    errors: list[BaseException] = []

    def work(name: str) -> None:
        mine = engine()
        try:
            for number in range(EACH):
                secret = f"secret-{name}-{number}"
                new = NewTask(title="x", type=name, spec={"context": {"A": {"$secret": secret}}})
                made: Any = mine.do(c.Add(project="p", task=new))
                claim = c.ClaimTask(project="p", task=made.task["id"], agent=name, session=name)
                granted = mine.do(claim)
                assert granted.secrets == {"A": secret}
                done = mine.do(c.Submit(project="p", receipt=granted.receipt or "", data=f"it is {secret}"))
                assert done.outcome == "ACCEPTED", done
        except BaseException as error:  # noqa: BLE001 - it is raised by the test
            errors.append(error)

    def rotate() -> None:
        try:
            for number in range(1, ROTATIONS):
                if number % 3 == 0:
                    with_keys(keys, *(f"{n:02x}" * 32 for n in range(number, max(-1, number - 9), -1)))
                    engine().do(c.RotateDataKey(project="p", master=True))
                else:
                    engine().do(c.RotateDataKey(project="p"))
                engine().do(c.Reseal(project="p"))
        except BaseException as error:  # noqa: BLE001
            errors.append(error)

    threads = [threading.Thread(target=work, args=(f"w{n}",)) for n in range(WORKERS)]
    threads.append(threading.Thread(target=rotate))
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert errors == []
    last = engine()
    last.do(c.RotateDataKey(project="p"))
    last.do(c.Reseal(project="p"))
    briefs, rows = last.read(lambda tx: (tx.find(Brief, {}), tx.find(DataKey, {})))
    (current,) = (row.id for row in rows if row.id != "digest" and row.retired_at is None)
    assert {brief.spec["context"]["A"][SEALED]["key"] for brief in briefs} == {current}
    assert len(last.read(lambda tx: tx.find(Task, {}))) == WORKERS * EACH
    assert last.verify() == []
    store.close()
