"""Sweeps, batches, epochs, the log: nothing depends on who looked when, and the log gives the tables back."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from tenure.core import commands as c
from tenure.core.commands import NewTask
from tenure.core.errors import InvalidInput, NotFound
from tenure.core.events import KINDS as EVENT_KINDS
from tenure.core.outcomes import Outcome
from tenure.core.queries import Log
from tenure.core.records import KINDS, Claim, Reservation, Result, Task, replace
from tenure.engine.reads.query_table import read_query
from tenure.engine.runtime.effects import PAGE
from tenure.engine.verify.replay import differences, replay
from tenure.stores.port import Change
from tenure.testing.clock import FakeClock
from tenure.testing.engine.graphs import new
from tenure.testing.engine.histories import play, play_in_batches, standing
from tenure.testing.engine.stage import Stage
from tenure.testing.factories import PROJECT, Scene, code_of, comparable

SEEDS = range(6)
LENGTH = 120


class Upkeep(Stage):
    def another(self, tmp_path: Path, name: str) -> Scene:
        """A scene of its own, with a clock and a store of its own."""
        clock = FakeClock()
        (tmp_path / name).mkdir()
        return Scene(self.open_store(tmp_path / name, clock), clock)

    # --- sweeps ---------------------------------------------------------------------------------------------------

    @pytest.mark.parametrize("seed", SEEDS)
    def test_sweeps_change_no_answer(self, tmp_path: Path, seed: int) -> None:
        never, once, often = (self.another(tmp_path, name) for name in ("never", "once", "often"))
        played = [play(scene, seed, LENGTH, sweeps=n) for scene, n in ((never, 0), (once, 1), (often, 7))]
        for one, other, third in zip(*played, strict=True):
            assert one == other
            assert one == third
        assert standing(never) == standing(once) == standing(often)
        for scene in (never, once, often):
            assert scene.engine.verify() == []
            scene.store.close()

    def test_a_sweep_is_idempotent(self, scene: Scene) -> None:
        scene.take(scene.add(), lease=60)
        scene.fail(scene.take(scene.add(deadline=scene.now + 1)))
        scene.pass_time(hours=2)
        scene.engine.sweep()
        before = scene.tables()
        assert scene.engine.sweep().settled == 0
        assert scene.tables() == before

    def test_a_sweep_goes_through_all_projects(self, scene: Scene) -> None:
        scene.do(c.DefineProject, project="q")
        scene.do(c.Add, project="q", task=NewTask(title="x"))
        scene.do(c.ClaimTask, project="q", task="A-001", agent="ann", session="s", lease=60)
        scene.take(scene.add(), lease=60)
        scene.pass_time(seconds=61)
        assert scene.engine.sweep().settled == 2
        assert [e.project for e in scene.events(kind="task.lease_expired")] == [PROJECT, "q"]

    def test_more_than_a_page_of_due_rows_is_settled_before_a_command(self, scene: Scene) -> None:
        scene.plan(*(new(f"t{n}", not_before=scene.now + 1_000_000) for n in range(1100)))
        scene.pass_time(seconds=2)
        nothing = scene.next(n=3)
        assert [(x.task or {})["key"] for x in nothing.claims or ()] == ["A-001-t0", "A-002-t1", "A-003-t2"]
        assert scene.engine.read(lambda tx: tx.due(PROJECT, scene.now, 10)) == []

    def test_an_error_on_one_row_does_not_stop_the_rest(self, scene: Scene) -> None:
        scene.broken = True
        broken, fine = scene.add(), scene.add()
        for key in (broken, fine):
            scene.take(key, lease=60)
        claim = scene.last_claim(broken)
        scene.put(claim, None)  # a held task without its claim: no rule knows what to do
        scene.pass_time(seconds=61)
        report = scene.engine.sweep()
        assert list(report.failed) == [scene.stored(Task, claim.task).id]
        assert report.settled == 1
        assert scene.state(fine) == "ready"
        assert scene.next_keys(1, "bo") == [fine]
        assert scene.add("life goes on")

    def test_a_page_of_rows_that_cannot_be_settled_does_not_starve_the_rest(self, scene: Scene) -> None:
        scene.broken = True
        scene.plan(*(new(f"t{n}") for n in range(PAGE + 1)))
        for _ in range(PAGE // 100 + 1):
            scene.next(n=100, lease=60)
        with scene.store.begin("local", write=True) as tx:
            tx.save([Change(claim, None) for claim in tx.find(Claim, {})])
        key = scene.add()
        scene.take(key, "bo", lease=61)
        scene.pass_time(seconds=62)
        assert scene.state(key) == "ready"
        assert scene.claim(key, "cy").outcome == "GRANTED"
        report = scene.engine.sweep()
        assert len(report.failed) == PAGE + 1

    def test_reads_see_what_is_due_and_write_nothing(self, scene: Scene) -> None:
        key = scene.add()
        scene.take(key, lease=60)
        scene.pass_time(seconds=61)
        before = scene.tables()
        assert scene.state(key) == "ready"
        assert scene.tables() == before

    def test_what_comes_due_through_others_is_read_as_due(self, scene: Scene) -> None:
        dead = scene.add(max_attempts=1)
        waits = scene.add(depends_on=(c.Dependency(task=dead, on_failure="ignore"),), not_before=scene.now + 90_000_000)
        scene.take(dead, lease=60)
        scene.pass_time(seconds=100)
        assert scene.states(dead, waits) == ["dead_lettered", "ready"]
        assert scene.task(waits).ready_at == scene.now - 10_000_000

    # --- batches --------------------------------------------------------------------------------------------------

    @pytest.mark.parametrize("size", [3, 10])
    @pytest.mark.parametrize("seed", SEEDS)
    def test_a_batch_is_the_sequence_of_its_commands(self, tmp_path: Path, seed: int, size: int) -> None:
        together, alone = self.another(tmp_path, "together"), self.another(tmp_path, "alone")
        one = play_in_batches(together, seed, LENGTH, size, one_by_one=False)
        other = play_in_batches(alone, seed, LENGTH, size, one_by_one=True)
        for a, b in zip(one, other, strict=True):
            assert a == b
        assert standing(together) == standing(alone)
        for scene in (together, alone):
            assert scene.engine.verify() == []
            scene.store.close()

    def test_each_command_sees_what_those_before_it_did(self, scene: Scene) -> None:
        receipt = scene.take(scene.add())
        answers = scene.run(
            c.Submit(project=PROJECT, receipt=receipt, data=1),
            c.Add(project=PROJECT, task=NewTask(title="next", key="B-001-next", depends_on=("A-001",))),
            c.ClaimTask(project=PROJECT, task="B-001", agent="bo", session="s"),
            c.ClaimTask(project=PROJECT, task="B-001", agent="cy", session="t"),
            c.ClaimNext(project=PROJECT, agent="cy", session="t"),
            c.Cancel(project=PROJECT, task="B-001"),
            c.Reset(project=PROJECT, task="A-001"),
            c.ClaimNext(project=PROJECT, agent="cy", session="t"),
        )
        assert [code_of(a) for a in answers] == [
            "ACCEPTED",
            "CREATED",
            "GRANTED",
            "DENIED_ACTIVE_CLAIM",
            "NO_TASK",
            "UPDATED",
            "UPDATED",
            "GRANTED",
        ]

    def test_an_invalid_command_leaves_its_neighbours_alone(self, scene: Scene) -> None:
        key = scene.add()
        answers = scene.run(
            c.Note(project=PROJECT, task=key, text="one"),
            c.Note(project=PROJECT, task=key, text=""),
            c.Note(project=PROJECT, task="Z-999", text="x"),
            c.ClaimTask(project=PROJECT, task=key, agent="ann", session="s", lease=-1),
            c.Plan(project=PROJECT, tasks=(new("a", "b"), new("b", "a"))),
            c.Note(project=PROJECT, task=key, text="two"),
        )
        codes = [code_of(a) for a in answers]
        assert codes == ["UPDATED", "INVALID_INPUT", "NOT_FOUND", "INVALID_INPUT", "CYCLE", "UPDATED"]
        assert scene.log(key) == ["task.created", "task.noted", "task.noted"]
        assert len(scene.rows(Task)) == 1

    def test_a_batch_has_one_now(self, scene: Scene) -> None:
        answers = scene.run(*(c.Add(project=PROJECT, task=NewTask(title="x")) for _ in range(5)))
        times = {(a.task or {})["created_at"] for a in answers if isinstance(a, Outcome)}
        assert times == {scene.now}

    def test_an_empty_batch_has_no_answers(self, scene: Scene) -> None:
        before = scene.tables()
        assert scene.run() == []
        assert scene.tables() == before

    def test_batches_of_several_projects_are_one_transaction(self, scene: Scene) -> None:
        answers = scene.run(
            c.DefineProject(project="q"),
            c.Add(project="q", task=NewTask(title="x")),
            c.Add(project=PROJECT, task=NewTask(title="x")),
            c.Add(project="unknown", task=NewTask(title="x")),
        )
        assert [code_of(a) for a in answers] == ["CREATED", "CREATED", "CREATED", "NOT_FOUND"]

    def test_the_best_tasks_are_never_given_twice_in_a_batch(self, scene: Scene) -> None:
        keys = [scene.add(priority=p) for p in (5, 20, 20, 50, 50, 50, 90)]
        answers = scene.run(
            *(c.ClaimNext(project=PROJECT, agent=f"a{n}", session=f"s{n}") for n in range(len(keys) + 2))
        )
        taken = [(a.task or {})["key"] for a in answers if isinstance(a, Outcome) and a.task]
        assert taken == keys
        assert [code_of(a) for a in answers[-2:]] == ["NO_TASK", "NO_TASK"]

    # --- epochs ---------------------------------------------------------------------------------------------------

    def test_after_a_new_epoch_nothing_old_writes_and_nothing_is_lost(self, scene: Scene) -> None:
        held, expired, done = scene.add(), scene.add(), scene.add()
        receipts = [scene.take(held), scene.take(expired, lease=60), scene.take(done)]
        scene.submit(receipts[2], "kept")
        reserved = scene.do(c.Reserve, patterns=("env:x",), agent="ann", session="s")
        scene.pass_time(seconds=61)
        epoch = scene.engine.new_epoch("restored from a backup").epoch
        assert scene.rows(Reservation) == []
        assert [scene.submit(r, "late").outcome for r in receipts] == ["STALE_EPOCH"] * 3
        assert scene.do(c.Unreserve, receipt=reserved.receipt).outcome in ("NOT_FOUND", "STALE_EPOCH")
        assert sorted((r.data, r.accepted) for r in scene.rows(Result)) == [
            ("kept", True),
            ("late", False),
            ("late", False),
            ("late", False),
        ]
        assert scene.states(held, expired, done) == ["ready", "ready", "completed"]
        granted = scene.claim(held, "bo")
        assert (granted.outcome, granted.generation) == ("GRANTED", 2)
        assert scene.last_claim(held).epoch == epoch
        assert scene.events(kind="epoch.started")[0].message == "restored from a backup"

    def test_each_epoch_is_another(self, scene: Scene) -> None:
        receipt = scene.take(scene.add())
        epochs = {scene.engine.new_epoch("again") for _ in range(5)}
        assert len(epochs) == 5
        assert scene.submit(receipt).outcome == "STALE_EPOCH"

    # --- the log --------------------------------------------------------------------------------------------------

    @pytest.mark.parametrize("seed", [100, 101])
    def test_the_log_gives_the_tables_back_after_a_long_history(self, scene: Scene, seed: int) -> None:
        play(scene, seed, 400)
        scene.engine.new_epoch("half way")
        play(scene, seed + 50, 100)
        stored = {kind: {(r.project, r.id): r for r in scene.stored_rows(kind)} for kind in KINDS}
        assert differences(replay(scene.events()), stored) == []

    @pytest.mark.parametrize("seed", [200, 201])
    def test_there_is_one_event_for_each_transition_without_gap(self, scene: Scene, seed: int) -> None:
        play(scene, seed, 300)
        last: dict[str, tuple[int, str | None]] = {}
        for event in scene.events():
            assert event.kind in EVENT_KINDS
            assert event.time <= scene.now
            assert event.causation_id
            if event.task is None:
                continue
            version, state = last.get(event.task, (0, None))
            assert event.version == version + 1
            assert event.previous_state == state
            last[event.task] = (event.version, event.new_state)
        assert {t.id: (t.version, t.state) for t in stored_tasks(scene)} == last

    def test_the_log_has_each_event_s_sentence_and_gives_all_kinds_of_a_noun(self, scene: Scene) -> None:
        key = scene.add()
        scene.take(key, "ann")
        texts = [event["text"] for event in read_query(scene.engine, Log(project=PROJECT, kind=("task",)))]
        assert texts[-1] == f"ann claims {key}, generation 1"
        kinds = {event["kind"].partition(".")[0] for event in read_query(scene.engine, Log(project=PROJECT))}
        assert {"project", "task", "agent"} <= kinds
        asked = read_query(scene.engine, Log(project=PROJECT, kind=("task", "project.created")))
        assert {event["kind"].partition(".")[0] for event in asked} == {"project", "task"}
        with pytest.raises(InvalidInput, match=r"claimde.*did you mean task\.claimed\?"):
            read_query(scene.engine, Log(project=PROJECT, kind=("task.claimde",)))

    def test_sequences_only_grow(self, scene: Scene) -> None:
        play(scene, 7, 100)
        sequences = [e.sequence for e in scene.events()]
        assert sequences == sorted(set(sequences))

    def test_a_refused_command_leaves_no_event(self, scene: Scene) -> None:
        key = scene.add()
        scene.take(key, "ann")
        scene.do(c.Register, agent="bo", session="s-bo")
        before = len(scene.events())
        scene.claim(key, "bo")
        scene.do(c.Resume, task=key)
        assert len(scene.events()) == before

    def test_events_tell_who_and_why(self, scene: Scene) -> None:
        key = scene.add()
        by = c.Principal(role="member", user="mia", address="10.0.0.7")
        scene.do(c.Cancel, task=key, reason="late", by=by, trace_id="t-1")
        event = scene.events(task=scene.task(key).id)[-1]
        assert (event.kind, event.user, event.address, event.trace_id) == ("task.cancelled", "mia", "10.0.0.7", "t-1")
        assert (event.previous_state, event.new_state, event.message) == ("ready", "cancelled", "late")

    def test_a_claims_event_carries_what_listeners_need(self, scene: Scene) -> None:
        key = scene.add()
        granted = scene.claim(key, "ann", lease=60)
        event = scene.events(kind="task.claimed")[0]
        assert (event.agent, event.session, event.generation) == ("ann", "s-ann", 1)
        assert event.details == {"lease_until": granted.lease_until, "attempt": 1, "previous_generation": 0}

    def test_nonces_and_tokens_stand_in_no_event_and_no_answer_but_the_claims(self, scene: Scene) -> None:
        play(scene, 11, 150)
        secrets = scene.secrets()
        assert len(secrets) > 20
        log = b"".join(msgspec.json.encode(e) for e in scene.events()).lower()
        assert [s for s in secrets if s.lower().encode() in log] == []

    def test_a_fork_of_the_clock_backwards_does_not_turn_the_log_back(self, scene: Scene) -> None:
        key = scene.add()
        receipt = scene.take(key, lease=60)
        scene.clock.advance(seconds=-3600)
        assert scene.do(c.Renew, receipt=receipt).outcome == "RENEWED"
        scene.do(c.Note, task=key, text="x")
        times = [e.time for e in scene.events()]
        assert times == sorted(times)

    def test_damage_is_found(self, scene: Scene) -> None:
        scene.broken = True
        key = scene.add()
        scene.take(key)
        claim: Claim = scene.last_claim(key)
        scene.put(claim, replace(claim, agent="mallory"))
        assert any("mallory" in line for line in scene.engine.verify())

    def test_an_answer_carries_what_was_asked_in_another_project_to_nobody(self, scene: Scene) -> None:
        scene.do(c.DefineProject, project="q")
        answer = scene.try_to(c.Cancel, project="q", task="A-001")
        unknown = scene.try_to(c.Cancel, project="q", task="A-001")
        scene.add()
        assert isinstance(answer, NotFound)
        assert comparable(answer) == comparable(unknown)

    def test_a_store_of_another_tenant_is_refused(self, scene: Scene) -> None:
        if "tenants" in scene.store.features:
            pytest.skip("keeps more tenants than one")
        with pytest.raises(InvalidInput), scene.store.begin("somebody", write=False):
            pass


def stored_tasks(scene: Scene) -> list[Task]:
    return scene.stored_rows(Task)
