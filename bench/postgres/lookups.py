"""History of a task with a thousand generations, and lists of fifty among very many tasks, on both SQL stores."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from bench.ground import PROJECT, WrongAnswer, check, multiply, open_engine, request_id
from bench.postgres.ground import Ground, claim_next
from tenure.client import Client
from tenure.core import commands
from tenure.core.commands import NewTask
from tenure.core.records import Task
from tenure.engine import Engine

PAGE = 50
TAGS = 50  # each on as many tasks
OWNERS = 10
OF_A_DAG = 2 * PAGE
MOST_ATTEMPTS = 1000


def on_postgres(ground: Ground, tasks: int, generations: int, turns: int) -> dict[str, list[float]]:
    """Seconds of each look, one entry a turn, by the name of its figure."""
    board = ground.board((PROJECT,))
    board.begin_with(*_sorts())
    board.fill(tasks // TAGS)
    found = _measure(board.engine, board.store_url, generations, turns)
    board.close()
    return found


def on_sqlite(folder: Path, tasks: int, generations: int, turns: int) -> dict[str, list[float]]:
    path = folder / "lookups.db"
    engine = open_engine(path)
    engine.do(commands.DefineProject(project=PROJECT))
    check(engine.run([commands.Add(project=PROJECT, task=task) for task in _sorts()]), "CREATED")
    with engine.store.begin("local", write=False) as tx:
        models = tx.find(Task, {"project": PROJECT})
    multiply(engine, models, tasks // TAGS)
    found = _measure(engine, str(path), generations, turns)
    engine.store.close()
    return found


def _sorts() -> list[NewTask]:
    return [NewTask(title="Look for me", tags=(f"tag-{n}",)) for n in range(TAGS)]


def _measure(engine: Engine, url: str, generations: int, turns: int) -> dict[str, list[float]]:
    dag = _plan(engine)
    for n in range(OWNERS):
        check(engine.run([claim_next(PROJECT, f"owner-{n}", PAGE)]), "GRANTED")
    key = _old(engine, generations)
    with Client(url, PROJECT, agent="looker") as client:
        looks: dict[str, tuple[Callable[[], Sequence[Any]], int]] = {
            "history_1000_ms": (lambda: client.history(key), generations),
            "list_state_ms": (lambda: client.tasks(state="ready", limit=PAGE), PAGE),
            "list_agent_ms": (lambda: client.tasks(agent="owner-3", limit=PAGE), PAGE),
            "list_tag_ms": (lambda: client.tasks(tag="tag-7", limit=PAGE), PAGE),
            "list_rare_tag_ms": (lambda: client.tasks(tag="rare", limit=PAGE), PAGE),
            "list_dag_ms": (lambda: client.tasks(dag=dag, limit=PAGE), PAGE),
        }
        costs: dict[str, list[float]] = {name: [] for name in looks}
        for turn in range(turns + 1):
            for name, (look, wanted) in looks.items():
                began = time.perf_counter()
                found = look()
                spent = time.perf_counter() - began
                if len(found) != wanted:
                    raise WrongAnswer(f"{name}: {len(found)} rows; {wanted} were wanted")
                if turn:  # the first prepares statements
                    costs[name].append(spent)
    return costs


def _plan(engine: Engine) -> str:
    # The newest, so that a list by age comes to them last.
    tasks = tuple(NewTask(title=f"Step {n}", name=f"step-{n}", priority=10, tags=("rare",)) for n in range(OF_A_DAG))
    made = engine.do(commands.Plan(project=PROJECT, tasks=tasks, title="The one that is listed"))
    (first, *_) = made.tasks or ()
    return str(first["dag"])


def _old(engine: Engine, generations: int) -> str:
    """A task that was claimed and given back again and again; its key."""
    bound = {"max_generations_per_task": max(generations, MOST_ATTEMPTS)}
    engine.do(commands.DefineProject(project=PROJECT, change_limits=bound))
    made = engine.do(commands.Add(project=PROJECT, task=NewTask(title="Hot potato", max_attempts=MOST_ATTEMPTS)))
    assert made.task is not None
    for _ in range(generations):
        asked = commands.ClaimTask(
            project=PROJECT, task=made.task["id"], agent="juggler", session="session-juggler",
            request_id=request_id(),
        )  # fmt: skip
        grant = engine.do(asked)
        check([grant], "GRANTED")
        check([engine.do(commands.Release(project=PROJECT, receipt=str(grant.receipt)))], "OK")
    return str(made.task["key"])
