"""Hot queries keep their plans: no table is walked, nothing is sorted."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tenure.core.filters import Contains, Prefix, Present, Range
from tenure.core.priority import lane_of
from tenure.core.records import Claim, Edge, Landing, Message, Reservation, Result, Row, Session, Task, Usage, replace
from tenure.stores.sql.statements import event_table, table_of
from tenure.stores.sqlite import Sqlite
from tenure.stores.sqlite import transaction as queries
from tenure.stores.sqlite.transaction import DIALECT
from tenure.testing.samples import row_of

P = {"project": "p"}


def found(
    kind: type[Row], where: dict[str, Any], order: str = "id", after: Any = None, limit: int | None = None
) -> Any:
    return table_of(kind, DIALECT).finding("local", {**P, **where}, order, after, limit)


def logged(where: dict[str, Any], *, last: bool = False) -> Any:
    return event_table(DIALECT).finding("local", where, 0, 10, last)


def counted(where: dict[str, Any]) -> Any:
    return table_of(Task, DIALECT).tallying("local", {**P, **where}, 1000)


TASK = table_of(Task, DIALECT)
BY_LENGTH = replace(row_of(Task), state="ready", length=60_000_000)
HOT: dict[str, tuple[Any, str]] = {
    "lanes": ((queries.LANES, ["local", "p"]), "COVERING INDEX task_ready (tenant=? AND project=? AND lane>?)"),
    "ready": ((queries.READY, ["local", "p", "L", 1]), "COVERING INDEX task_ready (tenant=? AND project=? AND lane=?)"),
    "ready by length": (
        (queries.READY, ["local", "p", lane_of(BY_LENGTH), 1]),
        "COVERING INDEX task_ready (tenant=? AND project=? AND lane=?)",
    ),
    "claims for a lease": (
        found(Claim, {"reason": "COMPLETED"}, "-id", limit=500),
        "USING PRIMARY KEY (tenant=? AND project=?)",
    ),
    "ready after": (
        (queries.READY_AFTER, ["local", "p", "L", 1, 1, 1, "t", 1]),
        "COVERING INDEX task_ready (tenant=? AND project=? AND lane=? AND (band,rank,sequence,id)>(?,?,?,?))",
    ),
    "due": (
        (f"{TASK.select} {queries.DUE}", ["local", "p", 1, 1]),
        "INDEX task_due (tenant=? AND project=? AND due_at<?)",
    ),
    "due projects": ((queries.DUE_PROJECTS, ["local"]), "COVERING INDEX task_due (tenant=? AND project>?)"),
    "next due": ((queries.NEXT_DUE, ["local", "p"]), "COVERING INDEX task_due (tenant=? AND project=? AND due_at>?)"),
    "load one": (next(TASK.loading("local", [("p", "a")])), "(tenant=? AND project=? AND id=?)"),
    "load some": (next(TASK.loading("local", [("p", "a"), ("p", "b")])), "(tenant=? AND project=? AND id=?)"),
    "ref": (found(Task, {"ref": "A-001"}, limit=1), "INDEX task_ref (tenant=? AND project=? AND ref=?)"),
    "beginning of a key": (found(Task, {"key": Prefix("A-0")}, "key", limit=4), "INDEX task_key ("),
    "idempotency key": (found(Task, {"idempotency_key": "x"}, limit=1), "INDEX task_idempotency ("),
    "dependents": (found(Edge, {"needs": "t"}), "INDEX edge_needs (tenant=? AND project=? AND needs=?)"),
    "dependencies": (found(Edge, {"task": "t"}), "INDEX edge_task (tenant=? AND project=? AND task=?)"),
    "offers": (found(Task, {"offer_to": "bo", "state": "ready"}), "INDEX task_offer ("),
    "held by an agent": (found(Task, {"agent": "bo"}), "INDEX task_agent ("),
    "held by a session": (found(Task, {"session": "s", "state": ("claimed", "running")}), "INDEX task_session ("),
    "children": (found(Task, {"parent": "t", "parent_run": 1}), "INDEX task_parent ("),
    "set aside": (found(Task, {"set_aside_for": "t"}), "INDEX task_set_aside ("),
    "set aside for a budget": (
        found(Task, {"set_aside_for": "$p", "price": Range(0, 5), "band": 1, "boost": 10}, "rank", limit=64),
        "INDEX task_unaffordable (tenant=? AND project=? AND set_aside_for=? AND band=? AND boost=?)",
    ),
    "tasks of a dag in a state": (found(Task, {"dag": "d", "state": "created"}), "INDEX task_dag ("),
    "a page of a state": (found(Task, {"state": "ready"}, "id", ("t", "t"), 50), "INDEX task_state ("),
    "a page of the newest": (found(Task, {}, "-created_at", (5, "t"), 50), "INDEX task_created ("),
    "a page by tag": (found(Task, {"tags": Contains("x")}, limit=50), "INDEX task_tagged ("),
    "how many are in a state": (counted({"state": "ready"}), "COVERING INDEX task_state ("),
    "lineage": (found(Claim, {"task": "t"}, "generation"), "INDEX claim_generation ("),
    "claims of a session": (found(Claim, {"session": "s"}), "INDEX claim_session ("),
    "usage of a claim": (found(Usage, {"task": "t", "generation": 1}), "INDEX usage_task ("),
    "usage of a task": (found(Usage, {"task": "t"}, "generation"), "INDEX usage_task ("),
    "landings of a task": (found(Landing, {"task": "t"}, "-generation", limit=20), "INDEX landing_task ("),
    "late usage": (
        table_of(Usage, DIALECT).summing("local", {**P, "late": True}, "project", ("cost",)),
        "INDEX usage_late (",
    ),
    "accepted result": (found(Result, {"task": "t", "run": 1, "accepted": True}, limit=1), "INDEX result_accepted ("),
    "results": (found(Result, {"task": "t", "generation": 1, "digest": "d"}, limit=1), "INDEX result_task ("),
    "open sessions": (found(Session, {"agent": "bo", "ended_at": Present(False)}), "INDEX session_open ("),
    "events of a session": (logged({**P, "session": "s"}), "INDEX event_session ("),
    "events of a command": (logged({"causation_id": "c"}), "INDEX event_causation ("),
    "latest events": (logged(P, last=True), "INTEGER PRIMARY KEY (rowid>?)"),
}
# A few rows of one thing: sorting them is cheaper than an index more.
SORTED: dict[str, tuple[Any, str]] = {
    "claims of a request": (found(Claim, {"request_id": "r"}, "acquired_at"), "INDEX claim_request ("),
    "claims of a process": (found(Claim, {"process": "h|b|1|1"}), "INDEX claim_process (tenant=? AND project=? AND pr"),
    "claims of processes": (found(Claim, {"process": ("h|b|1|1", "x")}), "INDEX claim_process ("),
    "claims of any process": (found(Claim, {"process": Present()}), "INDEX claim_process ("),
    "unread mail": (found(Message, {"recipient": "bo", "read_at": Present(False)}), "INDEX message_recipient ("),
    "events of a task": (logged({**P, "task": "t"}), "INDEX event_version ("),
    "reservations of a claim": (found(Reservation, {"task": "t"}), "INDEX reservation_task ("),
}


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Sqlite:
    return Sqlite(str(Path(tmp_path_factory.mktemp("plans")) / "store.db"))


def plan(store: Sqlite, statement: tuple[str, Sequence[Any]]) -> list[str]:
    link = store.connections.take()
    try:
        return [str(row[3]) for row in link.all(f"EXPLAIN QUERY PLAN {statement[0]}", statement[1])]
    finally:
        store.connections.give(link)


@pytest.mark.parametrize("what", [*HOT, *SORTED])
def test_a_hot_query_goes_by_its_index(store: Sqlite, what: str) -> None:
    statement, index = {**HOT, **SORTED}[what]
    steps = plan(store, statement)
    assert any(index in step for step in steps), steps
    walked = {step.split()[1] for step in steps if step.startswith("SCAN ")}
    assert walked <= {"found", "matching", "item", "CONSTANT"}, steps  # what the queries make themselves
    if what in HOT:
        assert not any("TEMP B-TREE" in step for step in steps), steps
