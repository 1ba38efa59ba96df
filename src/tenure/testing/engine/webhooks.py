"""Webhooks: every event that one asks for is delivered at least once, in order for each task, signed."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

import msgspec
import pytest

from tenure.core import commands as c
from tenure.core import queries as q
from tenure.core.errors import InvalidInput, NotFound, RequestIdReused, SecretsOff
from tenure.core.records import DataKey, Delivery, Sink, Webhook
from tenure.core.webhook_delivery import DELAYS, DOWN_AFTER, Lanes, Tried
from tenure.engine import Engine
from tenure.engine.archive import mover
from tenure.engine.duties.coordinator import GIVEN_UP, LEASE, Coordinator
from tenure.engine.reads.query_table import read_query
from tenure.engine.relay.webhook_relay import WebhookRelay
from tenure.sinks.webhook import Result
from tenure.testing.engine.coordinators import Office
from tenure.testing.engine.stage import Stage
from tenure.testing.factories import PROJECT, Dice, Scene

URL = "https://ci.example.com/hook"


class Receiver:
    """Stands for the HTTP of every receiver: what it answers, and what it was sent."""

    def __init__(self) -> None:
        self.status: int | None = 200
        self.retry_after: int | None = None
        self.got: list[Delivery] = []
        self.tried: list[Delivery] = []
        self.keys: Sequence[bytes] = ()
        self.before: Callable[[str], object] = lambda _: None  # runs before each round

    def send_round(
        self, url: str, keys: Sequence[bytes], lanes: Lanes, *, is_cautious: bool = False, is_wanted: Any = None
    ) -> list[Result]:
        self.before(url)
        self.keys = keys
        found: list[Result] = []
        for lane in lanes:
            for number, delivery in enumerate(lane):
                self.tried.append(delivery)
                answer = Tried(self.status, None if self.status else "connection refused", self.retry_after)
                found.append((delivery, answer))
                if not answer.is_delivered:
                    found += [(rest, None) for rest in lane[number + 1 :]]
                    break
                self.got.append(delivery)
        return found

    def kinds(self) -> list[str]:
        return [delivery.kind for delivery in self.got]


class Desk:
    def __init__(self, scene: Scene, name: str = "one", receiver: Receiver | None = None) -> None:
        self.scene, self.office = scene, Office(scene)
        self.receiver = receiver or Receiver()
        self.coordinator: Coordinator = self.office.another(name)
        self.coordinator.step()
        self.errors: list[str] = []
        self.relay = WebhookRelay(
            self.coordinator.engine,
            self.receiver,  # type: ignore[arg-type]  # the rounds alone
            self.coordinator.led,
            failed=self.errors.append,
        )

    def set(self, name: str = "ci", **fields: Any) -> Any:
        return self.scene.do(c.SetWebhook, webhook=name, **{"url": URL} | fields)

    def run(self, most: int = 30) -> None:
        """Step until nothing is left to do at once, with every try finished."""
        for _ in range(most):
            pause = self.relay.step()
            for under_way in list(self.relay._under_way.values()):
                under_way.future.result(10)
            if pause and not self.relay._under_way:
                return

    def pass_time(self, seconds: float) -> None:
        self.office.pass_time(seconds)
        for _ in range(2):
            self.coordinator.step()

    @property
    def row(self) -> Webhook:
        rows: list[Webhook] = self.scene.stored_rows(Webhook)
        return rows[0]


class Webhooks(Stage):
    @pytest.fixture
    def desk(self, scene: Scene) -> Desk:
        return Desk(scene)

    def test_a_webhook_gets_the_kinds_that_it_names_and_nothing_from_before(self, scene: Scene, desk: Desk) -> None:
        scene.finish(scene.add())
        desk.set(kinds=("task.completed",))
        scene.finish(scene.add())
        desk.run()
        assert desk.receiver.kinds() == ["task.completed"]
        desk.run()
        assert len(desk.receiver.got) == 1

    def test_a_change_of_status_has_its_own_message(self, scene: Scene, desk: Desk) -> None:
        desk.set()
        key = scene.add()
        scene.finish(key)
        desk.run()
        bodies = [msgspec.json.decode(one.body) for one in desk.receiver.got]
        assert [(b["previousStatus"], b["newStatus"]) for b in bodies] == [
            (None, "ready"),
            ("ready", "claimed"),
            ("claimed", "completed"),
        ]
        assert {(b["workspaceId"], b["projectId"]) for b in bodies} == {(bodies[0]["tenant"], PROJECT)}

    def test_a_filter_reads_the_task_as_a_triggers_does(self, scene: Scene, desk: Desk) -> None:
        desk.set(kinds=("task.created",), where={"task.type": "review"})
        scene.add(type="code")
        scene.add(type="review")
        desk.run()
        assert len(desk.receiver.got) == 1

    def test_a_secret_is_shown_once_and_stored_sealed(self, scene: Scene, desk: Desk) -> None:
        made = desk.set(request_id="r1")
        assert made.secret.startswith("whsec_")
        assert desk.set().secret is None
        assert desk.set(request_id="r1").secret == made.secret
        with pytest.raises(RequestIdReused):
            scene.do(c.SetWebhook, webhook="ci", url=URL + "/other", request_id="r1")
        stored = b"".join(msgspec.json.encode(row) for rows in scene.tables().values() for row in rows)
        events = b"".join(msgspec.json.encode(event) for event in scene.events())
        assert made.secret.encode()[6:] not in stored + events
        assert len(scene.stored_rows(DataKey)) == 2

    def test_a_rotated_secret_signs_together_with_the_one_before(self, scene: Scene, desk: Desk) -> None:
        desk.set(kinds=("task.created",))
        scene.do(c.RotateWebhook, webhook="ci", grace=60.0)
        scene.add()
        desk.run()
        assert len(desk.receiver.keys) == 2
        desk.pass_time(61)
        scene.add()
        desk.run()
        assert len(desk.receiver.keys) == 1

    def test_a_failed_delivery_waits_in_a_row_and_the_others_go_on(self, scene: Scene, desk: Desk) -> None:
        desk.set(kinds=("task.created", "task.claimed"))
        first = scene.add()
        desk.receiver.status = 500
        desk.run()
        assert (desk.row.parked, desk.receiver.got) == (1, [])
        desk.receiver.status = 200
        scene.take(first)
        scene.add()
        for _ in range(2):  # the failed one goes first, alone
            desk.pass_time(DELAYS[0])
            desk.run()
        assert [one.sequence for one in desk.receiver.got if one.task == desk.receiver.got[0].task] == sorted(
            one.sequence for one in desk.receiver.got if one.task == desk.receiver.got[0].task
        )
        assert (desk.row.parked, desk.row.delivered) == (0, 3)

    def test_a_crash_after_the_delivery_sends_the_same_message_again(self, scene: Scene, desk: Desk) -> None:
        desk.set(kinds=("task.created",))
        scene.add()
        place = scene.stored_rows(Sink)[0].sequence
        send = desk.receiver.send_round

        def send_and_lose_the_lease(*args: Any, **named: Any) -> list[Result]:
            found = send(*args, **named)
            desk.office.watches["one"].now += LEASE * GIVEN_UP
            return found

        desk.receiver.send_round = send_and_lose_the_lease  # type: ignore[method-assign]
        desk.run()
        assert scene.stored_rows(Sink)[0].sequence == place
        desk.receiver.send_round = send  # type: ignore[method-assign]
        scene.pass_time(seconds=LEASE + 1)
        Desk(scene, "two", desk.receiver).run()
        assert len(desk.receiver.got) == 2
        assert len({one.message for one in desk.receiver.got}) == 1

    def test_an_endpoint_that_is_down_is_not_read_for_and_gets_everything_when_it_is_back(
        self, scene: Scene, desk: Desk
    ) -> None:
        desk.set(kinds=("task.created",))
        desk.receiver.status = None
        scene.add()
        desk.run()
        for delay in (*DELAYS[:3], DOWN_AFTER / 1e6):
            desk.pass_time(delay)
            desk.run()
        assert desk.row.down_since is not None
        for _ in range(3):
            scene.add()
        desk.run()
        assert desk.row.parked == 1
        desk.receiver.status = 200
        desk.pass_time(3600)
        desk.run()
        desk.run()
        assert len(desk.receiver.got) == 4
        assert desk.row.parked == 0
        assert desk.row.down_since is None

    def test_a_receiver_that_is_gone_disables_the_webhook(self, scene: Scene, desk: Desk) -> None:
        desk.set(kinds=("task.created",))
        desk.receiver.status = 410
        scene.add()
        desk.run()
        assert not desk.row.enabled
        (event,) = scene.events(kind="webhook.disabled")
        assert event.level == "error"
        desk.receiver.status = 200
        desk.pass_time(1)
        assert scene.do(c.ResumeWebhook, webhook="ci").outcome == "UPDATED"
        desk.run()
        assert len(desk.receiver.got) == 1

    def test_a_paused_webhook_gets_everything_later(self, scene: Scene, desk: Desk) -> None:
        desk.set(kinds=("task.created",))
        scene.do(c.PauseWebhook, webhook="ci", reason="maintenance")
        scene.add()
        desk.run()
        assert desk.receiver.got == []
        scene.do(c.ResumeWebhook, webhook="ci")
        desk.run()
        assert len(desk.receiver.got) == 1

    def test_a_test_message_reaches_one_webhook(self, scene: Scene, desk: Desk) -> None:
        desk.set("one", kinds=("task.created",))
        desk.set("two", kinds=("task.*",))
        scene.do(c.TestWebhook, webhook="one")
        desk.run()
        assert [(one.webhook, one.kind) for one in desk.receiver.got] == [("one", "webhook.test")]

    def test_replay_sends_the_same_message_ids(self, scene: Scene, desk: Desk) -> None:
        desk.set(kinds=("task.created",))
        began = scene.now
        scene.add()
        desk.run()
        (first,) = desk.receiver.got
        scene.do(c.ReplayWebhook, webhook="ci", since=began)
        desk.run()
        assert [one.message for one in desk.receiver.got] == [first.message] * 2
        scene.do(c.ReplayWebhook, webhook="ci", message=first.message)
        desk.run()
        assert [one.body for one in desk.receiver.got] == [first.body] * 3
        with pytest.raises(NotFound):
            scene.do(c.ReplayWebhook, webhook="ci", message="evt_unknown")

    def test_a_replayed_delivery_that_fails_is_tried_again(self, scene: Scene, desk: Desk) -> None:
        desk.set(kinds=("task.created",))
        began = scene.now
        scene.add()
        desk.run()
        desk.receiver.status = 500
        scene.do(c.ReplayWebhook, webhook="ci", since=began)
        desk.run()
        assert desk.row.parked == 1
        desk.receiver.status = 200
        desk.pass_time(DELAYS[0])
        desk.run()
        assert len(desk.receiver.got) == 2
        assert desk.row.parked == 0

    def test_a_webhook_that_has_caught_up_reads_with_the_others_though_its_project_is_quiet(
        self, scene: Scene, desk: Desk
    ) -> None:
        desk.set(kinds=("task.created",))
        scene.do(c.PauseWebhook, webhook="ci")
        scene.engine.do(c.DefineProject(project="busy"))
        desk.run()
        scene.do(c.ResumeWebhook, webhook="ci")
        scene.engine.do(c.Add(project="busy", task=c.NewTask(title="x")))
        desk.run()
        desk.run()
        assert desk.row.sequence is None

    def test_a_slow_receiver_does_not_hold_the_others_up(self, scene: Scene, desk: Desk) -> None:
        go = threading.Event()
        desk.set("slow", kinds=("task.created",), url="https://slow.example.com/")
        desk.set("other", kinds=("task.created",))
        desk.receiver.before = lambda url: "slow" not in url or go.wait(20)
        scene.add()
        try:
            desk.relay.step()
            assert [one.webhook for one in desk.receiver.got] == ["other"]
            scene.add()
            desk.relay.step()
            assert [one.webhook for one in desk.receiver.got] == ["other", "other"]
        finally:
            go.set()
        desk.run()
        desk.pass_time(DELAYS[0])
        desk.run()
        assert sorted(one.webhook for one in desk.receiver.got) == ["other", "other", "slow", "slow"]
        assert [row.parked for row in scene.stored_rows(Webhook)] == [0, 0]

    def test_the_reader_of_webhooks_is_removed_only_without_them(self, scene: Scene, desk: Desk) -> None:
        desk.set()
        with pytest.raises(InvalidInput):
            scene.engine.do(c.RemoveRelay(project="", sink="webhooks"))
        scene.do(c.RemoveWebhook, webhook="ci")
        assert scene.engine.do(c.RemoveRelay(project="", sink="webhooks")).outcome == "UPDATED"

    def test_a_webhook_holds_the_archive_back(self, scene: Scene, desk: Desk) -> None:
        desk.set(kinds=("task.completed",))
        scene.finish(scene.add())
        assert mover.move_all(scene.engine, PROJECT, older=0).tasks == 0
        desk.run()
        assert mover.move_all(scene.engine, PROJECT, older=0).tasks == 1

    def test_the_delivery_log_shows_every_try(self, scene: Scene, desk: Desk) -> None:
        desk.set(kinds=("task.created",))
        scene.add()
        desk.run()
        (line,) = read_query(scene.engine, q.Deliveries(project=PROJECT, webhook="ci"))
        assert (line["state"], line["status"], line["tries"]) == ("delivered", 200, 1)

    def test_bad_values_are_refused(self, scene: Scene) -> None:
        for bad in (
            c.SetWebhook(project=PROJECT, webhook="ci", url="ftp://x"),
            c.SetWebhook(project=PROJECT, webhook="ci", url="http://example.com"),
            c.SetWebhook(project=PROJECT, webhook="ci", url=URL, kinds=("task.complete",)),
            c.SetWebhook(project=PROJECT, webhook="ci", url=URL, where={"nope": 1}),
            c.SetWebhook(project=PROJECT, webhook="ci", url=URL, secret="short"),  # noqa: S106
        ):
            with pytest.raises(InvalidInput):
                scene.engine.do(bad)

    @pytest.mark.parametrize(
        "host",
        [
            "127.0.0.1", "127.1", "2130706433", "0x7f000001", "localhost", "api.localhost.", "10.1.2.3", "192.168.0.9",
            "169.254.169.254", "100.100.100.200", "[::1]", "[fe80::1%25eth0]", "[fd00::1]", "[::ffff:10.0.0.1]",
            "[64:ff9b::a9fe:a9fe]",
        ],
    )  # fmt: skip
    def test_an_address_that_is_not_public_is_refused_when_it_is_set(self, scene: Scene, host: str) -> None:
        wanted = c.SetWebhook(project=PROJECT, webhook="ci", url=f"https://{host}/hook", kinds=("task.*",))
        with pytest.raises(InvalidInput, match=r"not on the public internet"):
            scene.engine.do(wanted)
        assert scene.stored_rows(Webhook) == []
        allowed = msgspec.structs.replace(scene.engine.context, networks=("127.0.0.0/8", "::1/128", "10.0.0.0/8"))
        trusting = Engine(scene.store, scene.dice, allowed)
        if host in (
            "127.0.0.1",
            "127.1",
            "2130706433",
            "0x7f000001",
            "localhost",
            "api.localhost.",
            "10.1.2.3",
            "[::1]",
        ):
            assert trusting.do(wanted).outcome == "CREATED"
        elif host != "[::ffff:10.0.0.1]":
            with pytest.raises(InvalidInput, match=r"not on the public internet"):
                trusting.do(wanted)

    def test_without_a_master_key_nothing_is_stored(self, scene: Scene) -> None:
        with pytest.raises(SecretsOff):
            Engine(scene.store, Dice()).do(c.SetWebhook(project=PROJECT, webhook="ci", url=URL))
        assert scene.stored_rows(Webhook) == []
