"""Relays: every event reaches its sink at least once, in order, and only the leader's relay moves its place."""

from __future__ import annotations

from typing import Any

import pytest

from tenure.core import commands as c
from tenure.core import limits
from tenure.core import queries as q
from tenure.core.errors import InvalidInput, NotFound, RateLimited
from tenure.core.events import KINDS
from tenure.core.records import Archived, Sink
from tenure.engine.archive import mover
from tenure.engine.duties.coordinator import GIVEN_UP, LEASE, Coordinator
from tenure.engine.reads.query_table import read_query
from tenure.engine.relay.announce import Announcer
from tenure.engine.relay.lag import cut_off, stores_behind
from tenure.engine.relay.relay import ANNOUNCE_EVERY, Relay, Settings
from tenure.sinks.envelope import messages_of
from tenure.sinks.port import Message
from tenure.stores.port import WRITERS
from tenure.testing.engine.coordinators import Office, Watch
from tenure.testing.engine.stage import Stage
from tenure.testing.factories import PROJECT, Scene
from tenure.testing.memory_sink import MemorySink
from tenure.testing.samples import event_of

DAY = 24 * 3600


WHY = ("new_task", "given_back", "resumed", "claim_ended", "retry_due", "lease_expired")


class Post:
    """A relay in a process that leads, with a sink in memory."""

    def __init__(self, scene: Scene, name: str = "one", sink: MemorySink | None = None, **settings: Any) -> None:
        self.scene, self.office = scene, Office(scene)
        self.sink = sink or MemorySink()
        self.coordinator: Coordinator = self.office.another(name)
        self.coordinator.step()
        self.watch: Watch = self.office.watches[name]
        self.relay = Relay(
            self.coordinator.engine,
            Settings("broker", **settings),
            lambda: self.sink,
            self.coordinator.led,
            self.watch,
        )

    def run(self, most: int = 20) -> None:
        """Step until there is nothing to do at once."""
        for _ in range(most):
            if self.relay.step() != 0.0:
                return

    @property
    def row(self) -> Sink:
        rows: list[Sink] = self.scene.stored_rows(Sink)
        return rows[0]

    def ask(self, command: c.Command) -> str:
        return self.scene.engine.do(command).outcome


class Relays(Stage):
    @pytest.fixture
    def post(self, scene: Scene) -> Post:
        post = Post(scene)
        post.run()  # a new sink gets events from here on
        return post

    # --- sending ------------------------------------------------------------------------------------------------

    def test_each_event_is_sent_once_in_the_order_of_the_log(self, scene: Scene, post: Post) -> None:
        start = post.row.sequence
        scene.finish(scene.add())
        post.run()
        logged = [e for e in scene.events() if e.sequence > start and e.kind != "sink.added"]
        sent = [b for b in post.sink.bodies("evt.") if b["kind"] != "evt.sink.added"]
        assert [(b["message_id"], b["sequence"]) for b in sent] == [(e.id, e.sequence) for e in logged]
        assert post.row.sequence == logged[-1].sequence
        before = len(post.sink.sent)
        post.run()
        assert len(post.sink.sent) == before

    def test_a_new_sink_does_not_get_the_past(self, scene: Scene) -> None:
        scene.finish(scene.add())
        post = Post(scene)
        post.run()
        assert "evt.task.completed.v1" not in post.sink.names()

    def test_a_sink_that_acknowledges_some_gets_the_others_again(self, scene: Scene, post: Post) -> None:
        post.sink.acknowledges = 1
        scene.finish(scene.add())
        post.run(most=50)
        events = [b["sequence"] for b in post.sink.bodies("evt.task")]
        assert sorted(set(events)) == [e.sequence for e in scene.events(project=PROJECT) if e.task]
        assert events == sorted(events)

    def test_a_sink_that_is_down_gets_everything_once_it_is_back(self, scene: Scene, post: Post) -> None:
        post.sink.fails = True
        scene.finish(scene.add())
        assert post.relay.step() > 0
        assert (post.row.error, post.sink.names("evt.task")) == ("the sink is down", [])
        post.sink.fails = False
        post.run()
        assert "evt.task.completed.v1" in post.sink.names()
        assert post.row.error is None

    def test_a_sink_that_fails_in_the_middle_of_a_page_gets_the_rest_again(self, scene: Scene, post: Post) -> None:
        post.sink.acknowledges = 2

        def fail_next() -> None:
            post.sink.on_send = lambda: setattr(post.sink, "fails", True)

        post.sink.on_send = fail_next
        scene.finish(scene.add())
        post.run()
        assert "evt.task.completed.v1" not in post.sink.names()
        post.sink.fails, post.sink.acknowledges, post.sink.on_send = False, None, lambda: None
        post.run()
        assert "evt.task.completed.v1" in post.sink.names()

    def test_a_crash_between_acknowledgement_and_cursor_sends_the_same_ids_again(
        self, scene: Scene, post: Post
    ) -> None:
        scene.finish(scene.add())
        post.sink.sent.clear()
        place = post.row.sequence

        def lose_the_lease() -> None:
            post.watch.now += LEASE * GIVEN_UP

        post.sink.on_send = lose_the_lease
        post.run()
        once = [m.id for m in post.sink.sent]
        assert once
        assert post.row.sequence == place
        post.sink.on_send = lambda: None
        scene.pass_time(seconds=LEASE + 1)
        Post(scene, "two", post.sink).run()
        assert [m.id for m in post.sink.sent][len(once) : 2 * len(once)] == once

    def test_a_deposed_relay_sends_nothing_and_moves_nothing(self, scene: Scene, post: Post) -> None:
        scene.finish(scene.add())
        post.watch.now += LEASE * GIVEN_UP  # it may still lead, but cannot know
        post.run()
        assert post.sink.names("evt.task") == []

    def test_a_relay_whose_term_is_over_in_the_store_moves_nothing(self, scene: Scene, post: Post) -> None:
        """Its own clock stood still: only the term in the write can refuse it."""
        scene.finish(scene.add())
        place = post.row.sequence
        scene.pass_time(seconds=LEASE + 1)
        other = post.office.another("two")
        other.step()
        assert other.term is not None
        post.run()
        assert post.row.sequence == place

    def test_a_relay_sends_nothing_more_once_its_lease_may_be_over(self, scene: Scene, post: Post) -> None:
        post.sink.acknowledges = 1
        post.sink.sent.clear()
        scene.finish(scene.add())

        def lose_the_lease() -> None:
            post.watch.now += LEASE * GIVEN_UP

        post.sink.on_send = lose_the_lease
        post.run()
        assert len(post.sink.sent) == 1

    def test_a_page_ends_before_an_event_that_is_not_yet_committed(self, scene: Scene, post: Post) -> None:
        """Sequences are given before the commit: one that commits late must not fall behind the sink's place."""
        if WRITERS not in scene.store.features:
            pytest.skip("one writer at a time: sequences follow commits")
        scene.add()
        with scene.store.begin("local", write=True) as late:
            late.lock("write", ("elsewhere",))
            late.append([event_of(id="evt_late", project="elsewhere", time=late.now)])
            late.load(Sink, (("elsewhere", "none"),))  # the append is sent by now
            scene.finish(scene.add())
            post.run()
            assert "evt_late" not in {m.id for m in post.sink.sent}
        post.run()
        assert "evt_late" in {m.id for m in post.sink.sent}
        sequences = [m.sequence for m in post.sink.sent if m.name.startswith("evt.")]
        assert sequences == sorted(set(sequences))

    def test_a_sink_gets_only_its_kinds_and_projects(self, scene: Scene) -> None:
        post = Post(scene, kinds=frozenset({"task.completed"}))
        post.run()
        scene.finish(scene.add())
        post.run()
        assert post.sink.names() == ["evt.task.completed.v1"]
        assert post.row.sequence == scene.events()[-1].sequence

    def test_all_messages_of_a_task_share_one_trace(self, scene: Scene, post: Post) -> None:
        key, other = scene.add(), scene.add()
        traced = scene.do(c.Add, task=c.NewTask(title="traced"), trace_id="a" * 32).task or {}
        for name in (key, other, traced["key"]):
            receipt = scene.do(c.ClaimTask, task=name, agent="ann", session="s", trace_id="b" * 32).receipt
            scene.submit(receipt or "")
        post.run()
        traces: dict[str, set[str]] = {}
        for body in post.sink.bodies("evt.task"):
            traces.setdefault(body["payload"]["key"], set()).add(body["trace_id"])
        assert {name: len(found) for name, found in traces.items()} == {key: 1, other: 1, traced["key"]: 1}
        assert traces[traced["key"]] == {"a" * 32}
        assert traces[key] != traces[other]

    def test_no_message_has_a_receipt_or_nonce(self, scene: Scene, post: Post) -> None:
        receipt = scene.take(scene.add())
        post.run()
        for message in post.sink.sent:
            assert receipt.encode() not in message.body
            assert b"nonce" not in message.body

    # --- commands -----------------------------------------------------------------------------------------------

    def test_a_task_that_becomes_ready_is_announced_as_a_command(self, scene: Scene, post: Post) -> None:
        key = scene.add()
        post.run()
        (command,) = post.sink.bodies("cmd.task.execute")
        assert (command["payload"]["key"], command["payload"]["reason"]) == (key, "new_task")
        scene.do(c.Release, receipt=scene.take(key))
        post.run()
        assert post.sink.bodies("cmd.task.execute")[-1]["payload"]["reason"] == "given_back"

    def test_a_command_says_why_its_task_is_ready(self, scene: Scene, post: Post) -> None:
        """Who counts expired leases by it counts them alone."""
        keys = {reason: scene.add(max_attempts=1 if reason == "retry_due" else 5) for reason in WHY}
        scene.fail(scene.take(keys["given_back"]), "environment")
        scene.do(c.Pause, task=keys["resumed"])
        scene.do(c.Resume, task=keys["resumed"])
        scene.take(keys["claim_ended"], "bo")
        scene.do(c.Recover, task=keys["claim_ended"])
        scene.bury(keys["retry_due"], "cy")
        scene.do(c.Retry, task=keys["retry_due"])
        scene.take(keys["lease_expired"], "dee", lease=10)
        scene.pass_time(seconds=11)
        scene.do(c.Note, task=keys["new_task"], text="which settles the others")
        post.run()
        last = {one["payload"]["key"]: one["payload"]["reason"] for one in post.sink.bodies("cmd.task.execute")}
        assert last == {key: reason for reason, key in keys.items()}

    def test_dead_letters_and_retries_name_the_state_before_them(self, scene: Scene, post: Post) -> None:
        scene.dice.next_fraction = 1.0
        scene.fail(scene.take(scene.add()))
        scene.fail(scene.take(scene.add(max_attempts=1)))
        post.run()
        states = [
            (body["payload"]["previous_state"], body["payload"]["new_state"])
            for kind in ("evt.task.retry_scheduled", "evt.task.dead_lettered")
            for body in post.sink.bodies(kind)
        ]
        assert states == [("claimed", "retrying"), ("claimed", "dead_lettered")]

    def test_a_claim_that_a_message_asked_for_names_that_message(self, scene: Scene, post: Post) -> None:
        one, two = scene.add(), scene.add()
        scene.do(c.ClaimTask, task=one, agent="ann", session="s", caused_by=("m-1",))
        scene.do(c.ClaimNext, agent="ann", session="s", caused_by=("m-2", "m-3"), n=2)
        scene.take(scene.add(), "bo")
        post.run()
        first, second, third = post.sink.bodies("evt.task.claimed")
        assert (first["causation_id"], second["causation_id"]) == ("m-1", "m-2")
        assert third["causation_id"].startswith("cmd_")
        assert second["payload"]["key"] == two

    def test_a_person_s_fact_has_the_subject_of_people(self, scene: Scene, post: Post) -> None:
        scene.do(c.Register, agent="ann", session="s", type="builder")
        scene.do(c.Emit, name="build_passed", by=c.Principal(role="member", user="mia"))
        scene.do(c.Emit, name="build_passed", agent="ann")
        post.run()
        names = [name for name in post.sink.names("evt.agent.") if "build_passed" in name]
        assert names == ["evt.agent.human.build_passed.v1", "evt.agent.builder.build_passed.v1"]

    def test_a_task_that_stays_ready_is_announced_again_with_growing_pauses(self, scene: Scene, post: Post) -> None:
        scene.add()
        post.run()
        announced = []
        for _ in range(40):
            post.office.pass_time(ANNOUNCE_EVERY)
            post.coordinator.step()
            before = len(post.sink.names("cmd."))
            post.run()
            announced.append(len(post.sink.names("cmd.")) - before)
        assert announced[:8] == [0, 1, 0, 1, 0, 0, 0, 1]
        assert len({m.id for m in post.sink.sent if m.name.startswith("cmd.")}) == 1

    def test_a_task_is_announced_again_however_often_it_was_before(self, scene: Scene, post: Post) -> None:
        scene.add()
        announcer = Announcer()
        scene.pass_time(seconds=limits.ANNOUNCED_AGAIN / 1e6)
        for _ in range(9):
            assert len(announcer.sweep(scene.engine, post.row)) == 1
            assert announcer.sweep(scene.engine, post.row) == []
            scene.pass_time(seconds=limits.ANNOUNCED_AGAIN / 1e6)

    def test_nothing_is_announced_of_projects_that_the_sink_does_not_read(self, scene: Scene) -> None:
        post = Post(scene, projects=(PROJECT,))
        post.run()
        scene.engine.do(c.DefineProject(project="other"))
        scene.engine.do(c.Add(project="other", task=c.NewTask(title="of nobody's business here")))
        own = scene.add()
        for _ in range(2):
            scene.pass_time(seconds=ANNOUNCE_EVERY)
            post.office.pass_time(ANNOUNCE_EVERY)
            post.coordinator.step()
            post.run()
        told = post.sink.bodies("cmd.task.execute")
        assert len(told) > 1  # by the event, and again by the sweep
        assert {(one["project"], one["payload"]["key"]) for one in told} == {(PROJECT, own)}

    def test_a_wiped_sink_gets_all_ready_tasks_at_once(self, scene: Scene, post: Post) -> None:
        for _ in range(3):
            scene.add()
        post.run()
        post.sink.sent.clear()
        post.sink.name = "another"
        post.run()
        assert len(post.sink.names("cmd.task.execute")) == 3
        assert [e.kind for e in scene.events(kind="sink.forgot")] == ["sink.forgot"]

    def test_a_dead_letter_goes_out_in_full(self, scene: Scene, post: Post) -> None:
        key = scene.add(max_attempts=1)
        scene.fail(scene.take(key), "permanent", message="no such table")
        post.run()
        (letter,) = post.sink.bodies("dlq.task")
        assert letter["payload"]["error"] == "no such table"
        assert letter["payload"]["history"]

    def test_mail_goes_to_the_mailbox_of_each_recipient(self, scene: Scene, post: Post) -> None:
        for name in ("ann", "ben"):
            scene.do(c.Register, agent=name)
        scene.do(c.Send, sender="boss", to="@all", text="stand-up at nine")
        post.run()
        boxes = {b["kind"]: b["payload"]["text"] for b in post.sink.bodies("cmd.agent.instance")}
        assert boxes == {f"cmd.agent.instance.{name}": "stand-up at nine" for name in ("ann", "ben")}

    def test_a_command_to_a_type_of_agent_is_sent_once(self, scene: Scene, post: Post) -> None:
        for name in ("ann", "ben"):
            scene.do(c.Register, agent=name, type="reviewer")
        sent = scene.do(c.Send, sender="boss", to="@type:reviewer", text="B-003", action="review", expires=60.0)
        assert sent.changed == ("ann", "ben")
        post.run()
        (command,) = post.sink.bodies("cmd.agent.")
        assert command["kind"] == "cmd.agent.reviewer.review"
        assert (command["payload"]["text"], command["payload"]["from"]) == ("B-003", "boss")

    # --- operators ----------------------------------------------------------------------------------------------

    def test_a_paused_relay_sends_nothing_until_it_is_resumed(self, scene: Scene, post: Post) -> None:
        assert post.ask(c.PauseRelay(project="", sink="broker")) == "UPDATED"
        assert post.ask(c.PauseRelay(project="", sink="broker")) == "UNCHANGED"
        scene.finish(scene.add())
        post.run()
        assert post.sink.names("evt.task") == []
        assert post.ask(c.ResumeRelay(project="", sink="broker")) == "UPDATED"
        post.run()
        assert "evt.task.completed.v1" in post.sink.names()

    def test_a_rewound_relay_sends_again_with_the_same_ids(self, scene: Scene, post: Post) -> None:
        start = post.row.sequence
        scene.finish(scene.add())
        post.run()
        once = {m.id for m in post.sink.sent if m.name.startswith("evt.task")}
        assert post.ask(c.RewindRelay(project="", sink="broker", to=start)) == "UPDATED"
        post.sink.sent.clear()
        post.run()
        assert {m.id for m in post.sink.sent if m.name.startswith("evt.task")} == once

    def test_a_rewind_while_a_page_is_sent_is_not_undone_by_that_page(self, scene: Scene, post: Post) -> None:
        start = post.row.sequence
        scene.finish(scene.add())

        def rewind() -> None:
            post.sink.on_send = lambda: None
            post.ask(c.RewindRelay(project="", sink="broker", to=start - 1))

        post.sink.on_send = rewind
        post.relay.step()
        assert post.row.sequence == start - 1

    def test_rewinding_wants_a_place_in_the_log(self, scene: Scene, post: Post) -> None:
        for to, since in ((None, None), (-1, None), (10**9, None), (1, 1)):
            with pytest.raises(InvalidInput):
                scene.engine.do(c.RewindRelay(project="", sink="broker", to=to, since=since))
        with pytest.raises(NotFound):
            scene.engine.do(c.RewindRelay(project="", sink="brokre", to=0))

    def test_the_list_shows_each_sink_with_its_lag(self, scene: Scene, post: Post) -> None:
        (relay,) = read_query(scene.engine, q.Relays())
        assert (relay["name"], relay["state"], relay["lag"]) == ("broker", "up to date", 0.0)
        scene.add()
        scene.pass_time(seconds=90)
        (relay,) = read_query(scene.engine, q.Relays())
        assert (relay["state"], relay["lag"]) == ("behind", 90.0)

    # --- the archive --------------------------------------------------------------------------------------------

    def test_the_archive_keeps_every_event_that_a_sink_has_not_got(self, scene: Scene, post: Post) -> None:
        post.sink.fails = True
        scene.finish(scene.add())
        assert mover.move_all(scene.engine, PROJECT, older=0).tasks == 0
        post.sink.fails = False
        post.run()
        assert "evt.task.completed.v1" in post.sink.names()
        assert mover.move_all(scene.engine, PROJECT, older=0).tasks == 1

    def test_a_sink_too_far_behind_is_cut_off_and_told_first_when_it_is_back(self, scene: Scene, post: Post) -> None:
        post.sink.fails = True
        place = post.row.sequence
        scene.finish(scene.add())
        post.office.pass_time(8 * DAY)
        assert stores_behind(scene.engine, scene.now) == [""]
        for _ in range(2):  # its lease is over; it is elected again
            post.coordinator.step()
        led = post.coordinator.led()
        assert led is not None
        cut_off(led, "")
        (behind,) = scene.events(kind="sink.behind")
        assert (behind.level, behind.details["sink"]) == ("error", "broker")
        assert mover.move_all(scene.engine, PROJECT, older=0).tasks == 1
        assert len(scene.rows(Archived)) == 1
        post.sink.fails = False
        post.sink.sent.clear()
        post.run()
        first = post.sink.bodies()[0]
        assert first["kind"] == "evt.sink.gap"
        assert first["payload"]["from"] == place + 1
        assert post.row.cut_off_at is None
        scene.add()
        post.run()
        assert post.sink.names("evt.task") == ["evt.task.created.v1"]
        assert post.sink.names("evt.sink.gap") == ["evt.sink.gap.v1"]

    # --- facts --------------------------------------------------------------------------------------------------

    def test_events_of_sinks_are_in_the_log_of_those_who_may_see_them(self, scene: Scene, post: Post) -> None:
        scene.add()
        scene.do(c.CreateKey, project="", name="ci", role="admin")  # of no project too, and not for everybody

        def kinds(principal: c.Principal = c.OWNER, **how: Any) -> list[str]:
            found = read_query(scene.engine, q.Log(project=PROJECT, **how), principal)
            assert [event["sequence"] for event in found] == sorted(event["sequence"] for event in found)
            return [event["kind"] for event in found]

        own, everything = kinds(), kinds(store=True)
        assert not {kind.partition(".")[0] for kind in own} & {"sink", "leader"}
        assert set(everything) - set(own) == {"sink.added", "leader.elected", "key.created"}
        assert kinds(store=True, last=False) == everything
        assert kinds(store=True, kind=("sink",)) == ["sink.added"]
        assert kinds(store=True, kind=("task.created",)) == ["task.created"]
        assert kinds(c.Principal(role="viewer"), store=True) == [kind for kind in everything if kind != "key.created"]
        assert kinds(c.Principal(role="admin", projects=(PROJECT,)), store=True) == own

    def test_an_emitted_fact_is_relayed_under_its_own_name(self, scene: Scene, post: Post) -> None:
        scene.do(c.Register, agent="ann", type="claude-code")
        scene.engine.do(c.Emit(project=PROJECT, name="build_passed", data={"commit": "abc"}, agent="ann"))
        post.run()
        assert "evt.agent.claude-code.build_passed.v1" in post.sink.names()

    @pytest.mark.parametrize("kind", [kind for kind in KINDS if kind.startswith("agent.")])
    def test_a_fact_cannot_pass_for_an_event_of_agents(self, scene: Scene, kind: str) -> None:
        scene.do(c.Register, agent="ann", type="claude-code")
        before = scene.tables()
        with pytest.raises(InvalidInput, match="an event of agents themselves"):
            scene.engine.do(c.Emit(project=PROJECT, name=kind.removeprefix("agent."), agent="ann"))
        assert scene.tables() == before
        assert scene.events(kind="agent.emitted") == []

    def test_facts_have_a_valid_name_a_size_and_a_rate(self, scene: Scene) -> None:
        for bad in ({"name": "Build"}, {"name": "a" * 42}, {"name": "big", "data": "x" * 9000}):
            with pytest.raises(InvalidInput):
                scene.engine.do(c.Emit(project=PROJECT, **bad))
        for number in range(60):
            scene.engine.do(c.Emit(project=PROJECT, name="beat", data=number))
        with pytest.raises(RateLimited):
            scene.engine.do(c.Emit(project=PROJECT, name="beat"))
        scene.pass_time(seconds=61)
        scene.engine.do(c.Emit(project=PROJECT, name="beat"))


def encoded(scene: Scene) -> list[Message]:
    """Every event of the scene as messages, for tests of their shape."""
    from tenure.engine.relay.page import facts_of

    pairs = scene.engine.read(lambda tx: facts_of(tx, "local", tx.events({})))
    return [message for event, facts in pairs for message in messages_of(event, facts)]
