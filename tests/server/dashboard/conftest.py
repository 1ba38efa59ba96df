"""A real server, a real browser, and a tab that remembers all that went wrong in it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tenure.client import Client
from tests.server.dashboard.scene import busy_hour
from tests.server.dashboard.tab import ROOT, Tab
from tests.servers.browser import browsing
from tests.servers.fixtures import missing
from tests.servers.processes import Unavailable
from tests.servers.tenure import TenureServer

if TYPE_CHECKING:
    from playwright.sync_api import Browser

PROJECT = "shop"


class Kept:
    """One browser for the modules that follow one another: to start it takes more than a second of processor time."""

    def __init__(self) -> None:
        self._stack = ExitStack()
        self._browser: Browser | None = None

    def browser(self) -> Browser:
        if self._browser is None:
            self._browser = self._stack.enter_context(browsing())
        return self._browser

    def close(self) -> None:
        self._browser = None
        self._stack.close()


KEPT = Kept()


@pytest.fixture(scope="module")
def browser() -> Browser:
    try:
        return KEPT.browser()
    except Unavailable as why:
        missing(str(why))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> Iterator[None]:
    """Close it before other tests: while it runs, this thread has an event loop, and no test can have its own."""
    try:
        yield
    finally:
        is_used = nextitem is not None and ("browser" in nextitem.fixturenames or nextitem.path == item.path)  # type: ignore[attr-defined]
        if not is_used:
            KEPT.close()


@pytest.fixture(scope="session")
def artifacts(pytestconfig: pytest.Config) -> Path | None:
    """Where pictures are kept after the run, to be looked at: with --all, since drawing them takes long."""
    if not (pytestconfig.getoption("--all") or "TENURE_ARTIFACTS" in os.environ):
        return None
    folder = Path(os.environ.get("TENURE_ARTIFACTS") or ROOT / ".artifacts") / "dashboard"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@pytest.fixture(scope="session")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The busy project's store; each test brings tasks of its own."""
    path = tmp_path_factory.mktemp("dashboard") / "tenure.db"
    busy_hour(path).close()
    return path


@pytest.fixture(scope="session")
def server(store: Path) -> Iterator[TenureServer]:
    with TenureServer(str(store)) as running:
        yield running


@pytest.fixture
def client(store: Path) -> Iterator[Client]:
    """Somebody who works beside the server, on the same store."""
    with Client(str(store), PROJECT, agent="ann", session="ann-beside") as beside:
        yield beside


@pytest.fixture
def tabs(browser: Browser, server: TenureServer) -> Iterator[Callable[..., Tab]]:
    """Opens tabs, each with a memory of its own; at the end nothing may have gone wrong in any."""
    opened: list[Tab] = []

    def new(**settings: object) -> Tab:
        opened.append(Tab(browser, str(settings.pop("url", server.url)), **settings))
        return opened[-1]

    yield new
    for tab in opened:
        tab.close()
    assert [trouble for tab in opened for trouble in tab.troubles] == []


@pytest.fixture(scope="module")
def kept_tab(browser: Browser, server: TenureServer) -> Iterator[Tab]:
    """A new tab starts processes of the browser: it takes four times as long as to empty this one."""
    tab = Tab(browser, server.url)
    yield tab
    tab.close()


@pytest.fixture
def tab(kept_tab: Tab) -> Iterator[Tab]:
    """A tab without a memory; at the end nothing may have gone wrong in it."""
    yield kept_tab
    assert kept_tab.emptied() == []
