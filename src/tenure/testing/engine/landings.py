"""Landing: recorded under a live receipt alone, and found again by whoever goes on after a crash."""

from __future__ import annotations

from typing import Any

from tenure.core import commands as c
from tenure.core import runners
from tenure.core.outcomes import Outcome
from tenure.core.records import Landing, replace
from tenure.engine.reads import tasks
from tenure.testing.engine.spending import look, shown
from tenure.testing.engine.stage import Stage
from tenure.testing.factories import AGENT, Scene


def commit(n: int) -> str:
    return f"{n:040x}"


class Branch:
    """A branch as git has it: swapped only from what the swapper believes to be its tip."""

    def __init__(self) -> None:
        self.reached = [commit(1)]

    def swap(self, old: str, new: str) -> bool:
        if self.reached[-1] != old:
            return False
        self.reached.append(new)
        return True


def land(scene: Scene, receipt: str, old: int, new: int, branch: str = "main") -> Outcome:
    return scene.do(c.Land, by=AGENT, receipt=receipt, branch=branch, old=commit(old), new=commit(new))


def earlier(answer: Outcome) -> list[tuple[int, str, str, str]]:
    return [(x["generation"], x["branch"], x["old"], x["new"]) for x in answer.landings or ()]


class Landings(Stage):
    def test_a_landing_is_recorded_shown_and_told(self, scene: Scene) -> None:
        key = scene.add()
        receipt = scene.take(key)
        answer = land(scene, receipt, 1, 2)
        assert (answer.outcome, answer.again, answer.landings) == ("OK", False, ())
        entry = {
            "generation": 1, "run": 1, "agent": "ann", "branch": "main", "old": commit(1), "new": commit(2),
            "at": scene.now, "reported": True,
        }  # fmt: skip
        assert shown(scene, key)["landings"] == [entry]
        assert [h["landing"] for h in look(scene, tasks.history, key)] == [entry]
        (event,) = scene.events(kind="task.landing")
        assert event.details == {"branch": "main", "old": commit(1), "new": commit(2)}
        assert (event.generation, event.agent) == (1, "ann")

    def test_what_a_holder_says_of_a_branch_is_shown_as_said(self, scene: Scene) -> None:
        """Only a runner that keeps landing to itself has merged what it records."""
        for submits in (False, True):
            key = scene.add()
            receipt = scene.take(key, f"ann-{submits}", metadata=runners.mark("word", submits=submits))
            known = {"receipt": receipt, "branch": "main", "request_id": f"word.{submits}"}
            assert scene.do(c.Land, by=AGENT, old=commit(1), new=commit(2), **known).ok
            assert [one["reported"] for one in shown(scene, key)["landings"]] == [not submits]

    def test_no_work_for_an_older_description_is_landed(self, scene: Scene) -> None:
        key = scene.add(description="Paint it red.")
        receipt = scene.take(key)
        scene.do(c.Edit, task=key, changes={"description": "Paint it blue."})
        refused = land(scene, receipt, 1, 2)
        assert (refused.outcome, refused.brief, refused.work_lost) == ("CHANGED", 2, False)
        assert "+Paint it blue." in (refused.diff or "")
        assert (scene.events(kind="task.landing"), scene.state(key)) == ([], "running")
        seen = scene.do(c.Land, receipt=receipt, branch="main", old=commit(1), new=commit(2), seen=2)
        assert (seen.outcome, seen.directive) == ("OK", "continue")
        assert scene.submit(receipt).outcome == "ACCEPTED"

    def test_the_same_landing_again_is_recorded_once(self, scene: Scene) -> None:
        receipt = scene.take(scene.add())
        land(scene, receipt, 1, 2)
        again = land(scene, receipt, 1, 2)
        assert (again.outcome, again.again, earlier(again)) == ("OK", True, [])
        assert len(scene.events(kind="task.landing")) == 1

    def test_every_landing_under_one_claim_keeps_its_own_record(self, scene: Scene) -> None:
        key = scene.add()
        receipt = scene.take(key)
        land(scene, receipt, 1, 2)
        assert earlier(land(scene, receipt, 3, 4, "release")) == [(1, "main", commit(1), commit(2))]
        for n in range(5, 14):
            land(scene, receipt, n - 1, n)
        pairs = [(x["branch"], x["new"]) for x in shown(scene, key)["landings"]]
        assert pairs == [*(("main", commit(n)) for n in range(13, 4, -1)), ("release", commit(4)), ("main", commit(2))]
        (claim,) = look(scene, tasks.history, key)
        assert [x["new"] for x in claim["landings"]] == [new for _, new in pairs]
        assert claim["landing"] == claim["landings"][0]
        assert len(scene.events(kind="task.landing")) == 11
        assert land(scene, receipt, 1, 2).again  # whichever it was
        scene.submit(receipt)

    def test_landings_recorded_before_each_had_its_own_row_are_still_read(self, scene: Scene) -> None:
        key = scene.add()
        receipt = scene.take(key)
        land(scene, receipt, 1, 2)
        assert [row.id for row in scene.rows(Landing)] == [scene.last_claim(key).id]

    def test_every_earlier_generation_is_told_newest_first(self, scene: Scene) -> None:
        key = scene.add(max_attempts=10)
        answers = []
        for n, agent in enumerate(("ann", "bo", "cy")):
            answers.append(land(scene, scene.take(key, agent, lease=60), 1, 10 + n))
            scene.pass_time(seconds=60)
        assert earlier(answers[-1]) == [(2, "main", commit(1), commit(11)), (1, "main", commit(1), commit(10))]

    def test_at_most_twenty_earlier_landings_are_told(self, scene: Scene) -> None:
        key = scene.add(max_attempts=100, retry={"poison": 0})
        answers = []
        for n in range(23):
            answers.append(land(scene, scene.take(key, f"agent{n}", lease=60), 1, 10 + n))
            scene.pass_time(seconds=60)
        assert [x["generation"] for x in answers[-1].landings or ()] == list(range(22, 2, -1))
        assert len(shown(scene, key)["landings"]) == 23

    def test_a_task_that_was_started_over_tells_of_its_earlier_runs(self, scene: Scene) -> None:
        key = scene.add()
        receipt = scene.take(key)
        land(scene, receipt, 1, 2)
        scene.submit(receipt)
        scene.do(c.Reset, task=key)
        answer = land(scene, scene.take(key), 2, 3)
        assert [(x["run"], x["generation"]) for x in answer.landings or ()] == [(1, 1)]

    # --- crashes --------------------------------------------------------------------------------------------------

    def test_a_crash_before_the_swap_is_resumed_with_the_same_receipt(self, scene: Scene) -> None:
        key, main = scene.add(), Branch()
        receipt = scene.take(key)
        land(scene, receipt, 1, 2)
        (found,) = shown(scene, key)["landings"]  # it starts again here, and looks first
        assert found["new"] not in main.reached
        assert land(scene, receipt, 1, 3).outcome == "OK"
        assert main.swap(commit(1), commit(3))
        assert scene.submit(receipt, {"branch": "main", "commit": commit(3)}).outcome == "ACCEPTED"

    def test_a_crash_after_the_swap_is_seen_by_the_next_generation(self, scene: Scene) -> None:
        key, main = scene.add(), Branch()
        receipt = scene.take(key, "ann", lease=60)
        land(scene, receipt, 1, 2)
        assert main.swap(commit(1), commit(2))
        scene.pass_time(seconds=60)
        taken = scene.claim(key, "bo")
        (found,) = shown(scene, key)["landings"]
        assert found["new"] in main.reached  # so there is nothing to merge: it hands in what is there
        done = scene.submit(taken.receipt or "", {"branch": found["branch"], "commit": found["new"]})
        assert done.outcome == "ACCEPTED"

    def test_a_zombie_neither_records_nor_swaps_over_its_successor(self, scene: Scene) -> None:
        key, main = scene.add(), Branch()
        old = scene.take(key, "ann", lease=60)
        land(scene, old, 1, 2)  # it stops here, between record and swap
        scene.pass_time(seconds=60)
        new = scene.take(key, "bo")
        assert earlier(land(scene, new, 1, 3)) == [(1, "main", commit(1), commit(2))]
        assert main.swap(commit(1), commit(3))
        assert not main.swap(commit(1), commit(2))  # the zombie wakes up: its `old` is past
        before = scene.tables()
        refused = land(scene, old, 3, 4)
        assert (refused.outcome, refused.directive, refused.landings) == ("STALE_GENERATION", "abort", None)
        assert scene.tables() == before
        assert main.reached == [commit(1), commit(3)]

    def test_a_lapsed_holder_has_no_leave_to_land_though_it_may_submit(self, scene: Scene) -> None:
        receipt = scene.take(scene.add(), lease=60)
        scene.pass_time(seconds=61)
        assert land(scene, receipt, 1, 2).outcome == "ALREADY_EXPIRED"
        assert scene.rows(Landing) == []
        assert scene.submit(receipt).outcome == "ACCEPTED"

    # --- verify ---------------------------------------------------------------------------------------------------

    def test_a_landing_of_no_claim_is_found(self, scene: Scene) -> None:
        scene.broken = True
        land(scene, scene.take(scene.add()), 1, 2)
        (row,) = scene.rows(Landing)
        stray: Any = replace(row, id="stray", generation=9)
        scene.put(None, stray)
        assert any(
            "stray: belongs to a claim that does not exist" in text for text in scene.engine.verify(with_replay=False)
        )
        assert any("landing" in text and "only in the table" in text for text in scene.engine.verify())
