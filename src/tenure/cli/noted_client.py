"""A client that records its outcomes, so that an error after a commit never says that nothing happened."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tenure.client import Client
from tenure.client.results import Stored
from tenure.core.commands import ClaimNext, Command
from tenure.core.errors import TenureError
from tenure.core.outcomes import Outcome


class NotingClient(Client):
    """`done` receives every outcome that had an effect, in order."""

    def __init__(self, *words: Any, done: list[Outcome], **settings: Any) -> None:
        self._done = done
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

    def put_artifact(self, receipt: str, name: str, content: Any, *, type: str | None = None) -> Stored:
        stored = super().put_artifact(receipt, name, content, type=type)
        self._noted(stored)
        return stored

    def _noted(self, outcome: Outcome) -> Outcome:
        if outcome.ok and outcome.outcome != "UNCHANGED":
            self._done.append(outcome)
        return outcome
