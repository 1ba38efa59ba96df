"""What happened is counted once, whoever did it, and whichever of the servers leads."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tenure.core import commands as c
from tenure.core.commands import OWNER
from tenure.core.errors import StoreUnavailable
from tenure.engine.verbs.lead import COORDINATOR
from tenure.server import metrics, task_cache
from tenure.server.assembly import Assembly
from tenure.server.auth.policy import Policy
from tenure.server.logs import ServerLog
from tenure.server.metrics import EventCounter, Metrics
from tenure.stores.sqlite import Sqlite
from tenure.testing.clock import FakeClock
from tenure.testing.factories import Scene
from tests.server.observability.samples import Told

PATIENCE = 30.0
CLAIM = c.ClaimNext(project="p", agent="ann", session="s")
EVENTS = (
    "tenure_generation_increments_total", "tenure_lease_expirations_total", "tenure_tasks_completed_total",
    "tenure_claims_ended_total", "tenure_attempts_failed_total", "tenure_retries_total", "tenure_dead_letters_total",
)  # fmt: skip


class Counted(Told):
    """One server's part: it hears the log from where it began."""

    def __init__(self, scene: Scene, instance: str) -> None:
        super().__init__(Metrics())
        self.scene = scene
        self.event_counter = EventCounter(scene.engine, self.metrics, instance)
        self.position = scene.store.mark("local")
        self.event_counter.start()

    def hear(self) -> None:
        with self.scene.store.begin("local", write=False) as tx:
            events = tx.events({}, after=self.position, limit=100_000)
        self.position = events[-1].sequence if events else self.position
        self.event_counter.hear(events)
        assert self.event_counter.idle(PATIENCE)


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    clock = FakeClock()
    scene = Scene(Sqlite(str(tmp_path / "store.db"), clock=clock), clock)
    yield scene
    scene.store.close()


@pytest.fixture
def server(scene: Scene) -> Iterator[Counted]:
    """A server that leads."""
    server = Counted(scene, "one")
    lead(scene, "one")
    yield server
    server.event_counter.stop()


def lead(scene: Scene, holder: str) -> int:
    elected = scene.do(c.Lead, project="", holder=holder, lease=30)
    assert elected.outcome == "ELECTED"
    return elected.term or 0


def some_work(scene: Scene) -> None:
    """One task goes well, one is lost and taken over, one fails until it is a dead letter, one is given back."""
    scene.finish(scene.add("well"))
    lost = scene.add("lost", type="research")
    scene.take(lost, "ann", lease=60)
    scene.pass_time(seconds=90)
    scene.finish(lost, agent="bo")
    scene.bury(scene.add("hopeless", type="review"))
    scene.do(c.Release, receipt=scene.take(scene.add("given back")))


def test_what_happened_is_counted_by_type_class_and_reason(scene: Scene, server: Counted) -> None:
    some_work(scene)
    server.hear()
    assert server["tenure_generation_increments_total", "p"] == 1 + 2 + 3 + 1
    assert server["tenure_lease_expirations_total", "p"] == 1
    assert server["tenure_tasks_completed_total", "p", "code"] == 1
    assert server["tenure_tasks_completed_total", "p", "research"] == 1
    assert server["tenure_attempts_failed_total", "p", "review", "task"] == 3
    assert server["tenure_retries_total", "p", "task"] == 2
    assert server["tenure_dead_letters_total", "p", "review", "task"] == 1
    ends = {"COMPLETED": 2.0, "EXPIRED": 1.0, "FAILED": 3.0, "VOLUNTARY": 1.0}
    assert {reason: n for (_, reason), n in server.series("tenure_claims_ended_total").items()} == ends
    assert server["tenure_claim_duration_seconds_count", "p"] == 7


def test_times_are_those_that_people_mean(scene: Scene, server: Counted) -> None:
    key = scene.add()
    scene.pass_time(seconds=100)
    scene.take(key, lease=60)
    scene.pass_time(seconds=70)  # ten of them after the lease
    receipt = scene.take(key, "bo")
    scene.pass_time(seconds=30)
    scene.submit(receipt)
    server.hear()
    assert server["tenure_claim_duration_seconds_sum", "p"] == 60 + 30
    assert server["tenure_task_completion_seconds_sum", "p"] == 70 + 30
    assert server["tenure_task_latency_seconds_sum", "p"] == 100 + 70 + 30
    assert server["tenure_generations_per_task_sum", "p"] == 2
    assert server["tenure_task_wait_seconds_sum", "p"] == 100 + 10


def test_what_was_made_before_is_read_from_the_store(scene: Scene) -> None:
    key = scene.add(type="research")
    server = Counted(scene, "one")
    lead(scene, "one")
    scene.pass_time(seconds=25)
    scene.take(key, lease=60)
    server.hear()
    scene.pass_time(seconds=70)  # ten of them after the lease
    receipt = scene.take(key, "bo")
    scene.pass_time(seconds=30)
    scene.submit(receipt)
    server.hear()
    server.event_counter.stop()
    assert server["tenure_tasks_completed_total", "p", "research"] == 1
    assert server["tenure_task_wait_seconds_sum", "p"] == 25 + 10
    assert server["tenure_task_completion_seconds_sum", "p"] == 70 + 30
    assert server["tenure_task_latency_seconds_sum", "p"] == 25 + 70 + 30


def test_what_a_first_claim_has_noticed_is_not_read_again(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    made = [scene.add(type="research") for _ in range(2)]
    server = Counted(scene, "one")
    lead(scene, "one")
    server.hear()
    scene.pass_time(seconds=25)
    several = scene.next(n=2, lease=60)
    server.event_counter.observe(CLAIM, OWNER, several, 0.0)
    with monkeypatch.context() as unread:
        unread.setattr(task_cache.TaskCache, "learn_rows", lambda *_: 1 / 0)
        scene.take(scene.add())
        server.hear()
    scene.pass_time(seconds=70)  # ten of them after the lease
    receipts = [scene.take(key, "bo") for key in made]
    scene.pass_time(seconds=30)
    for receipt in receipts:
        scene.submit(receipt)
    server.hear()
    server.event_counter.stop()
    assert server["tenure_generation_increments_total", "p"] == 2 + 1 + 2
    assert server["tenure_tasks_completed_total", "p", "research"] == 2
    assert server["tenure_task_wait_seconds_sum", "p"] == 2 * (25 + 10)
    assert server["tenure_task_completion_seconds_sum", "p"] == 2 * (70 + 30)
    assert server["tenure_task_latency_seconds_sum", "p"] == 2 * (25 + 70 + 30)
    assert server["tenure_events_uncounted_total",] == 0


def test_an_answer_is_believed_for_its_own_claim_alone(scene: Scene) -> None:
    """A later claim knows nothing of the run's beginning, and an answer that comes behind its event is old by then."""
    key, late = scene.add(), scene.add()
    scene.take(key, lease=60)
    scene.pass_time(seconds=70)
    told, untold = Counted(scene, "one"), Counted(scene, "one")
    lead(scene, "one")
    told.hear()
    again, first = scene.claim(key, "bo"), scene.claim(late, lease=60)
    told.event_counter.observe(CLAIM, OWNER, again, 0.0)
    told.hear()
    untold.hear()
    told.event_counter.observe(CLAIM, OWNER, first, 0.0)
    scene.pass_time(seconds=65)
    scene.engine.sweep()
    scene.pass_time(seconds=5)
    for receipt in (str(again.receipt), scene.take(late)):
        scene.submit(receipt)
    for server in (told, untold):
        server.hear()
        server.event_counter.stop()
        assert server["tenure_task_completion_seconds_sum", "p"] == (70 + 70) + 70
        assert server["tenure_task_wait_seconds_sum", "p"] == (10 + 70) + 10
        assert server["tenure_task_wait_seconds_count", "p"] == 3


def test_answers_are_kept_by_who_counts_and_only_so_many(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(task_cache, "MOST", 2)
    server = Counted(scene, "one")
    granted = [scene.claim(scene.add(type="review")) for _ in range(5)]
    server.event_counter.observe(CLAIM, OWNER, granted[0], 0.0)
    assert not server.event_counter._answered
    lead(scene, "one")
    server.hear()
    for outcome in granted:
        server.event_counter.observe(CLAIM, OWNER, outcome, 0.0)
    scene.add()
    server.hear()
    server.event_counter.stop()
    assert len(server.event_counter._cache("local")._shown) == 2


async def test_a_server_counts_by_the_answers_that_it_gives(scene: Scene) -> None:
    assembly = Assembly(scene.engine, Policy(), ServerLog("error", None))
    assembly.event_counter._counts = True
    scene.add()
    for _ in range(2):
        await assembly.service.do(c.ClaimNext(project="p", agent="ann", session="s"), OWNER)
    assert [outcome.outcome for _, _, outcome in assembly.event_counter._answered] == ["GRANTED"]
    assembly.service.batcher.close()


def test_a_wait_that_is_not_known_is_not_guessed(scene: Scene) -> None:
    """The row tells of the last time that the task became ready, which may be after the claim."""
    key = scene.add()
    server = Counted(scene, "one")
    lead(scene, "one")
    scene.pass_time(seconds=100)
    scene.take(key, lease=60)
    scene.pass_time(seconds=70)
    scene.take(key, "bo")
    server.hear()
    server.event_counter.stop()
    assert server["tenure_task_wait_seconds_sum", "p"] == 10
    assert server["tenure_task_wait_seconds_count", "p"] == 1


def test_the_first_claim_is_that_of_the_same_run(scene: Scene, server: Counted) -> None:
    key = scene.add()
    scene.finish(key)
    scene.pass_time(hours=5)
    scene.do(c.Reset, task=key)
    receipt = scene.take(key)
    scene.pass_time(seconds=40)
    scene.submit(receipt)
    server.hear()
    assert server["tenure_task_completion_seconds_sum", "p"] == 40


def test_what_was_remembered_in_an_earlier_term_is_forgotten(scene: Scene, server: Counted) -> None:
    key = scene.add()
    server.hear()
    scene.pass_time(seconds=31)
    lead(scene, "another")
    scene.take(key, lease=10)  # none of our business
    scene.pass_time(seconds=31)
    scene.engine.sweep()  # ready again for 21 s
    lead(scene, "one")
    scene.take(key, "bo")
    server.hear()
    assert server["tenure_task_wait_seconds_sum", "p"] == 21


def test_agents_that_fall_silent_are_counted(scene: Scene, server: Counted) -> None:
    scene.next("ann")
    scene.pass_time(minutes=31)
    scene.engine.sweep()
    server.hear()
    assert server["tenure_heartbeat_misses_total", "p"] == 1


def test_who_does_not_lead_counts_nothing(scene: Scene) -> None:
    other = Counted(scene, "other")
    some_work(scene)
    lead(scene, "one")
    some_work(scene)
    other.hear()
    other.event_counter.stop()
    assert sum(other.total(name) for name in EVENTS) == 0


def test_the_servers_divide_the_log_among_them_without_gap_or_overlap(scene: Scene) -> None:
    servers = [Counted(scene, f"server-{n}") for n in range(4)]
    for n in (0, 2, 1, 2, 3):
        lead(scene, f"server-{n}")
        some_work(scene)
        servers[n].hear()  # in the middle of its term
        some_work(scene)
        scene.pass_time(seconds=31)  # it did not renew
    for server in servers:
        server.hear()
        server.event_counter.stop()
    alone = Counted(scene, "server-0")
    alone.position = 0
    alone.event_counter._counts = True
    with scene.store.begin("local", write=False) as tx:
        alone.event_counter.hear([e for e in tx.events({}, limit=100_000) if e.kind != "leader.elected"])
    assert alone.event_counter.idle(PATIENCE)
    alone.event_counter.stop()
    for name in EVENTS:
        assert sum(server.total(name) for server in servers) == alone.total(name) > 0, name
    assert [server.total("tenure_tasks_completed_total") for server in servers] == [4.0, 4.0, 8.0, 4.0]


def test_a_projects_own_leader_is_none_of_the_servers(scene: Scene, server: Counted) -> None:
    scene.do(c.Lead, holder="ann", lease=30, agent=True)
    scene.finish(scene.add())
    server.hear()
    assert server.total("tenure_tasks_completed_total") == 1
    assert [e.details["for"] for e in scene.events(kind="leader.elected")] == [COORDINATOR, "agent"]


def test_counters_go_on_where_rows_cannot_be_read(
    scene: Scene, server: Counted, monkeypatch: pytest.MonkeyPatch
) -> None:
    some_work(scene)
    with scene.store.begin("local", write=False) as tx:
        events = tx.events({}, limit=1000)

    def away(*_: object, **__: object) -> None:
        raise StoreUnavailable("gone")

    monkeypatch.setattr(scene.store, "begin", away)
    server.event_counter.hear(events)
    assert server.event_counter.idle(PATIENCE)
    assert server["tenure_generation_increments_total", "p"] == 7
    assert server["tenure_tasks_completed_total", "p", "research"] == 1  # remembered
    assert server.total("tenure_claim_duration_seconds_count") == 2  # the completed ones say it themselves


def test_what_comes_too_fast_is_left_out_and_told_of(
    scene: Scene, server: Counted, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(metrics, "MOST_WAITING", 3)
    for _ in range(5):
        scene.take(scene.add())
    server.hear()
    assert server["tenure_generation_increments_total", "p"] == 2
    assert server["tenure_events_uncounted_total",] == 1 + 10 - 3  # the election, two events for each task


def test_a_fault_of_ours_does_not_end_all_counting(
    scene: Scene, server: Counted, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as broken:
        broken.setattr(server.metrics, "event", lambda *_: 1 / 0)
        scene.take(scene.add())
        server.hear()
    scene.take(scene.add())
    server.hear()
    assert server["tenure_generation_increments_total", "p"] == 1
    assert server["tenure_events_uncounted_total",] == 3


def test_only_so_many_tasks_are_remembered(scene: Scene, server: Counted, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(task_cache, "MOST", 2)
    keys = [scene.add(type="review") for _ in range(5)]
    server.hear()
    scene.finish(*keys)
    server.hear()
    assert len(server.event_counter._cache("local")._tasks) == 2
    assert server["tenure_tasks_completed_total", "p", "review"] == 5
