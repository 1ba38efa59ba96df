"""`./x bench http` in small: it runs, checks what it claims, and prints the figures that were asked for."""

import json

import pytest

from bench.http.measuring import main

pytestmark = pytest.mark.nightly  # of the benchmarks, not of the product

NAMES = {
    "http_single_claims", "http_single_p99_ms", "http_batch_claims", "http_batch_p99_ms", "http_waiting",
    "http_waiting_mb", "http_waiting_cpu", "http_pickup_p50_ms", "http_pickup_p99_ms",
}  # fmt: skip


def test_it_prints_one_object_a_line_with_every_figure(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--json", "--store", "sqlite", "--rounds", "1", "--seconds", "0.2", "--waiting", "20", "--tasks", "5"]
    assert main(words) == 0
    figures = {figure["name"]: figure for figure in map(json.loads, capsys.readouterr().out.splitlines())}
    assert set(figures) == NAMES
    assert all(figure["value"] > 0 for name, figure in figures.items() if name != "http_waiting_cpu")
    assert figures["http_single_claims"]["baseline"] > 0
