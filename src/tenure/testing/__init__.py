"""Shipped for whoever tests with tenure or extends it: suites for adapters, a clock that is moved by hand, sample rows.

May import everything below the interfaces. `suites` holds one suite for each port; subclass it and name how to open
yours. To add one: a module in `suites`, one test for each sentence of the port's contract.
"""

from typing import TYPE_CHECKING, Any

from tenure.testing.clock import FakeClock

if TYPE_CHECKING:
    from tenure.testing.engine_suite import EngineSuite
    from tenure.testing.suites.artifact_suite import ArtifactSuite
    from tenure.testing.suites.sink import SinkSuite
    from tenure.testing.suites.source import SourceSuite
    from tenure.testing.suites.store import StoreSuite
    from tenure.testing.suites.validators import ValidatorSuite

__all__ = ["ArtifactSuite", "EngineSuite", "FakeClock", "SinkSuite", "SourceSuite", "StoreSuite", "ValidatorSuite"]

_HOMES = {
    "ArtifactSuite": "tenure.testing.suites.artifact_suite",
    "EngineSuite": "tenure.testing.engine_suite",
    "SinkSuite": "tenure.testing.suites.sink",
    "SourceSuite": "tenure.testing.suites.source",
    "StoreSuite": "tenure.testing.suites.store",
    "ValidatorSuite": "tenure.testing.suites.validators",
}


def __getattr__(name: str) -> Any:
    """The suites need pytest, which only those who run them have."""
    if name not in _HOMES:
        raise AttributeError(f"module 'tenure.testing' has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(_HOMES[name]), name)
