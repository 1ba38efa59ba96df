"""A worker that outlives its connections: what is unknown it asks again, with the same request id, until it is told.

Every other one speaks to its engine through a batcher, as the clients of a server do.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import TypeVar

from tenure.core import commands
from tenure.core.errors import OutcomeUnknown, StoreUnavailable, TenureError
from tenure.core.outcomes import Outcome
from tenure.core.records import Task
from tenure.engine import Engine
from tenure.engine.runtime.batcher import Batcher
from tenure.stores.postgres import connection
from tests.reliability.storm_log import GAVE_UP
from tests.reliability.storm_worker import Worker

T = TypeVar("T")
PAUSE = 0.02
SILENCE = -28.5  # beyond the 30 s that a statement may take: half-open connections are given up after 1.5 s, not 35
GIVES_UP = 0.1  # of the single commands that are told for certain to have had no effect


class Steadfast(Worker):
    """Ends only when it is killed, or whoever started it is gone."""

    batcher: Batcher | None = None

    def opened(self) -> Engine:
        connection._SILENCE = SILENCE
        self.parent = os.getppid()
        engine = self.patiently(super().opened)
        if self.slot % 2:
            self.batcher = Batcher(engine)
        return engine

    def close(self) -> None:
        if self.batcher is not None:
            self.batcher.close()
        super().close()

    def send(self, batch: list[commands.Command]) -> list[Outcome | TenureError]:
        if self.batcher is None:
            return self.engine.run(batch)
        promised = [self.batcher.submit(command) for command in batch]
        return [told if isinstance(told := one.exception(), TenureError) else one.result() for one in promised]

    def patiently(self, action: Callable[[], T]) -> T:
        while True:
            try:
                return action()
            except StoreUnavailable:
                self.pause()

    def pause(self) -> None:
        if os.getppid() != self.parent:
            raise SystemExit(0)
        time.sleep(PAUSE)

    def dead_letters(self) -> list[Task]:
        return self.patiently(super().dead_letters)

    def ask(self, *batch: commands.Command) -> list[Outcome]:
        ids = [command.request_id or self.new_id() for command in batch]
        self.log.asking(ids, batch)
        answers: dict[int, Outcome] = {}
        unknown: set[int] = set()
        while left := [place for place in range(len(batch)) if place not in answers]:
            got = self.send([self.again(batch[place]) for place in left])
            for place, answer in zip(left, got, strict=True):
                if isinstance(answer, Outcome):
                    answers[place] = answer
                    continue
                self.log.troubled(ids[place], answer)
                if not isinstance(answer, (StoreUnavailable, OutcomeUnknown)):
                    self.log.answered([ids[place]], [answer])
                    raise answer
                if not answer.definite:
                    unknown.add(place)
                elif place not in unknown and len(batch) == 1 and self.dice.random() < GIVES_UP:
                    answers[place] = Outcome(outcome=GAVE_UP)
            if len(answers) < len(batch):
                self.pause()
        self.log.answered(ids, [answers[place] for place in range(len(batch))])
        return [a if a.outcome != GAVE_UP else Outcome(outcome="NO_TASK") for _, a in sorted(answers.items())]

    def again(self, command: commands.Command) -> commands.Command:
        """What is sent, the first time and each other time."""
        return command
