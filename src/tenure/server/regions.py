"""Which tenants are at home here, and what a server of another region answers about the others.

The refusal of a write is the engine's, so that no interface goes around it; here requests are refused before their body
is read, and reads that did not ask for older data.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple
from urllib.parse import parse_qsl, urlencode

from tenure.core.errors import InvalidInput, NotHome
from tenure.core.records import Tenant
from tenure.core.regions import elsewhere, is_home
from tenure.core.tenant_records import HOME
from tenure.server.requests import Request
from tenure.server.responses import Response
from tenure.server.service import Service
from tenure.stores.port import Replicated, Store

STALE = "stale"  # in the query string: older data will do
AGE = b"tenure-age"  # of the data in an answer, in seconds, at most


class Region(NamedTuple):
    """The region of this server, and the servers of others. Without a name it is the home of every tenant."""

    name: str | None = None
    homes: Mapping[str, str] = {}

    def refusal(self, row: Tenant) -> NotHome | None:
        """What a write of this tenant is refused with; None where its home is here."""
        return None if is_home(row.region, self.name) else elsewhere(row.id, row.region, self.homes)

    def of_standby(self) -> NotHome:
        """What every write is refused with, where the server's own store is a standby."""
        return elsewhere(HOME, None, self.homes)


EVERYWHERE = Region()


def is_standby(store: Store) -> bool:
    return isinstance(store, Replicated) and store.is_standby


def check_home(request: Request, *, is_read: bool) -> bool:
    """Whether the answer must have its age. Raises NotHome for a request that is only answered at the tenant's home.

    Reads may ask for older data anywhere: the mark is taken out of the query string.
    """
    wants_older = is_read and _take_mark(request)
    refusal = request.service.engine.context.elsewhere
    if refusal is not None and not wants_older:
        raise refusal()
    return wants_older


def _take_mark(request: Request) -> bool:
    text = request.scope["query_string"].decode("latin-1")
    if STALE not in text:
        return False
    given = parse_qsl(text, keep_blank_values=True)
    marks = [value for name, value in given if name == STALE]
    if not marks:
        return False
    if marks != ["1"]:
        raise InvalidInput(f"{STALE} must be 1 (got {','.join(marks)[:20]!r})")
    request.scope = {
        **request.scope, "query_string": urlencode([pair for pair in given if pair[0] != STALE]).encode(),
    }  # fmt: skip
    return True


async def with_age(service: Service, answer: Response) -> Response:
    """The response with the age of its data."""
    store = service.engine.store
    age = await service.read_in_thread(store.age) if isinstance(store, Replicated) else 0.0
    value = b"unknown" if age is None else b"%.3f" % age
    return answer._replace(headers=(*answer.headers, (AGE, value)))
