"""The Python SDK: `Client`, `AsyncClient` and `Worker`, on a store of this machine or over a server, by URL.

`verbs.py` and `queries.py` have every method, written once; `transports/` carries them to a store or server; `worker/`
calls functions with tasks. `routes.py`, `statuses.py` and `wire.py` define the HTTP API for server and client. May
import the engine and `stores.open_store`. No rule lives here. Only `Client` is imported eagerly: the command line
starts hundreds of times a day.
"""

from typing import TYPE_CHECKING, Any

from tenure.client.client import Client

if TYPE_CHECKING:
    from tenure.client.async_client import AsyncClient

__all__ = ["AsyncClient", "Client"]


def __getattr__(name: str) -> Any:
    if name != "AsyncClient":
        raise AttributeError(f"module 'tenure.client' has no attribute {name!r}")
    from tenure.client.async_client import AsyncClient

    return AsyncClient
