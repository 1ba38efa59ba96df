"""The limits of tenants: by tier, changed for one tenant, lowered by a project. The home tenant has none.

A limit that counts (claims, sessions) counts over all projects of the tenant. Claims are counted in *shares*: a
sixteenth of the limit is given to a project at a time, under the tenant's lock, and a claim within its project's share
asks nobody else. The shares of all projects never exceed the limit, so the claim after the last is refused exactly.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from tenure.core.errors import InvalidInput
from tenure.core.inputs import LARGEST_NUMBER, LIMITS, check_choice, check_limits, suggestion

if TYPE_CHECKING:
    from tenure.core.records import Tenant

CLAIMS, SESSIONS = "max_concurrent_claims", "max_active_sessions"
RATE = "api_rate"  # requests a second to a server, of all callers of the tenant; no project has it
MEANINGS = {**LIMITS, RATE: "requests a second, of all callers"}
_MIB = 1024 * 1024
TIERS: dict[str, dict[str, int]] = {
    "default": {
        CLAIMS: 100, "max_lease": 3600, "min_lease": 30, "max_generations_per_task": 100, "history_retention": 90,
        "max_result_size": 10 * _MIB, SESSIONS: 50, RATE: 100,
    },
    "enterprise": {
        CLAIMS: 1000, "max_lease": 7200, "min_lease": 30, "max_generations_per_task": 1000, "history_retention": 365,
        "max_result_size": 100 * _MIB, SESSIONS: 500, RATE: 1000,
    },
}  # fmt: skip
_PARTS = 16
_LOWEST = "min_lease"  # the only one of which the higher value is the stricter


def check_tier(tier: str) -> str:
    return check_choice(tier, TIERS, "tier")


def of_tenant(row: Tenant) -> dict[str, int]:
    return {**TIERS[row.tier], **row.limits}


def changed(row: Tenant, changes: Mapping[str, int | None]) -> dict[str, int]:
    """The tenant's own values after these changes; None goes back to the tier's."""
    for name in changes:
        if name not in TIERS[row.tier]:
            known = list(TIERS[row.tier])
            raise InvalidInput(
                f"limit {name[:60]!r} is not one of tenants{suggestion(name, known)}; these are: {', '.join(known)}"
            )
    wanted = {**row.limits, **changes}
    own = {name: value for name, value in wanted.items() if value is not None}
    check_limits({name: value for name, value in {**TIERS[row.tier], **own}.items() if name != RATE})
    if not 1 <= own.get(RATE, 1) <= LARGEST_NUMBER:
        raise InvalidInput(f"limit {RATE} must be from 1 to {LARGEST_NUMBER} (got {own[RATE]})")
    return own


def stricter(name: str, one: int, other: int) -> int:
    return max(one, other) if name == _LOWEST else min(one, other)


def bounded(own: Mapping[str, int], of_tenant: Mapping[str, int]) -> Mapping[str, int]:
    """The limits that apply in a project: its own, where they are not looser than the tenant's."""
    ours = {name: value for name, value in of_tenant.items() if name != RATE}
    return {**own, **{name: stricter(name, own.get(name, value), value) for name, value in ours.items()}}


def check_lowers(own: Mapping[str, int], of_tenant: Mapping[str, int]) -> None:
    """A project lowers the limits of its tenant and never raises them."""
    for name, value in own.items():
        most = of_tenant.get(name)
        if most is not None and stricter(name, value, most) != value:
            bound = "below" if name == _LOWEST else "above"
            raise InvalidInput(
                f"limit {name} of a project must not be {bound} the tenant's, which is {most} (got {value})",
                "the deployment's owner can change the tenant's limits",
            )


def share_of(most: int) -> int:
    """How many claims a project gets at a time."""
    return -(-most // _PARTS)
