"""One step of a history at a time, drawn by chance from what the model says of those drawn before."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from tests.stateful.actors import ALONE, RECEIPTED, History, Player, Step
from tests.stateful.model import World
from tests.stateful.model_repeats import HOLDERS, PERSONS_VERBS
from tests.stateful.model_rows import HELD, HOUR, MINUTE, SECOND

T = TypeVar("T")

AGENTS = ("ann", "bo", "cy")
SESSIONS = ("s1", "s2", "s3", "s4")
MOST_TASKS = 6
PATTERNS = ("src/a.py", "src/*", "docs/a.md", "env:staging", "src/b.py")
UNDONE = ("cancel", "archive", "reset", "retry", "edit", "plan", "add", "pause")
FORGERIES = ("future", "nonce", "epoch", "nowhere", "malformed")
# Where a verb needs a task in one of these states to have an effect.
WANTS = dict.fromkeys((*RECEIPTED, "abort", "recover"), HELD) | {
    "retry": ("dead_lettered",), "reset": ("completed",), "resume": ("paused",), "answer": ("paused",),
    "publish": ("created",), "archive": ("completed", "cancelled"), "claim_next": ("ready",),
}  # fmt: skip
WAYS_ON = {"ready": "claim", "claimed": "submit", "running": "fail", "dead_lettered": "retry", "paused": "resume",
           "completed": "reset"}  # fmt: skip


class Dice:
    """Where chance comes from: `below(n)` gives 0 … n−1; the first of the options is the plainest."""

    def __init__(self, below: Callable[[int], int]) -> None:
        self.below = below

    def pick(self, options: Sequence[T]) -> T:
        return options[self.below(len(options))]

    def often(self, percent: int) -> bool:
        return self.below(100) >= 100 - percent


class Drawing:
    """Draws steps, looking at what the model says of those drawn so far."""

    def __init__(self, dice: Dice, epochs: bool = True) -> None:
        self.dice = dice
        self.epochs = epochs
        self.player = Player(World(0))
        self.history: History = []
        self.handed_out: list[str] = []  # receipts, before the batch that is being drawn
        self.fields: set[str] = set()
        self.names = 0
        self.takers: list[str] = []  # of landings, before the batch that is being drawn
        self.marks: list[str] = []  # commands that may be undone, before the batch that is being drawn

    @property
    def world(self) -> World:
        return self.player.world

    # each of these draws the arguments of one verb, or those of a few

    def _step(self, verb: str) -> Step:
        states = {task.state for task in self.world.tasks.values()}
        if verb in WANTS and not states & {*WANTS[verb]} and self.dice.often(75):
            # A few of those refusals will do; better that something moves.
            verb = next((way for state, way in WAYS_ON.items() if state in states), "add")
        if verb in ALONE:
            return self._by_reservation(verb)
        draw = getattr(self, f"_{verb}", None)
        if verb in RECEIPTED and draw is None:
            verb, arguments = self._receipted(verb)
        else:
            verb, arguments = draw() if draw else (verb, {"task": self._task()})
        if verb in UNDONE and not {"spec", "text", "parent"} & arguments.keys() and self.dice.often(50):
            arguments["mark"] = self._name("u")
        if verb in (*HOLDERS, *PERSONS_VERBS) and "again" in self.fields and self.dice.often(50):
            arguments["request_id"] = self._name("q")
        return verb, arguments

    def _again(self) -> Step:
        """A request sent again as it was; seldom its id for something else."""
        said = [s for t in self.history if t[0] == "do" for s in t[1] if "request_id" in s[1] and s[0] != "claim"]
        if not said:
            return self._step(self.dice.pick(("fail", "release", "ask", "cancel", "pause")))
        verb, arguments = self.dice.pick(said[-6:])
        if self.dice.often(8):
            other = self.dice.pick(said)
            return other[0], {**other[1], "request_id": arguments["request_id"]}
        return verb, arguments

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
            task = self.world.tasks.get((self.world.receipts.get(arguments["receipt"][0]) or ("",))[0] or "")
            if task and task.text > 1 and dice.often(60):
                arguments["seen"] = task.text - (1 if dice.often(15) else 0)
        elif verb == "release" and luck % 4 == 0:
            arguments["stopped"] = True
        elif verb == "fail":
            arguments["error_class"] = dice.pick(
                ("task", "task", "crash", "timeout", "environment", "environment", "auth_failure", "upstream_timeout",
                 "rate_limit", "budget_exceeded", "invalid_output", "permanent", "nonsense")
            )  # fmt: skip
            if dice.often(25):
                arguments["retry_after"] = dice.pick((5, 90, 1000)) * SECOND
        elif verb == "usage":
            arguments["cents"] = dice.pick((1, 2, 5, 9, 20))
        elif verb == "renew" and dice.often(30):
            arguments["lease"] = dice.pick((10, 900)) * SECOND
        elif verb == "spawn":
            room = len(self.world.tasks) < MOST_TASKS
            arguments["names"] = ["x", "y"][: 1 + dice.below(2)] if room else ["x"]
            arguments["wait"] = dice.often(40)
        return verb, arguments

    def _submit_to_land(self) -> Step:
        verb, arguments = self._receipted("submit_to_land")
        return verb, {**arguments, "data": self._name("w")}

    def _take_landing(self) -> Step:
        wanted: dict[str, Any] = {"taker": self._name("l"), "checker": self.dice.pick(AGENTS)}
        wanted["lease"] = self.dice.pick((60, 30, 600)) * SECOND
        if self.dice.often(30):
            wanted["task"] = self._task_in("validating")
        return "take_landing", wanted

    def _taken(self, verb: str, **arguments: Any) -> Step:
        known = self.takers
        if not known:
            return self._take_landing() if self.dice.often(50) else self._submit_to_land()
        return verb, {"taker": self.dice.pick(known[-3:] if self.dice.often(80) else known), **arguments}

    def _record_landing(self) -> Step:
        return self._taken("record_landing", new=self._name("n"))

    def _settle_landing(self) -> Step:
        return self._taken("settle_landing", how=self.dice.pick(("ok", "ok", "conflict", "red")))

    def _block_landing(self) -> Step:
        after = self.dice.pick((0, 20, 300)) * SECOND
        return self._taken("block_landing", blocked=self.dice.often(60), retry_after=after)

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
        return "resume", {"task": self._task_in("paused"), "budget": self.dice.often(30)}

    def _pause(self) -> Step:
        return "pause", {"task": self._task_in(*HELD, "paused"), "drain": self.dice.often(40)}

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
        changes: tuple[dict[str, Any], ...] = (
            {"priority": self.dice.pick((45, 8, 60))},
            {"spec": True},
            {"text": self.names + 1},
        )
        change = self.dice.pick(changes)
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

    def _reserve(self) -> Step:
        held = {task.claims[-1].nonce: task.claims[-1].holds for task in self.world.tasks.values() if task.held}
        shared = [(r, p) for r in self.handed_out for p, how in held.get(r, {}).items() if how == "shared"]
        if shared and self.dice.often(50):
            receipt, pattern = self.dice.pick(shared)
            return "reserve", {"receipt": (receipt, ""), "patterns": [pattern], "mode": "exclusive"}
        verb, arguments = self._receipted("reserve")
        return verb, {**arguments, **self._wanted()}

    def _reserve_alone(self) -> Step:
        claimer = self._claimer()
        return "reserve_alone", {"hold": self._name("h"), **claimer, **self._wanted()}

    def _wanted(self) -> dict[str, Any]:
        names = {self.dice.pick(PATTERNS) for _ in range(1 + self.dice.below(2))}
        return {"patterns": sorted(names), "mode": self.dice.pick(("exclusive", "shared"))}

    def _by_reservation(self, verb: str) -> Step:
        known = [name for name in self.handed_out if name in self.world.alone]
        names = known if self.dice.often(90) else self.handed_out
        arguments: dict[str, Any] = {"receipt": (self.dice.pick(names) if names else "h0", "")}
        if self.dice.often(10):
            arguments["receipt"] = (arguments["receipt"][0], self.dice.pick(FORGERIES))
        if verb == "renew_reservation" and self.dice.often(30):
            arguments["lease"] = self.dice.pick((10, 900)) * SECOND
        return verb, arguments

    def _send(self) -> Step:
        to = self.dice.pick(("@all", *AGENTS, "@track:A", "@track:B", "@all", "@nobody"))
        return "send", {"sender": self.dice.pick(AGENTS), "to": to, "text": self._name("m")}

    def _undo(self) -> Step:
        clear = [mark for mark in self.marks if self.world.is_clear(mark)]
        return ("undo", {"of": self.dice.pick(clear[-3:])}) if clear else self._plan()

    def _plan(self) -> Step:
        dice, tasks = self.dice, []
        plan = dice.pick(("P", "Q"))
        beside = [name for name in self.world.tasks if not name.startswith(plan)]
        for name in ("a", "b", "c"):
            task: dict[str, Any] = {"name": name}
            if dice.often(40):
                task["priority"] = dice.pick((20, 70))
            others = [t["name"] for t in tasks] + [n for n in beside if dice.often(15)]
            if others and dice.often(60):
                names = {dice.pick(others) for _ in range(1 + dice.below(2))}
                task["needs"] = [(n, dice.pick(("block", "cancel", "ignore"))) for n in sorted(names)]
            if dice.often(60):
                tasks.append(task)
        return "plan", {"plan": plan, "tasks": tasks or [{"name": "a"}], "prune": dice.often(40)}

    def _set_budget(self) -> Step:
        return "set_budget", {"cents": self.dice.pick((10, 5, 30, 100)), "estimate": self.dice.pick((2, 1, 4))}

    def _read(self) -> Step:
        return "read", {"agent": self.dice.pick(AGENTS)}

    def _drain(self) -> Step:
        return "drain", {"agent": self.dice.pick(AGENTS)}

    def _terminate(self) -> Step:
        return "terminate", {"agent": self.dice.pick(AGENTS), "graceful": self.dice.often(50)}

    def _resume_agent(self) -> Step:
        ended = [name for name, agent in self.world.agents.items() if agent.draining or agent.terminated]
        return "resume_agent", {"agent": self.dice.pick(ended or AGENTS)}
