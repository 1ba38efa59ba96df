"""The state of the live view, and the effect of each key on it. No terminal, no store."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from tenure.cli.text_format import BY_INTEREST
from tenure.core import lifecycle


class Filter(NamedTuple):
    name: str
    states: tuple[str, ...]


FILTERS = (
    Filter("open", tuple(s for s in BY_INTEREST if s not in lifecycle.FINISHED)),
    Filter("in progress", (lifecycle.RUNNING, lifecycle.CLAIMED, lifecycle.VALIDATING)),
    Filter("for a person", (lifecycle.DEAD_LETTERED, lifecycle.PAUSED)),
    Filter("ready", (lifecycle.READY,)),
    Filter("waiting", (lifecycle.PENDING, lifecycle.RETRYING, lifecycle.CREATED)),
    Filter("finished", (lifecycle.COMPLETED, lifecycle.CANCELLED)),
    Filter("all", BY_INTEREST),
)
KEYS = (
    ("q", "quit"),
    ("↑ ↓  j k", "move; PgUp PgDn, g G for far"),
    ("enter, space", "a task's detail and history; again or esc: back"),
    ("J K", "scroll the detail"),
    ("f F", "next, previous filter by state"),
    ("/", "search in keys, titles, agents; esc: clear"),
    ("p", "pause the view; the work goes on"),
    ("r", "refresh now"),
    ("?", "this help"),
)
PAGE = 10


class View:
    """Selected task, filter, search, detail; `is_stale` says that the data must be read again."""

    def __init__(self) -> None:
        self.selected: str | None = None
        self.filter = 0
        self.search = ""
        self.is_searching = False
        self.is_detailed = False
        self.is_helping = False
        self.is_paused = False
        self.is_over = False
        self.is_stale = False
        self.scroll = 0
        self.wanted: str | None = None  # a name to look up, since no task on the screen matched it

    @property
    def states(self) -> tuple[str, ...]:
        return FILTERS[self.filter].states

    def press(self, key: str, shown: Sequence[str]) -> None:
        """`shown` are the keys of the tasks in the list, in its order."""
        if self.is_searching:
            self._type(key, shown)
        elif self.is_helping:
            self.is_helping = False
            self.is_over = key == "q"
        elif key in _MOVES:
            self._move(_MOVES[key], shown)
        else:
            self._act(key)

    def _act(self, key: str) -> None:
        match key:
            case "q":
                self.is_over = True
            case "enter" | " " | "right":
                self.is_detailed, self.scroll = not self.is_detailed and self.selected is not None, 0
            case "escape" | "left" if self.is_detailed:
                self.is_detailed = False
            case "escape" | "left":
                self.search = ""
            case "J" | "K":
                self.scroll = max(0, self.scroll + (1 if key == "J" else -1))
            case "f" | "F":
                self.filter = (self.filter + (1 if key == "f" else -1)) % len(FILTERS)
                self.is_stale = True
            case "/":
                self.is_searching, self.is_detailed = True, False
            case "p":
                self.is_paused = not self.is_paused
                self.is_stale = not self.is_paused
            case "r":
                self.is_stale = True
            case "?":
                self.is_helping = True

    def _type(self, key: str, shown: Sequence[str]) -> None:
        if key == "enter":
            self.is_searching = False
            if self.search and not shown:
                self.wanted = self.search
        elif key == "escape":
            self.is_searching, self.search = False, ""
        elif key in ("up", "down"):
            self._move(_MOVES[key], shown)
        elif key == "backspace":
            self.search = self.search[:-1]
        elif key == "clear":
            self.search = ""
        elif len(key) == 1:
            self.search += key

    def _move(self, by: int, shown: Sequence[str]) -> None:
        if not shown:
            return
        at = shown.index(self.selected) if self.selected in shown else -1 if by > 0 else 0
        self.selected = shown[max(0, min(len(shown) - 1, at + by))]
        self.scroll = 0

    def keep_in(self, shown: Sequence[str]) -> None:
        """Stay on the selected task while it is listed; else go to the first."""
        if self.selected not in shown and not (self.is_detailed and self.selected):
            self.selected = shown[0] if shown else None

    def open(self, task: str) -> None:
        self.selected, self.is_detailed, self.scroll = task, True, 0


_FAR = 1_000_000
_MOVES = {
    "up": -1, "k": -1, "down": 1, "j": 1, "page_up": -PAGE, "page_down": PAGE, "home": -_FAR, "g": -_FAR,
    "end": _FAR, "G": _FAR,
}  # fmt: skip
