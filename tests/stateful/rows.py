"""All that is stored at the end of a history, as the model has it and as the store has it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tenure.core import records
from tenure.stores.port import Store
from tests.stateful.model import World

OPEN = ("pending", "ready", "claimed", "running", "retrying", "paused")


def since(start: int, instant: int | None) -> int | None:
    return None if instant is None else instant - start


def expected_rows(world: World, start: int) -> dict[str, Any]:
    return {
        task.ref: {
            "state": task.state,
            "run": task.run,
            "generation": task.generation,
            "attempts": task.attempts,
            "given_back": task.given_back,
            "unmet": len(world.unmet(task)) if task.state in OPEN else None,
            "retry_at": since(start, task.retry_at) if task.state == "retrying" else None,
            "holder": (task.claims[-1].agent, task.claims[-1].session) if task.held else None,
            "lease_until": task.claims[-1].until - start if task.held else None,
            "causes": sorted({cause.partition(":")[0] for cause in task.causes}) if task.state == "paused" else [],
            "late_submit_open": world.is_late_submit_open(task),
            "priority": task.priority,
            "archived": task.archived,
            "holds": sorted(task.claims[-1].holds.items()) if world.reserves(task) else [],
            "claims": [(c.generation, c.run, c.attempt, c.agent, c.session, c.reason, c.accepted) for c in task.claims],
        }
        for task in world.tasks.values()
    } | {
        "beside": {
            "holds": sorted(
                (hold.session, hold.until - start, pattern, mode)
                for hold in world.alone.values()
                if hold.until > world.now
                for pattern, mode in hold.holds.items()
            ),
            "dags": world.dags(),
            "money": world.budget and (world.budget.spent, world._reserved()),
            "unread": sorted((mail.text, agent) for mail in world.mail for agent in mail.unread_by),
        }
    }


def rows_of(store: Store, project: str, start: int) -> dict[str, Any]:
    with store.begin("local", write=False) as tx:
        tasks = tx.find(records.Task, {"project": project})
        claims = tx.find(records.Claim, {"project": project})
        reservations = tx.find(records.Reservation, {"project": project})
        mail = tx.find(records.Message, {"project": project})
        dags = tx.find(records.Dag, {"project": project})
        money = tx.find(records.Budget, {"project": project, "id": "project"})
        now = tx.now
        void = {claim.task for claim in claims if claim.epoch != tx.epoch} - {
            claim.task for claim in claims if claim.epoch == tx.epoch
        }
    return {
        task.ref: {
            "state": task.state,
            "run": task.run,
            "generation": task.generation,
            "attempts": task.attempts,
            "given_back": task.given_back,
            "unmet": task.unmet if task.state in OPEN else None,
            "retry_at": since(start, task.retry_at) if task.state == "retrying" else None,
            "holder": (task.agent, task.session) if task.agent else None,
            "lease_until": since(start, task.lease_until),
            "causes": sorted({pause.cause for pause in task.pauses}) if task.state == "paused" else [],
            "late_submit_open": task.late_submit_open
            and task.state in ("ready", "retrying", "paused")
            and task.id not in void,
            "priority": task.priority,
            "archived": task.archived_at is not None,
            "holds": sorted((r.pattern, r.mode) for r in reservations if r.task == task.id),
            "claims": sorted(
                (c.generation, c.run, c.attempt, c.agent, c.session, c.reason, c.result_accepted)
                for c in claims
                if c.task == task.id
            ),
        }
        for task in tasks
    } | {
        "beside": {
            "holds": sorted(
                (r.session, (r.until or 0) - start, r.pattern, r.mode)
                for r in reservations
                if r.task is None and (r.until or 0) > now
            ),
            "dags": {dag.plan: dag.status for dag in dags if dag.plan},
            "money": next(((b.consumed // 10**7, b.reserved // 10**7) for b in money), None),
            "unread": sorted((m.text, m.recipient) for m in mail if m.read_at is None and m.sender != "clock"),
        }
    }


def row_differences(expected: dict[str, Any], got: dict[str, Any]) -> Iterator[tuple[str, Any, Any]]:
    if set(expected) != set(got):
        yield "tasks", sorted(expected), sorted(got)
    for ref in expected.keys() & got.keys():
        for field, wanted in expected[ref].items():
            if got[ref][field] != wanted:
                yield f"{ref} {field}", wanted, got[ref][field]
