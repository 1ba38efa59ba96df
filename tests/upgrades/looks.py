"""What a store answers when it is read: lists, counts, histories and the log, each as a digest under its question.

A digest is of keys, numbers and ids alone: a view that gets another field is not another answer.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from typing import Any

from tenure.core import queries as q
from tenure.core.lifecycle import STATES
from tenure.core.records import Agent, Claim, Project, Session, Task
from tenure.engine import Engine
from tenure.engine.reads.query_table import read_query

PAGE = 100
_OF_CLAIM = (
    "generation", "run", "attempt", "agent", "session", "state", "release_reason", "acquired_at", "released_at",
    "renewals", "result_accepted", "work_product_ref", "counted",
)  # fmt: skip
_OF_SESSION = ("event", "task", "generation", "agent", "count", "at")
_OF_EVENT = ("sequence", "id", "time", "kind", "version", "generation", "agent", "session", "causation_id")


def looks(engine: Engine) -> dict[str, str]:
    """Question → digest of the answer."""
    with engine.store.begin(engine.tenant, write=False) as tx:
        projects = [row.id for row in tx.find(Project, {})]
    return {
        f"{project}: {question}": hashlib.sha256(json.dumps(answer, sort_keys=True).encode()).hexdigest()[:10]
        for project in projects
        for question, answer in _of_project(engine, project)
    }


def _of_project(engine: Engine, project: str) -> Iterator[tuple[str, Any]]:
    with engine.store.begin(engine.tenant, write=False) as tx:
        tasks = tx.find(Task, {"project": project})
        claims = {(row.task, row.generation): row for row in tx.find(Claim, {"project": project}, order="acquired_at")}
        agents, sessions = ([row.id for row in tx.find(kind, {"project": project})] for kind in (Agent, Session))
    ids = {task.key: task.id for task in tasks}
    tags = sorted({tag for task in tasks for tag in task.tags})
    asked = {"every": {"archived": True}, **{f"state {state}": {"state": (state,)} for state in STATES}}
    asked |= {f"agent {agent}": {"agent": (agent,)} for agent in agents}
    asked |= {f"session {session}": {"session": session} for session in sessions}
    asked |= {f"tag {tag}": {"tag": (tag,)} for tag in tags}
    asked |= {f"dag {dag}": {"dag": dag} for dag in sorted({task.dag for task in tasks})[-3:]}
    keys: dict[str, list[str]] = {}
    for question, filters in asked.items():
        keys[question] = _keys(engine, project, filters)
        yield question, keys[question]
    status = read_query(engine, q.Status(project=project))
    yield "counts", [status["tasks"], {code: track["completed"] for code, track in status["tracks"].items()}]
    yield "ready", [task["key"] for task in read_query(engine, q.Ready(project=project, limit=PAGE))]
    for session in sessions:
        view = read_query(engine, q.ShowSession(project=project, session=session))
        log = [_only(_OF_SESSION, entry) for entry in _in_former_order(view["task_log"], claims, ids)]
        yield f"{session} in full", [[task["key"] for task in view["active_claims"]], view["completed"], log]
    for key in keys["every"]:
        history = read_query(engine, q.History(project=project, task=key))
        yield f"history of {key}", [_only(_OF_CLAIM, entry) for entry in history]
        log = read_query(engine, q.TaskLog(project=project, task=key, limit=1000))
        yield f"log of {key}", [_only(_OF_EVENT, event) for event in log]
    yield "log", list(_log(engine, project))


def _in_former_order(log: list[Any], claims: dict[Any, Claim], ids: dict[str, str]) -> list[Any]:
    """Renewals at the end, by the task's id, those of live claims last."""
    renewed = {(ids[e["task"]], e["generation"]): {**e, "task": ids[e["task"]]} for e in log if "count" in e}
    ended = [renewed[name] for name, claim in claims.items() if name in renewed and claim.released_at is not None]
    live = [renewed[name] for name, claim in claims.items() if name in renewed and claim.released_at is None]
    return [entry for entry in log if "count" not in entry] + ended + live


def _keys(engine: Engine, project: str, filters: dict[str, Any]) -> list[str]:
    """Page by page."""
    found: list[dict[str, Any]] = []
    while True:
        after = (found[-1]["created_at"], found[-1]["id"]) if found else None
        page = read_query(engine, q.Tasks(project=project, limit=PAGE, after=after, **filters))
        found += page
        if len(page) < PAGE:
            return [task["key"] for task in found]


def _log(engine: Engine, project: str) -> Iterator[list[Any]]:
    """From a cursor, in pages that end wherever they end."""
    after = 0
    while page := read_query(engine, q.Log(project=project, after=after, last=False, limit=7)):
        yield from (_only(_OF_EVENT, event) for event in page)
        after = page[-1]["sequence"]


def _only(names: tuple[str, ...], view: dict[str, Any]) -> list[Any]:
    return [view.get(name) for name in names]
