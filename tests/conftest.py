"""For all tests: which of them run and in which order, assertion messages, Hypothesis profiles."""

from __future__ import annotations

import atexit
import gc
import os
import shutil
import signal
import tempfile
from pathlib import Path

import pytest
from hypothesis import settings

from tests import parallel
from tests.order import shuffled
from tests.sampling import EXAMPLES, for_the_night
from tests.servers.ahead import install_ahead
from tests.servers.fixtures import bwrap, git, mariadb, pgbouncer, postgres, redis, restricted, valkey
from tests.servers.forking import is_possible
from tests.servers.processes import fast_folder
from tests.servers.tenure import FORKED, TenureServer

__all__ = ["bwrap", "git", "mariadb", "pgbouncer", "postgres", "redis", "restricted", "valkey"]

ROOM = 4 << 30  # bytes; a run needs far less, because folders of passed tests are removed


def _own_state() -> None:
    """Tests must not touch the user's state: each process has its own, which is removed at the end."""
    os.environ["TENURE_STATE"] = tempfile.mkdtemp(prefix="tenure-state-")
    atexit.register(shutil.rmtree, os.environ["TENURE_STATE"], ignore_errors=True)


_own_state()


def _hear_signals() -> None:
    """A background job of a shell ignores these two, and so would whatever a test ends with them."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGQUIT, signal.SIG_DFL)


_hear_signals()

TenureServer.is_forked = is_possible
if is_possible:
    os.environ[FORKED] = "1"

# Failed asserts of the shipped suites show what they compared, as in test files.
pytest.register_assert_rewrite("tenure.testing.engine", "tenure.testing.suites")

# derandomize: a failing test fails on every run, for everybody. The reliability harnesses use new seeds.
settings.register_profile("default", max_examples=EXAMPLES, derandomize=True, deadline=None)
settings.register_profile("nightly", settings.get_profile("default"), max_examples=200, print_blob=True)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--all", action="store_true", help="every test with every parameter, and a longer search")
    parallel.add_option(parser)
    parser.addoption("--shuffle", metavar="SEED", help="run modules, and the tests in each, in another order")


def pytest_configure(config: pytest.Config) -> None:
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(fast_folder(ROOM)))
    if not config.getoption("--hypothesis-profile"):
        settings.load_profile("nightly" if config.getoption("--all") else "default")


def pytest_sessionstart(session: pytest.Session) -> None:
    config = session.config
    if _runs_everything(config) and not config.option.collectonly:
        install_ahead()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what only `--all` runs. A run of named files, folders or tests leaves nothing out."""
    if config.getoption("--shuffle"):
        items[:] = shuffled(items, config.getoption("--shuffle"))
    if not _runs_everything(config) or config.getoption("--all"):
        return
    left_out = for_the_night(items)
    config.hook.pytest_deselected(items=[item for item in items if item.nodeid in left_out])
    items[:] = [item for item in items if item.nodeid not in left_out]


def pytest_collection_finish() -> None:
    gc.freeze()  # a million objects of the collected tests, which each collection of garbage would look at


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> bool | None:
    options = session.config.option
    if not options.numprocesses or options.collectonly or session.testsfailed:
        return None
    parallel.run(session, options.numprocesses, _own_state)
    return True


def _runs_everything(config: pytest.Config) -> bool:
    is_narrowed = [Path(word).resolve() for word in config.args] != [Path(__file__).parent]
    return not (is_narrowed or config.option.keyword or config.option.markexpr)
