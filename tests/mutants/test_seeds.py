"""A slice of `./x mutants`: every seed fits the source and names tests that exist; a planted bug is caught."""

from __future__ import annotations

import json
import signal
import subprocess
from collections import Counter
from pathlib import Path

import pytest

from tests.mutants.__main__ import Progress, written
from tests.mutants.mutant import SUITES, Mutant, edited, named_tests, on
from tests.mutants.naming import trouble_with
from tests.mutants.seeds import MUTANTS
from tests.mutants.trying import Tried, end_all, in_tree, marked, tried

FENCE = "test_one_byte_of_the_nonce_is_enough_to_be_refused[submit]"


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_every_seed_fits_the_source_and_names_tests_that_exist(mutant: Mutant) -> None:
    assert edited(mutant)
    assert mutant.tests, f"{mutant.name}: name the test that must catch it (caught_by)"
    nodes = [node for nodes in named_tests(mutant, [*SUITES]).values() for node in nodes]
    assert [f"{node}: {why}" for node in nodes if (why := trouble_with(node))] == []


def test_no_two_seeds_have_the_same_name() -> None:
    assert [name for name, number in Counter(mutant.name for mutant in MUTANTS).items() if number > 1] == []


@pytest.mark.parametrize(
    ("node", "why"),
    [
        ("tests/engine/test_gone.py::test_a", "no file"),
        ("tests/engine/test_on_memory.py", "a whole file"),
        ("tests/mutants/test_seeds.py::test_that_was_renamed", "no test"),
        ("tests/engine/test_on_memory.py::TestGone::test_a", "no test"),
        (f"{SUITES['memory']}::test_that_was_renamed", "no test"),
        (f"{SUITES['memory']}::test_each_way_to_refuse[gone]", "no test"),
        ("tests/mutants/test_seeds.py::test_a_case_is_looked_up[three]", "no case"),
    ],
)
def test_a_test_that_was_renamed_is_reported(node: str, why: str) -> None:
    assert why in (trouble_with(node) or "")


@pytest.mark.parametrize("case", ["one", "two"])
def test_a_case_is_looked_up(case: str) -> None:
    assert trouble_with(f"tests/mutants/test_seeds.py::test_a_case_is_looked_up[{case}]") is None


def test_a_planted_bug_is_caught_by_the_named_test_and_the_control_is_not() -> None:
    (no_nonce_check,) = [mutant for mutant in MUTANTS if mutant.name == "no nonce check"]
    (node,) = on("memory", FENCE)
    result = tried(no_nonce_check._replace(caught_by=(node,)), ["memory"])
    assert (result.caught, result.elsewhere) == ({"tests/engine/test_on_memory.py": node}, [])
    assert in_tree(None, node) == []


def test_a_bug_that_only_another_test_of_the_file_catches_is_reported() -> None:
    (mutant,) = [mutant for mutant in MUTANTS if mutant.name == "json: the last of two keys wins"]
    file = "tests/core/test_decoding.py"
    result = tried(mutant._replace(caught_by=f"{file}::test_what_is_written_once_passes"), ["memory"])
    assert result.is_caught
    assert result.elsewhere == [file]
    assert "test_a_key_that_stands_twice" in (result.caught[file] or "")


def test_the_result_of_a_run_counts_by_store_and_fails_with_one_that_was_missed(tmp_path: Path) -> None:
    memory, sqlite = (SUITES[store].partition("::")[0] for store in ("memory", "sqlite"))
    both = Tried("both", {memory: "a", sqlite: "a"}, [sqlite], 1.0)
    one = Tried("one", {memory: "a", sqlite: None}, [], 1.0)
    found = {}
    for tries in ([both], [both, one]):
        written(Progress("abc", ["memory", "sqlite"], 3.2, {t.name: t for t in tries}), 2, tmp_path / "mutants.json")
        found[len(tries)] = json.loads((tmp_path / "mutants.json").read_text())
    assert [found[number]["verdict"] for number in (1, 2)] == ["held", "failed"]
    figures = found[2]["figures"]
    assert (figures["seeds"], figures["caught"], figures["caught_by_another_test_than_named"]) == (2, 1, 1)
    assert (figures["on_memory"], figures["on_sqlite"], figures["on_postgres"]) == (2, 1, 0)


def test_what_the_tests_of_a_mutant_leave_behind_is_ended() -> None:
    """Whatever has become of its parent and its environment; what other runs have started goes on."""

    def started() -> tuple[subprocess.Popen[str], tuple[int, int], int]:
        words = ["sh", "-c", "read go; env -i setsid sleep 60 & echo $!; read go"]
        run = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        mark = marked(run.pid)
        assert run.stdin is not None
        assert run.stdout is not None
        run.stdin.write("\n")
        run.stdin.flush()
        return run, mark, int(run.stdout.readline())

    (first, mark, left), (second, other_mark, other) = started(), started()
    with first, second:
        first.kill()
        first.wait()
        end_all(mark)
        assert [is_alive(left), is_alive(other), second.poll()] == [False, True, None]
        end_all(other_mark)
        assert (is_alive(other), second.wait()) == (False, -signal.SIGKILL)


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0] not in "ZX"
    except OSError:
        return False
