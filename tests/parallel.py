"""`-n N`: the tests in N processes, forked after the tests were collected once.

To import and collect thousands of tests takes longer than most folders take to run, so only one process does it. The
others are copies of it. Each takes one portion of tests after another and sends its reports back. See `Portions` for
what a portion is and who gets which.
"""

from __future__ import annotations

import atexit
import os
import pickle
import sys
import threading
import traceback
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import groupby
from multiprocessing.connection import Connection, Pipe, wait
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest

from tests.servers.processes import end_with_us

AT_MOST = 10  # tests of a portion, where a module may be divided
# Folders and modules with thousands of tests of some milliseconds each: they fill the time at the end.
QUICK = ("tests/core/", "tests/mutants/", "tests/engine/test_on_memory.py", "tests/engine/test_on_sqlite.py")


class Portion(NamedTuple):
    """Tests that one process runs in a row, by their numbers."""

    tests: tuple[int, ...]
    needs: frozenset[str]  # fixtures of the session: servers, mostly
    turn: int  # portions of a lower turn are given out first


class Portions:
    """What is still to run.

    Tests of a module that share a fixture stay together. These portions are given out first, because some take long;
    quick ones come last. Servers are started by as few processes as possible: a process goes on with
    tests for those that it has, then starts one that nobody has, then takes tests without any.
    """

    def __init__(self, items: Sequence[pytest.Item]) -> None:
        self._left = list(_divided(items))
        self._started: set[str] = set()  # servers, by any process

    def next_for(self, has: set[str], before: Portion | None = None) -> Portion | None:
        """The next portion for a process that has these servers, and has just run that portion."""
        if not self._left:
            return None
        shared = before.needs if before else frozenset()

        def rank(portion: Portion) -> tuple[int, int, int]:
            if portion.needs <= has:
                servers = 0 if portion.needs else 2
            else:
                servers = 3 if (portion.needs - has) & self._started else 1
            return portion.turn, servers, -len(portion.needs & shared)

        chosen = min(self._left, key=rank)
        self._left.remove(chosen)
        self._started |= chosen.needs
        has |= chosen.needs
        return chosen

    def give_back(self, portion: Portion) -> None:
        self._left.insert(0, portion)


class Worker:
    """One process, as the one that forked it sees it."""

    def __init__(self, process: int, line: Connection, name: str) -> None:
        self.process, self.line, self.name = process, line, name
        self.has: set[str] = set()
        self.portion: Portion | None = None
        self.left: list[int] = []  # tests that it was given and has not finished
        # For the terminal: a report with a node comes from one of several processes.
        self.node = SimpleNamespace(gateway=SimpleNamespace(id=name), _workerinfocache=f"[{name}]")


def add_option(parser: pytest.Parser) -> None:
    # pytest keeps one-letter options to itself in the public method; this one has been `-n` for everybody.
    parser.getgroup("processes")._addoption(
        "-n", "--numprocesses", type=int, default=0, metavar="N", help="run the tests in N processes"
    )


def run(session: pytest.Session, processes: int, on_start: Callable[[], None]) -> None:
    """Run the collected tests in that many processes, each of which calls `on_start`. Raises as pytest's loop does."""
    if threading.active_count() > 1:
        raise RuntimeError(f"only one thread may run before a fork: {threading.enumerate()}")
    config = session.config
    portions = Portions(session.items)
    base = config._tmp_path_factory.getbasetemp()
    workers: dict[Connection, Worker] = {}
    started = 0

    def start() -> None:
        nonlocal started
        worker = _forked(session, on_start, base / f"process-{started}", list(workers), f"p{started}")
        workers[worker.line] = worker
        started += 1

    try:
        for _ in range(min(processes, len(session.items))):
            start()
        while workers:
            for line in wait(list(workers)):
                assert isinstance(line, Connection)
                worker = workers[line]
                told = _received(line)
                if told is not None:
                    _heard(session, worker, portions, *told)
                    continue
                del workers[line]
                if _ended(session, worker, portions):
                    start()
            if session.shouldfail:
                raise session.Failed(session.shouldfail)
            if session.shouldstop:
                raise session.Interrupted(session.shouldstop)
    finally:
        for line in workers:
            line.close()  # it stops after its current test
        for worker in workers.values():
            os.waitpid(worker.process, 0)


def _received(line: Connection) -> tuple[int | None, list[Any]] | None:
    """None when the other process has ended."""
    try:
        told: tuple[int | None, list[Any]] = line.recv()
    except (EOFError, ConnectionResetError):
        return None
    return told


def _heard(session: pytest.Session, worker: Worker, portions: Portions, finished: int | None, told: list[Any]) -> None:
    """A test that has finished, with its reports and warnings; or, without one, that the process wants more."""
    if finished is None:
        worker.portion = portions.next_for(worker.has, worker.portion)
        tests = worker.portion.tests if worker.portion else ()
        worker.left += tests
        worker.line.send(tests)
        return
    hook = session.config.hook
    for data in told:
        if "warning_message" in data:
            hook.pytest_warning_recorded.call_historic(kwargs=data)
            continue
        report = hook.pytest_report_from_serializable(config=session.config, data=data)
        report.node = worker.node
        hook.pytest_runtest_logreport(report=report)
    worker.left.remove(finished)


def _ended(session: pytest.Session, worker: Worker, portions: Portions) -> bool:
    """Whether the process died during a test: another one must go on with the rest."""
    worker.line.close()
    code = os.waitstatus_to_exitcode(os.waitpid(worker.process, 0)[1])
    if not worker.left and not code:
        return False
    if not worker.left:
        raise RuntimeError(f"process {worker.name} of the tests ended with {code} after its last test")
    died, *rest = worker.left
    item = session.items[died]
    text = f"process {worker.name} ended with {code} during this test"
    report = pytest.TestReport(item.nodeid, item.location, {}, "failed", text, "call")
    session.config.hook.pytest_runtest_logreport(report=report)
    if rest:
        portions.give_back(Portion(tuple(rest), frozenset(), turn=0))
    return True


def _forked(
    session: pytest.Session, on_start: Callable[[], None], folder: Path, others: Iterable[Connection], name: str
) -> Worker:
    here, there = Pipe()
    capture: Any = session.config.pluginmanager.getplugin("capturemanager")
    with _without_capture(capture):  # each process captures into files of its own
        sys.stdout.flush()
        sys.stderr.flush()
        process = os.fork()
        if process:
            there.close()
            return Worker(process, here, name)
        code = 70
        try:
            for line in (here, *others):
                line.close()
            capture.start_global_capturing()
            end_with_us()()
            atexit._clear()
            on_start()
            code = _work(session, folder, there)
        except BaseException:  # noqa: BLE001 - it must not go on as a second first process
            traceback.print_exc(file=sys.__stderr__)
        finally:
            _save_coverage()
            atexit._run_exitfuncs()
            os._exit(code)


def _save_coverage() -> None:
    """The lines that this process reached, in a file of its own; the first process adds the files up."""
    package = sys.modules.get("coverage")
    coverage = package and package.Coverage.current()
    if coverage:
        coverage.stop()
        coverage.save()


@contextmanager
def _without_capture(capture: Any) -> Iterator[None]:
    capture.stop_global_capturing()
    yield
    capture.start_global_capturing()


def _work(session: pytest.Session, folder: Path, line: Connection) -> int:
    """In the new process: run portions until there are none."""
    config = session.config
    folder.mkdir(0o700)
    config._tmp_path_factory._basetemp = folder
    config.pluginmanager.unregister(name="terminalreporter")
    noted = _Noted(config)
    config.pluginmanager.register(noted, "noted")
    tests = _ask(line)
    try:
        while tests:
            for position, number in enumerate(tests):
                if position + 1 == len(tests):
                    # Asked before the last test ends: what it shares with the next one stays.
                    tests = (*tests, *_ask(line))
                following = session.items[tests[position + 1]] if position + 1 < len(tests) else None
                config.hook.pytest_runtest_protocol(item=session.items[number], nextitem=following)
                line.send((number, noted.taken()))
            tests = tests[position + 1 :]
    except (BrokenPipeError, EOFError, KeyboardInterrupt, pytest.exit.Exception):
        with suppress(Exception):
            session._setupstate.teardown_exact(None)
    return 0


def _ask(line: Connection) -> tuple[int, ...]:
    line.send((None, []))
    tests: tuple[int, ...] = line.recv()
    return tests


class _Noted:
    """A plugin of the new process: keeps reports and warnings for the process that prints them."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._kept: list[Any] = []

    def taken(self) -> list[Any]:
        kept, self._kept = self._kept, []
        return kept

    @pytest.hookimpl(trylast=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._kept.append(self._config.hook.pytest_report_to_serializable(config=self._config, report=report))

    def pytest_warning_recorded(
        self, warning_message: warnings.WarningMessage, when: str, nodeid: str, location: tuple[str, int, str] | None
    ) -> None:
        told = {"warning_message": warning_message, "when": when, "nodeid": nodeid, "location": location}
        try:
            pickle.dumps(told)
        except Exception:  # noqa: BLE001 - a warning may carry anything
            told["warning_message"] = warnings.WarningMessage(
                str(warning_message.message), UserWarning, warning_message.filename, warning_message.lineno
            )
        self._kept.append(told)


def _divided(items: Sequence[pytest.Item]) -> Iterator[Portion]:
    numbered = enumerate(items)
    for _, group in groupby(numbered, key=lambda pair: pair[1].path):
        module = list(group)
        scopes = [_scopes(item) for _, item in module]
        if any(shared for _, shared in scopes):
            size, turn = len(module), 0
        elif module[0][1].nodeid.startswith(QUICK):
            size, turn = AT_MOST * 4, 2
        else:
            size, turn = AT_MOST, 1
        for at in range(0, len(module), size):
            tests = tuple(number for number, _ in module[at : at + size])
            yield Portion(tests, frozenset().union(*(needs for needs, _ in scopes[at : at + size])), turn)


def _scopes(item: pytest.Item) -> tuple[frozenset[str], bool]:
    """The test's fixtures of the session, and whether it has one of its module, class or package."""
    info = getattr(item, "_fixtureinfo", None)
    if info is None:
        return frozenset(), False
    found = [(f"{defined[-1].baseid}:{name}", defined[-1].scope) for name, defined in info.name2fixturedefs.items()]
    # Fixtures of pytest and its plugins belong to no folder, and start nothing.
    needs = frozenset(name for name, scope in found if scope == "session" and not name.startswith(":"))
    return needs, any(scope in ("module", "class", "package") for _, scope in found)
