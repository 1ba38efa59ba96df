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

from tenure.client.caller import SystemRandom
from tenure.core import commands as c
from tenure.engine import Context, Engine
from tenure.stores.fast_path import Call
from tenure.stores.postgres import Postgres, hot_functions
from tenure.stores.postgres.connection import Connection
from tests.servers.postgres import PostgresServer
from tests.stores.test_postgres_plans import nodes
from tests.stores.test_postgres_sharing import MANY, P, added, asked_for, claimed, handed_in, renewal, submits

SCHEMA = "hot_plans"
FULL = 1200  # tasks
SOME = 5  # commands of a call
MOST_ROWS = 4 * SOME  # that a step may read; it may look at what a session holds
ONE_ROW = {"meta", "epoch", "space", "event_sequence_seq"}
REPORT = """
LOAD 'auto_explain';
SET auto_explain.log_min_duration = 0; SET auto_explain.log_nested_statements = on; SET auto_explain.log_analyze = on;
SET auto_explain.log_timing = off; SET auto_explain.log_format = json; SET auto_explain.log_level = warning;
"""


class Told(NamedTuple):
    """A statement inside of a function, and the steps of its plan."""

    text: str
    steps: list[dict[str, Any]]


class Stage:
    """A store, and one session of the server that calls the functions by hand."""

    def __init__(self, store: Postgres) -> None:
        self.store = store
        self.engine = Engine(store, SystemRandom())
        self.link: Connection = store.connections.take()
        self.engine.do(c.DefineProject(project=P))
        self.engine.run([c.Register(project=P, agent=f"ann{n}", session=f"s{n}") for n in range(MANY)])

    def call(self, call: Call) -> list[tuple[Any, ...]]:
        statement = hot_functions.statement(self.store, "local", call, None, [call])
        return self.link.run([statement])[0].rows()

    def explained(self, call: Call) -> list[Told]:
        self.link.notices.clear()
        assert len(self.call(call)) == SOME
        told = []
        for notice in self.link.notices:
            found = json.loads(notice.message.partition("plan:\n")[2])
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


@contextmanager
def new_stage(postgres: PostgresServer) -> Iterator[Stage]:
    """On tables that were just created: those that tests share have been analysed and emptied by others."""
    store = Postgres(f"{postgres.url}?schema={SCHEMA}")
    try:
        stage = Stage(store)
        yield stage
        store.connections.give(stage.link)
    finally:
        store.use(lambda link: link.script(f"RESET ALL; DROP SCHEMA {SCHEMA} CASCADE"))
        store.close()


def analyse(stage: Stage) -> None:
    tables = stage.link.all("SELECT tablename FROM pg_tables WHERE schemaname = ?", [SCHEMA])
    stage.link.run([(f"ANALYZE {SCHEMA}.{name}", ()) for (name,) in tables])


@pytest.fixture(scope="module", params=["planned on empty tables", "planned on full ones"])
def reports(postgres: PostgresServer, request: pytest.FixtureRequest) -> dict[str, list[Told]]:
    with new_stage(postgres) as stage:
        if request.param == "planned on empty tables":
            added(stage.engine, 3 * MANY)
            for _, call in everything(stage, "first"):
                stage.call(call())
        stage.fill(FULL)
        if request.param == "planned on full ones":
            analyse(stage)
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


@pytest.mark.parametrize("when", ["planned on empty tables", "planned on full ones"])
def test_no_statement_of_the_ordinary_path_reads_whole_tables(postgres: PostgresServer, when: str) -> None:
    with new_stage(postgres) as stage:
        store = stage.store
        store.connections.give(stage.link)  # the engine uses this one, since it was given back last
        if when == "planned on empty tables":
            for _, do in commands(stage, "first"):
                do()
        stage.fill(FULL)
        if when == "planned on full ones":
            analyse(stage)
        store.use(lambda link: link.script(QUIETLY))
        for what, do in commands(stage, "then"):
            at = postgres.log.stat().st_size
            do()
            steps = list(logged_steps(postgres.log.read_text("utf-8")[at:]))
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
