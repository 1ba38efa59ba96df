"""Histories in which engine and model once parted, each cut down to what it took. They never part again."""

from __future__ import annotations

from typing import Any

import pytest

from tests.stateful.actors import Step, Turn
from tests.stateful.playing import new_bench, play, told

LEASE = 300_000_000


def do(*steps: Step) -> Turn:
    return ("do", list(steps))


def add(name: str, **fields: Any) -> Step:
    return "add", {"name": name, **fields}


def claim(task: str, receipt: str = "r", session: str = "s1", agent: str = "ann") -> Step:
    return "claim", {"task": task, "agent": agent, "session": session, "receipt": receipt}


def by(receipt: str, verb: str, **fields: Any) -> Step:
    return verb, {"receipt": (receipt, ""), **fields}


def to(task: str, verb: str, **fields: Any) -> Step:
    return verb, {"task": task, **fields}


HELD = [do(add("t")), do(claim("t"))]
COMPLETED = [*HELD, do(by("r", "submit", data=1))]

FOUND: dict[str, list[Turn]] = {
    "a second checkpoint takes the place of the first": [*HELD, do(by("r", "checkpoint")), do(by("r", "checkpoint"))],
    "a failure of the budget told twice is one failure": [
        *HELD,
        do(by("r", "fail", error_class="budget_exceeded")),
        do(by("r", "fail", error_class="budget_exceeded")),
    ],
    "who asks after a person's pause has not asked": [*HELD, do(to("t", "pause")), do(by("r", "ask"))],
    "a lost lease backs off whatever classes the policy names": [
        do(add("t", on_lost="back_off", retry={"retry_on": ("timeout",)})),
        do(claim("t")),
        ("advance", LEASE),
    ],
    "a subtask that is waited for has its parent's weight": [
        do(add("a"), add("b", type="review")),
        do(claim("b")),
        do(by("r", "spawn", names=["x"], wait=True)),
        do(("claim_next", {"agent": "bo", "session": "s2", "receipts": ["q"]})),
    ],
    "a draining agent that went stale still drains": [
        do(add("t"), add("u")),
        do(claim("t")),
        do(("drain", {"agent": "ann"})),
        ("advance", 200_000_000),
        ("sweep",),
        do(claim("u", "q")),
    ],
    "a lease that was over before the epoch has expired": [
        *HELD,
        ("advance", LEASE),
        ("new_epoch",),
        do(claim("t", "q", "s2", "bo")),
    ],
    "a refused reassign leaves the claim": [
        *COMPLETED,
        do(add("u", needs=[("t", "block")])),
        do(claim("u", "q")),
        do(to("t", "reset")),
        do(to("u", "reassign", agent="bo")),
    ],
    "a retried dead letter brings back its victims' subtasks": [
        do(add("t", max_attempts=1), add("victim", needs=[("t", "cancel")]), add("child", parent="victim")),
        do(claim("t")),
        do(by("r", "fail")),
        do(to("t", "retry")),
    ],
    "the receipt of an adopted result is told so again": [
        *COMPLETED,
        do(by("r", "submit", data=2)),
        do(to("t", "reset"), to("t", "adopt")),
        do(by("r", "submit", data=2)),
    ],
    "cancelling reaches open subtasks below a completed one": [
        *HELD,
        do(by("r", "spawn", names=["x"])),
        do(claim("t/x#1", "q")),
        do(by("q", "spawn", names=["x"])),
        do(by("q", "submit", data=1)),
        do(to("t", "cancel")),
    ],
    "nobody waits for a subtask that waits for them": [
        *HELD,
        do(by("r", "spawn", names=["x"])),
        do(("link", {"task": "t/x#1", "needs": "t"})),
        do(by("r", "wait")),
    ],
    "a spawn is not told as done when its subtasks were never made": [
        *HELD,
        do(by("r", "wait")),
        do(by("r", "spawn", names=["x"], wait=True)),
    ],
    "a refused result is kept though an older run accepted its like": [
        *COMPLETED,
        do(to("t", "reset")),
        do(by("r", "submit", data=2)),
        do(claim("t", "q", "s2")),
        do(to("t", "abort"), by("q", "submit", data=2)),
        do(by("r", "submit", data=1)),
        do(to("t", "adopt")),
    ],
    "who tells what it spent learns that its description was changed": [
        *HELD,
        do(to("t", "edit", text=1)),
        do(by("r", "usage", cents=1)),
    ],
    "a task that is taken away has nothing reserved": [
        *HELD,
        do(by("r", "reserve", patterns=["src/*"])),
        do(to("t", "edit", spec=True, supersede=True)),
    ],
    "who asks for exclusive is alone, or refused": [
        do(add("t"), add("u")),
        do(claim("t"), claim("u", "q", "s2", "bo")),
        do(by("r", "reserve", patterns=["src/*"], mode="shared")),
        do(by("q", "reserve", patterns=["src/*"], mode="shared")),
        do(by("r", "reserve", patterns=["src/*"])),
        do(by("q", "release")),
        do(by("r", "reserve", patterns=["src/*"])),
    ],
    "three failures by two agents are a poison pill": [
        do(add("t", max_attempts=9, retry={"strategy": "immediate"})),
        *(
            do(step)
            for n, agent in enumerate(("ann", "ann", "bo"))
            for step in (claim("t", f"r{n}", f"s{n}", agent), by(f"r{n}", "fail"))
        ),
    ],
    "an offer of a task that has to wait again is over": [
        do(add("t"), add("u")),
        do(to("t", "assign", agent="cy"), claim("u", "q", "s2", "bo")),
        do(("link", {"task": "t", "needs": "u"})),
        do(by("q", "submit", data=1)),
        do(claim("t")),
    ],
    "a plan that turns a dependency around is no cycle": [
        do(("plan", {"plan": "P", "tasks": [{"name": "a"}, {"name": "b", "needs": [("a", "block")]}]})),
        do(("plan", {"plan": "P", "tasks": [{"name": "a", "needs": [("b", "block")]}, {"name": "b"}]})),
        do(("plan", {"plan": "P", "tasks": [{"name": "a"}, {"name": "b", "needs": [("a", "block")]}]})),
    ],
    "a plan that turns a dependency around through a new task is no cycle": [
        do(("plan", {"plan": "P", "tasks": [{"name": "a"}, {"name": "b", "needs": [("a", "block")]}]})),
        do(
            (
                "plan",
                {
                    "plan": "P",
                    "tasks": [
                        {"name": "a", "needs": [("c", "block")]},
                        {"name": "b"},
                        {"name": "c", "needs": [("b", "block")]},
                    ],
                },
            )
        ),
    ],
    "a task that the new plan cancels is not one that the plan has lost": [
        do(add("t", max_attempts=1)),
        do(("plan", {"plan": "Q", "tasks": [{"name": "a"}, {"name": "b", "needs": [("a", "cancel")]}]})),
        do(claim("t")),
        do(by("r", "fail")),
        do(("plan", {"plan": "Q", "tasks": [{"name": "a", "needs": [("t", "cancel")]}]})),
    ],
    "a pruned task that goes with another one is reported too": [
        do(("plan", {"plan": "P", "tasks": [{"name": "a"}, {"name": "b", "needs": [("a", "cancel")]}, {"name": "c"}]})),
        do(("plan", {"plan": "P", "tasks": [{"name": "c"}], "prune": True})),
    ],
    "a subtask that the plan names too changes nothing": [
        do(("plan", {"plan": "Q", "tasks": [{"name": "a"}]})),
        do(add("t", parent="Q.a")),
        do(("plan", {"plan": "Q", "tasks": [{"name": "a", "needs": [("t", "cancel")]}]})),
    ],
    "a failure that ends in its own cancellation says so": [
        do(add("t1"), add("t3", needs=[("t1", "cancel")]), add("t4", max_attempts=1, parent="t3")),
        do(claim("t4"), ("link", {"task": "t1", "needs": "t4", "on_failure": "cancel"})),
        do(by("r", "fail")),
    ],
    "a plan that was undone stays undone when what it waited for is retried": [
        do(add("t", max_attempts=1)),
        do(claim("t")),
        do(by("r", "fail")),
        do(("plan", {"plan": "P", "tasks": [{"name": "a", "needs": [("t", "cancel")]}], "mark": "u"})),
        do(("undo", {"of": "u"})),
        do(to("t", "retry")),
    ],
    "a retry of a cancelled task is not undone": [
        do(add("t")),
        do(to("t", "cancel")),
        do(to("t", "retry", mark="u")),
        do(("undo", {"of": "u"})),
    ],
    "a dead letter is offered to nobody": [
        do(("limit_generations", {"most": 1})),
        do(add("t")),
        do(claim("t")),
        do(by("r", "release")),
        do(to("t", "assign", agent="ann")),
        do(claim("t", "q")),
        do(to("t", "retry")),
        do(claim("t", "p", "s2", "cy")),
    ],
    "a task that was reset is not archived from where it now is": [
        *COMPLETED,
        do(to("t", "archive")),
        do(to("t", "reset")),
        do(to("t", "archive")),
    ],
}


@pytest.mark.parametrize("name", FOUND)
def test_never_again(name: str) -> None:
    with new_bench("sqlite") as bench:
        divergence = play(FOUND[name], bench).divergence
    assert divergence is None, told(FOUND[name], divergence)
