"""Regions: where the home of a tenant is, and what a server elsewhere answers.

Only the home of a tenant takes its writes. A server of another region names the home's address; a client sends again
only to an address that its own configuration names, never to one that an answer names alone.
"""

from __future__ import annotations

from collections.abc import Mapping

from tenure.core.errors import InvalidInput, NotHome
from tenure.core.ids import check_name

_SCHEMES = ("https://", "http://")


def parse_homes(text: str | None) -> dict[str, str]:
    """Region → the URL of its server, from `eu=https://eu.example.org, us=https://us.example.org`."""
    homes: dict[str, str] = {}
    for part in (text or "").split(","):
        if not part.strip():
            continue
        region, equals, url = (piece.strip() for piece in part.partition("="))
        if not equals or not url.startswith(_SCHEMES) or any(c.isspace() for c in url) or not url.isascii():
            raise InvalidInput(
                f"home {part.strip()[:80]!r} must be REGION=URL", "as in eu=https://eu.example.org, with commas between"
            )
        homes[check_name(region, "region")] = url.rstrip("/")
    return homes


def is_home(tenant: str | None, server: str | None, *, is_standby: bool = False) -> bool:
    """Whether a server of this region takes the writes of a tenant of that region.

    A server or a tenant without a region is at home everywhere; a read-only copy of a store nowhere.
    """
    return not is_standby and (tenant is None or server is None or tenant == server)


def elsewhere(tenant: str, region: str | None, homes: Mapping[str, str]) -> NotHome:
    """What a server answers that is not the tenant's home."""
    where = f"in region {region}" if region is not None else "elsewhere: this server's store is a read-only copy"
    hint = "send it to the tenant's home; reads may ask this server for older data with ?stale=1"
    return NotHome(f"the home of tenant {tenant} is {where}", hint, region=region, home=homes.get(region or ""))


def named_home(address: str | None, homes: Mapping[str, str]) -> str | None:
    """The address in the client's own table that equals the one in an answer; None where the table has none."""
    wanted = (address or "").strip().rstrip("/")
    return next((url for url in homes.values() if url == wanted), None)
