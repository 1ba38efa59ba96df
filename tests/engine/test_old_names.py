"""Names that earlier versions stored and that a new agent may not have."""

from __future__ import annotations

import pytest

from tenure.core import commands as c
from tenure.core.errors import InvalidInput
from tenure.core.records import Agent, Pool, Session, replace
from tenure.stores.memory import Memory
from tenure.testing.clock import FakeClock
from tenure.testing.factories import Scene

OLD = "$(touch${IFS}x)"


@pytest.fixture
def scene() -> Scene:
    """A project with an agent, a session and a pool under such a name."""
    clock = FakeClock()
    scene = Scene(Memory(clock=clock), clock, 1)
    scene.do(c.DefineProject)
    scene.do(c.Register, agent="ann", session="s-ann")
    scene.do(c.SetPool, pool="fine", program="claude")
    scene.put(None, replace(scene.stored(Agent, "ann"), id=OLD))
    scene.put(None, replace(scene.stored(Session, "s-ann"), id=OLD, agent=OLD))
    scene.put(None, replace(scene.stored(Pool, "fine"), id=OLD))
    return scene


def test_what_is_stored_under_an_old_name_goes_on(scene: Scene) -> None:
    granted = scene.do(c.ClaimTask, task=scene.add(), agent=OLD, session=OLD)
    assert granted.outcome == "GRANTED", granted
    assert scene.submit(str(granted.receipt)).outcome == "ACCEPTED"
    assert scene.do(c.Register, agent=OLD, session="s-2").outcome == "UPDATED"
    assert scene.do(c.Register, agent=f"{OLD}-1").outcome == "CREATED"  # of a place in the pool
    assert scene.do(c.SetPool, pool=OLD, size=2).outcome == "UPDATED"
    (key,) = scene.run(c.CreateKey(name="k", role="agent", agent=OLD))
    assert getattr(key, "outcome", key) == "CREATED"
    with pytest.raises(InvalidInput):
        scene.do(c.Register, agent=f"{OLD}x")


def test_a_name_in_a_hint_is_one_word_for_a_shell(scene: Scene) -> None:
    scene.do(c.Terminate, agent=OLD)
    refused = scene.do(c.ClaimNext, agent=OLD, session=OLD)
    assert "tenure agent resume '$(touch${IFS}x)'" in str(refused.hint), refused
