"""A task that is changed while it is held: an old text's result never completes a new text, and nothing leaks."""

from __future__ import annotations

from typing import Any

import pytest

from tenure.core import commands as c
from tenure.core.records import Reservation
from tenure.engine.reads import why
from tenure.testing.engine.spending import look
from tenure.testing.engine.stage import Stage
from tenure.testing.factories import Scene, code_of


def changed(scene: Scene, **fields: object) -> tuple[str, str]:
    """A held task whose description was changed, and its holder's receipt."""
    key = scene.add(description="Paint it red.\nThen dry it.", **fields)
    receipt = scene.take(key)
    assert scene.do(c.Edit, task=key, changes={"description": "Paint it blue.\nThen dry it."}).outcome == "UPDATED"
    return key, receipt


class Changes(Stage):
    @pytest.mark.parametrize("verb", ["renew", "progress", "start", "checkpoint", "usage"])
    def test_a_holder_is_told_what_has_changed(self, scene: Scene, verb: str) -> None:
        _, receipt = changed(scene)
        kinds: dict[str, type[c.Command]] = {
            "renew": c.Renew,
            "progress": c.Progress,
            "start": c.Start,
            "checkpoint": c.SaveCheckpoint,
            "usage": c.ReportUsage,
        }
        fields: dict[str, dict[str, Any]] = {"checkpoint": {"data": {"n": 1}}, "usage": {"model": "m", "fresh": 1}}
        answer = scene.do(kinds[verb], receipt=receipt, **fields.get(verb, {}))
        assert (answer.ok, answer.directive, answer.brief) == (True, "changed", 2)
        assert "-Paint it red.\n+Paint it blue." in (answer.diff or "")

    def test_a_result_for_the_old_text_is_refused_until_the_new_one_was_seen(self, scene: Scene) -> None:
        key, receipt = changed(scene)
        for seen in (None, 1):
            refused = scene.submit(receipt, "red", seen=seen)
            assert (refused.outcome, refused.work_lost, refused.brief) == ("CHANGED", False, 2)
            assert "+Paint it blue." in (refused.diff or "")
        assert (scene.state(key), scene.results(key)) == ("running", [])
        assert scene.submit(receipt, "blue", seen=2).outcome == "ACCEPTED"

    @pytest.mark.parametrize("verb", [c.Renew, c.Progress])
    def test_seeing_it_is_said_with_a_sign_of_life(self, scene: Scene, verb: type[c.Command]) -> None:
        key, receipt = changed(scene)
        assert scene.do(verb, receipt=receipt, seen=2).directive == "continue"
        assert scene.log(key).count("task.change_seen") == 1
        assert scene.submit(receipt).outcome == "ACCEPTED"

    def test_a_second_change_has_to_be_seen_too(self, scene: Scene) -> None:
        key, receipt = changed(scene)
        scene.do(c.Edit, task=key, changes={"description": "Paint it green."})
        assert scene.submit(receipt, seen=2).outcome == "CHANGED"
        answer = scene.do(c.Renew, receipt=receipt)
        assert answer.brief == 3
        assert "-Paint it red." in (answer.diff or "")
        assert scene.submit(receipt, seen=3).outcome == "ACCEPTED"

    def test_a_change_that_is_undone_needs_not_be_seen(self, scene: Scene) -> None:
        key = scene.add(description="red")
        receipt = scene.take(key)
        edited = scene.do(c.Edit, task=key, changes={"description": "blue"})
        scene.do(c.Undo, command_id=edited.command_id)
        assert scene.do(c.Renew, receipt=receipt).directive == "continue"
        assert scene.submit(receipt).outcome == "ACCEPTED"

    def test_a_number_that_there_is_not_is_refused(self, scene: Scene) -> None:
        _, receipt = changed(scene)
        for seen in (0, 3):
            assert code_of(scene.try_to(c.Submit, receipt=receipt, seen=seen)) == "INVALID_INPUT"

    def test_the_next_holder_gets_the_new_text_and_has_nothing_to_see(self, scene: Scene) -> None:
        key, receipt = changed(scene)
        scene.do(c.Release, receipt=receipt)
        granted = scene.claim(key, "bo")
        assert granted.task is not None
        assert granted.task["description"].startswith("Paint it blue.")
        assert scene.submit(granted.receipt or "").outcome == "ACCEPTED"

    def test_a_new_title_only_informs(self, scene: Scene) -> None:
        key = scene.add()
        receipt = scene.take(key)
        scene.do(c.Edit, task=key, changes={"title": "other"})
        assert scene.do(c.Renew, receipt=receipt).directive == "continue"
        assert scene.submit(receipt).outcome == "ACCEPTED"

    @pytest.mark.parametrize(
        ("name", "value"),
        [("spec", {"prompt": "new"}), ("output", {"type": "json"}), ("touches", ["b.py"]),
         ("constraints", {"region": "eu"})],
    )  # fmt: skip
    def test_what_a_holder_goes_by_is_changed_only_by_superseding_it(
        self, scene: Scene, name: str, value: object
    ) -> None:
        key = scene.add()
        receipt = scene.take(key)
        assert scene.do(c.Edit, task=key, changes={name: value}).outcome == "DENIED_STATE"
        assert scene.do(c.Edit, task=key, changes={name: value}, supersede=True).outcome == "UPDATED"
        assert scene.submit(receipt).outcome == "NO_CLAIM"
        assert scene.task(key).attempts == 0

    def test_a_pause_that_was_asked_for_goes_before_a_change(self, scene: Scene) -> None:
        key, receipt = changed(scene)
        scene.do(c.Pause, task=key, drain=True)
        answer = scene.do(c.Renew, receipt=receipt)
        assert (answer.directive, answer.brief) == ("pause", 2)

    # --- reservations ---------------------------------------------------------------------------------------------

    @pytest.mark.parametrize("end", ["submit", "release", "recover", "cancel"])
    def test_an_edit_does_not_leak_what_the_claim_reserved(self, scene: Scene, end: str) -> None:
        key = scene.add()
        receipt = scene.take(key)
        scene.do(c.Reserve, agent="ann", session="s", patterns=("a.py",), receipt=receipt)
        scene.do(c.Edit, task=key, changes={"title": "other", "tags": ["x"]})
        assert [row.pattern for row in scene.rows(Reservation)] == ["a.py"]
        if end == "submit":
            scene.submit(receipt)
        elif end == "release":
            scene.do(c.Release, receipt=receipt)
        else:
            scene.do(c.Recover if end == "recover" else c.Cancel, task=key)
        assert scene.rows(Reservation) == []
        assert scene.claim(scene.add(touches=("a.py",)), "bo").outcome == "GRANTED"

    def test_why_names_the_reservation_that_is_in_the_way(self, scene: Scene) -> None:
        first = scene.add(touches=("src/*.py",))
        scene.take(first)
        second = scene.add("second", touches=("src/a.py",))
        reasons = look(scene, why.why, second)["reasons"]
        assert any("src/*.py" in reason and first in reason for reason in reasons)
