"""What people see, captured: the how-to page about watching shows what the code draws, made at a clock that stands."""

from __future__ import annotations

import io
import os
import re
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from tenure.cli import status, task_reads
from tenure.cli.demo.demo import NAMES
from tenure.cli.demo.stage import graph
from tenure.cli.doctor import findings
from tenure.cli.doctor.doctor import Patient
from tenure.cli.doctor.team_checks import work
from tenure.cli.watch.data import found, read, read_detail
from tenure.cli.watch.state import View
from tenure.cli.watch.view import Shown, frame
from tenure.testing.clock import FakeClock
from tests.cli.shop import Shop, busy_shop

TEMPLATE = Path(__file__).with_name("watch-the-work.md")
WIDTH, HEIGHT = 80, 24


@contextmanager
def _as_anywhere() -> Iterator[None]:
    """UTC, no colour and no terminal's width, whoever runs this and where."""
    before = {name: os.environ.get(name) for name in ("TZ", "NO_COLOR")}
    os.environ.update(TZ="UTC", NO_COLOR="1")
    time.tzset()
    try:
        with redirect_stdout(io.StringIO()):
            yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
        time.tzset()


def page() -> str:
    """The page, with each `[capture: NAME]` replaced by what is on the screen then."""
    with _as_anywhere(), tempfile.TemporaryDirectory() as folder:
        shop = busy_shop(Path(folder) / "tenure.db", FakeClock())
        try:
            return re.sub(r"\[capture: (\w+)\]", lambda name: CAPTURES[name[1]](shop), TEMPLATE.read_text())
        finally:
            shop.close()


def _status(shop: Shop) -> str:
    return status.drawn(status.glance(shop.mia), is_wide=True)


def _screen(shop: Shop, *keys: str) -> str:
    """The live view after these keys."""
    view = View()
    data = read(shop.mia, view.states)

    def listed() -> list[str]:
        names = [task["key"] for task in found(data.tasks, view.search)]
        view.keep_in(names)
        return names

    for key in keys:
        view.press(key, listed())
    listed()
    detail = read_detail(shop.mia, str(view.selected)) if view.is_detailed else None
    drawn = frame(Shown(view, data, found(data.tasks, view.search), detail, "", WIDTH, HEIGHT))
    return _plain(drawn)


def _plain(text: str) -> str:
    lines = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", text).replace("\r", "").split("\n")
    return "\n".join(line.rstrip() for line in lines)


def _history(shop: Shop) -> str:
    claims = shop.mia.history("C-001")
    return f"{task_reads.headline(shop.mia.show('C-001'), len(claims))}\n\n{task_reads.drawn(claims, shop.clock.now)}"


def _doctor(shop: Shop) -> str:
    run = cast(Any, SimpleNamespace(project=shop.project))
    return findings.drawn(work(Patient(run, cast(Any, None), shop.mia)))


def _demo(shop: Shop) -> str:
    tasks = {NAMES[task["title"]]: task for task in shop.mia.tasks() if task["title"] in NAMES}
    return "\n".join(graph(tasks, shop.clock.now, None))


CAPTURES: dict[str, Callable[[Shop], str]] = {
    "status": _status,
    "watch": _screen,
    "detail": lambda shop: _screen(shop, "enter"),
    "history": _history,
    "doctor": _doctor,
    "demo": _demo,
}
