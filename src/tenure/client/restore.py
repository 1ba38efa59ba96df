"""`restore`: replace an embedded store by a backup, in a new epoch."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import NamedTuple

from tenure.client.caller import SystemRandom
from tenure.core.errors import InvalidInput, StoreCorrupt
from tenure.core.lifecycle import HELD
from tenure.core.records import Task
from tenure.engine import Engine, Random
from tenure.stores.open_store import path_of
from tenure.stores.port import Clock


class Restored(NamedTuple):
    """`aside` is where the previous store is now; `ended` the tasks whose claims were live in the backup."""

    store: str
    aside: str | None
    epoch: str
    ended: list[str]


def restore(
    backup: str,
    url: str,
    *,
    clock: Clock | None = None,
    random: Random | None = None,
    moment: Callable[[], time.struct_time] = time.gmtime,
) -> Restored:
    """Replace the store at `url` by a backup; the previous store is kept under another name.

    The backup is checked and copied first. Live claims in it end with `ERROR` and do not count as attempts; every
    earlier receipt is void. Raises StoreUnavailable, and changes nothing, while another process has the store open.
    """
    target = path_of(url)
    if target is None:
        raise InvalidInput(
            "tenure restores only an embedded store; restore a database of a server with its own tools",
            "Load a dump (`pg_restore`, `mariadb`) into an empty database and set `url` to it: the first client begins "
            "a new epoch, because the database is another. After a base backup, a snapshot, or in Valkey: "
            "`tenure db new-epoch`.",
        )
    from tenure.stores.sqlite import Sqlite
    from tenure.stores.sqlite.backup import forget_draft, make_draft, put_in_place

    draft = make_draft(backup, target)
    try:
        store = Sqlite(draft, clock=clock, create=False)
        try:
            wrong = store.check()
            if wrong:
                raise StoreCorrupt(f"{backup} is damaged: {wrong[0]}", "Nothing was changed. Restore another backup.")
            store.is_copy = False  # so that the log has the reason of the new epoch
            engine = Engine(store, random or SystemRandom())
            held = sorted(task.key for task in engine.read(lambda tx: tx.find(Task, {"state": HELD})))
            epoch = engine.new_epoch(f"restored from {backup}").epoch
        finally:
            store.close()
        name = time.strftime("before-restore-%Y%m%dT%H%M%SZ", moment())
        aside = put_in_place(draft, target, name)
    except BaseException:
        forget_draft(draft)
        raise
    return Restored(target, aside, epoch, held)
