"""Fenced task claims for teams of AI agents.

    client = tenure.Client(".tenure/tenure.db", "my-project", agent="ann")  # or "https://…", a server

`Client` is the way in, `AsyncClient` the same for asyncio, `Worker` calls functions with tasks. `NewTask` describes
work, `Totals` its cost, `Process` its holder's process; `Outcome` is the answer to a request, `TenureError` an error.
Names here load on first use, so that importing the package costs nothing.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tenure.client import AsyncClient, Client
    from tenure.client.worker import (
        AsyncContext,
        Cancelled,
        CommandContext,
        Context,
        Failure,
        Permanent,
        RetryLater,
        Worker,
    )
    from tenure.core.commands import Dependency, NewTask, Process, Totals
    from tenure.core.errors import TenureError
    from tenure.core.outcomes import Outcome
    from tenure.core.records import RetryPolicy

__version__ = "0.1.0"
__all__ = [
    "AsyncClient",
    "AsyncContext",
    "Cancelled",
    "Client",
    "CommandContext",
    "Context",
    "Dependency",
    "Failure",
    "NewTask",
    "Outcome",
    "Permanent",
    "Process",
    "RetryLater",
    "RetryPolicy",
    "TenureError",
    "Totals",
    "Worker",
    "__version__",
]

_HOMES = {
    "AsyncClient": "tenure.client.async_client",
    "AsyncContext": "tenure.client.worker",
    "Cancelled": "tenure.client.worker",
    "Client": "tenure.client",
    "CommandContext": "tenure.client.worker",
    "Context": "tenure.client.worker",
    "Dependency": "tenure.core.commands",
    "Failure": "tenure.client.worker",
    "NewTask": "tenure.core.commands",
    "Outcome": "tenure.core.outcomes",
    "Permanent": "tenure.client.worker",
    "Process": "tenure.core.commands",
    "RetryLater": "tenure.client.worker",
    "RetryPolicy": "tenure.core.records",
    "TenureError": "tenure.core.errors",
    "Totals": "tenure.core.commands",
    "Worker": "tenure.client.worker",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'tenure' has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(_HOMES[name]), name)
