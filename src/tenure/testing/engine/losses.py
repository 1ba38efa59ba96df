"""Lost claims in a row: an interruption stays one attempt, and a session that its task kills uses its attempts up."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tenure.core import commands as c
from tenure.core.commands import NewTask, Process
from tenure.core.outcomes import Outcome
from tenure.core.records import DeadLetter
from tenure.testing.engine.stage import Stage
from tenure.testing.factories import Scene

LEASE = 60
MINE = Process(host="build-7", boot="5c3f-boot", pid=4711, start=99)
WORK: dict[str, Callable[[Scene, str], object]] = {
    "progress": lambda scene, receipt: scene.do(c.Progress, receipt=receipt, percent=10),
    "checkpoint": lambda scene, receipt: scene.do(c.SaveCheckpoint, receipt=receipt, data={"next": "x"}),
    "spawn": lambda scene, receipt: scene.do(c.Spawn, receipt=receipt, tasks=(NewTask(title="part"),)),
    "usage": lambda scene, receipt: scene.do(c.ReportUsage, receipt=receipt, model="opus", fresh=10),
    "hook": lambda scene, receipt: scene.do(c.Renew, receipt=receipt, background=True, worked=True),
    "hook in front": lambda scene, receipt: scene.do(c.Renew, receipt=receipt, worked=True),
}
NO_WORK: dict[str, Callable[[Scene, str], object]] = {
    "renewal": lambda scene, receipt: scene.do(c.Renew, receipt=receipt),
    "thread": lambda scene, receipt: scene.do(c.Renew, receipt=receipt, background=True),
    "start": lambda scene, receipt: scene.do(c.Start, receipt=receipt),
    "heartbeat": lambda scene, _: scene.do(c.Heartbeat, agent="ann", session="s-ann"),
}
LATE = ("checkpoint", "usage")


def lose(scene: Scene, key: str, agent: str = "ann", *, session: str | None = None) -> Outcome:
    """One claim that runs out."""
    granted = scene.claim(key, agent, session=session or f"s-{agent}", lease=LEASE)
    scene.pass_time(seconds=LEASE)
    return granted


class Losses(Stage):
    def test_two_interruptions_in_a_row_stay_one_attempt(self, scene: Scene) -> None:
        key = scene.add()
        assert [lose(scene, key).attempt for _ in range(2)] == [1, 1]
        granted = scene.claim(key, "ann", lease=LEASE)
        assert (granted.generation, granted.attempt) == (3, 1)
        assert scene.last_claim(key).continues

    def test_the_third_loss_in_a_row_is_a_counted_attempt_and_so_is_each_later_one(self, scene: Scene) -> None:
        key = scene.add(max_attempts=4)
        assert [lose(scene, key).attempt for _ in range(6)] == [1, 1, 1, 2, 3, 4]
        task = scene.task(key)
        assert (task.state, task.attempts, task.generation, task.failures) == ("dead_lettered", 4, 6, ("ann",) * 4)
        (letter,) = scene.rows(DeadLetter)
        assert letter.error_class == "lease_expired"
        scene.do(c.Retry, task=key)
        assert [lose(scene, key).attempt for _ in range(4)] == [1, 1, 1, 2]

    def test_another_agents_claim_begins_a_row_of_its_own(self, scene: Scene) -> None:
        key = scene.add(max_attempts=9, retry={"poison": 0})
        assert [lose(scene, key).attempt for _ in range(4)] == [1, 1, 1, 2]
        assert [lose(scene, key, "bo").attempt for _ in range(4)] == [3, 3, 3, 4]
        assert lose(scene, key).attempt == 5

    @pytest.mark.parametrize("who", [("ann", "s-other"), ("bo", "s-bo")])
    def test_another_session_and_another_agent_make_another_attempt(self, scene: Scene, who: tuple[str, str]) -> None:
        key = scene.add()
        lose(scene, key)
        assert lose(scene, key, who[0], session=who[1]).attempt == 2

    @pytest.mark.parametrize("sign", WORK)
    def test_a_sign_of_work_ends_the_row(self, scene: Scene, sign: str) -> None:
        key = scene.add()
        lose(scene, key)
        lose(scene, key)
        receipt = scene.take(key, "ann", lease=LEASE)
        WORK[sign](scene, receipt)
        assert scene.task(key).losses == 0
        scene.pass_time(seconds=LEASE)
        assert [lose(scene, key).attempt for _ in range(3)] == [1, 1, 2]

    @pytest.mark.parametrize("sign", NO_WORK)
    def test_what_a_thread_sends_is_no_sign_of_work(self, scene: Scene, sign: str) -> None:
        key = scene.add()
        for attempt in (1, 1, 1, 2):
            granted = scene.claim(key, "ann", lease=LEASE)
            assert (granted.attempt, granted.receipt is not None) == (attempt, True)
            NO_WORK[sign](scene, granted.receipt or "")
            scene.pass_time(seconds=LEASE)

    @pytest.mark.parametrize("sign", LATE)
    def test_work_that_comes_late_ends_the_row_too(self, scene: Scene, sign: str) -> None:
        key = scene.add()
        lose(scene, key)
        lose(scene, key)
        receipt = scene.take(key, "ann", lease=LEASE)
        scene.pass_time(seconds=LEASE)
        WORK[sign](scene, receipt)
        assert lose(scene, key).attempt == 1

    def test_a_refused_result_is_a_sign_of_work(self, scene: Scene) -> None:
        schema = {"type": "object", "required": ["answer"]}
        key = scene.add(output={"type": "json", "validation": "json-schema", "settings": {"schema": schema}})
        lose(scene, key)
        lose(scene, key)
        refused = scene.submit(scene.take(key, "ann", lease=LEASE), {"other": 1})
        assert (refused.outcome, scene.task(key).losses) == ("INVALID_OUTPUT", 0)

    def test_another_end_of_a_claim_ends_the_row(self, scene: Scene) -> None:
        key = scene.add()
        lose(scene, key)
        lose(scene, key)
        receipt = scene.take(key, "ann", lease=LEASE)
        scene.do(c.Release, receipt=receipt)
        assert [lose(scene, key).attempt for _ in range(3)] == [1, 1, 1]
        assert scene.claim(key, "ann").attempt == 2

    def test_a_session_that_goes_on_may_still_submit_and_renew(self, scene: Scene) -> None:
        key = scene.add()
        for _ in range(4):
            lose(scene, key)
        receipt = scene.take(key, "ann", lease=LEASE)
        assert scene.do(c.Renew, receipt=receipt).outcome == "RENEWED"
        assert scene.submit(receipt).outcome == "ACCEPTED"

    # --- the process ----------------------------------------------------------------------------------------------

    def test_the_proven_death_of_its_process_is_a_counted_attempt(self, scene: Scene) -> None:
        key = scene.add()
        for attempt in (1, 2, 3):
            granted = scene.claim(key, "ann", process=MINE)
            assert granted.attempt == attempt
            scene.do(c.Progress, receipt=granted.receipt or "", percent=attempt)
            scene.do(c.Gone, processes=(MINE,))
        assert scene.state(key) == "dead_lettered"

    def test_a_death_makes_no_later_interruption_count(self, scene: Scene) -> None:
        key = scene.add()
        scene.take(key, "ann", process=MINE)
        scene.do(c.Gone, processes=(MINE,))
        assert [lose(scene, key).attempt for _ in range(2)] == [2, 2]

    # --- what follows ---------------------------------------------------------------------------------------------

    def test_the_delay_grows_with_each_counted_loss(self, scene: Scene) -> None:
        key = scene.add(on_lost="back_off", max_attempts=9, retry={"initial_delay": 10, "jitter": 0})
        waits = []
        for _ in range(6):
            lose(scene, key)
            waits.append(((scene.task(key).retry_at or 0) - scene.now) // 1_000_000)
            scene.pass_time(hours=1)
        assert waits == [10, 10, 10, 20, 40, 80]

    def test_a_task_that_kills_two_named_workers_is_a_poison_pill(self, scene: Scene) -> None:
        key = scene.add(max_attempts=10)
        for _ in range(4):
            lose(scene, key)
        lose(scene, key, "bo")
        assert (scene.state(key), scene.rows(DeadLetter)[0].poison_pill) == ("dead_lettered", True)
