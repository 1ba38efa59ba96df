"""Events that a batch wrote as one row: whoever reads the log finds each of them where a single one would be."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tenure.client.caller import SystemRandom
from tenure.core import commands as c
from tenure.core.commands import NewTask
from tenure.core.events import Event
from tenure.core.filters import Range
from tenure.core.records import Task
from tenure.engine import Engine
from tenure.stores.postgres import Postgres, event_blocks
from tests.servers.postgres import PostgresServer, url_of

P = "shop"
BATCH = 12


@pytest.fixture
def engine(postgres: PostgresServer, tmp_path: Path) -> Iterator[Engine]:
    store = Postgres(url_of(tmp_path))
    yield Engine(store, SystemRandom())
    store.close()


def worked(engine: Engine, project: str = P, batch: int = BATCH) -> list[Any]:
    """So many tasks made, claimed in one batch by as many agents, and handed in in another; the grants."""
    names = [f"ann{n}" for n in range(batch)]
    engine.run([c.DefineProject(project=project)])
    engine.run([c.Register(project=project, agent=name, session=f"s-{name}") for name in names])
    engine.run([c.Add(project=project, task=NewTask(title=f"Task {n}")) for n in range(batch)])
    grants = engine.run([c.ClaimNext(project=project, agent=name, session=f"s-{name}") for name in names])
    assert [g.outcome for g in grants] == ["GRANTED"] * batch
    done = engine.run([c.Submit(project=project, receipt=str(g.receipt), data={"n": 1}) for g in grants])
    assert [d.outcome for d in done] == ["ACCEPTED"] * batch
    return list(grants)


def events(engine: Engine, _where: dict[str, Any] | None = None, **how: Any) -> list[Event]:
    with engine.store.begin("local", write=False) as tx:
        return tx.events({"project": P, **(_where or {})}, **{"limit": 10_000, **how})


def blocks(engine: Engine) -> list[tuple[Any, ...]]:
    store: Any = engine.store
    return list(store._read(f"SELECT first, last, project, kind FROM {store.queries.dialect.schema}event_block"))


# What the server gives of one event in a block, by the form of the block; form 2 has no ids and no state of before.
_OF_ALL = {
    "time": 1700000000000000, "project": "shop", "task": "task_01HF7YAT00TTTTTTTTTTTTTTTT", "key": "A-001-one",
    "version": 2, "track": "A", "generation": 1, "agent": "ann", "session": "s", "user": "al", "address": "10.0.0.1",
    "level": "info", "message": "", "trace_id": "t", "sequence": 2048,
}  # fmt: skip
_CLAIMED = {"kind": "task.claimed", "new_state": "claimed", "epoch": "0a0b0c0d", "claimer": "al"}
_COMPLETED = {"kind": "task.completed", "new_state": "completed", "claimer": None}
_IDS = {"id": "evt_01HF7YAT00EEEEEEEEEEEEEEEE", "causation_id": "cmd_01HF7YAT00CCCCCCCCCCCCCCCC"}
_BY_SEED = {"form": 2, "seed": b"0123456789", "place": 2, "size": 3}
_RESULT = (
    '{"id":"result_01HF7YAT00RRRRRRRRRRRRRRRR","project":"shop","size":4,"digest":"74234e98afe7498fb5daf1f36ac2d78a"}'
)
FORMS: dict[str, dict[str, Any]] = {
    "1 claimed": {**_CLAIMED, **_IDS, "previous_state": "ready", "request_id": "r", "request_hash": "2:h",
                  "facts": "1,1,900000000", "form": 1},
    "1 completed": {**_COMPLETED, **_IDS, "previous_state": "running", "said": _RESULT,
                    "facts": "1,1699999999000000,2,0,abcdef", "form": 1},
    "1 completed, before 0.2": {**_COMPLETED, **_IDS, "previous_state": "claimed", "said": _RESULT,
                                "facts": "1,1699999999000000,0,1", "form": 1},
    "2 claimed": {**_CLAIMED, **_BY_SEED, "request_id": "r", "request_hash": "2:h", "facts": "1,1,900000000,1"},
    "2 completed": {**_COMPLETED, **_BY_SEED, "said": '{"ok":true}', "summary": "done", "request_id": "w",
                    "facts": "1,1699999999000000,2,0,abcdef"},
    "2 completed, nothing said": {**_COMPLETED, **_BY_SEED, "facts": "1,1699999999000000,0,1,abcdef"},
    "2 completed, of a later claim": {**_COMPLETED, **_BY_SEED, "generation": 3, "previous_state": "claimed",
                                      "facts": "1,1699999999000000,0,0,abcdef"},
}  # fmt: skip
GOLDEN = Path(__file__).with_name("blocks.json")


def test_every_form_reads_as_it_did_when_it_was_new() -> None:
    """A block is never written again: what was read from it once is read from it for ever."""
    read = event_blocks.reader()
    names = (*event_blocks._FIELDS, *event_blocks._BESIDE)
    told = {
        form: json.loads(msgspec.json.encode(read([({**_OF_ALL, **values}).get(name) for name in names])))
        for form, values in FORMS.items()
    }
    assert told == json.loads(GOLDEN.read_text("utf-8"))
    assert {values["form"] for values in FORMS.values()} == event_blocks.FORMS


def test_a_form_of_a_later_version_is_not_guessed() -> None:
    """It might mean anything: the sealed log must not say that such an event is as it was."""
    read = event_blocks.reader()
    names = (*event_blocks._FIELDS, *event_blocks._BESIDE)
    values = {**_OF_ALL, **FORMS["2 completed, of a later claim"], "form": max(event_blocks.FORMS) + 1}
    with pytest.raises(ValueError, match="which this version does not know"):
        read([values.get(name) for name in names])
    with pytest.raises(ValueError, match="has no seed"):  # and one that somebody damaged is no bug of ours
        read([{**values, "form": 2, "seed": None}.get(name) for name in names])


def test_a_batch_is_one_row_and_reads_as_many_events(engine: Engine) -> None:
    worked(engine)
    assert [(kind, last - first + 1) for first, last, _, kind in sorted(blocks(engine))] == [
        ("task.claimed", BATCH),
        ("task.completed", BATCH),
    ]
    log = events(engine)
    assert [e.sequence for e in log] == sorted({e.sequence for e in log})
    assert [e.kind for e in log[-2 * BATCH :]] == ["task.claimed"] * BATCH + ["task.completed"] * BATCH
    assert engine.store.mark("local") == log[-1].sequence
    assert engine.verify() == []


def test_a_page_may_begin_and_end_inside_a_block(engine: Engine) -> None:
    worked(engine)
    log = events(engine)
    for at in range(0, len(log), 5):
        page = events(engine, after=log[at].sequence, limit=7)
        assert page == log[at + 1 : at + 8]
        assert events(engine, after=log[at].sequence, limit=7, last=True) == log[at + 1 :][-7:]
    with engine.store.begin("local", write=False) as tx:
        assert tx.events({}, after=log[-3].sequence) == log[-2:]
        assert tx.events({}, limit=3, last=True) == log[-3:]


def test_events_are_found_by_all_that_they_say(engine: Engine) -> None:
    worked(engine)
    log = events(engine)
    event = log[-BATCH - 3]
    assert event.kind == "task.claimed"
    for where in (
        {"task": event.task}, {"session": event.session}, {"agent": event.agent}, {"key": event.key},
        {"causation_id": event.causation_id}, {"id": event.id}, {"kind": "task.claimed", "new_state": "claimed"},
        {"task": (event.task, log[-1].task)}, {"task": event.task, "generation": 1}, {"version": event.version},
        {"time": Range(event.time, event.time + 1)}, {"session": event.session, "task": event.task},
    ):  # fmt: skip
        wanted = [e for e in log if all(_fits(e, field, value) for field, value in where.items())]
        assert event in wanted
        assert events(engine, where) == wanted, where
        assert events(engine, where, limit=1, last=True) == wanted[-1:], where
    assert events(engine, {"task": ()}) == []


def _fits(event: Event, field: str, wanted: Any) -> bool:
    value = getattr(event, field)
    if isinstance(wanted, Range):
        return bool(wanted.low <= value < wanted.high)  # type: ignore[operator]  # both are given here
    return value in wanted if isinstance(wanted, tuple) else value == wanted


def test_what_is_dropped_leaves_its_neighbours(engine: Engine) -> None:
    grants = worked(engine)
    before = events(engine)
    some = [g.task["id"] for g in grants[:4]]
    with engine.store.begin("local", write=True) as tx:
        tx.drop_events(P, some)
    left = [e for e in before if e.task not in some]
    assert events(engine) == left
    assert len(blocks(engine)) == 2
    with engine.store.begin("local", write=True) as tx:
        tx.drop_events(P, [g.task["id"] for g in grants])
    assert events(engine) == [e for e in before if e.task is None or e is before[-1]]
    assert [kind for *_, kind in blocks(engine)] == ["task.completed"]


def test_what_only_some_of_a_batch_may_do_is_told_of_those(engine: Engine) -> None:
    grants = worked(engine)
    engine.run([c.Add(project=P, task=NewTask(title=f"More {n}")) for n in range(BATCH)])
    names = [f"ann{n}" for n in range(BATCH)]
    more = engine.run([c.ClaimNext(project=P, agent=name, session=f"s-{name}") for name in names])
    mixed = [g for pair in zip(more, grants, strict=True) for g in pair]
    done = engine.run([c.Submit(project=P, receipt=str(g.receipt), data={"n": 2}) for g in mixed])
    assert [d.outcome == "ACCEPTED" for d in done] == [True, False] * BATCH
    accepted = [e.task for e in events(engine, {"kind": "task.completed"})]
    assert sorted(accepted) == sorted(g.task["id"] for g in [*grants, *more])
    assert engine.verify() == []


def test_sequences_of_one_block_are_nobody_elses(engine: Engine) -> None:
    projects = [f"p{n}" for n in range(4)]
    begin = threading.Barrier(len(projects))

    def work(project: str) -> None:
        begin.wait(30)
        for _ in range(3):
            worked(engine, project, 40)

    threads = [threading.Thread(target=work, args=(project,)) for project in projects]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    with engine.store.begin("local", write=False) as tx:
        log = tx.events({}, limit=100_000)
        tasks = tx.count(Task, {}, "state")
    assert [e.sequence for e in log] == sorted({e.sequence for e in log})
    assert tasks == {"completed": len(projects) * 3 * 40}
    places = sorted((first, last) for first, last, *_ in blocks(engine))
    assert all(a[1] < b[0] for a, b in pairwise(places))
    assert {last - first + 1 for first, last in places} == {40}
    assert engine.verify() == []
