"""Hot queries go by their indexes: the server reads a few rows of thousands, and sorts nothing that is long.

The rows that it read are counted, since a plan may name an index and walk all of it.
"""

from collections.abc import Iterator
from typing import Any

import pytest

from tenure.core.events import Event
from tenure.core.filters import Prefix, Present, Range
from tenure.core.records import Claim, Edge, Message, Result, Row, Session, Task, Usage
from tenure.stores.mariadb import Mariadb
from tenure.stores.mariadb import statement_texts as texts
from tenure.stores.mariadb.address import parse
from tenure.stores.mariadb.connection import Connection, connect, rendered
from tenure.stores.mariadb.statement_texts import DIALECT
from tenure.stores.mariadb.transaction import lane_hash, log_query
from tenure.stores.port import Change
from tenure.stores.sql.statements import table_of
from tenure.testing.samples import event_of, row_of
from tests.servers.mariadb import MariadbServer

pytestmark = pytest.mark.nightly  # thousands of rows
P = {"project": "p"}
PLACE = "plans"
MANY = 2000
LANES = 4
FEW = 40  # rows that a hot query may read
TASK = table_of(Task, DIALECT)


def found(
    kind: type[Row], where: dict[str, Any], order: str = "id", after: Any = None, limit: int | None = None
) -> Any:
    return table_of(kind, DIALECT).finding("local", {**P, **where}, order, after, limit)


def events(where: dict[str, Any], *, after: int = 0, last: bool = False) -> Any:
    return log_query("local", where, after, 10, last)


L = lane_hash("lane-1")
AFTER = [1, 1, 901, 1, 901, 901, 1, 901, 901, "t0901"]
HOT: dict[str, tuple[Any, str]] = {
    "ready": ((texts.READY, ["local", "p", L, 1]), "task_ready"),
    "ready after": ((texts.READY_AFTER, ["local", "p", L, *AFTER, 4]), "task_ready"),
    "due": ((f"{TASK.select} {texts.DUE}", ["local", "p", 1 << 60, 5]), "task_due"),
    "projects": ((texts.PROJECTS, ["local"]), "PRIMARY"),
    "next due": ((texts.NEXT_DUE, ["local", "p"]), "task_due"),
    "head": ((texts.HEAD, ["local", "local"]), "PRIMARY"),
    "marks": ((texts.MARKS, ['["local", "acme"]']), "PRIMARY"),
    "load one": (next(TASK.loading("local", [("p", "t0001")])), "PRIMARY"),
    "load some": (next(TASK.loading("local", [("p", "t0001"), ("p", "t1001")])), "PRIMARY"),
    "ref": (found(Task, {"ref": "R-1001"}, limit=1), "task_ref"),
    "beginning of a key": (found(Task, {"key": Prefix("K-100")}, "key", limit=4), "task_key"),
    "idempotency key": (found(Task, {"idempotency_key": "i1001"}, limit=1), "task_idempotency"),
    "set aside": (found(Task, {"set_aside_for": "t1002"}), "task_"),
    "set aside for a budget": (
        found(Task, {"set_aside_for": "$p", "price": Range(0, 5), "band": 1, "boost": 10}, "rank", limit=10),
        "task_",
    ),
    "a page of a state": (found(Task, {"state": "ready"}, "id", ("t1000", "t1000"), 10), ""),
    "a page of a rare state": (found(Task, {"state": "paused"}, "id", ("t1000", "t1000"), 10), "task_state"),
    "a rare state": (found(Task, {"state": "paused"}), "task_state"),
    "rare states": (found(Task, {"state": ("paused", "failed")}), "task_state"),
    "events of a rare project": (events({"project": "r"}), "event_project"),
    "a page of the newest": (found(Task, {}, "-created_at", (1500, "t1500"), 10), "task_created"),
    "held by an agent": (found(Task, {"agent": "a1001"}), "task_agent"),
    "held by a session": (found(Task, {"session": "s1001", "state": ("ready", "running")}), "task_session"),
    "children": (found(Task, {"parent": "t1001", "parent_run": 1}), "task_"),
    "tasks of a dag in a state": (found(Task, {"dag": "d1001", "state": "ready"}), "task_"),
    "offers": (found(Task, {"offer_to": "a1001", "state": "ready"}), "task_offer"),
    "dependents": (found(Edge, {"needs": "t1001"}), "edge_needs"),
    "dependencies": (found(Edge, {"task": "t1001"}), "edge_task"),
    "claims of a session": (found(Claim, {"session": "s1001"}), "claim_session"),
    "lineage": (found(Claim, {"task": "t1001"}, "generation"), "claim_generation"),
    "claims of a request": (found(Claim, {"request_id": "r1001"}, "acquired_at"), "claim_request"),
    "claims of processes": (found(Claim, {"process": ("p1001", "p1002")}), "claim_process"),
    "accepted result": (found(Result, {"task": "t1001", "run": 1, "accepted": True}, limit=1), "result_"),
    "usage of a claim": (found(Usage, {"task": "t1001", "generation": 1}), "usage_task"),
    "unread mail": (found(Message, {"recipient": "a1001", "read_at": Present(False)}), "message_recipient"),
    "open sessions": (found(Session, {"agent": "a1001", "ended_at": Present(False)}), "session_open"),
    "events of a project": (events(P), "event_project"),
    "latest events of a project": (events(P, last=True), "event_project"),
    "latest events": (events({}, last=True), "PRIMARY"),
    "events after a cursor": (events({}, after=1500), "PRIMARY"),
    "events of a task": (events({**P, "task": "t1001"}), "event_version"),
    "events of a session": (events({**P, "session": "s1001"}), "event_session"),
    "events of a command": (events({**P, "causation_id": "c1001"}), "event_causation"),
}


def _project(n: int) -> str:
    return "r" if n == 50 else "p" if n % 10 else "q"


def rows(n: int) -> list[Row]:
    at = f"{n:04d}"
    fields: dict[str, Any] = {"project": _project(n)}
    task = row_of(
        Task, id=f"t{at}", ref=f"R-{at}", key=f"K-{at}", lane=f"lane-{n % LANES}", band=1, rank=n, sequence=n,
        due_at=n + 1, created_at=n, agent=f"a{at}", session=f"s{at}", parent=f"t{at}", parent_run=1,
        local_name="x", idempotency_key=f"i{at}", dag=f"d{at}", offer_to=f"a{at}", price=1, boost=10,
        set_aside_for="$p" if n % 2 else f"t{at}", state="paused" if n % 400 == 3 else "ready", **fields,
    )  # fmt: skip
    return [
        task,
        row_of(Edge, id=f"t{at}>t{at}", task=f"t{at}", needs=f"t{at}", **fields),
        row_of(Claim, id=f"t{at}@1", task=f"t{at}", generation=1, session=f"s{at}", request_id=f"r{at}",
               process=f"p{at}", **fields),
        row_of(Result, id=f"res{at}", task=f"t{at}", run=1, accepted=True, **fields),
        row_of(Usage, id=f"u{at}", task=f"t{at}", generation=1, **fields),
        row_of(Message, id=f"m{at}", recipient=f"a{at}", read_at=None, **fields),
        row_of(Session, id=f"s{at}", agent=f"a{at}", ended_at=None, **fields),
    ]  # fmt: skip


def event(n: int) -> Event:
    at = f"{n:04d}"
    return event_of(id=at, project=_project(n), task=f"t{at}", version=1, session=f"s{at}", causation_id=f"c{at}")


@pytest.fixture(scope="module", params=["grown", pytest.param("analysed", marks=pytest.mark.nightly)])
def link(mariadb: MariadbServer, request: pytest.FixtureRequest) -> Iterator[Connection]:
    """To a full store, whose tables the server has looked at when it chose to, or just now."""
    url = mariadb.place(PLACE)
    mariadb.drop(PLACE)
    store = Mariadb(url)
    with store.begin("local", write=True) as tx:
        for kind in zip(*(rows(n) for n in range(MANY)), strict=True):
            tx.save([Change(None, row) for row in kind])
        tx.append([event(n) for n in range(MANY)])
    store.close()
    if request.param == "analysed":
        names = [name for (name,) in mariadb.ask("SHOW TABLES", database=PLACE)]
        mariadb.ask("ANALYZE TABLE " + ", ".join(f"`{name}`" for name in names), database=PLACE)
    connection = connect(parse(url), wait=10, silence=30)
    yield connection
    connection.close()
    mariadb.drop(PLACE)


@pytest.mark.parametrize("what", list(HOT))
def test_a_hot_query_goes_by_its_index_and_reads_few_rows(link: Connection, what: str) -> None:
    (text, values), index = HOT[what]
    plan = link.all(f"EXPLAIN {rendered(text, values)}")
    assert any(str(key).startswith(index) for *_, key, _, _, _, _ in plan), plan
    link.run([("FLUSH STATUS", ())])
    answer = link.all(text, values)
    counts = {name: int(count) for name, count in link.all("SHOW SESSION STATUS LIKE 'Handler_read%'")}
    read = sum(count for name, count in counts.items() if name != "Handler_read_rnd_deleted")
    assert read <= FEW, (read, counts, plan)
    assert answer, "it was to find something"


def test_the_cost_of_lanes_grows_with_lanes(link: Connection) -> None:
    link.run([("FLUSH STATUS", ())])
    heads = link.all(texts.LANES, [*["local", "p"] * 2, 2, "local", "p"])
    assert sum(int(count) for _, count in link.all("SHOW SESSION STATUS LIKE 'Handler_read%'")) <= 4 * LANES
    assert len({lane for lane, *_ in heads}) == LANES
    assert len(heads) == 2 * LANES


def test_a_find_without_an_index_is_noticed(link: Connection) -> None:
    """What the tests above rely on: a query that walks a table reads more."""
    link.run([("FLUSH STATUS", ())])
    link.all(*found(Task, {"trace_id": "none"}))
    assert sum(int(count) for _, count in link.all("SHOW SESSION STATUS LIKE 'Handler_read%'")) > MANY / 2
