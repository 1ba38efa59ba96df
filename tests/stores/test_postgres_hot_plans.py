"""The statements inside of the hot functions go by their keys, planned on full tables or on empty ones.

PostgreSQL plans them once in a session, on whatever the tables hold then, and keeps the plans. `auto_explain` reports
what each statement read: with a batch of a few, no more than a few rows of any table, however many there are.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import pytest
from psycopg import pq

from tenure.client.caller import SystemRandom
from tenure.core import commands as c
from tenure.engine import Context, Engine
from tenure.stores.fast_path import Call
from tenure.stores.postgres import Postgres, hot_functions, row_security
from tenure.stores.postgres.connection import Connection
from tests.servers.postgres import PostgresServer
from tests.servers.restricted import ROLE, url_as
from tests.stores.test_postgres_plans import nodes
from tests.stores.test_postgres_sharing import MANY, P, added, asked_for, claimed, handed_in, renewal, submits

SCHEMA = "hot_plans"
FULL = 1200  # tasks
SOME = 5  # commands of a call
MOST_ROWS = 4 * SOME  # that a step may read
ONE_ROW = {"meta", "epoch", "space", "event_sequence_seq"}
REPORT = """
SET auto_explain.log_min_duration = 0; SET auto_explain.log_nested_statements = on; SET auto_explain.log_analyze = on;
SET auto_explain.log_timing = off; SET auto_explain.log_format = json; SET auto_explain.log_level = warning;
"""


class Told(NamedTuple):
    """A statement inside of a function, and the steps of its plan."""

    text: str
    steps: list[dict[str, Any]]


class Stage:
    """A store, and one session of the server that calls the functions by hand."""

    def __init__(self, store: Postgres, tenant: str = "local") -> None:
        self.store = store
        self.engine = Engine(store, SystemRandom(), Context(tenant=tenant))
        self.link: Connection = store.connections.take()
        self.engine.do(c.DefineProject(project=P))
        self.engine.run([c.Register(project=P, agent=f"ann{n}", session=f"s{n}") for n in range(MANY)])

    def call(self, call: Call) -> list[tuple[Any, ...]]:
        statement = hot_functions.statement(self.store, "local", call, None, [call])
        return self.link.run([statement])[0].rows()

    def explained(self, call: Call) -> list[Told]:
        reports: list[str] = []  # a connection itself keeps the last few alone
        field = pq.DiagnosticField.MESSAGE_PRIMARY
        self.link._wire.notice_handler = lambda result: reports.append((result.error_field(field) or b"").decode())
        assert len(self.call(call)) == SOME
        told = []
        for report in reports:
            found = json.loads(report.partition("plan:\n")[2])
            told.append(Told(found["Query Text"], list(nodes(found["Plan"]))))
        return told

    def fill(self, count: int) -> None:
        """Tasks that wait, that are held, and that are done; of both forms of a claim."""
        for n in range(0, count, 400):
            added(self.engine, min(400, count - n))
        for turn in range(count // 3 // MANY):
            receipts = claimed(self.engine, f"fill-{count}-{turn}")
            if turn % 2:
                self.engine.run(submits(receipts))
            if turn % 4 == 0:
                self.engine.run(submits(self.own(f"fill-{count}-{turn}")))

    def narrow(self, turn: str) -> list[str]:
        return claimed(self.engine, f"narrow-{turn}")[:SOME]

    def own(self, turn: str) -> list[str]:
        """Receipts of claims with rows of their own."""
        keys = added(self.engine, SOME)
        claims = [c.ClaimTask(project=P, task=key, agent=f"ann{n}", session=f"s{n}") for n, key in enumerate(keys)]
        return [str(answer.receipt) for answer in self.engine.run(claims)]  # type: ignore[union-attr]


def everything(stage: Stage, turn: str) -> Iterator[tuple[str, Callable[[], Call]]]:
    store = stage.store
    yield "claim", lambda: asked_for(store, SOME, request=[f"{turn}-{n}" for n in range(SOME)])
    for form in (stage.narrow, stage.own):
        receipts = form(turn)
        for what, call in (("renew", renewal), ("renew again", renewal), ("submit", handed_in)):
            yield f"{what} {form.__name__}", lambda call=call, receipts=receipts: call(store, receipts)  # type: ignore[misc]


ON_EMPTY, ON_FULL = "planned on empty tables", "planned on full ones"
ON_IDLE = ON_EMPTY + ", of which the server knows it"  # as autovacuum leaves them, where nobody works for a while
RESTRICTED = ", under a policy"  # with a role that sees one tenant, and another tenant that is as busy
PLANNED = [ON_EMPTY, ON_IDLE, ON_FULL, ON_EMPTY + RESTRICTED, ON_FULL + RESTRICTED]
MAY_REPORT = [  # what the role must be allowed for `REPORT`
    f"ALTER ROLE {ROLE} SET session_preload_libraries = 'auto_explain'",
    *(f"GRANT SET ON PARAMETER auto_explain.{name} TO {ROLE}" for name in re.findall(r"auto_explain\.(\w+)", REPORT)),
]


@contextmanager
def new_stage(postgres: PostgresServer, when: str) -> Iterator[Stage]:
    """On tables that were just created: those that tests share have been analysed and emptied by others."""
    url = f"{postgres.url}?schema={SCHEMA}"
    postgres.ask("ALTER ROLE tenure SET session_preload_libraries = 'auto_explain'")
    if when.endswith(RESTRICTED):
        Postgres(url).close()
        row_security.run(url, "on", ROLE)
        for statement in MAY_REPORT:
            postgres.ask(statement)
        url = url_as(ROLE, SCHEMA)
    store = Postgres(url)
    try:
        stage = Stage(store)
        yield stage
        store.connections.give(stage.link)
    finally:
        store.close()
        for role in ("tenure", ROLE):
            postgres.ask(f"ALTER ROLE {role} RESET session_preload_libraries")
        postgres.ask(f"DROP SCHEMA {SCHEMA} CASCADE")


def fill(stage: Stage, postgres: PostgresServer, when: str) -> None:
    if when.endswith(RESTRICTED):
        other = Stage(stage.store, "acme")
        other.fill(FULL)
        stage.store.connections.give(other.link)
    stage.fill(FULL)
    if when.startswith(ON_FULL):
        analysed(stage, postgres)


def analysed(stage: Stage, postgres: PostgresServer) -> None:
    for (name,) in stage.link.all("SELECT tablename FROM pg_tables WHERE schemaname = ?", [SCHEMA]):
        postgres.ask(f"VACUUM ANALYZE {SCHEMA}.{name}")


@pytest.fixture(scope="module", params=PLANNED)
def reports(restricted: PostgresServer, request: pytest.FixtureRequest) -> dict[str, list[Told]]:
    with new_stage(restricted, request.param) as stage:
        if request.param.startswith(ON_IDLE):
            analysed(stage, restricted)
        if request.param.startswith(ON_EMPTY):
            added(stage.engine, 3 * MANY)
            for _, call in everything(stage, "first"):
                stage.call(call())
        fill(stage, restricted, request.param)
        stage.link.script(REPORT)
        return {what: stage.explained(call()) for what, call in everything(stage, "then")}


WHAT = [
    "claim",
    *(f"{what} {form}" for form in ("narrow", "own") for what in ("renew", "renew again", "submit")),
]


@pytest.mark.parametrize("what", WHAT)
def test_no_statement_of_a_hot_verb_reads_more_than_its_rows(reports: dict[str, list[Told]], what: str) -> None:
    for told in reports[what]:
        for step in told.steps:
            table = step.get("Relation Name")
            if table is None or table in ONE_ROW:
                continue
            assert step["Node Type"] in ("Index Scan", "Index Only Scan", "Tid Scan", "ModifyTable"), (told.text, step)
            read = step["Actual Loops"] * (step["Actual Rows"] + step.get("Rows Removed by Filter", 0))
            assert read <= MOST_ROWS, (told.text, step)


def test_the_first_claim_of_a_tenant_reads_nothing_of_a_busy_one(restricted: PostgresServer) -> None:
    """Its log has no block yet, and the busy tenant's are right before the place where it would be."""
    with new_stage(restricted, ON_FULL + RESTRICTED) as stage:
        busy = Stage(stage.store, "acme")
        busy.fill(FULL)
        stage.store.connections.give(busy.link)
        added(stage.engine, 3 * MANY)
        stage.link.script(REPORT)
        for told in stage.explained(asked_for(stage.store, SOME)):
            for step in told.steps:
                if step.get("Relation Name") in ("event", "event_block") and step["Node Type"] != "ModifyTable":
                    read = step["Actual Loops"] * (step["Actual Rows"] + step.get("Rows Removed by Filter", 0))
                    assert read <= 1, (told.text, step)


def test_claims_across_lanes_read_no_lane_further_than_they_may_take(restricted: PostgresServer) -> None:
    """The first comes behind a long lane that is not for it; and each step goes straight to what was chosen."""
    with new_stage(restricted, ON_FULL) as stage:
        for track, priority in (("A", 10), ("B", 90)):
            added(stage.engine, FULL // 3, track=track, priority=priority)
        call = asked_for(stage.store, SOME)
        assert [lane[0] for lane in call.lanes] == ["A", "B"]
        stage.link.script(REPORT)
        for told in stage.explained(call._replace(sets=["01", "11"], set=[1, *[2] * (SOME - 1)])):
            for step in told.steps:
                read = step["Actual Loops"] * (step["Actual Rows"] + step.get("Rows Removed by Filter", 0))
                assert read <= MOST_ROWS, (told.text, step)


@pytest.mark.parametrize("what", WHAT)
def test_every_statement_of_a_hot_verb_was_seen(reports: dict[str, list[Told]], what: str) -> None:
    """Else the test above would hold for what never ran."""
    written = {
        step["Relation Name"]
        for told in reports[what]
        for step in told.steps
        if step["Node Type"] == "ModifyTable" and step["Operation"] != "Select"
    }
    wanted = {
        "claim": {"queue", "granted", "held", "due_block", "task_hot", "event_block"},
        "renew": {"task_hot", "due_block", "event"},
        "submit": {"task_hot", "held", "standing", "done", "event_block", "claim_row", "result_row"},
    }
    assert wanted[what.split(maxsplit=1)[0]] <= written


# --- the ordinary path -----------------------------------------------------------------------------------------

QUIETLY = REPORT.replace("log_level = warning", "log_level = log")  # in the server's log: a warning ends a commit
LINE = re.compile(r"^\d{4}-\d\d-\d\d .*? (?:LOG|STATEMENT|CONTEXT|WARNING|ERROR):  ", re.MULTILINE)


def commands(stage: Stage, turn: str) -> Iterator[tuple[str, Callable[[], Any]]]:
    """What meets claims without rows of their own, by the rules alone, and what named claims do."""
    slow = Engine(stage.store, SystemRandom(), Context(fast_path=False))
    keys = added(stage.engine, MANY)
    receipts = claimed(stage.engine, f"ordinary-{turn}")
    wanted = c.ClaimTask(project=P, task=keys[-1], agent="ann0", session="s0")
    yield "release", lambda: slow.do(c.Release(project=P, receipt=receipts[0]))
    yield "fail", lambda: slow.do(c.Fail(project=P, receipt=receipts[1], message="no"))
    yield "progress", lambda: slow.do(c.Progress(project=P, receipt=receipts[2], percent=10))
    yield "renew", lambda: slow.do(c.Renew(project=P, receipt=receipts[3]))
    yield "submit", lambda: slow.do(c.Submit(project=P, receipt=receipts[4], data="done"))
    yield "submit again", lambda: slow.do(c.Submit(project=P, receipt=receipts[4], data="done"))
    yield "claim next", lambda: slow.do(c.ClaimNext(project=P, agent="ann1", session="s1", request_id=turn))
    yield "claim by name", lambda: slow.do(wanted)


@pytest.mark.parametrize("when", PLANNED)
def test_no_statement_of_the_ordinary_path_reads_whole_tables(restricted: PostgresServer, when: str) -> None:
    with new_stage(restricted, when) as stage:
        store = stage.store
        store.connections.give(stage.link)  # the engine uses this one, since it was given back last
        if when.startswith(ON_EMPTY):
            for _, do in commands(stage, "first"):
                do()
        fill(stage, restricted, when)
        store.use(lambda link: link.script(QUIETLY))
        for what, do in commands(stage, "then"):
            at = restricted.log.stat().st_size
            do()
            steps = list(logged_steps(restricted.log.read_text("utf-8")[at:]))
            for text, step in steps:
                read = step["Actual Loops"] * (step["Actual Rows"] + step.get("Rows Removed by Filter", 0))
                assert read <= FULL // 10, (what, text, step)
            assert len(steps) > 5, what
        stage.link = store.connections.take()


def logged_steps(log: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Statements that the server has reported, and the steps of their plans that read tables."""
    for entry in LINE.split(log):
        if entry.startswith("duration: "):
            report, _ = json.JSONDecoder().raw_decode(entry.partition("plan:\n")[2].lstrip())
            for step in nodes(report["Plan"]):
                if step.get("Relation Name", "meta") not in ONE_ROW:
                    yield report["Query Text"], step
