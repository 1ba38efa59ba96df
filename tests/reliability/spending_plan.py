"""The plan of the proof `spending`: what its tasks ask for, what they will use, and which of them go wrong at first."""

from __future__ import annotations

import random
from typing import Any

SLOW = "slow"  # the one agent whose budget is throttled, its track, and the capability that others lack
SLOW_MOST = "0.0001"  # dollars that each of its later tasks may cost
FIRST = ("fails", "invalid", "unmatched", "untested", "killed", "overruns")  # how a first try can go wrong
OVERRUN_MOST, OVERRUN_RAISED = "0.05", "0.25"  # dollars: what that task may cost, and what it is given later
MOST = "0.5"

TYPES = ("feature", "feature", "test", "docs", "chore", "fix")
POINTS = (1, 1, 2, 2, 3, 3, 3, 5, 5, 8)
PRIORITIES = ("critical", *("high",) * 5, *("normal",) * 12, *("low",) * 4, *("background",) * 3)

LINES = {
    "type": "object", "required": ["task", "lines"],
    "properties": {"task": {"type": "string"}, "lines": {"type": "integer", "minimum": 0}},
}  # fmt: skip
CONTRACTS: dict[str, dict[str, Any]] = {
    "json": {"validation": "json-schema", "settings": {"schema": LINES}},
    "text": {"validation": "regex", "settings": {"pattern": "DONE [A-Z]+-[0-9]+"}},
    "tested": {"validation": "test-pass", "settings": {"command": "right"}},
}
ASKED = {"invalid": "json", "unmatched": "text", "untested": "tested"}  # which check finds it out
CONFIG = """
[commands.right]
argv = ["sh", "-c", 'grep -qx right "$TENURE_TASK.checked"']
"""


def make_plan(count: int, dice: random.Random) -> dict[str, Any]:
    """So many tasks, as a plan file has them."""
    slow = 2 + count // 10
    tasks = [_task(number, dice) for number in range(count - slow)] + [_slow(number) for number in range(slow)]
    return {
        "name": "spending", "title": "What it costs", "tracks": {"W": "Work", "S": "Slow"},
        "defaults": {"track": "W", "retry": {"strategy": "immediate"}}, "tasks": tasks,
    }  # fmt: skip


def _task(number: int, dice: random.Random) -> dict[str, Any]:
    first = FIRST[number] if number < len(FIRST) else "fails" if dice.random() < 0.1 else None
    asked = ASKED.get(first or "") or ("json", "text", "tested", None)[number % 4]
    points = 9 if first == "overruns" or number % 20 == 19 else dice.choice(POINTS)
    script: dict[str, Any] = {"speaks": "text" if asked == "text" else "json", **_used(points, dice)}
    constraints: dict[str, Any] = {"complexity": points}
    if first:
        script["first"] = first
    if number % 3 == 0:
        script["puts"] = "report.md"
    if asked == "tested":
        script["writes"] = True
    if first == "overruns":
        # Of the top model, for a million tokens: 2 dollars in, 10 out.
        script["near"] = {"fresh": 10_000, "cached": 0, "written": 0, "output": 2_700}
        script["over"] = {"fresh": 0, "cached": 0, "written": 0, "output": 900}
        constraints["max_cost_usd"] = OVERRUN_MOST
    elif number % 5 == 0:
        constraints["max_cost_usd"] = MOST
    before = [f"t{n}" for n in range(max(0, number - 8), number)]
    return {
        "name": f"t{number}", "title": f"Task {number}", "type": dice.choice(TYPES),
        "priority": dice.choice(PRIORITIES),
        "depends_on": sorted(dice.sample(before, min(len(before), dice.choice((0, 1, 1, 2))))),
        "constraints": constraints, "spec": {"prompt": "Do it.", "script": script},
        **({"output": CONTRACTS[asked]} if asked else {}),
    }  # fmt: skip


def _used(points: int, dice: random.Random) -> dict[str, int]:
    """Tokens of one try: about as many as a task of that size is expected to take, most of its input from a cache."""
    tokens = points * dice.randint(1400, 2200)
    output = tokens * dice.randint(15, 25) // 100
    written = tokens * 10 // 100
    return {"fresh": tokens - output - written, "cached": tokens * 3, "written": written, "output": output}


def _slow(number: int) -> dict[str, Any]:
    """The first is dear: the budget would not last a week. The others are cheap: their pauses are short."""
    task: dict[str, Any] = {
        "name": f"s{number}", "title": f"Slow {number}", "track": "S", "caps": [SLOW], "priority": "normal",
    }  # fmt: skip
    tokens = {"fresh": 250, "cached": 400, "written": 0, "output": 30}
    if number == 0:
        tokens = {"fresh": 20_000, "cached": 50_000, "written": 1_000, "output": 21_000}
        task["constraints"] = {"complexity": 8}
    else:
        task |= {"type": "chore", "depends_on": ["s0"], "constraints": {"complexity": 1, "max_cost_usd": SLOW_MOST}}
    usd = "0.2318" if number == 0 else f"0.00004{number % 10}"  # a tenth less than by the table
    task["spec"] = {"script": {"speaks": "json", "usd": usd, **tokens}}
    if number == 1:
        task["spec"]["script"]["first"] = "fails"
    return task
