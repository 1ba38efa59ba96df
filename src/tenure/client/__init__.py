"""The Python SDK: `Client`, `AsyncClient` and `Worker`, on a store of this machine or over a server, by URL.

`verbs.py` and `looks.py` have every method, written once; `ways/` is how a command gets to where it is decided;
`worker/` calls functions with tasks. `routes.py`, `statuses.py` and `wire.py` are the HTTP that server and client
agree on. May import the engine and `stores.opening`. No rule lives here. Only `Client` is loaded at once: the command
line starts hundreds of times a day, and pays for nothing else.
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
