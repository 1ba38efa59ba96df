"""A short round of servers that are killed under load, by the command that runs the long one; and that it sees."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.chaos.running import prove, run
from tests.servers.postgres import PostgresServer

FAULTS = 7  # each kind once

# Clients that name each try anew, as those do that have no request ids.
FORGETFUL = """
import os
from tenure.client.transports.http import Connections
from tests.reliability import serving

exchange = Connections.exchange

def anew(self, request, *more):
    if "Idempotency-Key" in request.headers:
        request.headers["Idempotency-Key"] = os.urandom(8).hex()
    return exchange(self, request, *more)

Connections.exchange = anew
serving.SHARES = {"serve killed": 100}
raise SystemExit(serving.main(["--faults", "12", "--seed", "1"]))
"""


def test_clients_carry_on_whatever_is_killed(postgres: PostgresServer, tmp_path: Path) -> None:
    ran = prove(tmp_path, "serving", "--faults", str(FAULTS), "--processes", "4", "--rate", "4", "--seed", "1")
    assert ran.code == 0, ran.said
    wrong = ("lost", "double", "falsely_stale", "limbo", "other")
    assert {name: ran.numbers[name] for name in wrong} == dict.fromkeys(wrong, 0), ran.said
    assert (ran.numbers["faults"], ran.numbers["kinds"]) == (FAULTS, FAULTS), ran.said
    assert ran.numbers["accepted"] > 0


@pytest.mark.nightly
def test_clients_that_name_each_try_anew_are_found_out(postgres: PostgresServer, tmp_path: Path) -> None:
    ran = run(tmp_path, "-c", FORGETFUL)
    assert ran.code == 1, ran.said
    assert ran.numbers["lost"] + ran.numbers["double"] + ran.numbers["other"] > 0, ran.said
