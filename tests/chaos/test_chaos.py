"""A short round of chaos on PostgreSQL, by the command that runs the long one; and that its check sees what it must."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.chaos.running import prove, run
from tests.servers.postgres import PostgresServer

FAULTS = 11  # each kind once

# Workers that take a new request id for what they were not answered, on a network that only cuts answers off.
GUESSING = """
from tenure.core.records import replace
from tests.reliability import chaos
from tests.reliability.chaos_worker import Steadfast

sent = set()

def again(self, command):
    if command.request_id in sent:
        return replace(command, request_id=self.new_id())
    sent.add(command.request_id)
    return command

Steadfast.again = again
chaos.SHARES = {"cut after the commit": 100}
raise SystemExit(chaos.main(["--faults", "15", "--seed", "1"]))
"""


def test_nothing_is_lost_or_doubled_whatever_breaks(postgres: PostgresServer, tmp_path: Path) -> None:
    ran = prove(tmp_path, "chaos", "--faults", str(FAULTS), "--processes", "4", "--seed", "1")
    assert ran.code == 0, ran.said
    wrong = ("lost", "double", "falsely_stale", "limbo", "other")
    assert {name: ran.numbers[name] for name in wrong} == dict.fromkeys(wrong, 0), ran.said
    assert (ran.numbers["faults"], ran.numbers["kinds"]) == (FAULTS, 11), ran.said  # each kind has hit something
    assert ran.numbers["unknown"] > 0
    assert ran.numbers["accepted"] > 0


@pytest.mark.nightly
def test_workers_that_do_not_repeat_the_request_id_are_found_out(postgres: PostgresServer, tmp_path: Path) -> None:
    ran = run(tmp_path, "-c", GUESSING)
    assert ran.code == 1, ran.said
    assert ran.numbers["lost"] + ran.numbers["double"] > 0, ran.said
