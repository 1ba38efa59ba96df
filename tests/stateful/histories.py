"""Histories: made by chance, and played on the model; `playing` plays them on the real engine as well.

A history is a list of turns, each plain data that prints as it can be typed:

    ("advance", microseconds)   the clock goes on
    ("do", [(verb, {…}), …])    one batch; verbs and arguments are those of the model
    ("sweep",)                  somebody runs a sweep
    ("crash",)                  the process dies; another opens the store
    ("new_epoch",)              the store begins a new epoch
    ("jump_back", microseconds) something happens, and then the clock goes back

Tasks and receipts go by names that the history gives them, so a history stays meaningful when turns are cut out of
it: a step that speaks of something that is not there is left out on both sides. Instants count from the start.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.stateful.actors import History, Step
from tests.stateful.drawing import AGENTS, Dice, Drawing
from tests.stateful.model_rows import HOUR, MINUTE, SECOND

__all__ = ["Dice", "Maker"]

# How often each verb is asked for; each history leaves some of them out, so that the others come in long runs.
WEIGHTS = {
    "claim": 20, "claim_next": 12, "submit": 12, "fail": 14, "renew": 5, "progress": 3, "start": 2, "checkpoint": 3,
    "release": 4, "ask": 3, "wait": 3, "spawn": 4, "add": 8, "link": 3, "unlink": 2, "publish": 2, "pause": 3,
    "resume": 4, "answer": 2, "cancel": 3, "retry": 4, "reset": 4, "adopt": 3, "archive": 1, "edit": 3, "assign": 3,
    "reassign": 2, "recover": 2, "abort": 2, "stop_line": 1, "start_line": 1, "register": 3, "drain": 1,
    "request": 2, "reserve": 6, "reserve_alone": 3, "renew_reservation": 1, "unreserve": 1, "send": 2, "read": 1,
    "plan": 4, "undo": 6, "again": 5, "usage": 3, "set_budget": 2,
    "terminate": 1, "resume_agent": 2,
    "submit_to_land": 5, "take_landing": 6, "record_landing": 3, "settle_landing": 5, "block_landing": 2,
}  # fmt: skip
ALWAYS = ("claim", "submit", "add")
FIELDS = (
    "track", "type", "tags", "priority", "boost", "deadline", "not_before", "requires", "region", "touches",
    "max_duration",
    "max_attempts", "on_lost", "retry", "idempotency_key", "draft", "parent",
    "again",
)  # fmt: skip
# A history may dwell on something: those verbs are there, and come thrice as often.
THEMES = (
    (),
    ("add", "link", "unlink", "spawn", "wait", "cancel", "retry", "reset"),
    ("submit", "fail", "renew", "checkpoint", "release", "ask", "pause", "reassign", "abort", "adopt", "edit"),
    ("claim_next", "register", "drain", "terminate", "resume_agent", "assign", "stop_line", "start_line", "request"),
    ("claim", "reserve", "reserve_alone", "renew_reservation", "unreserve", "edit", "release", "reassign"),
    ("send", "read", "renew", "register"),
    ("again", "fail", "release", "ask", "spawn", "wait", "claim", "checkpoint"),
    ("pause", "resume", "answer", "ask", "fail", "cancel", "undo", "retry"),
    ("set_budget", "usage", "claim", "claim_next", "renew", "progress", "resume", "pause", "release"),
    ("plan", "undo", "cancel", "archive", "reset", "retry", "edit"),
    (
        "submit_to_land",
        "take_landing",
        "record_landing",
        "settle_landing",
        "block_landing",
        "cancel",
        "pause",
        "resume",
    ),
)


class Maker(Drawing):
    """Draws the turns of one history."""

    def make(self) -> History:
        dice = self.dice
        theme = dice.pick(THEMES)
        verbs = [verb for verb in WEIGHTS if verb in ALWAYS or verb in theme or dice.often(60)]
        self.fields = {field for field in FIELDS if dice.often(50)}
        weighted = [verb for verb in verbs for _ in range(WEIGHTS[verb] * (3 if verb in theme else 1))]
        if self.fields & {"requires", "region"} and dice.often(80):
            self._turn("do", [("register", {"agent": agent, "capabilities": ("python", "sql"), "region": "eu"})
                              for agent in AGENTS])  # fmt: skip
        if dice.often(15):
            # who asks for the best task may meet worn-out ones on the way or not: that is nobody's promise
            weighted = [verb for verb in weighted if verb != "claim_next"]
            self._turn("do", [("limit_generations", {"most": 2 + dice.below(12)})])
        self._batch(1 + dice.below(4), self._add)
        for _ in range(9 + dice.below(31)):
            kind = dice.below(100)
            if kind < 16:
                self._turn("advance", self._span())
            elif kind < 20:
                self._turn("sweep")
            elif kind < 21:
                self._turn("crash")
            elif kind < 22 and self.epochs and dice.often(50):
                self._turn("new_epoch")
            elif kind < 24:
                self._wear_out()
            elif kind < 25 and dice.often(30):
                self._turn("jump_back", dice.pick((SECOND, MINUTE, HOUR, 7 * HOUR)))
            else:
                steps = 1 if kind < 85 else 2 + dice.below(3)
                self._batch(steps, lambda: self._step(dice.pick(weighted)))
        return self.history

    def _turn(self, *turn: Any) -> None:
        self.history.append(turn)
        for _ in self.player.play(turn):
            pass

    def _batch(self, size: int, draw: Callable[[], Step]) -> None:
        """Each command may speak of tasks that those before it make, but not of receipts: nobody has seen them."""
        self.handed_out = [*self.world.receipts]
        self.takers = [*self.world.takers]
        self.marks = [*self.world.done]
        steps: list[Step] = []
        for _ in range(size):
            steps.append(draw())
            for _ in self.player.play(("do", steps[-1:])):
                pass
        self.history.append(("do", steps))

    def _span(self) -> int:
        due = self.world.next_due()
        if due is not None and due > self.world.now and self.dice.often(50):
            return max(0, due - self.world.now + self.dice.pick((0, 0, 1, -1, -1, -SECOND)))
        spans = (1, SECOND, 7 * SECOND, 10 * SECOND, 20 * SECOND, 59 * SECOND, MINUTE, 5 * MINUTE, 10 * MINUTE, HOUR)
        return self.dice.pick(spans) if self.dice.often(95) else self.dice.pick((31 * MINUTE, 6 * HOUR, 25 * HOUR))

    def _wear_out(self) -> None:
        """One task claimed and given back so often that its attempts begin to count."""
        ready = [task.name for task in self.world.tasks.values() if task.state == "ready"]
        if not ready:
            return
        task, verb = self.dice.pick(ready), self.dice.pick(("release", "pause", "fail", "let go", "break"))
        roomy = [name for name in ready if self.world.tasks[name].max_attempts > 3]
        if roomy and self.dice.often(50):
            task, verb = self.dice.pick(roomy), "break"  # a poison pill, long before its attempts are used up
        for _ in range(2 + self.dice.below(15)):
            step = self._claim()
            step[1]["task"] = task
            self._turn("do", [step])
            if step[1]["receipt"] not in self.world.receipts:
                return
            receipt = (step[1]["receipt"], "")
            if verb == "release":
                self._turn("do", [("release", {"receipt": receipt})])
            elif verb == "pause":
                self._turn("do", [("pause", {"task": task}), ("resume", {"task": task})])
            elif verb == "break":
                self._turn("do", [("fail", {"receipt": receipt, "retry_after": SECOND})])
                self._turn("advance", SECOND)
            elif verb == "fail":
                self._turn("do", [("fail", {"receipt": receipt, "error_class": "environment"})])
            else:
                self._turn("advance", step[1].get("lease", 300 * SECOND))
