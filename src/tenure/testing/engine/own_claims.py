"""What an agent holds in a session and what it lost there: so the command line knows when a claim must be named."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tenure.core import commands as c
from tenure.core import queries as q
from tenure.core.commands import NewTask, Principal
from tenure.core.errors import NotAllowed
from tenure.engine.reads.query_table import read_query
from tenure.testing.engine.stage import Stage
from tenure.testing.factories import PROJECT, Scene

Act = Callable[[Scene, str, str], object]  # scene, key, receipt


def _taken_over(scene: Scene, key: str) -> None:
    scene.pass_time(seconds=3600)
    scene.take(key, "bo")


BY_ITS_OWN_WORD: dict[str, Act] = {
    "submit": lambda scene, key, receipt: scene.submit(receipt, "done"),
    "fail": lambda scene, key, receipt: scene.fail(receipt, "task"),
    "release": lambda scene, key, receipt: scene.do(c.Release, receipt=receipt),
    "ask": lambda scene, key, receipt: scene.do(c.Ask, receipt=receipt, question="Which?"),
    "wait": lambda scene, key, receipt: scene.do(
        c.Spawn, receipt=receipt, tasks=(NewTask(title="part"),), wait=True
    ),
    "leave": lambda scene, key, receipt: scene.do(c.Leave, session="s-ann"),
}  # fmt: skip
WITHOUT_ITS_WORD: dict[str, Act] = {
    "expired": lambda scene, key, receipt: scene.pass_time(seconds=3600),
    "taken over": lambda scene, key, receipt: _taken_over(scene, key),
    "recovered": lambda scene, key, receipt: scene.do(c.Recover, task=key),
    "reassigned": lambda scene, key, receipt: scene.know("bo").do(c.Reassign, task=key, agent="bo"),
    "cancelled": lambda scene, key, receipt: scene.do(c.Cancel, task=key),
    "a new epoch": lambda scene, key, receipt: scene.engine.new_epoch("restored"),
}


def own(scene: Scene, agent: str = "ann", session: str = "s-ann") -> list[tuple[str, int, str]]:
    found = read_query(scene.engine, q.OwnClaims(project=PROJECT, session=session, agent=agent))
    return [(claim["ref"], claim["generation"], claim["state"]) for claim in found]


class OwnClaims(Stage):
    def test_a_live_claim_is_its_agents_in_its_session_alone(self, scene: Scene) -> None:
        scene.take(scene.add(), "ann", session="s-ann")
        assert own(scene) == [("A-001", 1, "active")]
        assert own(scene, agent="bo") == []
        assert own(scene, session="s-bo") == []

    def test_an_agent_asks_for_its_own_claims_alone(self, scene: Scene) -> None:
        scene.take(scene.add(), "ann", session="s-ann")
        query = q.OwnClaims(project=PROJECT, session="s-ann", agent="ann")
        assert len(read_query(scene.engine, query, Principal(role="agent", agent="ann"))) == 1
        assert len(read_query(scene.engine, query, Principal(role="viewer"))) == 1
        with pytest.raises(NotAllowed, match="you are agent bo, not ann"):
            read_query(scene.engine, query, Principal(role="agent", agent="bo"))

    def test_without_an_agent_a_session_shows_the_claims_of_all_its_agents(self, scene: Scene) -> None:
        for agent in ("ann", "bo"):
            scene.take(scene.add(), agent, session="team")
        query = q.OwnClaims(project=PROJECT, session="team")
        assert [claim["agent"] for claim in read_query(scene.engine, query, Principal(role="member"))] == ["ann", "bo"]
        with pytest.raises(NotAllowed, match="its claims alone"):
            read_query(scene.engine, query, Principal(role="agent", agent="bo"))

    @pytest.mark.parametrize("act", BY_ITS_OWN_WORD)
    def test_a_claim_that_its_holder_ended_is_not_among_them(self, scene: Scene, act: str) -> None:
        key = scene.add()
        BY_ITS_OWN_WORD[act](scene, key, scene.take(key, "ann", session="s-ann"))
        assert own(scene) == []

    @pytest.mark.parametrize("act", WITHOUT_ITS_WORD)
    def test_a_claim_that_was_lost_is_among_them_for_a_day(self, scene: Scene, act: str) -> None:
        key = scene.add()
        WITHOUT_ITS_WORD[act](scene, key, scene.take(key, "ann", session="s-ann", lease=60))
        ((ref, generation, state),) = own(scene)
        assert (ref, generation) == ("A-001", 1)
        assert state != "active"
        scene.pass_time(seconds=24 * 3600)
        assert own(scene) == []

    def test_both_generations_of_a_task_are_told_apart(self, scene: Scene) -> None:
        key = scene.add()
        scene.take(key, "ann", session="s-ann", lease=60)
        scene.pass_time(seconds=60)
        scene.take(key, "ann", session="s-ann")
        assert own(scene) == [("A-001", 1, "expired"), ("A-001", 2, "active")]
