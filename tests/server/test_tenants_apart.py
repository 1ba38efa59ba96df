"""No tenant learns anything of another, by any route: a slice of `./x reliability tenants`."""

from __future__ import annotations

import pytest

from tenure.stores.memory import Memory
from tenure.stores.port import Store
from tenure.testing.clock import FakeClock
from tests.server.tenant_worlds import OPERATIONS, Apart


def in_memory(clock: FakeClock, name: str) -> Store:
    return Memory(f"memory://{name}", clock=clock)


@pytest.mark.parametrize("theirs", [2, 1])
def test_no_route_tells_of_another_tenant(theirs: int) -> None:
    apart = Apart(in_memory, seed=11, theirs=theirs)
    for sent in list(apart.every_operation()):
        apart.ask(sent)
    apart.run(150)
    assert list(apart.end()) == []
    assert apart.done == len(OPERATIONS) - 3 + 150
    assert len(apart.reached) > 60
