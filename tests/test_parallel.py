"""`-n N`: every test runs once in some process, and its report is the one that a single process would print."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from tests.parallel import AT_MOST, Portions

ROOT = Path(__file__).resolve().parents[1]
CONFTEST = """
import os, pytest
from tests import parallel

def pytest_addoption(parser):
    parallel.add_option(parser)

@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session):
    parallel.run(session, session.config.option.numprocesses, lambda: os.environ.update(STARTED="yes"))
    return True
"""


def ran(folder: Path, tests: str, *options: str) -> tuple[int, str]:
    (folder / "conftest.py").write_text(CONFTEST)
    (folder / "test_it.py").write_text(tests)
    command = [sys.executable, "-m", "pytest", "-p", "no:schemathesis", "-p", "no:cacheprovider", "-n", "3", *options]
    done = subprocess.run(
        command, cwd=folder, env={"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin", "TMPDIR": str(folder)},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    return done.returncode, done.stdout + done.stderr


def test_every_test_runs_once_and_reports_what_it_printed_skipped_and_warned(tmp_path: Path) -> None:
    code, said = ran(
        tmp_path,
        """
import os, pathlib, warnings, pytest

@pytest.mark.parametrize("n", range(130))
def test_it(n, tmp_path):
    assert os.environ["STARTED"] == "yes" and not list(tmp_path.iterdir())
    with pathlib.Path("ran").open("a") as ran:
        ran.write(f"{n} {os.getpid()}\\n")
    print("printed by", n)
    if n == 7:
        pytest.skip("not today")
    if n == 8:
        warnings.warn("beware")
    assert n != 9
""",
    )
    lines = [line.split() for line in (tmp_path / "ran").read_text().splitlines()]
    assert sorted(int(n) for n, _ in lines) == list(range(130))
    assert len({process for _, process in lines}) > 1
    assert code == 1
    assert "1 failed, 128 passed, 1 skipped, 1 warning" in said
    assert "assert 9 != 9" in said
    assert "printed by 9" in said
    assert "UserWarning: beware" in said
    assert "printed by 10\n" not in said


def test_a_process_that_dies_fails_its_test_and_another_goes_on(tmp_path: Path) -> None:
    code, said = ran(
        tmp_path,
        """
import os, pytest

@pytest.mark.parametrize("n", range(100))
def test_it(n):
    if n in (3, 60):
        os._exit(5)
""",
    )
    assert code == 1
    assert "2 failed, 98 passed" in said
    assert "ended with 5 during this test" in said


def test_the_first_failure_ends_the_run_where_that_is_asked_for(tmp_path: Path) -> None:
    code, said = ran(
        tmp_path,
        """
import atexit, pathlib, pytest

@pytest.fixture(scope="session")
def server():
    yield
    pathlib.Path("stopped").touch()

@pytest.mark.parametrize("n", range(200))
def test_it(n, server):
    if n == 0:
        atexit.register(pathlib.Path("exited").touch)
    assert n
""",
        "-x",
    )
    assert code == 1
    assert "1 failed" in said
    assert "200 passed" not in said
    assert (tmp_path / "stopped").exists()
    assert (tmp_path / "exited").exists()


def items(module: str, tests: int, **fixtures: str) -> list[Any]:
    """Collected tests, as far as they are asked: their module, and their fixtures with the scopes."""
    found = {name: (SimpleNamespace(scope=scope, baseid="tests"),) for name, scope in fixtures.items()}
    info = SimpleNamespace(name2fixturedefs=found)
    return [SimpleNamespace(path=module, nodeid=f"{module}::test_{n}", _fixtureinfo=info) for n in range(tests)]


def test_tests_that_share_a_fixture_stay_together_and_go_first() -> None:
    quick, lone, shared = items("tests/core/a", 3), items("b", 2 * AT_MOST + 1), items("c", AT_MOST + 5, tab="module")
    portions = Portions([*quick, *lone, *shared])
    taken = list(iter(lambda: portions.next_for(set()), None))
    assert [len(portion.tests) for portion in taken] == [AT_MOST + 5, AT_MOST, AT_MOST, 1, 3]
    numbers = [number for portion in taken for number in portion.tests]
    assert sorted(numbers) == list(range(3 * AT_MOST + 9))


def test_servers_are_started_by_as_few_processes_as_possible() -> None:
    modules = {
        "nothing": (),
        "nats": ("nats",),
        "postgres": ("postgres",),
        "both": ("nats", "postgres"),
        "more": ("nats",),
    }
    tests = [test for name, needs in modules.items() for test in items(name, 1, **dict.fromkeys(needs, "session"))]
    portions = Portions(tests)
    one, other = set[str](), set[str]()

    def taken(by: set[str]) -> str | None:
        portion = portions.next_for(by)
        return portion and tests[portion.tests[0]].path

    assert taken(one) == "nats", "one that nobody has started"
    assert taken(other) == "postgres", "another one"
    assert taken(one) == "more", "it has that server"
    assert taken(one) == "nothing", "rather than a second PostgreSQL"
    assert taken(one) == "both", "rather than to stand idle"
    assert taken(other) is None
