"""Short runs of the proof of pools, by the command that runs the long one."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.chaos.running import Ran, prove

SHORT = ("--tasks", "6", "--kills", "3", "--gateway-kills", "1", "--budget", "3", "--seed", "1")


def held(ran: Ran) -> None:
    assert ran.code == 0, ran.said
    assert (ran.numbers["wrong"], ran.numbers["accepted_twice"]) == (0, 0), ran.said
    assert ran.numbers["most_able"] <= ran.numbers["size"], ran.said


def test_the_money_of_a_pool_is_never_passed_though_agents_die(tmp_path: Path) -> None:
    held(prove(tmp_path, "fleet", "--part", "budget", "--tasks", "4", "--budget", "2", "--seed", "1"))


@pytest.mark.nightly
def test_servers_and_gateways_killed_at_a_spawn_lose_and_double_nothing(tmp_path: Path) -> None:
    parts = ("--part", "server", "--part", "gateway", "--part", "budget")
    ran = prove(tmp_path, "fleet", *parts, *SHORT)
    held(ran)
    assert ran.numbers["kills"] == 4
    assert (tmp_path / "fleet.json").exists()


@pytest.mark.nightly
def test_a_spawner_that_hangs_answers_twice_or_late_and_dies_doubles_nothing(tmp_path: Path) -> None:
    ran = prove(tmp_path, "fleet", "--part", "faults", *SHORT)
    held(ran)
    for fault in ("hangs", "late", "answers twice", "refuses", "dies before its claim", "dies after its claim"):
        assert f"spawns that: {fault} 1" in ran.said


@pytest.mark.nightly
@pytest.mark.parametrize("store", ["sqlite", "postgres"])
def test_every_part_holds_on_each_store(tmp_path: Path, store: str) -> None:
    held(prove(tmp_path, "fleet", "--store", store, "--kills", "6", "--gateway-kills", "3", "--seed", "2"))


@pytest.mark.nightly
def test_a_plan_comes_to_its_end_though_agents_and_the_coordinator_are_killed_and_money_runs_out(
    tmp_path: Path,
) -> None:
    ran = prove(tmp_path, "loop", "--tasks", "15", "--agents", "4", "--kills", "8", "--seed", "1")
    held(ran)
    assert ran.numbers["raised"] >= 1
