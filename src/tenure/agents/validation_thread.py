"""A thread that validates submitted results: in `run`, `daemon` and `serve`."""

from __future__ import annotations

import copy
import threading
from collections.abc import Callable, Iterable
from contextlib import suppress

from tenure.agents.result_checker import ResultChecker, Tools
from tenure.client import Client
from tenure.core.errors import NotAllowed, TenureError

LOOK = 2.0  # seconds between two checks for waiting results, at least
SLOWEST = 30.0  # seconds between tries while the store is unavailable


class ValidationThread:
    """Validates for the projects that `projects` names. Only judges are used for projects without a folder here."""

    def __init__(
        self,
        client: Client,
        tools: Callable[[], Tools],
        projects: Callable[[], Iterable[str]] | None = None,
        *,
        say: Callable[[str], object] = lambda _: None,
        look: float = LOOK,
    ) -> None:
        """`tools` is called before each round: trust may change while this runs."""
        self._client, self._tools, self._projects = client, tools, projects or (lambda: [client.project])
        self._say, self._look = say, look
        self._stopping = threading.Event()
        self._refused: str | None = None
        self._thread = threading.Thread(target=self._run, name="validating", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Stop the running check and the thread; another process takes the check over."""
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join()

    def round(self) -> int:
        """Check every waiting result that can be checked here; returns how many."""
        count = 0
        tools = self._tools()
        for project in self._projects():
            here = tools if project == self._client.project else Tools(judges=tools.judges, trouble="it is not here")
            checker = ResultChecker(self._speaker(project), here, is_wanted=self._is_wanted, say=self._say)
            while self._is_wanted() and checker.check_next() is not None:
                count += 1
        return count

    def _is_wanted(self) -> bool:
        return not self._stopping.is_set()

    def _speaker(self, project: str) -> Client:
        other = copy.copy(self._client)
        other.project = project
        return other

    def _run(self) -> None:
        wait = self._look
        while not self._stopping.wait(wait):
            wait = self._look
            try:
                self.round()
            except TenureError as error:
                is_refused = isinstance(error, NotAllowed)
                wait = SLOWEST if is_refused else SLOWEST / 10
                if is_refused and error.message == self._refused:
                    continue  # reported once; waiting does not change it
                self._refused = error.message if is_refused else None
                with suppress(Exception):
                    self._say(f"results cannot be validated: {error.message}")
