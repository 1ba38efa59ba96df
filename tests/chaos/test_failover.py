"""One failover of each kind, by the command that runs many; and that its check sees a loss."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.chaos.running import prove, run
from tests.servers.postgres import PostgresServer

# A pair that is said to be synchronous, and whose standby gets nothing.
LYING = """
from tests.reliability.failover import main
from tests.servers.replication import Pair

Pair.be_synchronous = Pair.hold_back
raise SystemExit(main(["--sync", "1", "--async", "0", "--seed", "1"]))
"""
# Claims that have a number and nothing else.
NO_NONCE = """
from tenure.client.caller import SystemRandom
from tenure.core.ids import NONCE_BYTES

token = SystemRandom.token
SystemRandom.token = lambda self, size: bytes(size) if size == NONCE_BYTES else token(self, size)
"""
# Nobody says that history was lost.
NO_EPOCH = """
from tests.reliability.failover_lost import Story

Story.begin_epoch = lambda self, url: None
"""
LOSSY = """
from tests.reliability.failover import main
raise SystemExit(main(["--sync", "0", "--async", "1"]))
"""


def test_a_failover_to_a_synchronous_standby_loses_nothing(postgres: PostgresServer, tmp_path: Path) -> None:
    ran = prove(tmp_path, "failover", "--sync", "1", "--async", "0", "--seed", "1")
    assert ran.code == 0, ran.said
    wrong = ("lost", "double", "falsely_stale", "limbo", "other")
    assert {name: ran.numbers[name] for name in wrong} == dict.fromkeys(wrong, 0), ran.said
    assert ran.numbers["failovers"] == 1
    assert ran.numbers["accepted"] > 0


@pytest.mark.nightly
def test_a_standby_that_was_behind_is_found_out(postgres: PostgresServer, tmp_path: Path) -> None:
    ran = run(tmp_path, "-c", LYING)
    assert ran.code == 1, ran.said
    assert ran.numbers["lost"] > 0, ran.said


def test_after_a_failover_that_lost_commits_no_zombie_is_accepted(postgres: PostgresServer, tmp_path: Path) -> None:
    ran = prove(tmp_path, "failover", "--sync", "0", "--async", "1")
    assert ran.code == 0, ran.said
    assert ran.numbers["zombies_accepted"] == 0
    for lost in ("acknowledged_claims_lost", "acknowledged_results_lost", "same_generation_refused_by_nonce"):
        assert ran.numbers[lost] > 0, ran.said


@pytest.mark.nightly
@pytest.mark.parametrize("without", [NO_NONCE, NO_EPOCH], ids=["nonce", "epoch"])
def test_a_fence_that_lacks_a_part_is_found_out(postgres: PostgresServer, tmp_path: Path, without: str) -> None:
    ran = run(tmp_path, "-c", without + LOSSY)
    assert ran.code == 1, ran.said
    assert ran.numbers.get("zombies_accepted", 0) > 0, ran.said
