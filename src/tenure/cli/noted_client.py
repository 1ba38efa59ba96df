"""A client that records its outcomes, so that an error after a commit never says that nothing happened."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

from tenure.cli.answers import say
from tenure.client import Client
from tenure.client.results import Stored
from tenure.core.commands import ClaimNext, Command
from tenure.core.errors import TenureError
from tenure.core.outcomes import Outcome

SILENCE = 0.5  # seconds of waiting for a server before the user reads why


class Patience:
    """Pauses between the tries to reach a server, and says early that it does not answer."""

    def __init__(self, server: str) -> None:
        self._server, self._waited, self._has_reported = server, 0.0, False

    def __call__(self, seconds: float) -> None:
        if not self._has_reported and self._waited + seconds >= SILENCE:
            self._has_reported = True
            say(f"tenure: {self._server} does not answer; still trying", sys.stderr)
        self._waited += seconds
        time.sleep(seconds)


class NotingClient(Client):
    """`done` receives every outcome that had an effect, in order."""

    def __init__(self, *words: Any, done: list[Outcome], **settings: Any) -> None:
        self._done = done
        self.last: Outcome | None = None  # the last outcome, also a refusal
        super().__init__(*words, **settings)

    def do(self, command: Command) -> Outcome:
        return self._noted(super().do(command))

    def claim_or_wait(
        self, command: ClaimNext, seconds: float, *, is_wanted: Callable[[], bool] | None = None
    ) -> Outcome:
        return self._noted(super().claim_or_wait(command, seconds, is_wanted=is_wanted))

    def batch(self, batch: Sequence[Command]) -> list[Outcome | TenureError]:
        answers = super().batch(batch)
        for answer in answers:
            if isinstance(answer, Outcome):
                self._noted(answer)
        return answers

    def put_artifact(
        self, receipt: str, name: str, content: Any, *, type: str | None = None, word: str | None = None
    ) -> Stored:
        stored = super().put_artifact(receipt, name, content, type=type, word=word)
        self._noted(stored)
        return stored

    def _noted(self, outcome: Outcome) -> Outcome:
        self.last = outcome
        if outcome.ok and outcome.outcome != "UNCHANGED":
            self._done.append(outcome)
        return outcome
