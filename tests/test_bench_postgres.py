"""The bench of PostgreSQL runs in small, says what it promises to say, and notices a wrong answer. Never how fast."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bench.ground import WrongAnswer
from bench.peers import install
from bench.postgres import arrivals, measuring, pickups, profiling, singles
from bench.postgres.drains import LANES, lanes
from bench.postgres.goals import GOALS
from bench.postgres.ground import Ground, claim_next
from bench.postgres.scale import FULL, QUICK, Scale
from bench.report import Figure, show
from tenure.core.commands import NewTask
from tests.servers.fixtures import running
from tests.servers.postgres import PostgresServer

pytestmark = pytest.mark.nightly  # of the benchmarks, not of the product

TINY = Scale(
    rounds=1, seconds=0.02, fast_seconds=0.001, threads=2, batch=20, projects=2, jobs=40, looks=4, many=60, turns=2,
    each=2, tasks=2500, generations=5, idle=0.1,
)  # fmt: skip
OURS = {
    "cycle_per_s", "cycle_vs_raw", "claims_many_vs_raw", "claims_one_vs_raw", "renewals_vs_raw", "submits_vs_raw",
    "claim_p99_ms_at_10k", "claim_p99_ms_at_50k", "submit_p99_ms_at_10k", "pickup_p50_ms", "pickup_p99_ms",
    "claim_1m_vs_1k", "claim_1m_finished_vs_none", "claim_nothing_matches_ms", "single_claim_vs_bare",
    "single_submit_vs_bare", "history_1000_ms", "history_1000_ms_sqlite", "list_state_ms", "list_agent_ms",
    "list_tag_ms", "list_dag_ms", "list_state_ms_sqlite", "list_agent_ms_sqlite", "list_tag_ms_sqlite",
    "list_dag_ms_sqlite", "created_per_s", "created_cost_vs_raw", "claims_beside_idle_reader",
}  # fmt: skip
RIVALS = {"cycle_vs_pgqueuer"}


@pytest.fixture(scope="module")
def ground() -> Iterator[Ground]:
    server = PostgresServer(settings=profiling.SETTINGS)
    with running(server):
        yield Ground(server)


def test_a_run_prints_one_object_a_line_with_every_name(
    ground: Ground, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pickups, "IDLE", 0.05)
    python = install.PYTHON if install.is_installed() else None
    run = measuring.Run(ground, TINY, tmp_path, python)
    show([figure for part in measuring.PARTS for figure in getattr(run, part)()], as_json=True)
    found: dict[str, Any] = {}
    for line in capsys.readouterr().out.splitlines():
        figure = json.loads(line)
        assert {"name", "value", "unit", "baseline", "ratio", "per_s", "goal", "met"} <= figure.keys()
        assert figure["value"] > 0
        assert figure["name"] not in found
        found[figure["name"]] = figure
    assert found.keys() >= OURS
    assert ("cycle_vs_pgqueuer" in found) == (python is not None)
    assert {name for name, figure in found.items() if figure["goal"]} <= GOALS.keys() <= found.keys() | RIVALS
    for name in ("cycle_vs_raw", "claims_many_vs_raw", "submits_vs_raw", "single_claim_vs_bare"):
        assert found[name]["value"] == found[name]["ratio"]
        assert found[name]["per_s"] > 0
        assert found[name]["baseline"] > 0
    schemas = "SELECT count(*) FROM pg_namespace WHERE nspname LIKE 'bench%'"
    with ground.connect() as link:
        assert link.execute(schemas).fetchone() == (0,), "what was made is removed"


def test_without_the_peers_their_lines_are_left_out_and_it_is_told(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def missing() -> Path:
        raise install.NotInstalled("no uv")

    monkeypatch.setattr(install, "install", missing)
    assert measuring.peers_python() is None
    assert "PgQueuer is not measured, and its lines are left out: no uv" in capsys.readouterr().err


@pytest.mark.parametrize(("verb", "is_single"), [("claim", False), ("renew", False), ("submit", True)])
def test_a_profile_names_functions_and_statements(
    verb: str, is_single: bool, ground: Ground, capsys: pytest.CaptureFixture[str]
) -> None:
    assert profiling.profile(ground, TINY, verb, is_single=is_single) == 0
    told = capsys.readouterr().out
    assert told.startswith(f"{verb}, {1 if is_single else 20} a transaction")
    assert "tenure/stores/postgres/" in told, "our functions"
    assert '"bench_' in told, "the server's statements"


# --- what is measured is right ---


def test_copied_tasks_are_as_good_as_those_that_the_engine_made(ground: Ground) -> None:
    board = ground.board()
    board.begin_with(*lanes())
    finished = board.copier_of(NewTask(title="Done long ago", track="Z"), finished=True)
    board.fill(3)
    finished.copy(7)
    finished.close()
    crew = board.register("bench", 8, [("python", "sql", "web", "design", "ops", "gpu")])
    grants = board.claim([claim_next("bench", agent, 10) for agent in crew])
    board.submit("bench", grants)
    assert len(grants) == 4 * LANES
    assert len(set(board.granted)) == 4 * LANES + 1, "and the model of the finished ones"
    assert board.engine.store.check() == []
    assert board.engine.verify(with_replay=False) == []
    board.verify(own_only=True)
    board.close()


def test_a_lost_result_ends_the_run(ground: Ground) -> None:
    board = ground.board()
    board.fill(5)
    grants = board.claim([claim_next("bench", "agent", 3)])
    board.submit("bench", grants[:2])
    board.verify()
    board.accepted.append(board.granted[2])
    with pytest.raises(WrongAnswer, match="3 granted, 3 accepted, but the store has 2 results of 2 tasks"):
        board.verify()
    board.close()


def test_a_double_claim_ends_the_run(ground: Ground) -> None:
    board = ground.board()
    board.fill(5)
    board.claim([claim_next("bench", "agent", 3)])
    board.granted.append(board.granted[0])
    with pytest.raises(WrongAnswer, match="one of them twice"):
        board.verify()
    board.close()


def test_the_bare_statements_write_what_ours_write(ground: Ground) -> None:
    bare = singles.Bare(ground, 10)
    board = bare.board
    bare.cycle(3)
    bare.verify()
    with board.engine.store.begin("local", write=False) as tx:
        events = [
            (e.kind, e.task) for e in tx.events({"project": "bench"}) if e.kind in ("task.claimed", "task.completed")
        ]
    assert len(events) == len(set(events)) == 2 * (3 + len(board.accepted))
    assert board.engine.store.check() == []
    assert board.engine.verify(with_replay=False) == []
    bare.close()


def test_a_run_that_falls_behind_is_cut_off_and_says_at_least_how_late(
    ground: Ground, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(arrivals, "TOO_LATE", 0.0)
    monkeypatch.setattr(arrivals, "MOST_WAITING", 1)
    claimed, submitted = arrivals.measure(ground, TINY, rate=100_000.0, seconds=0.001, with_submits=True)
    assert submitted is not None
    assert 0 < claimed.unsent < 100
    assert 0 < claimed.p50 <= claimed.p99


def test_goals_are_of_ratios_where_there_is_one_and_of_values_elsewhere() -> None:
    assert Figure("a", 5.0, "ms", goal="< 10").is_met
    assert Figure("a", 10.0, "ms", goal="< 10").is_met is False
    assert Figure("a", 9000.0, "1/s", 1.0, 0.5, "≥ 0.33").is_met
    assert Figure("a", 9000.0, "1/s").is_met is None


def test_a_quick_run_has_every_part_in_small() -> None:
    assert all(quick <= full for quick, full in zip(QUICK, FULL, strict=True))
    given = measuring.arguments_of(["--quick", "--rounds", "2", "--only", "singles,sizes"])
    assert given.scale == QUICK._replace(rounds=2)
    assert given.parts == ("singles", "sizes")
    with pytest.raises(SystemExit):
        measuring.arguments_of(["--only", "nothing-of-this-name"])
