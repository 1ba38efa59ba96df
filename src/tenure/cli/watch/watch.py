"""`watch`: a full-screen live view of a project. Without a terminal it prints one snapshot and ends."""

from __future__ import annotations

import signal
import threading
import time
from argparse import ArgumentTypeError, Namespace
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from tenure.cli.main import Answer, Run, arg, options
from tenure.cli.option_kinds import seconds
from tenure.cli.status import drawn
from tenure.cli.text_format import clock, plain
from tenure.cli.watch.data import Detail, Snapshot, found, read, read_detail
from tenure.cli.watch.state import View
from tenure.client.wire import plain as wire
from tenure.core import limits
from tenure.core.errors import TenureError

if TYPE_CHECKING:
    from tenure.cli.watch.fullscreen import Fullscreen
    from tenure.client import Client

SHORTEST = limits.WATCH_REFRESH_MIN
SLICE = 5.0  # seconds of one wait of the waiting thread; it checks much more often whether to end
AWAY = 0.5  # between tries while the store is unavailable
LEAVING = 0.5  # how long to wait for a running request
LAST_EVENTS = 15
TASKS_SHOWN = 20


def refresh(text: str) -> float:
    given = seconds(text)
    if not SHORTEST <= given <= 3600:
        raise ArgumentTypeError(f"must be from {SHORTEST} to 3600 seconds (got {text})")
    return given


@options(
    arg("-r", "--refresh", type=refresh, default=1.0, metavar="SECONDS",
        help="refresh after this time without events (1)"),
)  # fmt: skip
def watch(run: Run, given: Namespace) -> Answer | int:
    """A full-screen live view: agents, tracks, tasks, events. `?` shows its keys, `q` leaves.

    Without a terminal, or with --json, it prints one snapshot and ends.
    """
    from tenure.cli.watch import fullscreen

    view = View()
    if run.is_json or not fullscreen.is_possible():
        data = read(run.client, view.states)
        value = {**wire(data.look.status), "open_tasks": wire(data.tasks), "events": wire(data.events)}
        return Answer(value, lambda: snapshot(data))
    data = read(run.client, view.states)  # an error is printed before the screen is taken
    with fullscreen.Fullscreen() as screen, suppress(KeyboardInterrupt):
        _Live(run.client, screen, view, data, given.refresh).run()
    if screen.ended_by == signal.SIGINT:
        return 130
    if screen.ended_by is not None:
        run.close()
        return fullscreen.end_by_signal(screen.ended_by)
    return 0


def snapshot(data: Snapshot) -> str:
    from tenure.cli.task_reads import listed

    parts = [drawn(data.look, is_wide=False)]
    if data.tasks:
        more = len(data.tasks) - TASKS_SHOWN
        parts += [listed(data.tasks[:TASKS_SHOWN]) + (f"\n… and {more} more" if more > 0 else "")]
    if data.events:
        parts += ["\n".join(f"{clock(event['time'])}  {event['text']}" for event in data.events[-LAST_EVENTS:])]
    return "\n\n".join(parts)


class _Live:
    """The loop: read when something happened or the time is over, press keys, draw."""

    def __init__(self, client: Client, screen: Fullscreen, view: View, data: Snapshot, refresh: float) -> None:
        self.client, self.screen, self.view, self.data, self.refresh = client, screen, view, data, refresh
        self.detail: Detail | None = None
        self.trouble = ""
        self.took = 0.0
        self.read_at = time.monotonic()
        self.has_news = True

    def run(self) -> None:
        from tenure.cli.watch.view import Shown, frame

        with _Bell(self.client, self.screen) as bell:
            while not self.view.is_over and self.screen.ended_by is None:
                if self._is_due():
                    self._read(bell)
                tasks = self._listed()
                self._follow()
                detail = self.detail if self.view.is_detailed else None
                self.screen.show(frame(Shown(self.view, self.data, tasks, detail, self.trouble, *self.screen.size)))
                pressed, is_woken = self.screen.wait(self._patience())
                self.has_news |= is_woken
                if pressed:
                    self.trouble = ""
                for key in pressed:  # several may come at once, and each counts from where the last one led
                    self.view.press(key, [task["key"] for task in self._listed()])

    def _listed(self) -> Sequence[Mapping[str, Any]]:
        """The tasks that the search leaves; the selection is one of them."""
        tasks = found(self.data.tasks, self.view.search)
        self.view.keep_in([task["key"] for task in tasks])
        return tasks

    def _patience(self) -> float:
        """Seconds until the next look: soon where there is news, but never busier than a quarter of the time."""
        if self.view.is_paused:
            return 3600.0
        gap = max(SHORTEST, 3 * self.took) if self.has_news else max(self.refresh, 3 * self.took)
        return self.read_at + gap - time.monotonic()

    def _is_due(self) -> bool:
        return self.view.is_stale or (not self.view.is_paused and self._patience() <= 0)

    def _read(self, bell: _Bell) -> None:
        began = time.monotonic()
        self.view.is_stale, self.has_news = False, False
        try:
            bell.arm(self.client.mark())
            self.data = read(self.client, self.view.states)
            self.detail = None
            self.trouble = ""
        except TenureError as error:  # it may come back; the last data stays on the screen
            self.trouble = plain(error.message)
        self.read_at = time.monotonic()
        self.took = self.read_at - began

    def _follow(self) -> None:
        """Have the detail of the selected task at hand while it is shown."""
        if self.view.wanted is not None:
            self._look_up(self.view.wanted)
            self.view.wanted = None
        key = self.view.selected
        if not self.view.is_detailed or key is None:
            self.detail = None
        elif self.detail is None or self.detail.task["key"] != key:
            try:
                self.detail = read_detail(self.client, key)
            except TenureError as error:
                self.trouble = plain(error.message)

    def _look_up(self, name: str) -> None:
        track, dash, rest = name.strip().partition("-")
        try:
            self.detail = read_detail(self.client, f"{track.upper()}{dash}{rest}" if dash else name.strip())
        except TenureError as error:
            self.trouble = plain(error.message)
            return
        self.view.search = ""
        self.view.open(self.detail.task["key"])


class _Bell:
    """A thread that waits for news and wakes the screen, once for each time it is armed."""

    def __init__(self, client: Client, screen: Fullscreen) -> None:
        self._client, self._screen = client, screen
        self._mark = 0
        self._armed, self._over = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._wait, name="tenure-watch", daemon=True)

    def __enter__(self) -> _Bell:
        self._thread.start()
        return self

    def __exit__(self, *_: Any) -> None:
        self._over.set()
        self._armed.set()
        self._thread.join(LEAVING)

    def arm(self, mark: int) -> None:
        """Ring once there are events beyond `mark`."""
        self._mark = mark
        self._armed.set()

    def _wait(self) -> None:
        while self._armed.wait() and not self._over.is_set():
            try:
                has_come = self._client.wait_for_news(self._mark, SLICE, is_wanted=lambda: not self._over.is_set())
            except TenureError:  # the loop meets it too, and shows it
                has_come = False
                self._over.wait(AWAY)
            if has_come:
                self._armed.clear()
                self._screen.wake()
