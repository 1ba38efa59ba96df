"""Tenants whose own store could not be read: who asks again is refused at once, and nobody waits for it again.

A stranger who names such a tenant must not be kept waiting, since one that does not exist is refused at once. So the
store is looked at in the background, one look at a time, until it answers.
"""

from __future__ import annotations

from collections.abc import Callable

from tenure.core.errors import TenureError

AGAIN = 1.0  # seconds between two looks at a store that is unavailable


class Outages:
    """For one event loop."""

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._away: dict[str, TenureError] = {}
        self._looked: dict[str, float] = {}

    def begin(self, tenant: str, error: TenureError) -> None:
        self._away[tenant] = error

    def end(self, tenant: str) -> None:
        self._away.pop(tenant, None)
        self._looked.pop(tenant, None)

    def of(self, tenant: str) -> TenureError | None:
        """Why the tenant's store is unavailable; None: it is not, as far as this process knows."""
        return self._away.get(tenant)

    def is_due(self, tenant: str) -> bool:
        """Whether somebody should look again; this caller then does."""
        now = self._monotonic()
        if now - self._looked.get(tenant, -AGAIN) < AGAIN:
            return False
        self._looked[tenant] = now
        return True
