"""The measurement of the batcher runs and says what it promises to say. Never how fast."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bench import gathering
from bench.ground import WrongAnswer

pytestmark = pytest.mark.nightly  # of the benchmarks, not of the product

SMALL = ["--threads", "4", "--each", "2", "--rounds", "2", "--tasks", "10", "--json"]


def test_the_gathering_bench_prints_one_object_a_line(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert gathering.main([*SMALL, "--folder", str(tmp_path)]) == 0
    figures = {f["name"]: f for f in map(json.loads, capsys.readouterr().out.splitlines())}
    for verb in ("claims", "submits"):
        for who in ("4 threads", "1 thread"):
            assert figures[f"{verb}, {who}, gathered"]["ratio"] > 0
        assert figures[f"{verb}, 10 asyncio tasks, gathered"]["value"] > 0
    assert not list(tmp_path.iterdir()), "what was made is removed"


def test_a_lost_result_ends_the_gathering_bench(tmp_path: Path) -> None:
    board = gathering.Board(tmp_path)
    board.round(2, 2, True)
    board.done.append(board.done[0])
    with pytest.raises(WrongAnswer, match="5 claims, 4 tasks, 4 results"):
        board.verify()
