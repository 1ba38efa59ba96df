"""Fenced task claims for teams of AI agents.

    client = tenure.Client(".tenure/tenure.db", "my-project", agent="ann")

`Client` is the way in; `NewTask` describes work, `Totals` what it cost, `Process` who holds it, `Outcome` what became
of a request, `TenureError` what was wrong with one. Names here load on first use, so that importing the package costs
nothing.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tenure.client import Client
    from tenure.core.commands import Dependency, NewTask, Process, Totals
    from tenure.core.errors import TenureError
    from tenure.core.outcomes import Outcome
    from tenure.core.records import RetryPolicy

__version__ = "0.1.0"
__all__ = [
    "Client",
    "Dependency",
    "NewTask",
    "Outcome",
    "Process",
    "RetryPolicy",
    "TenureError",
    "Totals",
    "__version__",
]

_HOMES = {
    "Client": "tenure.client",
    "Dependency": "tenure.core.commands",
    "NewTask": "tenure.core.commands",
    "Outcome": "tenure.core.outcomes",
    "Process": "tenure.core.commands",
    "RetryPolicy": "tenure.core.records",
    "TenureError": "tenure.core.errors",
    "Totals": "tenure.core.commands",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'tenure' has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(_HOMES[name]), name)
