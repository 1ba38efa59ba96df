"""Short runs of relays, brokers and webhooks that are killed, by the commands that run the long ones."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest

from tenure.sinks.port import Message
from tests.chaos.running import Ran, prove
from tests.reliability.relay import compared
from tests.servers import processes
from tests.servers.fixtures import missing, provided

WRONG = ("lost", "out_of_order", "several_ids", "wrong")

AT_NIGHT = [pytest.param(name, marks=pytest.mark.nightly) for name in ("redis", "rabbitmq")]


@pytest.fixture
def broker(request: pytest.FixtureRequest) -> str:
    """The name of a broker whose program is here."""
    if request.param == "rabbitmq":
        provided("rabbitmq-server")
    return str(request.param)


def held(ran: Ran, names: Sequence[str]) -> None:
    assert ran.code == 0, ran.said
    assert {name: ran.numbers[name] for name in names} == dict.fromkeys(names, 0), ran.said


@pytest.mark.parametrize(
    "broker",
    ["nats", *AT_NIGHT],
    indirect=True,
)
def test_no_event_is_lost_when_relays_and_their_broker_are_killed(broker: str, tmp_path: Path) -> None:
    options = ("--events", "600", "--kills", "3", "--broker-kills", "1", "--seconds", "2", "--seed", "1")
    ran = prove(tmp_path, "relay", "--sink", broker, *options)
    held(ran, WRONG if broker == "rabbitmq" else (*WRONG, "doubles"))
    assert ran.numbers["broker_kills"] == 1
    assert (tmp_path / f"relay-{broker}.json").exists()


def test_a_relay_that_was_stopped_after_an_acknowledgement_sends_the_same_ids_again(tmp_path: Path) -> None:
    ran = prove(tmp_path, "relay", "--sink", "nats", "--events", "100", "--stopped", "2", "--seed", "1")
    held(ran, (*WRONG, "doubles"))
    assert ran.numbers["zombies"] == 1
    assert json.loads((tmp_path / "relay-nats-stopped.json").read_text())["verdict"] == "held"


@pytest.mark.parametrize(
    "broker",
    ["nats", *AT_NIGHT],
    indirect=True,
)
def test_each_task_is_accepted_once_though_the_broker_repeats_and_forgets(broker: str, tmp_path: Path) -> None:
    options = ("--tasks", "200", "--workers", "2", "--kills", "3", "--seed", "1")
    ran = prove(tmp_path, "broker", "--sink", broker, *options)
    held(ran, ("double", "lost", "limbo", "wrong"))
    assert ran.numbers["accepted"] == 200
    assert ran.numbers["open_when_wiped"] > 0


@pytest.mark.nightly
def test_a_worker_of_the_sdk_accepts_each_task_once(tmp_path: Path) -> None:
    options = ("--tasks", "150", "--workers", "2", "--kills", "3", "--seed", "1", "--worker", "sdk")
    ran = prove(tmp_path, "broker", "--sink", "nats", *options)
    held(ran, ("double", "lost", "limbo", "wrong"))
    assert ran.numbers["accepted"] == 150
    assert (tmp_path / "broker-nats-sdk.json").exists()


def test_a_sink_that_hangs_slows_nothing_else_down(tmp_path: Path) -> None:
    ran = prove(tmp_path, "hanging", "--seconds", "2")
    held(ran, ("wrong",))
    assert json.loads((tmp_path / "hanging.json").read_text())["figures"]["hanging_leases_expired"] >= 1


@pytest.mark.nightly
def test_hundreds_of_dead_letters_in_a_minute_are_two_messages(tmp_path: Path) -> None:
    ran = prove(tmp_path, "notices", "--letters", "100")
    held(ran, ("wrong",))
    assert ran.numbers["to_slack"] <= 2
    assert ran.numbers["by_mail"] <= 2
    assert ran.numbers["counted"] == 100


def test_webhooks_arrive_in_order_whatever_fails_and_nothing_goes_inside(tmp_path: Path) -> None:
    ran = prove(tmp_path, "webhooks", "--events", "150", "--kills", "3", "--seconds", "2", "--seed", "1")
    held(ran, ("lost", "out_of_order", "to_private_addresses", "wrong"))


@pytest.mark.nightly
def test_a_cluster_that_loses_a_node_loses_no_message(tmp_path: Path) -> None:
    try:
        processes.found_or_installed("rabbitmq-server")
    except processes.Unavailable as why:
        missing(str(why))
    ran = prove(tmp_path, "clusters", "--events", "1200")
    held(ran, ("lost",))


@pytest.mark.nightly
def test_a_nats_cluster_goes_on_without_a_node(tmp_path: Path) -> None:
    ran = prove(tmp_path, "clusters", "--sink", "nats", "--events", "300", "--kills", "1")
    held(ran, ("lost", "doubles", "out_of_order"))
    assert ran.numbers["nodes_killed"] == 1


def message(sequence: int, id: str = "") -> Message:
    return Message(id=id or f"e{sequence}", name="evt.task.ready.v1", body=msgspec.json.encode({"sequence": sequence}))


@pytest.mark.parametrize(
    ("received", "name"),
    [
        ([message(1), message(3)], "lost"),
        ([message(1), message(3), message(2)], "out_of_order"),
        ([message(1), message(2), message(2, "e2-other"), message(3)], "several_ids"),
        ([message(1), message(2), message(3), message(4)], "unknown"),
        ([message(1), message(2), message(1), message(3)], "doubles"),
    ],
)
def test_the_check_finds_what_a_broker_must_not_have(received: list[Message], name: str) -> None:
    ids = {"evt": {"e1", "e2", "e3"}, "cmd": set[str](), "dlq": set[str]()}
    counts, wrong = compared({"evt": received, "cmd": [], "dlq": []}, ids, may_repeat=False)
    assert counts[name] == 1
    assert f"{name}: 1" in wrong
    good = [message(1), message(2), message(2), message(3)]
    assert compared({"evt": good, "cmd": [], "dlq": []}, ids, may_repeat=True)[1] == []
