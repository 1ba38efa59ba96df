"""Stores that an earlier release filled, opened by this one: nothing is lost, and what was handed out still counts."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tenure.core import commands as c
from tenure.core import lifecycle
from tenure.core.commands import AnyCommand, Principal
from tenure.core.errors import SchemaMismatch
from tenure.core.ids import parse_receipt
from tenure.core.records import KINDS, Brief, Cycles, Sink, Task, Webhook, replace
from tenure.engine import Context, Engine
from tenure.engine.duties.election import LeaderEngine, stand
from tenure.engine.relay.relay import Relay, Settings
from tenure.engine.relay.webhook_relay import WebhookRelay
from tenure.sealing.cipher import Cipher
from tenure.sealing.master_key import KeySource
from tenure.stores.port import TENANTS, Store
from tenure.testing.engine.webhooks import Receiver
from tenure.testing.factories import reading
from tenure.testing.memory_sink import MemorySink
from tests.upgrades.looks import looks
from tests.upgrades.old_stores import FOLDER, OldSqlite, OldStore, old_store
from tests.upgrades.world import MASTER_KEY, Dice

RELEASES = sorted(path.name for path in FOLDER.glob("[0-9]*"))

# Columns that a migration removed, or whose values it replaced on purpose: table → columns.
REWRITTEN: dict[str, set[str]] = {
    t: {"reason", "resume_at"}  # 0002: `pauses` and `cancelled`
    for t in ("task", "task_base")
} | {"epoch": {"place"}}  # 0019 of PostgreSQL: the OID of `meta`; the epoch itself is compared
# Columns that a migration renamed: table → former name → name.
RENAMED: dict[str, dict[str, str]] = {
    "task": {"answerable": "late_submit_open", "parked": "set_aside_for"},  # 0003
    "project": {"parked": "set_aside"},
    "leader": {"ticks": "duties_begun"},
    "trigger": {"told_at": "reported_at"},
}

# Tables that say how the store itself stands.
ABOUT_ITSELF = {"meta", "migration"}


@pytest.fixture(params=[(release, kind) for release in RELEASES for kind in ("sqlite", "postgres")], ids="-".join)
def old(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[OldStore]:
    """A store of an earlier release, at the place where it was last opened."""
    release, kind = request.param
    with old_store(kind, release, tmp_path, request) as found:
        found.settle()
        yield found


@pytest.fixture
def store(old: OldStore) -> Iterator[Store]:
    """The same store, opened by this program."""
    store = old.open(create=False)
    yield store
    store.close()


def engine_of(store: Store) -> Engine:
    sealer: Any = Cipher(KeySource({"TENURE_MASTER_KEY": MASTER_KEY}))
    return Engine(store, Dice("after the upgrade"), Context(sealer=sealer))


def needs_a_step(old: OldStore) -> None:
    if old.is_current:
        pytest.skip("this store has had no migration since")


def contents(old: OldStore, columns: dict[str, list[str]]) -> dict[str, Any]:
    return {table: old.rows(table, names) for table, names in columns.items()}


def test_the_fixture_has_every_kind_of_row_and_every_state(old: OldStore) -> None:
    columns = old.columns()
    tables = {kind.table for kind in KINDS.values()} & columns.keys()
    assert {table for table in tables if not old.rows(table, ["id"])} == set()
    assert {state for (state,) in old.rows("task", ["state"])} == set(lifecycle.STATES)
    assert "event_block" not in columns or old.rows("event_block", ["project"])


def test_every_row_is_kept_and_the_epoch_with_them(old: OldStore) -> None:
    before = old.columns()
    stays = {t: [n for n in names if n not in REWRITTEN.get(t, ())] for t, names in before.items()}
    rows = contents(old, stays)
    store = old.open(create=False)
    engine_of(store)
    with store.begin("local", write=False) as tx:
        assert tx.epoch == old.told["epoch"]
    assert not store.is_copy
    store.close()
    after = old.columns()
    stays = {t: [RENAMED.get(t, {}).get(n, n) for n in names] for t, names in stays.items()}
    assert {t: set(names) - set(after.get(t, ())) for t, names in stays.items()} == {t: set() for t in stays}
    now = contents(old, stays)
    assert {t for t in stays.keys() - ABOUT_ITSELF if now[t] != rows[t]} == set()
    assert rows["migration"] < now["migration"] or (old.is_current and rows["migration"] == now["migration"])


def test_every_promise_holds_afterwards_and_the_log_gives_the_tables_back(store: Store) -> None:
    assert store.check() == []
    for tenant in ("local", "acme") if TENANTS in store.features else ("local",):
        engine = Engine(store, Dice(tenant), Context(tenant=tenant))
        assert engine.verify() == []
        engine.sweep()
        assert engine.verify() == []


def test_receipts_that_were_handed_out_before_still_count(old: OldStore, store: Store) -> None:
    engine = engine_of(store)
    for name, told in old.told["receipts"].items():
        asked: c.Command
        if "judge" in told:
            asked = c.Judge(project=told["project"], receipt=told["judge"], ok=True)
        elif "unreserve" in told:
            asked = c.Unreserve(project=told["project"], receipt=told["unreserve"])
        else:
            asked = c.Submit(project=told["project"], receipt=told["receipt"], data=told.get("data", "after"))
        answer = engine.do(asked)
        assert (name, answer.outcome) == (name, told["answer"])
    assert engine.verify() == []


def test_who_held_a_task_before_goes_on_with_it_and_nobody_else_does(old: OldStore, store: Store) -> None:
    engine = engine_of(store)
    live, others = _live(old, store)
    assert len(live) > 5
    forged = {name: {**told, "receipt": _forged(told["receipt"])} for name, told in live.items()}
    for wanted, receipts in (("RENEWED", live), (None, others), (None, forged)):
        for name, told in receipts.items():
            answer = engine.do(c.Renew(project=told["project"], receipt=told["receipt"], lease=7 * 3600.0))
            assert (name, answer.outcome == "RENEWED") == (name, wanted == "RENEWED")
    for project in {told["project"] for told in live.values()}:  # in batches, as the fast path has them
        held = [told["receipt"] for told in live.values() if told["project"] == project]
        renewed: list[Any] = engine.run([c.Renew(project=project, receipt=r) for r in held])
        assert {answer.outcome for answer in renewed} == {"RENEWED"}
        stolen: list[Any] = engine.run([c.Submit(project=project, receipt=_forged(r), data="not mine") for r in held])
        assert "ACCEPTED" not in {answer.outcome for answer in stolen}
        done: list[Any] = engine.run([c.Submit(project=project, receipt=r, data="after") for r in held])
        assert {answer.outcome for answer in done} <= {"ACCEPTED", "VALIDATING"}
    assert engine.verify() == store.check() == []


def _live(old: OldStore, store: Store) -> tuple[dict[str, Any], dict[str, Any]]:
    """Receipts of tasks that are held under them, and of others."""
    live: dict[str, Any] = {}
    others: dict[str, Any] = {}
    for name, told in old.told["receipts"].items():
        if "receipt" in told:
            receipt = parse_receipt(told["receipt"])
            with store.begin("local", write=False) as tx:
                tasks = tx.find(Task, {"project": told["project"], "ref": receipt.name})
                now = tx.now
            is_live = [
                t.generation == receipt.generation and t.state in lifecycle.HELD and (t.lease_until or 0) > now
                for t in tasks
            ]
            (live if is_live == [True] else others)[name] = told
    return live, others


def _forged(receipt: str) -> str:
    """The same task and generation under another nonce."""
    genuine = parse_receipt(receipt)
    return str(replace(genuine, nonce=bytes(16)))


def test_it_answers_as_before(old: OldStore, store: Store) -> None:
    """Lists by state, holder, session, tag and dag, counts, histories, and the log from a cursor."""
    if "looks" not in old.told:
        pytest.skip("of a release that did not keep its answers")
    found = looks(engine_of(store))
    assert found.keys() == old.told["looks"].keys()
    assert {question for question, answer in found.items() if old.told["looks"][question] != answer} == set()


def test_a_request_from_before_is_answered_as_it_was(old: OldStore, store: Store) -> None:
    engine = engine_of(store)
    for told in old.told["repeats"]:
        command = msgspec.convert(told["command"], AnyCommand)
        answer = engine.do(command, msgspec.convert(told["principal"], Principal))
        first = told["outcome"]
        assert answer.again
        again = msgspec.json.decode(msgspec.json.encode(answer))
        if "receipt" in first or "receipt" in again:  # the same one, however this version spells it
            assert parse_receipt(again["receipt"]) == parse_receipt(first["receipt"]), command.request_id
        for field in ("outcome", "command_id", "generation", "work_product", "changed", "state"):
            assert (command.request_id, field, again.get(field)) == (command.request_id, field, first.get(field))
        assert _keys(again) == _keys(first)
    assert engine.verify() == []


def _keys(outcome: dict[str, Any]) -> list[str]:
    return [task["key"] for task in (outcome.get("task"), *(outcome.get("tasks") or ())) if task]


def test_work_goes_on_after_the_upgrade(store: Store) -> None:
    engine = engine_of(store)
    with store.begin("local", write=False) as tx:
        ready = tx.find(Task, {"project": "shop", "state": "ready"})
    for n in range(len(ready)):
        claimed = engine.do(c.ClaimNext(project="shop", agent="new", session=f"s-{n}"))
        if claimed.receipt is None:
            break
        assert engine.do(c.Submit(project="shop", receipt=claimed.receipt, data=n)).outcome == "ACCEPTED"
    else:
        n = len(ready)
    assert n > 5
    assert engine.verify() == []


def test_a_person_lifts_every_pause_that_was_a_persons_whatever_its_words(store: Store) -> None:
    engine = engine_of(store)
    with store.begin("local", write=False) as tx:
        titles = {brief.id: brief.title for brief in tx.find(Brief, {"project": "open"})}
        paused = tx.find(Task, {"project": "open", "state": "paused"})
    lifted = {titles[task.id] for task in paused if _resumed(engine, task.key) != "paused"}
    asked = {"paused by a question"}
    assert lifted == {titles[task.id] for task in paused} - asked
    assert engine.verify() == []


def _resumed(engine: Engine, key: str) -> str | None:
    return engine.do(c.Resume(project="open", task=key)).state


def test_a_copy_begins_an_epoch_of_its_own(request: pytest.FixtureRequest, tmp_path: Path) -> None:
    for kind in ("sqlite", "postgres"):
        with old_store(kind, RELEASES[-1], tmp_path, request) as old:
            store = old.open(create=False)
            assert store.is_copy
            engine = engine_of(store)
            held = old.told["receipts"]["claimed"]
            answer = engine.do(c.Submit(project=held["project"], receipt=held["receipt"]))
            assert answer.outcome == "STALE_EPOCH"
            assert engine.verify() == []
            store.close()


def test_an_older_program_refuses_the_upgraded_store(old: OldStore, monkeypatch: pytest.MonkeyPatch) -> None:
    needs_a_step(old)
    old.open(create=False).close()
    before = contents(old, old.columns())
    old.knowing(old.steps, monkeypatch)
    with pytest.raises(SchemaMismatch) as refusal:
        old.open(create=False)
    assert f"this version of tenure knows {old.steps}" in refusal.value.message
    assert "or newer" in (refusal.value.hint or "")
    assert contents(old, old.columns()) == before


def test_an_upgrade_that_is_cut_off_leaves_the_old_store_whole(old: OldStore, monkeypatch: pytest.MonkeyPatch) -> None:
    needs_a_step(old)
    columns = old.columns()
    before = contents(old, columns)
    program = f"import os\ndef leave(): os._exit(9)\n{old.opener()}"
    died = subprocess.run([sys.executable, "-c", program], check=False, capture_output=True, text=True, timeout=60)
    assert died.returncode == 9, died.stderr
    assert (old.columns(), contents(old, columns)) == (columns, before)
    with monkeypatch.context() as older:
        old.knowing(old.steps, older)
        old.open(create=False).close()
    store = old.open(create=False)
    assert engine_of(store).verify() == []
    store.close()


def test_an_sqlite_store_is_backed_up_beside_itself_first(tmp_path: Path) -> None:
    for release in RELEASES:
        folder = tmp_path / release
        folder.mkdir()
        old = OldSqlite(release, folder)
        if old.is_current:
            continue
        before = contents(old, old.columns())
        old.settle()
        old.open(create=False).close()
        old.path = folder / f"store.db.schema-{old.steps:04d}.backup"
        assert old.path.stat().st_mode & 0o777 == 0o600
        kept = contents(old, old.columns())
        assert {t for t in before.keys() - {"meta"} if kept[t] != before[t]} == set()


def test_what_waited_to_be_sent_is_sent_after_the_upgrade(old: OldStore, store: Store) -> None:
    if old.steps < 4:
        pytest.skip("of a release without webhooks and sinks")
    engine = engine_of(store)
    with store.begin("local", write=False) as tx:
        places = {row.id: row.sequence for row in tx.find(Sink, {})}
        rows = {row.id: row for row in tx.find(Webhook, {"project": "post"})}
        wanted = [e.id for e in tx.events({"project": "post"}, after=places["broker"])]
    assert (rows["ci"].enabled, rows["gone"].parked, rows["chosen"].previous != b"") == (False, 1, True)
    old.clock.advance(seconds=7200)  # the leader of then is gone
    led = LeaderEngine(engine, "new", stand(engine, "new", 3600, None, Cycles()).term or 0, lambda: None)
    receiver = Receiver()
    hooks = WebhookRelay(engine, receiver, lambda: led)  # type: ignore[arg-type]  # the rounds alone
    sinks = {name: MemorySink() for name in ("broker", "resting", "lost")}
    for name, sink in sinks.items():
        settings = Settings(name, f"nats://{name}:4222", projects=("post",))
        relay = Relay(engine, settings, partial(_same, sink), lambda: led, lambda: 0.0)
        while relay.step() == 0.0:
            pass
    for _ in range(5):
        hooks.step()
        for under_way in list(hooks._under_way.values()):
            under_way.future.result(10)
    assert [one.kind for one in receiver.got] == ["task.completed"]  # opened with the key that sealed it before
    assert [m.id for m in sinks["broker"].sent if m.name.startswith("evt.") and m.id in wanted] == wanted
    assert sinks["resting"].sent == []
    assert sinks["lost"].names("evt.")[0] == "evt.sink.gap.v1"
    assert engine.verify() == []


def _same(sink: MemorySink) -> MemorySink:
    return sink


def test_commands_from_before_are_undone(store: Store) -> None:
    engine = engine_of(store)
    with store.begin("local", write=False) as tx:
        titles = {brief.id: brief.title for brief in tx.find(Brief, {"project": "shop"})}
        before = {task.id: task for task in tx.find(Task, {"project": "shop"})}
        made_by = {e.causation_id: e.kind for e in tx.events({"project": "shop"}, limit=10_000) if e.task}
    undone = {}
    for command in sorted(filter(None, made_by), reverse=True):
        answer = engine.do(c.Undo(project="shop", command_id=command))
        if answer.ok:
            undone |= dict.fromkeys(answer.changed or (), made_by[command])
        else:
            assert answer.message, made_by[command]
    assert set(undone.values()) >= {"task.cancelled", "task.reset", "task.retried", "task.created", "task.unlinked"}
    back = {titles[task.id]: task for task in _tasks(engine) if before[task.id].state == "cancelled"}
    for title in ("by request", "the top", "below", "a part"):
        assert (title, back[title].state, back[title].cancelled) != (
            title,
            "cancelled",
            before[back[title].id].cancelled,
        )
    assert engine.verify() == []


def _tasks(engine: Engine) -> list[Task]:
    with reading(engine, ("shop",)) as work:
        return work.find(Task, {"project": "shop"})
