"""A new store epoch: after a restore, a copy, or a failover that may have lost commits.

Generation numbers alone do not fence once history can fork; the epoch does. Every live claim ends in the transaction
that changes the epoch, with its attempt given back, and old receipts are refused from then on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tenure.core import lifecycle, tenant_moves
from tenure.core.ids import EPOCH_BYTES
from tenure.core.records import Reservation, Task
from tenure.engine.duties.sweep import projects
from tenure.engine.runtime.effects import settle_once, spread
from tenure.engine.runtime.unit_of_work import UnitOfWork
from tenure.engine.verbs.reserve import release_reservations

if TYPE_CHECKING:
    from tenure.engine.runtime.engine import Engine


def begin_epoch(engine: Engine, why: str) -> str:
    """Put a new epoch in force and end every live claim; return the epoch's id."""

    # a lease that ended before the epoch has expired, swept or not
    epoch: str = engine.transact(projects(engine), lambda work: put_in_force(work, why), begins_epoch=True)
    engine.store.settled_here()
    return epoch


def put_in_force(work: UnitOfWork, why: str, *, move: int | None = None, opens: bool = False) -> str:
    """Begin a new epoch with this transaction and end every live claim; return the epoch's id.

    `move`: the number of the move that freezes the tenant here; `opens`: it takes writes again. By default a tenant
    that is frozen stays so.
    """
    epoch = work.random.token(EPOCH_BYTES).hex()
    if move is not None:
        epoch = tenant_moves.frozen(epoch, move)
    elif not opens:
        epoch = tenant_moves.renewed(work.epoch, epoch)
    work.tx.set_epoch(epoch)
    work.epoch = epoch
    work.record("epoch.started", project="", level="warning", message=why, details={"epoch": epoch})
    for task in work.find(Task, {"state": lifecycle.HELD}):
        settle_once(work, task)
    # no late submit across epochs: the receipt is stale by its epoch already
    spread(work)
    for held in work.find(Reservation, {}):
        release_reservations(work, held.project, [held])
    return epoch
