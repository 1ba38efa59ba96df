"""Time that is wrong: a clock that jumps ahead, one that is behind, and putting it right."""

from __future__ import annotations

from itertools import pairwise

import pytest

from tenure.core import commands as c
from tenure.core.errors import ClockJump, InvalidInput
from tenure.core.records import Agent, Leader, Reservation, Schedule
from tenure.stores.port import HOST_CLOCK, Store
from tenure.testing.clock import FakeClock
from tenure.testing.engine.stage import Stage
from tenure.testing.factories import PROJECT, Scene
from tenure.testing.samples import event_of
from tenure.testing.suites.store_setting import needs

MONTH = 30 * 86400.0


class Clocks(Stage):
    @pytest.fixture
    def jumpy(self, store: Store, clock: FakeClock) -> FakeClock:
        needs(store, HOST_CLOCK)
        return clock

    def test_a_writer_whose_clock_jumped_ahead_is_refused_and_nothing_is_written(
        self, scene: Scene, jumpy: FakeClock
    ) -> None:
        scene.add("first")
        receipt = scene.take("A-001")
        before, now = scene.tables(), now_of(scene)
        jumpy.jump(MONTH)
        for kind, fields in (
            (c.Add, {"task": c.NewTask(title="second")}),
            (c.Renew, {"receipt": receipt}),
            (c.Submit, {"receipt": receipt}),
        ):
            with pytest.raises(ClockJump, match="2592000 s ahead") as jump:
                scene.do(kind, **fields)
            assert jump.value.definite
            assert "`tenure db clock`" in (jump.value.hint or "")
        assert scene.tables() == before
        assert now_of(scene) == now  # looks leave the jump out
        assert scene.state("A-001") == "claimed"
        jumpy.jump(-MONTH)
        assert scene.submit(receipt).outcome == "ACCEPTED"

    def test_every_command_of_a_batch_is_refused(self, scene: Scene, jumpy: FakeClock) -> None:
        scene.add("first")
        jumpy.jump(MONTH)
        batch = [c.Add(project=PROJECT, task=c.NewTask(title=str(n))) for n in range(5)]
        assert [type(answer) for answer in scene.run(*batch)] == [ClockJump] * 5

    def test_a_store_that_nobody_used_for_a_month_is_not_taken_for_a_jump(self, scene: Scene, jumpy: FakeClock) -> None:
        scene.add("first")
        jumpy.advance(seconds=MONTH)
        scene.add("second")

    def test_a_clock_that_is_put_forward_a_little_is_followed(self, scene: Scene, jumpy: FakeClock) -> None:
        scene.add("first")
        for _ in range(5):
            jumpy.jump(300)
            scene.add("another")
            assert now_of(scene) == jumpy.now

    def test_another_boot_may_have_another_clock(self, scene: Scene, jumpy: FakeClock) -> None:
        scene.add("first")
        jumpy.boot = "the next boot"
        jumpy.jump(MONTH)
        scene.add("second")
        assert now_of(scene) == jumpy.now

    def test_a_clock_that_is_behind_is_never_refused_and_time_goes_on(self, scene: Scene, jumpy: FakeClock) -> None:
        scene.add("first")
        receipt = scene.take("A-001", lease=60)
        last = now_of(scene)
        jumpy.jump(-MONTH)
        assert scene.do(c.Renew, receipt=receipt).outcome == "RENEWED"  # the first writer sees it
        assert now_of(scene) == last
        jumpy.advance(seconds=30)
        assert now_of(scene) == last + 30_000_000
        assert scene.do(c.Renew, receipt=receipt).outcome == "RENEWED"
        jumpy.advance(seconds=61)
        assert scene.state("A-001") == "ready"  # a lease ends when its time is over, whatever the clock was set to

    def test_after_the_next_boot_time_goes_on_from_the_last_event(self, scene: Scene, jumpy: FakeClock) -> None:
        scene.add("first")
        last = now_of(scene)
        jumpy.jump(-MONTH)
        scene.add("second")
        jumpy.advance(seconds=10)
        jumpy.boot = "the next boot"
        scene.add("third")
        assert now_of(scene) == last
        jumpy.advance(seconds=5)
        assert now_of(scene) == last + 5_000_000

    def test_a_clock_that_is_behind_does_not_make_the_right_one_a_jump(self, scene: Scene, jumpy: FakeClock) -> None:
        scene.add("first")
        jumpy.jump(-MONTH)
        scene.add("by one command with a clock that was behind")
        jumpy.jump(MONTH)
        scene.add("by the right clock")
        assert now_of(scene) == jumpy.now

    # --- putting it right ---

    def test_a_clock_that_is_right_now_is_gone_on_with(self, scene: Scene, jumpy: FakeClock) -> None:
        """A machine that was asleep without its uptime: the clock is ahead, and right."""
        scene.add("first")
        jumpy.jump(MONTH)
        assert scene.engine.accept_clock() == (0, [])
        assert now_of(scene) == jumpy.now
        scene.add("second")

    def test_the_log_goes_back_with_one_event_for_each_project_and_no_other(
        self, scene: Scene, jumpy: FakeClock
    ) -> None:
        self.written_ahead(scene, jumpy)
        accepted = scene.engine.accept_clock()
        assert accepted.back == round(MONTH) * 1_000_000
        assert now_of(scene) == jumpy.now
        events = scene.events()
        earlier = [b.kind for a, b in pairwise(events) if b.time < a.time]
        assert earlier == ["clock.accepted"]
        kinds = [e.project for e in events if e.kind == "clock.accepted"]
        assert kinds == ["", PROJECT]
        assert scene.engine.verify() == []
        jumpy.advance(seconds=60)
        scene.add("later")
        assert now_of(scene) == jumpy.now

    def test_claims_made_ahead_end_with_their_attempt_given_back(self, scene: Scene, jumpy: FakeClock) -> None:
        receipt = self.written_ahead(scene, jumpy)
        attempts = scene.task("A-002").attempts
        assert scene.engine.accept_clock().ended == [scene.task("A-002").key]
        task = scene.task("A-002")
        assert (task.state, task.attempts) == ("ready", attempts - 1)
        assert (scene.last_claim("A-002").reason, scene.last_claim("A-002").counted) == ("ERROR", False)
        assert scene.submit(receipt).outcome != "ACCEPTED"
        assert scene.claim("A-002").outcome == "GRANTED"

    def test_what_is_to_come_moves_back_by_the_jump(self, scene: Scene, jumpy: FakeClock) -> None:
        self.written_ahead(scene, jumpy)
        scene.add("later", not_before=now_of(scene) + 2_000_000)
        scene.add("failed")
        scene.fail(scene.take("A-004"))
        assert scene.state("A-004") == "retrying"
        delay = (scene.task("A-004").retry_at or 0) - now_of(scene)
        scene.do(c.Reserve, patterns=("src/**",), agent="ann", session="s-ann", lease=60)
        scene.do(
            c.SetSchedule, schedule="daily", cron="0 3 * * *", template=c.Template(tasks=(c.NewTask(title="tick"),))
        )
        scene.engine.accept_clock()
        now = jumpy.now
        assert scene.task("A-003").not_before == now + 2_000_000
        assert scene.task("A-004").retry_at == now + delay
        assert [r.until for r in scene.rows(Reservation)] == [now + 60_000_000]
        assert 0 < scene.rows(Schedule)[0].next_at - now <= 86400 * 1_000_000
        assert all(agent.last_seen <= now for agent in scene.rows(Agent))
        assert all(leader.until <= now + 3600_000_000 for leader in scene.rows(Leader))
        jumpy.advance(delay)
        assert scene.states("A-003", "A-004") == ["ready", "ready"]

    def test_what_was_set_before_the_jump_stays(self, scene: Scene, jumpy: FakeClock) -> None:
        date = jumpy.now + 60 * 86400 * 1_000_000
        scene.add("before", not_before=date, deadline=date + 1)
        jumpy.boot = "ahead"
        jumpy.jump(MONTH)
        scene.do(c.Edit, task="A-001", changes={"priority": 10})
        jumpy.jump(-MONTH)
        scene.engine.accept_clock()
        assert scene.task("A-001").updated_at <= jumpy.now
        assert (scene.task("A-001").not_before, scene.task("A-001").deadline) == (date, date + 1)

    def test_an_event_that_is_earlier_than_the_one_before_is_found(self, scene: Scene, jumpy: FakeClock) -> None:
        scene.add("first")
        scene.broken = True
        with scene.store.begin("local", write=True) as tx:
            tx.append([event_of(project=PROJECT, time=jumpy.now - 1, task=None, kind="task.noted")])
        assert [found for found in scene.engine.verify() if "is earlier than the one before" in found]

    def test_a_duration_counts_from_the_store_s_now(self, scene: Scene, jumpy: FakeClock) -> None:
        scene.add("first")
        jumpy.jump(-MONTH)
        now = now_of(scene)
        scene.add("second", not_before_in=2.0, deadline_in=60.0)
        assert (scene.task("A-002").not_before, scene.task("A-002").deadline) == (now + 2_000_000, now + 60_000_000)

    def written_ahead(self, scene: Scene, jumpy: FakeClock) -> str:
        """The first writer of a boot has a clock that is ahead, so that it is not refused; its claim's receipt."""
        scene.add("before")
        jumpy.boot = "ahead"
        jumpy.jump(MONTH)
        scene.add("ahead")
        receipt = scene.take("A-002", lease=600)
        jumpy.jump(-MONTH)
        return receipt

    def test_a_server_s_clock_is_not_for_us_to_accept(self, scene: Scene, store: Store) -> None:
        if HOST_CLOCK in store.features:
            pytest.skip("goes by the host's clock")
        with pytest.raises(InvalidInput, match="server's"):
            scene.engine.accept_clock()


def now_of(scene: Scene) -> int:
    """The store's time, which is not always what the clock says."""
    return scene.engine.read(lambda tx: tx.now)
