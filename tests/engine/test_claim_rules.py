"""What `why` says of a task and an agent, a claim of that agent does: over random projects.

`TENURE_CLAIM_PAIRS` has the number of pairs of a task and an agent to try, in place of a few hundred.
"""

from __future__ import annotations

import os
from collections import Counter

from tenure.core import commands as c
from tenure.core import queries as q
from tenure.core.filters import Present
from tenure.core.lifecycle import READY
from tenure.core.outcomes import Outcome
from tenure.core.records import Agent, Task
from tenure.engine.reads.query_table import read_query
from tenure.testing.factories import PROJECT, code_of
from tests.engine.claim_scenes import RandomScene
from tests.sampling import few

PAIRS = int(os.environ.get("TENURE_CLAIM_PAIRS", "0"))


def test_why_names_an_obstacle_exactly_where_a_claim_is_refused() -> None:
    wanted = PAIRS or 20 * few(50)
    pairs, seed, answers = 0, 0, Counter[tuple[str, str]]()
    while pairs < wanted:
        scene = RandomScene(seed)
        pairs += _compare(scene, seed, answers)
        seed += 1
    refused = {by_name for by_name, _ in answers}
    assert {"GRANTED", "DENIED_LIMIT", "DENIED_BUDGET", "DENIED_CAPABILITY", "DENIED_PAUSED"} <= refused
    print(f"{pairs} pairs in {seed} projects: {dict(answers)}")  # with -s


def _compare(scene: RandomScene, seed: int, answers: Counter[tuple[str, str]]) -> int:
    pairs = 0
    tasks, agents = scene.rows(Task), scene.rows(Agent, left_at=Present(False))
    ready = [task.id for task in tasks if task.state == READY]
    for task in tasks:
        view = read_query(scene.engine, q.Why(project=PROJECT, task=task.id))
        assert view["state"] == READY or view["reasons"], (seed, view)
        why_not = {one["agent"]: one["why_not"] for one in view.get("agents", ())}
        assert set(why_not) == ({agent.id for agent in agents} if task.state == READY else set())
        for agent in agents if task.state == READY else ():
            session = scene.session_of(agent)
            others = tuple(id for id in ready if id != task.id)
            sent = {"project": PROJECT, "agent": agent.id, "session": session}
            (named,) = scene.engine.preview([c.ClaimTask(task=task.id, **sent)])
            (found,) = scene.engine.preview([c.ClaimNext(without=others, **sent)])
            by_name, as_next = code_of(named), code_of(found)
            case = f"seed {seed}, {task.key}, {agent.id}: {by_name}, {as_next}, why not: {why_not[agent.id]}, {found}"
            if isinstance(found, Outcome) and found.task is not None:
                assert found.task["id"] == task.id
                assert by_name == "GRANTED", case
            assert bool(why_not[agent.id]) == ((by_name, as_next) != ("GRANTED", "GRANTED")), case
            answers[by_name, as_next] += 1
            pairs += 1
    return pairs
