"""What one agent holds in one session, and what it lost there, so that a verb without a name affects no other claim."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tenure.core import claims, limits
from tenure.core import queries as q
from tenure.core.filters import Range
from tenure.core.records import Claim, Task
from tenure.engine.runtime.rows import fields_of
from tenure.engine.runtime.unit_of_work import Reads

if TYPE_CHECKING:
    from tenure.core import views as v
    from tenure.engine.runtime.unit_of_work import UnitOfWork

DAY = limits.LOST_CLAIM_IN_STORE


def own_claims(work: UnitOfWork, project: str, session: str, agent: str) -> list[v.OwnClaim]:
    """Live claims, and claims that expired or were paused while held in the last day; oldest first."""
    mine = {"project": project, "session": session, "agent": agent}
    found = work.find(Claim, {**mine, "state": "active"})
    ended = work.find(Claim, {**mine, "released_at": Range(work.now - DAY + 1)})
    found += [claim for claim in ended if not claims.is_ended_by_holder(claim)]
    tasks = work.get_many(Task, project, {claim.task for claim in found})
    return [
        fields_of(claim, "task generation state reason released_at") | fields_of(tasks[claim.task], "key ref")
        for claim in sorted(found, key=lambda claim: (claim.acquired_at, claim.id))
        if claim.task in tasks
    ]


READS: Reads = {q.OwnClaims: own_claims}
