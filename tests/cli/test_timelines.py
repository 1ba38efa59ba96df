"""The four timelines of the product, each command in a process of its own; and a crowd of claiming processes."""

from __future__ import annotations

import json
from collections.abc import Callable

from tests.cli.conftest import Said, Tenure

LEASE = 1  # seconds: the shortest; the next claim waits for its end, by the store's clock


class Agent:
    """One agent, by name and session; every verb is a process."""

    def __init__(self, tenure: Tenure, name: str) -> None:
        self.tenure, self.name = tenure, name
        self.receipts: dict[str, str] = {}

    def claim(self, task: str | None = None, *, lease: int = 60, wait: int = 0) -> Said:
        words = ["claim", *([task] if task else []), "--agent", self.name, "--session", f"{self.name}-session"]
        said = self.tenure.process(*words, "--lease", lease, "--wait", wait, "--json")
        if said.code == 0:
            self.receipts[said.json["task"]["ref"]] = said.json["receipt"]
        return said

    def done(self, task: str, result: object = "ok") -> Said:
        return self.tenure.process(
            "done", task, "--receipt", self.receipts[task], "--result", json.dumps(result), "--json"
        )


def lineage(tenure: Tenure, task: str) -> list[tuple[int, str, str, bool | None]]:
    entries = tenure.process("history", task, "--json").json
    return [(e["generation"], e["agent"], e["release_reason"], e["result_accepted"]) for e in entries]


def test_the_happy_path(tenure: Tenure, add: Callable[..., str]) -> None:
    task = add("Write the parser")
    ann = Agent(tenure, "ann")
    assert ann.claim().json["generation"] == 1
    renewed = tenure.process("renew", "--receipt", ann.receipts[task], "--json")
    assert renewed.json["outcome"] == "RENEWED"
    assert ann.done(task).json["outcome"] == "ACCEPTED"
    assert lineage(tenure, task) == [(1, "ann", "COMPLETED", True)]


def test_a_partition(tenure: Tenure, add: Callable[..., str]) -> None:
    task = add("Write the parser")
    ann, bo = Agent(tenure, "ann"), Agent(tenure, "bo")
    ann.claim(lease=LEASE)
    assert bo.claim(wait=30).json["generation"] == 2
    assert bo.done(task).json["outcome"] == "ACCEPTED"
    zombie = ann.done(task, "late")
    assert (zombie.code, zombie.json["outcome"], zombie.json["work_lost"]) == (6, "STALE_GENERATION", True)
    assert lineage(tenure, task) == [(1, "ann", "EXPIRED", False), (2, "bo", "COMPLETED", True)]


def test_rapid_failover(tenure: Tenure, add: Callable[..., str]) -> None:
    task = add("Write the parser", "--max-attempts", 5)
    ann, bo, cy = (Agent(tenure, name) for name in ("ann", "bo", "cy"))
    ann.claim(lease=LEASE)
    bo.claim(lease=LEASE, wait=30)
    assert cy.claim(wait=30).json["generation"] == 3
    assert cy.done(task).json["outcome"] == "ACCEPTED"
    assert [agent.done(task, agent.name).json["outcome"] for agent in (ann, bo)] == ["STALE_GENERATION"] * 2
    assert lineage(tenure, task) == [
        (1, "ann", "EXPIRED", False),
        (2, "bo", "EXPIRED", False),
        (3, "cy", "COMPLETED", True),
    ]


def test_subtasks(tenure: Tenure, add: Callable[..., str]) -> None:
    add("Merge the chapters")
    parts = [f"A-001::{n}" for n in range(1, 6)]
    lead, ann, bo = (Agent(tenure, name) for name in ("lead", "ann", "bo"))
    lead.claim("A-001")
    titles = [f"Chapter {n}" for n in range(1, 6)]
    spawned = tenure.process("spawn", *titles, "--receipt", lead.receipts["A-001"], "--wait", "--json")
    assert spawned.code == 0, spawned
    assert [ann.claim(part, lease=60).code for part in parts[:2]] == [0, 0]
    assert ann.claim(parts[2], lease=LEASE).code == 0
    denied = bo.claim(parts[2])
    assert (denied.code, denied.json["outcome"]) == (5, "DENIED_ACTIVE_CLAIM")
    assert [ann.done(part, part).code for part in parts[:2]] == [0, 0]
    taken = bo.claim(wait=30)  # the fourth, the fifth, or the third as soon as its lease is over
    for _ in range(3):
        assert taken.code == 0
        ref = taken.json["task"]["ref"]
        assert bo.done(ref, ref).code == 0
        taken = bo.claim(wait=30)
    assert lineage(tenure, parts[2]) == [(1, "ann", "EXPIRED", None), (2, "bo", "COMPLETED", True)]
    refused = ann.done(parts[2], "late")
    assert (refused.code, refused.json["work_lost"]) == (6, True)
    assert taken.json["task"]["ref"] == "A-001"
    assert sorted(entry["data"] for entry in taken.json["inputs"].values()) == parts


def test_a_crowd_of_processes_never_gets_a_task_twice(tenure: Tenure) -> None:
    for n in range(30):
        assert tenure("add", f"Task {n}").code == 0
    crowd = [tenure.start("claim", "--agent", f"a{n}", "--session", f"s{n}", "--json") for n in range(24)]
    said = [(*process.communicate(timeout=120), process.returncode) for process in crowd]
    assert [(code, err) for _, err, code in said] == [(0, "")] * 24
    answers = [json.loads(out) for out, _, _ in said]
    assert len({answer["task"]["id"] for answer in answers}) == 24
    assert {answer["generation"] for answer in answers} == {1}
    assert all(answer["took_ms"] > 0 for answer in answers)
