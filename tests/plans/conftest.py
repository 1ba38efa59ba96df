"""A project in memory with a clock of its own, and plans as texts."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tenure import Client
from tenure.plans import files
from tenure.plans.files import PlanFile
from tenure.plans.nodes import Finding
from tenure.testing import FakeClock


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def client(clock: FakeClock) -> Iterator[Client]:
    client = Client("memory://", "shop", clock=clock)
    client.init()
    yield client
    assert client.verify() == []
    client.close()


def plan_of(text: str, path: str = "plan.yaml", now: int = 0) -> PlanFile:
    """The one plan of a text that has nothing wrong."""
    reading = files.read(text, path, now)
    assert reading.findings == ()
    (plan,) = reading.plans
    return plan


def found(text: str | bytes, path: str = "plan.yaml") -> list[tuple[int, int, str]]:
    """Line, column and code of each finding."""
    return [(f.line, f.column, f.code) for f in findings(text, path)]


def findings(text: str | bytes, path: str = "plan.yaml") -> list[Finding]:
    return list(files.read(text, path, 0).findings)
