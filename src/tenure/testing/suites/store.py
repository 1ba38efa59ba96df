"""The suite of the store's contract, put together."""

from __future__ import annotations

from tenure.testing.suites.store_concurrency import Concurrency
from tenure.testing.suites.store_dropping import Dropping
from tenure.testing.suites.store_events import Events
from tenure.testing.suites.store_finding import Finding
from tenure.testing.suites.store_queues import Queues
from tenure.testing.suites.store_rows import Rows


class StoreSuite(Rows, Finding, Queues, Events, Dropping, Concurrency):
    """Subclass it, name the subclass `Test…`, and define `open_store`."""
