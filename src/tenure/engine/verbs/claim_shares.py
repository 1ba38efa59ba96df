"""Live claims of a tenant, counted over its projects by shares: see `core/tenant_limits.py`.

A project's share changes only under the tenant's lock, which is the write lock of the project "", and a share is taken
from a project only under that project's lock too: then its live claims cannot grow meanwhile. So at every commit each
project has at most as many live claims as its share, and the shares add up to the limit at most.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from tenure.core import lifecycle
from tenure.core.outcomes import Outcome
from tenure.core.records import STORE, ClaimShare, Task, replace
from tenure.core.safe_text import shell_word
from tenure.core.tenant_limits import CLAIMS, share_of
from tenure.engine.runtime.unit_of_work import UnitOfWork


class _Shares(NamedTuple):
    """What a project without room may get."""

    free: int  # of the tenant's limit, in no share
    unused: list[ClaimShare]  # of other projects, which hold fewer claims than they may
    live: Mapping[str, int]


def denied_by_tenant(work: UnitOfWork, project: str) -> Outcome | None:
    """A denial where the tenant has no claim left for this project; else its share has room for one more."""
    most = work.tenant_limits.get(CLAIMS)
    if most is None:
        return None
    own, room, held = _own_share(work, project, most)
    if held < room:
        return None
    work.need_locks(STORE, lasting=False)
    found = _shares(work, project, most, max(room, held))
    free = found.free
    if free <= 0:
        free += _taken_back(work, found.unused, found.live, 1 - free)
    if free <= 0:
        return _denial(work, most)
    granted = max(room, held) + min(free, share_of(most))
    share = own or ClaimShare(project=project, id=CLAIMS, granted=0, whole=most)
    work.put(replace(share, granted=granted, whole=most))
    return None


def refused_by_tenant(work: UnitOfWork, project: str) -> Outcome | None:
    """The same denial, without locks: no share moves."""
    most = work.tenant_limits.get(CLAIMS)
    if most is None:
        return None
    _, room, held = _own_share(work, project, most)
    if held < room:
        return None
    found = _shares(work, project, most, max(room, held))
    unused = sum(share.granted - found.live.get(share.project, 0) for share in found.unused)
    return _denial(work, most) if found.free + unused <= 0 else None


def _own_share(work: UnitOfWork, project: str, most: int) -> tuple[ClaimShare | None, int, int]:
    """The share, the claims that it allows, and those that live."""
    own = work.get(ClaimShare, project, CLAIMS)
    room = own.granted if own is not None and own.whole == most else 0
    return own, room, work.tally(Task, {"project": project, "state": lifecycle.HELD}, most)


def _shares(work: UnitOfWork, project: str, most: int, own: int) -> _Shares:
    """`own`: what the project has already."""
    others = [share for share in work.find(ClaimShare, {"id": CLAIMS}) if share.project != project]
    # In one query, without their locks: to lock one project after another would be to wait in any order.
    live = work.count(Task, {"state": lifecycle.HELD}, "project")
    # A share of a former limit is void: its project counts with what it holds, and asks here before it claims more.
    valid = {share.project: share.granted for share in others if share.whole == most}
    taken = sum(valid.values()) + sum(count for of, count in live.items() if of not in valid and of != project)
    unused = [share for share in others if valid.get(share.project, 0) > live.get(share.project, 0)]
    return _Shares(most - taken - own, unused, live)


def _denial(work: UnitOfWork, most: int) -> Outcome:
    name = work.context.tenant
    return Outcome(
        outcome="DENIED_LIMIT",
        message=f"tenant {name} has {most} live claims in all projects, its {CLAIMS} limit",
        hint=f"the deployment's owner can raise it: tenure tenant limits {shell_word(name)} {CLAIMS}=N",
    )


def _taken_back(work: UnitOfWork, unused: list[ClaimShare], live: Mapping[str, int], needed: int) -> int:
    """What other projects have and do not use, from as few of them as it takes."""
    found = 0
    for share in unused:
        if found >= needed:
            break
        work.need_locks(STORE, share.project, lasting=False)  # runs again; nothing is claimed there meanwhile
        used = live.get(share.project, 0)
        work.put(replace(share, granted=used))
        found += share.granted - used
    return found


def live_claims(work: UnitOfWork) -> int:
    """Of all projects of the tenant."""
    return sum(work.count(Task, {"state": lifecycle.HELD}, "state").values())
