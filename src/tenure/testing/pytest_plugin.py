"""A pytest plug-in for programs that use tenure: a project in memory, a clock moved by hand, and a way to run workers.

    def test_resizing(tenure_url, tenure_drain):
        worker.use(tenure_url)
        handle = resize.enqueue("a.png")
        tenure_drain(worker)
        assert handle.result() == {"a.png": 100}

Loaded by its entry point in every run of pytest where tenure is installed: it imports nothing of tenure until a test
asks for one of its fixtures.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tenure import Client, Worker
    from tenure.testing.clock import FakeClock

_numbers = itertools.count(1)
ROUNDS = 1000  # of a drain: a task that is retried for ever ends the test


def pytest_configure(config: pytest.Config) -> None:
    """The marks of the shipped suites; whoever runs them need not know them."""
    config.addinivalue_line("markers", "sampled: of tenure's own runs, which take a part of its parameter sets")


@pytest.fixture
def tenure_clock() -> FakeClock:
    """The clock of `tenure_url`: `advance(seconds=60)` moves it; nothing else does."""
    from tenure.testing.clock import FakeClock

    return FakeClock()


@pytest.fixture
def tenure_url(tenure_clock: FakeClock) -> Iterator[str]:
    """The URL of a store in memory, for this test alone, with an empty project `default`."""
    from tenure import Client

    url = f"memory://pytest-{next(_numbers)}"
    with Client(url, create=True, clock=tenure_clock):
        yield url


@pytest.fixture
def tenure_client(tenure_url: str) -> Iterator[Client]:
    """A client of `tenure_url`."""
    from tenure import Client

    with Client(tenure_url) as client:
        yield client


@pytest.fixture
def tenure_drain(tenure_clock: FakeClock) -> Callable[[Worker], None]:
    """Run a worker of `tenure_url` until all its tasks have ended; the clock jumps to each retry.

    The worker may be of another store: `worker.use(tenure_url)` moves it.
    """

    def drain(worker: Worker) -> None:
        for _ in range(ROUNDS):
            worker.run(until_idle=True)
            later = worker.client.tasks(state="retrying", limit=500)
            if not later:
                return
            soonest = min(worker.client.show(task["id"])["retry_at"] for task in later)
            tenure_clock.advance(max(0, soonest - tenure_clock.now))
        raise AssertionError(f"tasks are still retried after {ROUNDS} rounds")

    return drain
