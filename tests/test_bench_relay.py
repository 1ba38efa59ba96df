"""The bench of relays runs real relays, to real servers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.chaos.running import run


def figures(folder: Path, *words: str) -> dict[str, dict[str, Any]]:
    """In a process of its own, since it forks."""
    ran = run(folder, "-m", "bench", "relay", *words, "--json")
    assert ran.code == 0, ran.said
    return {figure["name"]: figure for figure in map(json.loads, ran.said.splitlines())}


def test_brokers_have_a_rate_from_the_log_and_one_of_the_sink_alone(tmp_path: Path) -> None:
    found = figures(tmp_path, "nats", "redis", "--events", "900", "--rounds", "1")
    assert len(found) == 10
    assert all(figure["value"] > 0 for figure in found.values())
    assert found["nats: events relayed from the log"]["goal"] == "≥ 8000"


def test_webhooks_have_a_rate_and_the_lag_a_percentile(tmp_path: Path) -> None:
    found = figures(tmp_path, "webhooks", "lag", "--events", "1200", "--rounds", "1", "--seconds", "2")
    assert found["webhooks: events delivered from the log"]["goal"] == "≥ 500"
    assert found["lag: p99"]["goal"] == "< 1"


@pytest.mark.nightly
def test_claims_are_measured_beside_a_relay_and_while_a_sink_hangs(tmp_path: Path) -> None:
    found = figures(tmp_path, "claims", "hang", "--events", "800", "--rounds", "1", "--seconds", "1")
    assert found["claims: processor time of a cycle beside a relay"]["goal"] == "≤ 1.05"
    assert found["hang: it caught up afterwards (1: yes)"]["met"] is True
    assert found["hang: the term was kept (1: yes)"]["met"] is True
