"""A tenant moves to another store: the steps in its row, and the mark that freezes its writes.

A move has a number, which grows with each. A store whose rows of the tenant must not change has that number behind the
tenant's epoch (`1a2b3c4d.7`). Every write transaction reads the epoch under the lock that a change of it takes alone:
so a write either commits before the freeze, and is copied, or is refused. Of all stores that have rows of the tenant at
most one has an epoch without a mark.

A mover may be killed, or sleep for a day and go on. Its number is checked in each of its writes: in the row, where the
switch and the end of a move are decided, and in the target, where nothing replaces rows of a later move or rows in use.
"""

from __future__ import annotations

from tenure.core.errors import MoveRefused, TenantMoving
from tenure.core.ids import FREEZES
from tenure.core.records import Tenant, replace
from tenure.core.safe_text import shell_word
from tenure.core.tenants import SCHEMA

LEAVING = "leaving"  # its home is still the former store; the move can be called off
ARRIVING = "arriving"  # its home is the new store; the move can only be finished


def frozen(epoch: str, number: int) -> str:
    """The epoch of a store whose rows of the tenant do not change until move `number` ends."""
    return f"{epoch.partition(FREEZES)[0]}{FREEZES}{number}"


def frozen_by(epoch: str) -> int | None:
    """The number of the move that froze the tenant in this store; None where it takes writes."""
    _, mark, number = epoch.partition(FREEZES)
    return int(number) if mark else None


def renewed(epoch: str, fresh: str) -> str:
    """A new epoch of the same store: frozen stays frozen."""
    number = frozen_by(epoch)
    return fresh if number is None else frozen(fresh, number)


def check_writable(epoch: str) -> None:
    """The guard of every write: raises TenantMoving where the tenant is frozen in this store."""
    if frozen_by(epoch) is not None:
        raise TenantMoving(
            "the tenant is being moved to another store, or has been; nothing was done", "send it again in a moment"
        )


def check_freeze(epoch: str, number: int) -> bool:
    """Whether move `number` has still to freeze this store; MoveRefused where a later one has."""
    before = frozen_by(epoch)
    if before is not None and before > number:
        raise MoveRefused(f"move {number} of the tenant was called off: move {before} has begun since")
    return before != number


def check_arrival(epoch: str, number: int, *, is_empty: bool) -> bool:
    """Whether move `number` has still to bring the rows here; MoveRefused where it may not replace those it finds.

    It may where the tenant has none here, or left them frozen when it last moved away.
    """
    if frozen_by(epoch) is None and not is_empty:
        raise MoveRefused("the target has a tenant of that name, which is in use there; tenants are never merged")
    return check_freeze(epoch, number)


# --- the row ------------------------------------------------------------------------------------------------


def begun(row: Tenant, isolation: str, store: bytes, region: str | None, now: int) -> Tenant:
    """The row of a tenant that is about to leave; `store` is sealed."""
    if row.isolation == SCHEMA:
        raise MoveRefused(
            f"tenant {row.id} has its own schema {row.schema}: it cannot be moved",
            "copy its projects into a new tenant instead",
        )
    if row.moving:
        raise MoveRefused(
            f"tenant {row.id} is being moved already: move {row.moves}",
            f"`tenure tenant move {shell_word(row.id)}` finishes it; with --call-off it stays where it was",
        )
    return replace(
        row, moves=row.moves + 1, moving=LEAVING, other_isolation=isolation, other_store=store, other_region=region,
        changed_at=now,
    )  # fmt: skip


def check_current(row: Tenant, number: int) -> None:
    """Raises MoveRefused where another has called the move off, or finished it."""
    if not row.moving or row.moves != number:
        raise MoveRefused(f"move {number} of tenant {row.id} was called off, or finished by another process")


def switched(row: Tenant, number: int, now: int) -> Tenant:
    """The new store is its home; the former one's address is kept until the move ends."""
    check_current(row, number)
    if row.moving == ARRIVING:
        return row
    return replace(
        row, moving=ARRIVING, isolation=row.other_isolation, store=row.other_store, region=row.other_region,
        other_isolation=row.isolation, other_store=row.store, other_region=row.region, changed_at=now,
    )  # fmt: skip


def ended(row: Tenant, number: int, now: int) -> Tenant:
    check_current(row, number)
    return _at_rest(row, now)


def called_off(row: Tenant, now: int) -> Tenant:
    """The tenant stays where it is. Unchanged where no move is under way."""
    if row.moving == ARRIVING:
        raise MoveRefused(
            f"tenant {row.id} is in its new store already; move {row.moves} can only be finished",
            f"`tenure tenant move {shell_word(row.id)}` finishes it; then move it back",
        )
    return _at_rest(row, now) if row.moving else row


def _at_rest(row: Tenant, now: int) -> Tenant:
    return replace(row, moving="", other_isolation="", other_store=b"", other_region=None, changed_at=now)
