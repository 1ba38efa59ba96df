"""The bench of sinks sends real pages to real servers."""

import json

import pytest

from bench import relay


def test_the_bench_of_sinks_prints_a_rate_and_the_time_of_an_event(capsys: pytest.CaptureFixture[str]) -> None:
    assert relay.main(["nats", "redis", "--events", "1000", "--rounds", "1", "--json"]) == 0
    figures = {figure["name"]: figure for figure in map(json.loads, capsys.readouterr().out.splitlines())}
    assert len(figures) == 6
    assert all(figure["value"] > 0 for figure in figures.values())
    assert figures["nats: events sent"]["goal"] == "≥ 8000"
