"""Moving a tenant to another store, while its agents work.

The row of the tenant, in the home tenant, records where its rows are. A move changes it between two copies that both
refuse writes, so that there is one home at any time, and none for a moment:

1. *begin*: the row names the target and the number of the move (home store).
2. *freeze*: a new epoch with the mark of the move ends every live claim; from then on each write is refused with
   TENANT_MOVING (former store).
3. *copy*: every row and event in one transaction, compared, and as frozen as its source (new store). What the tenant
   left there when it last moved away is replaced.
4. *switch*: the row names the new store (home store).
5. *open*: a new epoch without a mark (new store).
6. *end*: the row forgets the former store (home store).

The bytes of artifacts stay in the deployment's place for them, which belongs to no store.

Each step is a transaction that finds out whether it was done: a mover that was killed is run again. Until the switch
the move can be called off. `core/tenant_moves.py` has the rules, and why a mover that slept does no harm.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

from tenure.core import tenant_moves, tenants
from tenure.core.errors import InvalidInput, MoveRefused, OutcomeUnknown, StoreCorrupt, StoreError
from tenure.core.records import KINDS, STORE, Leader, Project, Tenant, replace
from tenure.core.tenant_records import HOME
from tenure.engine.audit.sealer import seal_all
from tenure.engine.duties.sweep import projects
from tenure.engine.project_copy import PAGE, copied_kinds, copy_events, copy_rows, digest, follow
from tenure.engine.runtime import seals
from tenure.engine.runtime.engine import Engine
from tenure.engine.runtime.epoch import put_in_force
from tenure.engine.runtime.rows import row_pages
from tenure.engine.runtime.tenancy import STORE_PATH, row_of, store_owner
from tenure.engine.runtime.unit_of_work import UnitOfWork
from tenure.engine.verbs.lead import COORDINATOR
from tenure.stores.port import TENANTS, Change, Transaction

Step = Callable[[str], None]


class MoverEngine(Engine):
    """The engine of a tenant for its mover, who also writes where the tenant is frozen."""

    def _check_writable(self, work: UnitOfWork, *, begins_epoch: bool) -> None:
        pass


class Stores(Protocol):
    """The tenant's engines in both stores, opened with their first use. Raises StoreUnavailable."""

    def at(self, isolation: str, store: bytes) -> MoverEngine: ...


class NewPlace(NamedTuple):
    """Where a tenant goes: `url` is None for the tables of all tenants, in the home store."""

    url: str | None
    region: str | None


class MovedTenant(NamedTuple):
    tenant: str
    number: int
    region: str | None
    rows: int
    events: int
    epoch: str


def begin(home: Engine, name: str, target: NewPlace) -> Tenant:
    """Step 1; returns the row. Raises MoveRefused where a move is under way."""

    def decide(work: UnitOfWork) -> Tenant:
        row = _row(work, name)
        isolation = tenants.LOGICAL if target.url is None else tenants.INSTANCE
        tenants.check_place(isolation, target.url, target.region)
        owner = store_owner(name)
        sealed = b"" if target.url is None else seals.seal(work, STORE, owner, STORE_PATH, target.url.encode())
        begun = tenant_moves.begun(row, isolation, sealed, target.region, work.now)
        return _put(work, "tenant.leaving", begun, target.region)

    return home.transact((STORE,), decide)


def finish(
    home: Engine, name: str, stores: Stores, step: Step = lambda _: None, *, promoted: bool = False
) -> MovedTenant:
    """Do every step that is left of the move under way.

    `step` gets the name of each when it is done. Where one fails before the switch, the move is called off; where its
    outcome is unknown, it is left for the next run. `promoted`: the target is a standby of the former store that an
    operator has promoted, so that nothing is copied. It needs the former store to be stopped.
    """
    row = _found(home, name)
    if not row.moving:
        raise MoveRefused(f"no move of tenant {name} is under way", "name its new store or region with --to")
    number, copied = row.moves, (0, 0)
    if row.moving == tenant_moves.LEAVING:
        try:
            copied = _leave(home, row, stores, step, promoted=promoted)
        except OutcomeUnknown:
            raise
        except BaseException:
            call_off(home, name, stores)
            step(f"called off: {name} stays where it is")
            raise
        row = home.transact((STORE,), lambda work: _switched(work, name, number))
        step("switch")
    epoch = _open(stores.at(row.isolation, row.store), number, f"tenant {name} has moved here")
    step("open")
    home.transact((STORE,), lambda work: _ended(work, name, number))
    step("end")
    return MovedTenant(name, number, row.region, *copied, epoch)


def call_off(home: Engine, name: str, stores: Stores) -> Tenant:
    """Leave the tenant where it is, and let it take writes again. Raises MoveRefused after the switch."""

    def decide(work: UnitOfWork) -> Tenant:
        row = _row(work, name)
        stayed = tenant_moves.called_off(row, work.now)
        return row if stayed is row else _put(work, "tenant.stayed", stayed, row.region)

    row = home.transact((STORE,), decide)  # first: from here on the mover cannot switch
    _open(stores.at(row.isolation, row.store), row.moves, f"move {row.moves} of tenant {name} was called off")
    return row


# --- steps --------------------------------------------------------------------------------------------------


def _leave(home: Engine, row: Tenant, stores: Stores, step: Step, *, promoted: bool) -> tuple[int, int]:
    """Freeze and copy; returns how many rows and events were copied."""
    target = stores.at(row.other_isolation, row.other_store)
    if TENANTS not in target.store.features:
        raise InvalidInput(f"{target.store.url} keeps only the tenant {HOME}", tenants.SEVERAL)
    if promoted:
        _refuse_while_it_writes(row, stores)
        _freeze(target, row.moves)
        step("freeze")
        return 0, 0
    source = stores.at(row.isolation, row.store)
    if _place(source) == _place(target):
        raise InvalidInput(f"{source.store.url}: the tenant is there already")
    _freeze(source, row.moves)
    try:
        tenant_moves.check_current(_found(home, row.id), row.moves)
    except MoveRefused:  # this mover slept: another has called the move off meanwhile
        _open(source, row.moves, f"move {row.moves} of tenant {row.id} was called off")
        raise
    step("freeze")
    copied = _copy(source, target, row.moves)
    step("copy")
    return copied


def _freeze(engine: Engine, number: int) -> None:
    def decide(work: UnitOfWork) -> None:
        if tenant_moves.check_freeze(work.epoch, number):
            put_in_force(work, f"move {number} of tenant {engine.tenant} begins", move=number)

    engine.transact((STORE, *projects(engine)), decide)


def _open(engine: Engine, number: int, why: str) -> str:
    def decide(work: UnitOfWork) -> str:
        before = tenant_moves.frozen_by(work.epoch)
        if before is None:
            return work.epoch
        if before > number:
            raise MoveRefused(f"{engine.store.url} was frozen by move {before}, which began after move {number}")
        return put_in_force(work, why, opens=True)

    return engine.transact((STORE, *projects(engine)), decide)


def _copy(source: Engine, target: Engine, number: int) -> tuple[int, int]:
    names = (STORE, *projects(source))
    for name in names:
        seal_all(source, name)
    return source.read(lambda old: _copied(old, target, names, number))


def _copied(old: Transaction, target: Engine, names: tuple[str, ...], number: int) -> tuple[int, int]:
    if tenant_moves.frozen_by(old.epoch) != number:
        raise MoveRefused(f"move {number} of tenant {target.tenant} was called off")
    left = {*names, *projects(target)}
    with target.store.begin(target.tenant, write=True) as new:
        new.lock("write", sorted(left))
        is_empty = not new.events({}, limit=1) and not new.find(Project, {}, limit=1)
        if not tenant_moves.check_arrival(new.epoch, number, is_empty=is_empty):
            return 0, 0  # an earlier run of this move
        if not is_empty:
            _clear(new, left)
        rows = sum(copy_rows(old, new, kind, name) for name in names for kind in copied_kinds())
        events = copy_events(old, new, {})
        if digest(old, names, {}) != digest(new, names, {}):
            raise StoreCorrupt(f"{target.store.url}: data read back differs from data written; nothing was kept")
        work = UnitOfWork(new, target.random, target.context)
        follow(work, old, names, {})
        _end_leader(work)
        new.set_epoch(old.epoch)  # as frozen as there
        work.save()
    return rows, events


def _clear(new: Transaction, names: set[str]) -> None:
    """Delete what the tenant left here when it moved away: another store has had its later state since."""
    for name in sorted(names):
        for kind in KINDS:
            for page in row_pages(new, kind, {"project": name}, PAGE):
                new.save([Change(row, None) for row in page])
    new.clear_log()


def _end_leader(work: UnitOfWork) -> None:
    """The coordinator of the former store does not lead here, and its term of that store counts nothing."""
    leader = work.get(Leader, STORE, COORDINATOR)
    if leader is not None:
        ended = replace(leader, until=min(leader.until, work.now), is_lost=True, store_term=None)
        work.record("leader.lost", ended, project=STORE, agent=leader.holder, details={"term": leader.term})


def _refuse_while_it_writes(row: Tenant, stores: Stores) -> None:
    """After a promotion the former store must be stopped: what it still accepts would be lost."""
    try:
        source = stores.at(row.isolation, row.store)
        source.transact((STORE,), lambda work: work.tx.set_epoch(work.epoch), settled=False)
    except StoreError:
        return
    raise MoveRefused(
        f"the former store of tenant {row.id} still takes writes, and they would be lost",
        "stop it first; or move the tenant without --promoted, which copies it",
    )


def _place(engine: Engine) -> Any:
    """The same for two URLs of one store."""
    return getattr(engine.store, "place", None) or engine.store.url


# --- the row ------------------------------------------------------------------------------------------------


def _found(home: Engine, name: str) -> Tenant:
    row = None if name == HOME else row_of(home.store, name)
    if row is None:
        raise tenants.unknown(name)
    return row


def _row(work: UnitOfWork, name: str) -> Tenant:
    tenants.check_home(work.context.tenant)
    if name == HOME:
        raise InvalidInput(f"the tenant {HOME} is the home of the deployment: it does not move")
    row = work.get(Tenant, STORE, name)
    if row is None:
        raise tenants.unknown(name)
    return row


def _switched(work: UnitOfWork, name: str, number: int) -> Tenant:
    row = _row(work, name)
    after = tenant_moves.switched(row, number, work.now)
    return row if after is row else _put(work, "tenant.moved", after, after.region)


def _ended(work: UnitOfWork, name: str, number: int) -> Tenant:
    after = tenant_moves.ended(_row(work, name), number, work.now)
    return _put(work, "tenant.arrived", after, after.region)


def _put(work: UnitOfWork, kind: str, row: Tenant, region: str | None) -> Tenant:
    details = {"tenant": row.id, "by": work.principal.name, "move": row.moves, "region": region}
    work.record(kind, row, project=STORE, details=details)
    return row
