"""What operators decide about an agent, drain and terminate, stays until an operator lifts it."""

from __future__ import annotations

from typing import Any

import pytest

from tenure.core import commands as c
from tenure.core.errors import NotFound
from tenure.core.records import Agent
from tenure.engine.verbs.agents import agent_view
from tenure.testing.engine.stage import Stage
from tenure.testing.engine.team import kinds_of
from tenure.testing.factories import AGENT, MEMBER, PROJECT, Scene, code_of


def status(scene: Scene, agent: str = "ann") -> str:
    row = scene.row(Agent, agent)
    return scene.engine.read_settled((PROJECT,), lambda work: agent_view(work, row)["status"])


class Terminating(Stage):
    @pytest.mark.parametrize("graceful", [True, False])
    def test_a_terminated_agent_claims_nothing_until_it_is_resumed(self, scene: Scene, graceful: bool) -> None:
        key = scene.add()
        scene.do(c.Register, agent="ann")
        ended = scene.do(c.Terminate, agent="ann", graceful=graceful, reason="runs wild", by=MEMBER)
        assert (ended.outcome, (ended.agent or {})["status"]) == ("UPDATED", "offline")
        for denied in (scene.next("ann"), scene.claim(key, "ann"), scene.next("ann", session="another")):
            assert (denied.outcome, denied.directive) == ("DENIED_AGENT", "terminated")
            assert "runs wild" in denied.message
            assert "tenure agent resume ann" in (denied.hint or "")
        assert scene.next("bo").outcome == "GRANTED"
        assert scene.do(c.Terminate, agent="ann", graceful=graceful).outcome == "UNCHANGED"
        assert kinds_of(scene, "ann").count("agent.terminated") == 1
        assert "agent.recovered" not in kinds_of(scene, "ann")
        assert scene.do(c.ResumeAgent, agent="ann", by=MEMBER).outcome == "UPDATED"
        assert scene.do(c.ResumeAgent, agent="ann", by=MEMBER).outcome == "UNCHANGED"
        scene.add()
        assert scene.next("ann").outcome == "GRANTED"
        assert status(scene) == "active"

    def test_its_own_word_lifts_neither_a_drain_nor_an_end(self, scene: Scene) -> None:
        scene.add()
        for kind, code in ((c.Drain, "DENIED_LIMIT"), (c.Terminate, "DENIED_AGENT")):
            scene.do(c.Register, agent="ann", session="s-ann")
            scene.do(kind, agent="ann")
            for _ in range(2):
                scene.do(c.Register, agent="ann", session="s-ann", capabilities=("new",), by=AGENT)
                scene.do(c.Heartbeat, agent="ann", by=AGENT)
                assert scene.next("ann").outcome == code
                scene.do(c.Leave, session="s-ann")
                scene.pass_time(hours=2)
                scene.engine.sweep()
            assert scene.row(Agent, "ann").capabilities == ("new",)
            assert code_of(scene.try_to(c.ResumeAgent, agent="ann", by=AGENT)) == "NOT_ALLOWED"

    def test_graceful_lets_the_current_task_finish_and_then_it_is_offline(self, scene: Scene) -> None:
        one, two = scene.add(), scene.add()
        receipts = [scene.take(key, "ann") for key in (one, two)]
        scene.do(c.Terminate, agent="ann")
        assert status(scene) == "draining"
        assert scene.do(c.Heartbeat, agent="ann").directive == "terminated"
        assert scene.do(c.Progress, receipt=receipts[0], percent=50).directive == "terminated"
        assert scene.next("ann").outcome == "DENIED_AGENT"
        assert scene.submit(receipts[0]).outcome == "ACCEPTED"
        assert (status(scene), "agent.terminated" in kinds_of(scene, "ann")) == ("draining", False)
        assert scene.submit(receipts[1]).outcome == "ACCEPTED"
        assert (status(scene), kinds_of(scene, "ann")[-1]) == ("offline", "agent.terminated")

    def test_the_renewals_of_a_terminated_agent_say_so_alone_and_in_a_batch(self, scene: Scene) -> None:
        receipts = [scene.take(scene.add(), "ann") for _ in range(2)]
        other = scene.take(scene.add(), "bo")
        assert scene.do(c.Renew, receipt=receipts[0]).directive == "continue"
        scene.do(c.Terminate, agent="ann", reason="runs wild")
        alone = scene.do(c.Renew, receipt=receipts[0])
        assert (alone.outcome, alone.directive) == ("RENEWED", "terminated")
        assert "runs wild" in (alone.directive_text or "")
        batch = scene.run(*(c.Renew(project=PROJECT, receipt=receipt) for receipt in (*receipts, other)))
        assert [getattr(answer, "directive", answer) for answer in batch] == ["terminated", "terminated", "continue"]
        scene.do(c.ResumeAgent, agent="ann")
        assert scene.do(c.Renew, receipt=receipts[0]).directive == "continue"

    def test_a_pause_and_a_new_description_go_before_the_end_of_the_agent(self, scene: Scene) -> None:
        drained, changed = scene.add(), scene.add()
        receipts = {key: scene.take(key, "ann") for key in (drained, changed)}
        scene.do(c.Terminate, agent="ann")
        scene.do(c.Pause, task=drained, drain=True)
        scene.do(c.Edit, task=changed, changes={"description": "Another"})
        assert scene.do(c.Renew, receipt=receipts[drained]).directive == "pause"
        assert scene.do(c.Renew, receipt=receipts[changed]).directive == "changed"

    @pytest.mark.parametrize("verb", ["fail", "release", "recover", "cancel", "ask", "wait"])
    def test_however_the_last_claim_ends_the_agent_ends_with_it(self, scene: Scene, verb: str) -> None:
        key = scene.add()
        receipt = scene.take(key, "ann")
        scene.do(c.Terminate, agent="ann")
        ends: dict[str, tuple[type[c.Command], dict[str, Any]]] = {
            "fail": (c.Fail, {"receipt": receipt}), "release": (c.Release, {"receipt": receipt}),
            "recover": (c.Recover, {"task": key}), "cancel": (c.Cancel, {"task": key}),
            "ask": (c.Ask, {"receipt": receipt, "question": "Why?"}), "wait": (c.Wait, {"receipt": receipt}),
        }  # fmt: skip
        kind, fields = ends[verb]
        assert scene.do(kind, **fields).ok
        assert (status(scene), kinds_of(scene, "ann").count("agent.terminated")) == ("offline", 1)

    def test_a_lease_that_runs_out_ends_it_with_or_without_a_sweep(self, scene: Scene) -> None:
        scene.take(scene.add(), "ann", lease=60)
        scene.do(c.Terminate, agent="ann")
        scene.pass_time(seconds=61)
        assert status(scene) == "offline"
        scene.engine.sweep()
        assert (status(scene), kinds_of(scene, "ann").count("agent.terminated")) == ("offline", 1)

    def test_a_second_word_ends_at_once_what_was_to_finish(self, scene: Scene) -> None:
        key = scene.add()
        receipt = scene.take(key, "ann")
        scene.do(c.Terminate, agent="ann", reason="first")
        ended = scene.do(c.Terminate, agent="ann", graceful=False)
        assert (ended.outcome, ended.changed) == ("UPDATED", (key,))
        assert (status(scene), scene.state(key)) == ("offline", "ready")
        assert scene.do(c.Progress, receipt=receipt).outcome == "NO_CLAIM"
        assert "first" in scene.next("ann").message

    def test_a_terminated_agents_stale_receipt_wakes_nobody(self, scene: Scene) -> None:
        receipt = scene.take(scene.add(), "ann")
        scene.do(c.Terminate, agent="ann", graceful=False)
        for _ in range(3):
            scene.pass_time(minutes=5)
            scene.do(c.Renew, receipt=receipt)
            scene.do(c.Heartbeat, agent="ann")
        assert (status(scene), "agent.recovered" in kinds_of(scene, "ann")) == ("offline", False)

    def test_only_agents_that_are_known_can_be_resumed(self, scene: Scene) -> None:
        with pytest.raises(NotFound, match="nobody"):
            scene.do(c.ResumeAgent, agent="nobody")
