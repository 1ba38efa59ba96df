"""A new store epoch: after a restore, a copy, or a failover that may have lost commits.

Generation numbers alone do not fence once history can fork; the epoch does. Every live claim ends in the transaction
that changes the epoch, with its attempt given back, and old receipts are refused from then on.

An epoch that a person begins is one of all tenants of the store. The fence of the others is one commit of the store:
however many they are, no receipt of before is accepted once it is done. What follows in each of them, the event and the
end of its claims, is a transaction of that tenant; where it fails, a claim ends with its lease, its attempt given back.
A lease that ended right before the fence may be one that the epoch ends: its attempt is given back.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from tenure.core import lifecycle, tenant_moves
from tenure.core.errors import TenureError
from tenure.core.ids import EPOCH_BYTES
from tenure.core.records import Reservation, Task, replace
from tenure.engine.duties.sweep import projects
from tenure.engine.runtime.effects import settle_once, spread
from tenure.engine.runtime.unit_of_work import UnitOfWork
from tenure.engine.verbs.reserve import living, release_reservations

if TYPE_CHECKING:
    from tenure.engine.runtime.engine import Engine


class Begun(NamedTuple):
    """`epoch`: that of the tenant which began it. No receipt of before is accepted in `tenants`, by name.

    In those of `unrecorded` the log does not have it, and claims end with their leases.
    """

    epoch: str
    tenants: tuple[str, ...]
    unrecorded: tuple[str, ...] = ()


def begin_epochs(engine: Engine, why: str) -> Begun:
    """Put a new epoch in force in every tenant of the engine's store, and end every live claim."""
    if engine.context.elsewhere is not None:
        raise engine.context.elsewhere()
    others = engine.store.begin_epochs(engine.tenant)
    epoch = begin_epoch(engine, why)
    unrecorded = tuple(name for name in others if not _ended(engine, name, why))
    return Begun(epoch, tuple(sorted({engine.tenant, *others})), unrecorded)


def begin_epoch(engine: Engine, why: str) -> str:
    """Put a new epoch in force in the engine's tenant and end every live claim there; return the epoch's id.

    On a copy every other tenant gets one as well.
    """

    # a lease that ended before the epoch has expired, swept or not
    epoch: str = engine.transact(projects(engine), lambda work: put_in_force(work, why), begins_epoch=True)
    for name in engine.store.settled_here():
        _ended(engine, name, why)
    return epoch


def _ended(engine: Engine, tenant: str, why: str) -> bool:
    """Whether the claims of another tenant are ended, whose epoch has begun already."""

    def end(work: UnitOfWork) -> None:
        if tenant_moves.frozen_by(work.epoch) is None:  # while it is frozen nothing is held, and nothing may change
            end_claims(work, why)

    context = replace(engine.context, tenant=tenant, limits=None, elsewhere=None, optimism=None, counts=None)
    try:
        other = type(engine)(engine.store, engine.random, context)
        other.transact(projects(other), end, begins_epoch=True)
    except TenureError:
        return False
    return True


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
    end_claims(work, why)
    return epoch


def end_claims(work: UnitOfWork, why: str) -> None:
    """Record the epoch of this transaction, and end every claim and reservation of an earlier one."""
    work.record("epoch.started", project="", level="warning", message=why, details={"epoch": work.epoch})
    for task in work.find(Task, {"state": lifecycle.HELD}):
        settle_once(work, task)
    # no late submit across epochs: the receipt is stale by its epoch already
    spread(work)
    for held in work.find(Reservation, {}):
        # What a result waits to be landed with stays reserved: a landing needs no earlier receipt.
        if held.epoch != work.epoch and (held.task is None or not living(work, [held])):
            release_reservations(work, held.project, [held])
