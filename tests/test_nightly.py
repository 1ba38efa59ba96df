"""What a run of everything leaves out, the night runs."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from tests import nightly
from tests.reliability.__main__ import proofs
from tests.sampling import for_the_night

PARTS = {"faults_stage", "moves_worker", "powerloss_work", "run_agent"}  # of harnesses, started by them


def item(id: str, *marks: str, **settings: Any) -> Any:
    given = {name: SimpleNamespace(kwargs=settings) for name in marks}
    return SimpleNamespace(nodeid=id, get_closest_marker=given.get)


def test_every_harness_runs_at_night() -> None:
    assert {name.partition(" ")[0] for name in nightly.HARNESSES} == proofs().keys() - PARTS


def test_one_parameter_set_of_a_sampled_test_is_run_and_always_the_same() -> None:
    ids = [f"tests/a.py::TestOn{store}::test_b[{n}]" for store in ("Sqlite", "Postgres") for n in range(9)]
    left_out = for_the_night([item(id, "sampled") for id in ids])
    run = [id for id in ids if id not in left_out]
    assert [id.partition("[")[0] for id in run] == [
        "tests/a.py::TestOnSqlite::test_b",
        "tests/a.py::TestOnPostgres::test_b",
    ]
    assert left_out == for_the_night([item(id, "sampled") for id in reversed(ids)])


def test_what_has_no_mark_is_run_and_what_is_for_the_night_is_not() -> None:
    assert for_the_night([item("a"), item("b[1]"), item("b[2]"), item("c", "nightly")]) == {"c"}
    assert for_the_night([item("d[1]", "sampled", "nightly"), item("d[2]", "sampled")]) == {"d[1]"}


def test_of_some_tests_one_in_two_is_run_with_one_parameter_set() -> None:
    ids = [f"a.py::test_{test}[{n}]" for test in range(200) for n in range(3)]
    left_out = for_the_night([item(id, "sampled", one_in=2) for id in ids])
    run = [id.partition("[")[0] for id in ids if id not in left_out]
    assert len(run) == len(set(run))
    assert 80 < len(run) < 120


def test_of_the_places_of_a_test_one_is_taken_for_each_of_its_other_parameters() -> None:
    stores, verbs = ("memory", "sqlite", "http"), ("pause", "cancel")
    ids = [f"a.py::test_b[{store}-{verb}]" for store in stores for verb in verbs] + ["a.py::test_c[memory]"]
    left_out = for_the_night([item(id, "sampled", of=stores) for id in ids])
    run = [id for id in ids if id not in left_out]
    assert sorted(id.rpartition("-")[2] for id in run if "test_b" in id) == ["cancel]", "pause]"]
    assert "a.py::test_c[memory]" in run
