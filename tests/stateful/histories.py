"""Histories: made by chance, and played on the model; `playing` plays them on the real engine as well.

A history is a list of turns, each plain data that prints as it can be typed:

    ("advance", microseconds)   the clock goes on
    ("do", [(verb, {…}), …])    one batch; verbs and arguments are those of the model
    ("sweep",)                  somebody runs a sweep
    ("crash",)                  the process dies; another opens the store
    ("new_epoch",)              the store begins a new epoch

Tasks and receipts go by names that the history gives them, so a history stays meaningful when turns are cut out of
it: a step that speaks of something that is not there is left out on both sides. Instants count from the start.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from tests.stateful.actors import RECEIPTED, History, Player, Step
from tests.stateful.model import World
from tests.stateful.model_rows import HELD, HOUR, MINUTE, SECOND

T = TypeVar("T")

AGENTS = ("ann", "bo", "cy")
SESSIONS = ("s1", "s2", "s3", "s4")
MOST_TASKS = 6
FORGERIES = ("future", "nonce", "epoch", "nowhere", "malformed")


class Dice:
    """Where chance comes from: `below(n)` gives 0 … n−1; the first of the options is the plainest."""

    def __init__(self, below: Callable[[int], int]) -> None:
        self.below = below

    def pick(self, options: Sequence[T]) -> T:
        return options[self.below(len(options))]

    def often(self, percent: int) -> bool:
        return self.below(100) >= 100 - percent


# --- making one ---------------------------------------------------------------------------------------------

# How often each verb is asked for; each history leaves some of them out, so that the others come in long runs.
WEIGHTS = {
    "claim": 20, "claim_next": 12, "submit": 12, "fail": 14, "renew": 5, "progress": 3, "start": 2, "checkpoint": 3,
    "release": 4, "ask": 3, "wait": 3, "spawn": 4, "add": 8, "link": 3, "unlink": 2, "publish": 2, "pause": 3,
    "resume": 4, "answer": 2, "cancel": 3, "retry": 4, "reset": 4, "adopt": 3, "archive": 1, "edit": 3, "assign": 3,
    "reassign": 2, "recover": 2, "abort": 2, "stop_line": 1, "start_line": 1, "register": 3, "drain": 1,
    "request": 2,
}  # fmt: skip
ALWAYS = ("claim", "submit", "add")
WANTS = dict.fromkeys((*RECEIPTED, "abort", "recover"), HELD) | {
    "retry": ("dead_lettered",), "reset": ("completed",), "resume": ("paused",), "answer": ("paused",),
    "publish": ("created",), "archive": ("completed", "cancelled"), "claim_next": ("ready",),
}  # fmt: skip
FIELDS = (
    "track", "type", "tags", "priority", "boost", "deadline", "not_before", "requires", "region", "touches",
    "max_duration",
    "max_attempts", "on_lost", "retry", "idempotency_key", "draft", "parent",
)  # fmt: skip
# A history may dwell on something: those verbs are there, and come thrice as often.
THEMES = (
    (),
    ("add", "link", "unlink", "spawn", "wait", "cancel", "retry", "reset"),
    ("submit", "fail", "renew", "checkpoint", "release", "ask", "pause", "reassign", "abort", "adopt", "edit"),
    ("claim_next", "register", "drain", "assign", "stop_line", "start_line", "request"),
)
WAYS_ON = {"ready": "claim", "claimed": "submit", "running": "fail", "dead_lettered": "retry", "paused": "resume",
           "completed": "reset"}  # fmt: skip


class Maker:
    """Draws the turns of one history, looking at what the model says of those drawn so far."""

    def __init__(self, dice: Dice, epochs: bool = True) -> None:
        self.dice = dice
        self.epochs = epochs
        self.player = Player(World(0))
        self.history: History = []
        self.handed_out: list[str] = []  # receipts, before the batch that is being drawn
        self.fields: set[str] = set()
        self.names = 0

    @property
    def world(self) -> World:
        return self.player.world

    def make(self) -> History:
        dice = self.dice
        theme = dice.pick(THEMES)
        verbs = [verb for verb in WEIGHTS if verb in ALWAYS or verb in theme or dice.often(60)]
        self.fields = {field for field in FIELDS if dice.often(50)}
        weighted = [verb for verb in verbs for _ in range(WEIGHTS[verb] * (3 if verb in theme else 1))]
        if self.fields & {"requires", "region"} and dice.often(80):
            self._turn("do", [("register", {"agent": agent, "capabilities": ("python", "sql"), "region": "eu"})
                              for agent in AGENTS])  # fmt: skip
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
        task, verb = self.dice.pick(ready), self.dice.pick(("release", "pause", "fail", "let go"))
        for _ in range(2 + self.dice.below(11)):
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
            elif verb == "fail":
                self._turn("do", [("fail", {"receipt": receipt, "error_class": "environment"})])
            else:
                self._turn("advance", step[1].get("lease", 300 * SECOND))

    # each of these draws the arguments of one verb, or those of a few

    def _step(self, verb: str) -> Step:
        states = {task.state for task in self.world.tasks.values()}
        if verb in WANTS and not states & {*WANTS[verb]} and self.dice.often(75):
            # A few of those refusals will do; better that something moves.
            verb = next((way for state, way in WAYS_ON.items() if state in states), "add")
        if verb in RECEIPTED:
            return self._receipted(verb)
        if draw := getattr(self, f"_{verb}", None):
            return draw()
        return verb, {"task": self._task()}

    def _name(self, letter: str) -> str:
        self.names += 1
        return f"{letter}{self.names}"

    def _task(self) -> str:
        return self.dice.pick([*self.world.tasks]) if self.dice.often(98) else "nobody"

    def _add(self) -> Step:
        dice, world = self.dice, self.world
        if len(world.tasks) >= MOST_TASKS:
            return self._claim()
        fields: dict[str, Any] = {"name": self._name("t")}
        if world.tasks and dice.often(55):
            names = {self._task() for _ in range(1 + dice.below(2))}
            fields["needs"] = [(name, dice.pick(("block", "block", "cancel", "ignore"))) for name in sorted(names)]
        optional: dict[str, tuple[int, Callable[[], Any]]] = {
            "track": (50, lambda: "B"),
            "type": (30, lambda: "review"),
            "tags": (30, lambda: dice.pick((("x",), ("x", "y")))),
            "priority": (60, lambda: dice.pick((49, 5, 9, 10, 40, 70))),
            "boost": (40, lambda: dice.pick((0, 1, 100, 1000))),
            "deadline": (40, lambda: world.now + dice.pick((25, 13, 6, 2)) * HOUR),
            "not_before": (30, lambda: world.now + dice.pick((MINUTE, 5 * MINUTE, HOUR))),
            "requires": (25, lambda: dice.pick((("python",), ("python", "sql")))),
            "region": (15, lambda: "eu"),
            "touches": (
                60,
                lambda: dice.pick((("src/a.py",), ("src/*",), ("src/b.py", "docs/a.md"), ("env:staging",))),
            ),
            "max_duration": (40, lambda: dice.pick((20, 45, 300)) * SECOND),
            "max_attempts": (70, lambda: dice.pick((1, 2, 5))),
            "on_lost": (60, lambda: dice.pick(("back_off", "hold"))),
            "retry": (50, self._policy),
            "idempotency_key": (20, lambda: dice.pick(("k1", "k2"))),
            "draft": (20, lambda: True),
        }
        for field, (percent, draw) in optional.items():
            if field in self.fields and dice.often(percent):
                fields[field] = draw()
        if world.tasks and "parent" in self.fields and dice.often(25):
            fields["parent"] = self._task()
            fields.pop("track", None)
        return "add", fields

    def _policy(self) -> dict[str, Any]:
        return self.dice.pick(
            (
                {"strategy": "fixed", "initial_delay": 20},
                {"strategy": "immediate"},
                {"initial_delay": 100, "cap": 150},
                {"jitter": 0.0, "multiplier": 3.0},
                {"no_retry_on": ("crash",)},
                {"retry_on": ("timeout", "environment")},
            )
        )

    def _claim(self) -> Step:
        return "claim", {"task": self._task_in("ready"), **self._claimer(), "receipt": self._name("r")}

    def _claimer(self) -> dict[str, Any]:
        dice = self.dice
        claimer: dict[str, Any] = {"agent": dice.pick(AGENTS), "session": dice.pick(SESSIONS)}
        if dice.often(60):
            claimer["lease"] = dice.pick((60, 30, 600, 1)) * SECOND
        return claimer

    def _claim_next(self) -> Step:
        dice = self.dice
        wanted: dict[str, Any] = self._claimer()
        wanted["receipts"] = [self._name("r") for _ in range(dice.pick((1, 1, 1, 2, 3)))]
        filters = (
            ("tracks", ("B",)),
            ("types", ("review",)),
            ("tags", ("x",)),
            ("capabilities", ("python",)),
        )
        wanted |= {field: value for field, value in filters if dice.often(10)}
        return "claim_next", wanted

    def _receipted(self, verb: str) -> Step:
        dice = self.dice
        known = self.handed_out
        last = [r for r in known if self._is_last(r)]
        held = [r for r in last if self.world.tasks[self.world.receipts[r][0]].held]
        luck = dice.below(100)
        names = (held if luck < 60 else last if luck < 80 else known) or known
        arguments: dict[str, Any] = {"receipt": (dice.pick(names) if names else "r0", "")}
        if dice.often(6):
            arguments["receipt"] = (arguments["receipt"][0], dice.pick(FORGERIES))
        if verb == "submit":
            arguments["data"] = dice.pick((1, 2))
        elif verb == "fail":
            arguments["error_class"] = dice.pick(
                ("task", "task", "crash", "timeout", "environment", "environment", "auth_failure", "upstream_timeout",
                 "rate_limit", "budget_exceeded", "invalid_output", "permanent", "nonsense")
            )  # fmt: skip
            if dice.often(25):
                arguments["retry_after"] = dice.pick((5, 90, 1000)) * SECOND
        elif verb == "renew" and dice.often(30):
            arguments["lease"] = dice.pick((10, 900)) * SECOND
        elif verb == "spawn":
            room = len(self.world.tasks) < MOST_TASKS
            arguments["names"] = ["x", "y"][: 1 + dice.below(2)] if room else ["x"]
            arguments["wait"] = dice.often(40)
        return verb, arguments

    def _is_last(self, name: str) -> bool:
        task, generation, _, _ = self.world.receipts[name] or ("", 0, "", 0)
        return task in self.world.tasks and self.world.tasks[task].generation == generation

    def _request(self) -> Step:
        """A claim with a request id, sent again as it was."""
        before = [s for t in self.history if t[0] == "do" for s in t[1] if s[0] == "claim" and "request_id" in s[1]]
        if before and self.dice.often(60):
            return self.dice.pick(before)
        verb, arguments = self._claim()
        return verb, {**arguments, "request_id": arguments["receipt"]}

    def _link(self) -> Step:
        task, needs = self._task(), self._task()
        children = [t for t in self.world.tasks.values() if t.parent]
        if children and self.dice.often(30):
            child = self.dice.pick(children)
            task, needs = self.dice.pick(((child.name, child.parent), (child.parent, child.name)))
        return "link", {"task": task, "needs": needs,
                        "on_failure": self.dice.pick(("block", "cancel", "ignore"))}  # fmt: skip

    def _unlink(self) -> Step:
        edges = [(task.name, needs) for task in self.world.tasks.values() for needs in task.needs]
        task, needs = self.dice.pick(edges) if edges and self.dice.often(90) else (self._task(), self._task())
        return "unlink", {"task": task, "needs": needs}

    def _reset(self) -> Step:
        return "reset", {"task": self._task_in("completed"), "cascade": self.dice.often(40)}

    def _retry(self) -> Step:
        return "retry", {"task": self._task_in("dead_lettered")}

    def _resume(self) -> Step:
        return "resume", {"task": self._task_in("paused")}

    def _answer(self) -> Step:
        return "answer", {"task": self._task_in("paused")}

    def _publish(self) -> Step:
        return "publish", {"task": self._task_in("created")}

    def _abort(self) -> Step:
        return "abort", {"task": self._task_in(*HELD)}

    def _recover(self) -> Step:
        return "recover", {"task": self._task_in(*HELD)}

    def _adopt(self) -> Step:
        names = [task.name for task in self.world.tasks.values() if task.kept]
        task = self.dice.pick(names) if names and self.dice.often(80) else self._task()
        return "adopt", {"task": task, "supersede": self.dice.often(30)}

    def _edit(self) -> Step:
        change = {"priority": self.dice.pick((45, 8, 60))} if self.dice.often(40) else {"spec": True}
        return "edit", {"task": self._task_in(*HELD, "paused"), **change, "supersede": self.dice.often(30)}

    def _assign(self) -> Step:
        return "assign", {"task": self._task_in("ready"), "agent": self.dice.pick(AGENTS)}

    def _reassign(self) -> Step:
        return "reassign", {"task": self._task_in(*HELD, "ready"), "agent": self.dice.pick(AGENTS)}

    def _task_in(self, *states: str) -> str:
        names = [task.name for task in self.world.tasks.values() if task.state in states]
        return self.dice.pick(names) if names and self.dice.often(70) else self._task()

    def _stop_line(self) -> Step:
        return "stop_line", {"scope": self._scope()}

    def _start_line(self) -> Step:
        stopped = sorted(self.world.stopped)
        if not stopped and self.dice.often(80):
            return self._stop_line()
        return "start_line", {"scope": self.dice.pick(stopped) if stopped else self._scope()}

    def _scope(self) -> str:
        return self.dice.pick(("track:A", "track:B", "type:review", "agent:ann", "project:"))

    def _register(self) -> Step:
        dice = self.dice
        return "register", {
            "agent": dice.pick(AGENTS),
            "capabilities": dice.pick((("python", "sql"), ("python",), ())),
            "region": dice.pick(("eu", "us", None)),
            "most": dice.pick((None, None, 1, 2)),
        }

    def _drain(self) -> Step:
        return "drain", {"agent": self.dice.pick(AGENTS)}
