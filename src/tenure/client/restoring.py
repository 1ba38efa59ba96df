"""`restore`: a backup in the place of an embedded store, in a new epoch."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import NamedTuple

from tenure.client.chance import SystemChance
from tenure.core.errors import InvalidInput, StoreCorrupt
from tenure.core.lifecycle import HELD
from tenure.core.records import Task
from tenure.engine import Engine, Random
from tenure.stores.open_store import path_of
from tenure.stores.port import Clock


class Restored(NamedTuple):
    """`aside` is where the store that was there lies now; `ended` the tasks whose claims the backup had as live."""

    store: str
    aside: str | None
    epoch: str
    ended: list[str]


def restore(
    backup: str,
    url: str,
    *,
    clock: Clock | None = None,
    chance: Random | None = None,
    moment: Callable[[], time.struct_time] = time.gmtime,
) -> Restored:
    """Put a backup in the place of the store at `url`, which keeps its bytes under another name.

    The backup is checked first, and copied; live claims in it end with `ERROR`, their attempt given back, and every
    receipt from before is void. Raises StoreAway while another process has the store open: nothing is done then.
    """
    target = path_of(url)
    if target is None:
        raise InvalidInput(
            "only an embedded store is restored by tenure; a server's own tools restore its databases",
            "pg_restore into an empty database and set `url` to it: whoever opens it first begins a new epoch, since "
            "it is elsewhere. After a base backup or a snapshot in the same place: `tenure db new-epoch`.",
        )
    from tenure.stores.sqlite import Sqlite
    from tenure.stores.sqlite.restore import forget_draft, make_draft, put_in_place

    draft = make_draft(backup, target)
    try:
        store = Sqlite(draft, clock=clock, create=False)
        try:
            wrong = store.check()
            if wrong:
                raise StoreCorrupt(f"{backup} is damaged: {wrong[0]}", "It was left as it is. Restore another backup.")
            store.is_copy = False  # so that the log says why the epoch began
            engine = Engine(store, chance or SystemChance())
            with store.begin(engine.tenant, write=False) as tx:
                held = sorted(task.key for task in tx.find(Task, {"state": HELD}))
            epoch = engine.new_epoch(f"restored from {backup}")
        finally:
            store.close()
        name = time.strftime("before-restore-%Y%m%dT%H%M%SZ", moment())
        aside = put_in_place(draft, target, name)
    except BaseException:
        forget_draft(draft)
        raise
    return Restored(target, aside, epoch, held)
