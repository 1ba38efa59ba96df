"""Claims beside a transaction that stays open: they begin behind what the server cannot remove, and miss nothing."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tenure.client.caller import SystemRandom
from tenure.core import commands as c
from tenure.core.outcomes import Outcome
from tenure.engine import Engine
from tenure.stores.postgres import Postgres
from tenure.stores.postgres.address import parse
from tenure.stores.postgres.connection import connect
from tests.servers.postgres import PostgresServer, url_of

P = "p"
AGENTS = {"s": "ann", "b": "bo", "mine": "cy", "other": "di"}  # session → agent
ONE = c.ClaimNext(project=P, agent="ann", session="s")
MANY = 1400  # tasks: starts are written about once in 1,024 events


@pytest.fixture
def engine(postgres: PostgresServer, tmp_path: Path) -> Iterator[Engine]:
    """Of a project with so many tasks, and an agent who is known."""
    store = Postgres(url_of(tmp_path))
    engine = Engine(store, SystemRandom())
    engine.do(c.DefineProject(project=P))
    engine.do(c.Add(project=P, task=c.NewTask(title="first", priority=100)))
    for _ in range(2):
        engine.do(c.AddMany(project=P, tasks=(c.NewTask(title="x"),) * (MANY // 2)))
    for session, agent in AGENTS.items():
        engine.do(c.Register(project=P, agent=agent, session=session))
    yield engine
    store.close()


def asked(engine: Engine, text: str) -> list[tuple[object, ...]]:
    assert isinstance(engine.store, Postgres)
    rows: list[tuple[object, ...]] = engine.store._read(text.format(s=engine.store.queries.dialect.schema))
    return rows


def starts(engine: Engine) -> list[tuple[object, ...]]:
    return asked(engine, "SELECT lane, sequence FROM {s}lane_start")


def misplaced(engine: Engine) -> list[str]:
    assert isinstance(engine.store, Postgres)
    return engine.store.check()


def claimed(engine: Engine, n: int, session: str = "s") -> list[Outcome]:
    command = c.ClaimNext(project=P, agent=AGENTS[session], session=session)
    outcomes = engine.run([command] * n)
    assert {outcome.outcome for outcome in outcomes} == {"GRANTED"}
    return outcomes


def until_started(engine: Engine) -> list[Outcome]:
    """Claims write the start at each 1,024th number of an event: here after some 300."""
    asked(
        engine,
        "SELECT setval('{s}event_sequence_seq', (last_value / 1024 + 1) * 1024 + 700) FROM {s}event_sequence_seq",
    )
    found: list[Outcome] = []
    while not starts(engine):
        found += claimed(engine, 50)
        assert len(found) < 1100
    return found


def held_from(engine: Engine) -> tuple[object, ...]:
    (found,) = asked(engine, "SELECT held_from FROM {s}session WHERE id = 'mine'")
    return found


def until_held_from(engine: Engine) -> None:
    count = 0
    while held_from(engine) == (0,):
        submitted(engine, claimed(engine, 16, "mine"))
        count += 1
        assert count < 20


def submitted(engine: Engine, outcomes: list[Outcome]) -> None:
    done = [c.Submit(project=P, receipt=one.receipt or "", data={"ok": True}) for one in outcomes]
    assert {outcome.outcome for outcome in engine.run(done)} == {"ACCEPTED"}


def entries_read(engine: Engine) -> int:
    """Of the queue's key, also those of rows that are gone; by the store's one connection, which counts them."""
    asked(engine, "SELECT 1 FROM (SELECT pg_stat_force_next_flush()) AS flushed")
    text = "SELECT sum(idx_tup_read)::bigint FROM pg_stat_user_indexes WHERE indexrelname = 'queue_pkey'"
    ((count,),) = asked(engine, text)
    assert isinstance(count, int)
    return count


def test_a_claim_begins_behind_what_an_older_reader_keeps(engine: Engine, tmp_path: Path) -> None:
    reader = connect(parse(url_of(tmp_path)).conninfo, 30)
    try:
        text = "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM {s}queue"
        assert isinstance(engine.store, Postgres)
        reader.script(text.format(s=engine.store.queries.dialect.schema))
        passed = len(until_started(engine))
        before = entries_read(engine)
        assert engine.do(ONE).outcome == "GRANTED"
        assert entries_read(engine) - before < 60 < passed
        before = entries_read(engine)
        with engine.store.begin("local", write=False) as tx:  # the ordinary path passes them once: lanes from the end
            assert len(tx.lanes(P)) == 1
        assert passed <= entries_read(engine) - before < 2 * passed
    finally:
        reader.close()


@pytest.mark.parametrize("by", ["release", "priority", "many"])
def test_what_is_queued_in_front_of_a_start_is_claimed_next(engine: Engine, by: str) -> None:
    first, *_ = until_started(engine)
    if by == "release":
        assert engine.do(c.Release(project=P, receipt=first.receipt or "", reason="not now")).ok
        expected = first.task["key"] if first.task else ""
    else:
        tasks = (c.NewTask(title="now", priority=0),) * (1 if by == "priority" else 40)
        made = engine.run([c.AddMany(project=P, tasks=tasks) if by == "many" else c.Add(project=P, task=tasks[0])])
        expected = made[0].tasks[0]["key"] if by == "many" else made[0].task["key"]  # type: ignore[index]
    assert (starts(engine), misplaced(engine)) == ([], [])
    got = engine.do(c.ClaimNext(project=P, agent="bo", session="b"))
    assert (got.task or {})["key"] == expected


def test_a_claim_names_what_its_session_holds_whatever_its_number(engine: Engine) -> None:
    """Numbers grow with the tasks; a session may claim an older task after a newer one."""
    early = claimed(engine, 1, "other")
    until_held_from(engine)
    assert engine.do(c.Release(project=P, receipt=early[0].receipt or "", reason="not now")).ok
    key = early[0].task["key"] if early[0].task else ""
    back = engine.do(c.ClaimTask(project=P, agent="cy", session="mine", task=key))
    assert back.outcome == "GRANTED"
    assert misplaced(engine) == []
    assert claimed(engine, 1, "mine")[0].unfinished == (key,)


def test_a_claim_of_the_fast_path_too_names_an_older_task(engine: Engine) -> None:
    until_held_from(engine)
    assert engine.do(c.Edit(project=P, task="A-001", changes={"priority": 0})).ok
    (oldest,) = claimed(engine, 1, "mine")
    key = (oldest.task or {})["key"]
    assert key == "A-001-first"
    (number,) = asked(engine, "SELECT min(number) FROM {s}task_base")
    assert held_from(engine) == number
    assert misplaced(engine) == []
    assert claimed(engine, 1, "mine")[0].unfinished == (key,)


def test_a_start_with_tasks_in_front_of_it_is_found(engine: Engine) -> None:
    until_started(engine)
    assert misplaced(engine) == []
    assert isinstance(engine.store, Postgres)
    link = engine.store.connections.take()
    link.script(f"UPDATE {engine.store.queries.dialect.schema}lane_start SET sequence = sequence + 5")
    engine.store.connections.give(link)
    assert any("starts" in text for text in misplaced(engine))
