"""Processes proven gone: the claim ends early, exactly as with its lease, and the fence is where it was."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from tenure.core import commands as c
from tenure.core.commands import Principal, Process
from tenure.core.outcomes import Outcome
from tenure.core.records import Claim, Reservation, replace
from tenure.core.roles import ROLES
from tenure.engine.reads import tasks
from tenure.testing.engine.spending import look
from tenure.testing.engine.stage import Stage
from tenure.testing.factories import AGENT, Scene, code_of

MINE = Process(host="build-7", boot="5c3f-boot", pid=4711, start=99)
OTHER = Process(host="build-7", boot="5c3f-boot", pid=4712, start=99)


def gone(scene: Scene, *processes: Process, by: Principal = AGENT) -> Outcome:
    return scene.do(c.Gone, by=by, processes=processes)


class Processes(Stage):
    # --- what ends ------------------------------------------------------------------------------------------------

    def test_every_claim_of_the_process_ends_and_no_other(self, scene: Scene) -> None:
        one, two, other, unnamed = (scene.add(name) for name in ("one", "two", "other", "unnamed"))
        scene.take(one, "ann", process=MINE)
        scene.take(two, "bo", session="another", process=MINE)
        scene.take(other, "ann", process=OTHER)
        scene.take(unnamed, "ann")
        answer = gone(scene, MINE)
        assert (answer.outcome, sorted(answer.changed or ())) == ("OK", sorted((one, two)))
        assert scene.states(one, two, other, unnamed) == ["ready", "ready", "claimed", "claimed"]
        assert [(x.reason, x.state, x.counted) for x in scene.lineage(one)] == [("EXPIRED", "expired", True)]

    @pytest.mark.parametrize("field", ["host", "boot", "pid", "start"])
    def test_a_process_that_differs_in_anything_is_another(self, scene: Scene, field: str) -> None:
        key = scene.add()
        scene.take(key, process=MINE)
        near = replace(MINE, **{field: {"host": "build-8", "boot": "next-boot", "pid": 4710, "start": 98}[field]})
        before = scene.tables()
        assert gone(scene, near).outcome == "UNCHANGED"
        assert scene.tables() == before
        assert gone(scene, near, MINE).changed == (key,)

    def test_a_process_is_gone_once(self, scene: Scene) -> None:
        scene.take(scene.add(), process=MINE)
        gone(scene, MINE)
        before = scene.tables()
        assert gone(scene, MINE).outcome == "UNCHANGED"
        assert gone(scene).outcome == "UNCHANGED"
        assert scene.tables() == before

    def test_another_projects_claims_stay(self, scene: Scene) -> None:
        scene.do(c.DefineProject, project="other")
        scene.do(c.Add, project="other", task=c.NewTask(title="theirs"))
        scene.do(c.ClaimTask, project="other", task="A-001", agent="ann", session="s", process=MINE)
        assert gone(scene, MINE).outcome == "UNCHANGED"
        assert scene.task("A-001", "other").agent == "ann"

    @pytest.mark.parametrize("next_one", [False, True])
    def test_every_way_to_claim_remembers_the_process(self, scene: Scene, next_one: bool) -> None:
        keys = [scene.add(), scene.add()]
        if next_one:
            scene.next(n=2, process=MINE)
        else:
            for key in keys:
                scene.take(key, process=MINE)
        assert gone(scene, MINE).changed == tuple(keys)

    @pytest.mark.parametrize(("on_lost", "state"), [("retry", "ready"), ("back_off", "retrying"), ("hold", "paused")])
    def test_the_task_goes_where_a_lost_lease_sends_it(self, scene: Scene, on_lost: str, state: str) -> None:
        by_lease, by_proof = scene.add(on_lost=on_lost), scene.add(on_lost=on_lost)
        scene.take(by_lease, lease=60)
        scene.take(by_proof, lease=600, process=MINE)
        scene.pass_time(seconds=60)
        gone(scene, MINE)
        assert scene.states(by_lease, by_proof) == [state, state]
        one, other = scene.task(by_lease), scene.task(by_proof)
        assert (one.attempts, one.retry_at, one.late_submit_open) == (
            other.attempts,
            other.retry_at,
            other.late_submit_open,
        )

    def test_the_last_attempt_ends_as_a_dead_letter(self, scene: Scene) -> None:
        key = scene.add(max_attempts=1)
        scene.take(key, process=MINE)
        gone(scene, MINE)
        assert scene.state(key) == "dead_lettered"

    def test_what_the_claim_reserved_is_free(self, scene: Scene) -> None:
        key, waits = scene.add(touches=("src/**",)), scene.add(touches=("src/a.py",))
        scene.take(key, process=MINE)
        assert scene.next("bo").outcome == "NO_TASK"
        gone(scene, MINE)
        assert scene.rows(Reservation) == []
        assert scene.next_keys(2, "bo") == [key]
        assert scene.state(waits) == "ready"

    # --- the fence ------------------------------------------------------------------------------------------------

    def test_the_receipt_may_still_hand_in_while_nobody_took_over(self, scene: Scene) -> None:
        key = scene.add()
        receipt = scene.take(key, process=MINE)
        gone(scene, MINE)
        assert scene.do(c.SaveCheckpoint, receipt=receipt, data={"next": "x"}).outcome == "OK"
        assert scene.submit(receipt).outcome == "ACCEPTED"
        assert scene.results(key)[0].late is True

    def test_nothing_else_may_be_done_with_it(self, scene: Scene) -> None:
        receipt = scene.take(scene.add(), process=MINE)
        gone(scene, MINE)
        kinds: tuple[type[c.Command], ...] = (c.Renew, c.Start, c.Progress, c.Release, c.Fail)
        for kind in kinds:
            before = scene.tables()
            refused = scene.do(kind, receipt=receipt)
            assert refused.outcome == "ALREADY_EXPIRED"
            assert "its process is gone" in refused.message
            assert "lease" not in refused.message
            assert scene.tables() == before

    def test_the_next_claim_fences_the_holder_that_was_not_gone_after_all(self, scene: Scene) -> None:
        key = scene.add()
        zombie = scene.take(key, "ann", process=MINE)
        gone(scene, MINE)
        new = scene.take(key, "bo", process=OTHER)
        refused = scene.submit(zombie, "zombie's")
        assert (refused.outcome, refused.work_lost) == ("STALE_GENERATION", True)
        assert scene.do(c.Renew, receipt=zombie).outcome == "STALE_GENERATION"
        assert scene.submit(new, "bo's").outcome == "ACCEPTED"
        assert [(x.generation, x.reason) for x in scene.lineage(key)] == [(1, "EXPIRED"), (2, "COMPLETED")]

    def test_a_false_alarm_costs_the_holder_one_claim_and_one_attempt(self, scene: Scene) -> None:
        key = scene.add()
        scene.take(key, "ann", process=MINE)
        gone(scene, MINE)
        again = scene.claim(key, "ann", process=MINE)
        assert (again.generation, again.attempt) == (2, 2)
        assert scene.submit(again.receipt or "").outcome == "ACCEPTED"

    def test_a_claim_that_was_taken_over_since_the_look_is_untouched(self, scene: Scene) -> None:
        key = scene.add()
        scene.take(key, "ann", lease=60, process=MINE)
        scene.pass_time(seconds=60)
        receipt = scene.take(key, "bo", process=OTHER)
        assert gone(scene, MINE).outcome == "UNCHANGED"
        assert scene.do(c.Renew, receipt=receipt).outcome == "RENEWED"

    def test_a_lease_that_ended_before_the_proof_has_expired_by_itself(self, scene: Scene) -> None:
        key = scene.add()
        scene.take(key, lease=60, process=MINE)
        scene.pass_time(seconds=61)
        assert gone(scene, MINE).outcome == "UNCHANGED"
        assert scene.log(key)[-1] == "task.lease_expired"

    # --- who may say so -------------------------------------------------------------------------------------------

    @pytest.mark.parametrize("role", [role for role in ROLES if role != "viewer"])
    def test_nobody_says_it_from_elsewhere(self, scene: Scene, role: str) -> None:
        key = scene.add()
        scene.take(key, process=MINE)
        before = scene.tables()
        answer = scene.try_to(c.Gone, by=Principal(role=role, agent="ann", address="192.0.2.7"), processes=(MINE,))
        assert code_of(answer) == "NOT_ALLOWED"
        assert scene.tables() == before
        assert gone(scene, MINE, by=Principal(role=role, agent="ann")).changed == (key,)

    # --- what is reported -----------------------------------------------------------------------------------------

    def test_the_event_says_why_and_who_said_so(self, scene: Scene) -> None:
        key = scene.add()
        scene.take(key, "bo", process=MINE)
        gone(scene, MINE)
        (event,) = scene.events(kind="task.process_gone")
        assert (event.level, event.agent, event.details["holder"], event.generation) == ("warning", "ann", "bo", 1)
        assert event.message == "process 4711 on build-7 is gone"
        assert (event.details["pid"], event.details["host"], event.details["said_by"]) == (4711, "build-7", "agent:ann")
        (entry,) = look(scene, tasks.history, key)
        assert (entry["release_reason"], entry["error"]) == ("EXPIRED", "its process is gone")
        memory = look(scene, tasks.session, "s-bo")
        assert [x["event"] for x in memory["task_log"]] == ["claim_acquired", "claim_lost"]

    def test_a_claim_tells_the_log_nothing_of_its_process(self, scene: Scene) -> None:
        receipt = scene.take(scene.add(), process=MINE)
        scene.do(c.Renew, receipt=receipt)
        scene.submit(receipt)
        assert b"build-7" not in msgspec.json.encode(scene.events())

    def test_a_claim_forgets_its_process_with_its_end(self, scene: Scene) -> None:
        receipt = scene.take(scene.add(), process=MINE)
        assert [x.process is None for x in scene.rows(Claim)] == [False]
        scene.submit(receipt)
        assert [x.process for x in scene.rows(Claim)] == [None]

    def test_the_processes_that_hold_claims_are_listed_once_each(self, scene: Scene) -> None:
        one, two, lapsed, done = (scene.add(name) for name in ("one", "two", "lapsed", "done"))
        scene.take(one, process=MINE)
        scene.take(two, "bo", process=MINE)
        scene.take(lapsed, lease=60, process=OTHER)
        scene.submit(scene.take(done, process=OTHER))
        assert [p["pid"] for p in look(scene, tasks.processes)] == [4711, 4712]
        scene.pass_time(seconds=61)
        assert look(scene, tasks.processes) == [
            {"host": "build-7", "boot": "5c3f-boot", "pid": 4711, "start": 99, "tasks": [one, two]}
        ]

    # --- repeats --------------------------------------------------------------------------------------------------

    @pytest.mark.parametrize("next_one", [False, True])
    def test_a_request_sent_again_by_another_process_is_that_ones_claim(self, scene: Scene, next_one: bool) -> None:
        key = scene.add()
        ask: Any = scene.next if next_one else lambda **fields: scene.claim(key, **fields)
        first = ask(request_id="r", process=MINE)
        again = ask(request_id="r", process=OTHER)
        assert (again.again, again.receipt) == (True, first.receipt)
        assert gone(scene, MINE).outcome == "UNCHANGED"
        assert gone(scene, OTHER).changed == (key,)
        late = ask(request_id="r", process=MINE)
        assert (late.again, late.receipt) == (True, first.receipt)
        assert [x.process for x in scene.rows(Claim)] == [None]

    # --- verify ---------------------------------------------------------------------------------------------------

    def test_an_ended_claim_that_can_still_be_found_by_its_process_is_told(self, scene: Scene) -> None:
        scene.broken = True
        scene.submit(scene.take(scene.add()))
        (claim,) = scene.rows(Claim)
        scene.put(claim, replace(claim, process="h|b|1|1"))
        assert scene.engine.verify() == [f"{claim.id}: has ended, but still names its process"]
