"""Live claims of a tenant, counted over its projects by shares: see `core/tenant_limits.py`.

A project's share changes only under the tenant's lock, which is the write lock of the project "", and a share is taken
from a project only under that project's lock too: then its live claims cannot grow meanwhile. So at every commit each
project has at most as many live claims as its share, and the shares add up to the limit at most.
"""

from __future__ import annotations

from collections.abc import Mapping

from tenure.core import lifecycle
from tenure.core.outcomes import Outcome
from tenure.core.records import STORE, ClaimShare, Task, replace
from tenure.core.safe_text import shell_word
from tenure.core.tenant_limits import CLAIMS, share_of
from tenure.engine.runtime.unit_of_work import UnitOfWork


def denied_by_tenant(work: UnitOfWork, project: str) -> Outcome | None:
    """A denial where the tenant has no claim left for this project; else its share has room for one more."""
    most = work.tenant_limits.get(CLAIMS)
    if most is None:
        return None
    own = work.get(ClaimShare, project, CLAIMS)
    room = own.granted if own is not None and own.whole == most else 0
    held = work.tally(Task, {"project": project, "state": lifecycle.HELD}, most)
    if held < room:
        return None
    work.need_locks(STORE, lasting=False)
    others = [share for share in work.find(ClaimShare, {"id": CLAIMS}) if share.project != project]
    # In one query, without their locks: to lock one project after another would be to wait in any order.
    live = work.count(Task, {"state": lifecycle.HELD}, "project")
    # A share of a former limit is void: its project counts with what it holds, and asks here before it claims more.
    valid = {share.project: share.granted for share in others if share.whole == most}
    taken = sum(valid.values()) + sum(count for of, count in live.items() if of not in valid and of != project)
    free = most - taken - max(room, held)
    if free <= 0:
        unused = [share for share in others if valid.get(share.project, 0) > live.get(share.project, 0)]
        free += _taken_back(work, unused, live, 1 - free)
    if free <= 0:
        name = work.context.tenant
        return Outcome(
            outcome="DENIED_LIMIT",
            message=f"tenant {name} has {most} live claims in all projects, its {CLAIMS} limit",
            hint=f"the deployment's owner can raise it: tenure tenant limits {shell_word(name)} {CLAIMS}=N",
        )
    granted = max(room, held) + min(free, share_of(most))
    share = own or ClaimShare(project=project, id=CLAIMS, granted=0, whole=most)
    work.put(replace(share, granted=granted, whole=most))
    return None


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
