"""Modes of reservations: who shares, who holds alone, and how one becomes the other under one receipt."""

from __future__ import annotations

from tenure.core import commands as c
from tenure.core.outcomes import Outcome
from tenure.core.records import Reservation
from tenure.testing.engine.stage import Stage
from tenure.testing.factories import Scene


def reserve(scene: Scene, agent: str, mode: str, *patterns: str, receipt: str | None = None) -> Outcome:
    return scene.do(
        c.Reserve, patterns=patterns or ("src/**",), mode=mode, agent=agent, session=f"s-{agent}", receipt=receipt
    )


def modes(scene: Scene) -> list[tuple[str, str]]:
    return sorted((row.agent, row.mode) for row in scene.rows(Reservation))


class Reservations(Stage):
    def test_exclusive_over_its_own_shared_row_is_judged_against_all_others(self, scene: Scene) -> None:
        ann, bo = scene.take(scene.add(), "ann"), scene.take(scene.add(), "bo")
        for agent, receipt in (("ann", ann), ("bo", bo)):
            assert reserve(scene, agent, "shared", receipt=receipt).outcome == "GRANTED"
        denied = reserve(scene, "ann", "exclusive", receipt=ann)
        assert (denied.outcome, denied.holder) == ("DENIED_CONFLICT", "bo")
        assert modes(scene) == [("ann", "shared"), ("bo", "shared")]
        scene.submit(bo)
        assert reserve(scene, "ann", "exclusive", receipt=ann).outcome == "GRANTED"
        assert modes(scene) == [("ann", "exclusive")]
        assert reserve(scene, "cy", "shared").outcome == "DENIED_CONFLICT"

    def test_shared_over_its_own_exclusive_row_lets_others_share(self, scene: Scene) -> None:
        receipt = scene.take(scene.add(touches=("src/**",)), "ann")
        assert reserve(scene, "bo", "shared").outcome == "DENIED_CONFLICT"
        assert reserve(scene, "ann", "shared", receipt=receipt).outcome == "GRANTED"
        assert reserve(scene, "bo", "shared").outcome == "GRANTED"
        assert reserve(scene, "ann", "exclusive", receipt=receipt).outcome == "DENIED_CONFLICT"
        assert modes(scene) == [("ann", "shared"), ("bo", "shared")]

    def test_a_reservation_that_stands_alone_changes_its_mode_by_its_own_receipt(self, scene: Scene) -> None:
        ann = reserve(scene, "ann", "shared", "src/**", "port:1")
        bo = reserve(scene, "bo", "shared")
        assert reserve(scene, "ann", "exclusive", receipt=ann.receipt).outcome == "DENIED_CONFLICT"
        scene.do(c.Unreserve, receipt=bo.receipt)
        raised = reserve(scene, "ann", "exclusive", "src/**", "env:x", receipt=ann.receipt)
        assert (raised.outcome, raised.receipt, raised.lease_until) == ("GRANTED", ann.receipt, ann.lease_until)
        held = {row.pattern: row.mode for row in scene.rows(Reservation)}
        assert held == {"src/**": "exclusive", "port:1": "shared", "env:x": "exclusive"}
        assert reserve(scene, "bo", "shared").outcome == "DENIED_CONFLICT"
        assert reserve(scene, "ann", "shared", receipt=ann.receipt).outcome == "GRANTED"
        assert reserve(scene, "bo", "shared").outcome == "GRANTED"
        scene.do(c.Unreserve, receipt=ann.receipt)
        assert modes(scene) == [("bo", "shared")]

    def test_a_session_that_shares_alone_and_asks_for_all_is_denied_while_others_share(self, scene: Scene) -> None:
        for agent in ("ann", "bo"):
            assert reserve(scene, agent, "shared").outcome == "GRANTED"
        assert reserve(scene, "ann", "exclusive").outcome == "DENIED_CONFLICT"

    def test_a_receipt_whose_reservation_ran_out_changes_nothing(self, scene: Scene) -> None:
        alone = scene.do(c.Reserve, patterns=("env:x",), agent="ann", session="s", lease=60, mode="shared")
        scene.pass_time(seconds=60)
        assert scene.do(c.Reserve, patterns=("env:x",), agent="bo", session="t").outcome == "GRANTED"
        assert reserve(scene, "ann", "exclusive", "env:x", receipt=alone.receipt).outcome == "NOT_FOUND"
