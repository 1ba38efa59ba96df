"""A tenant moved to another store: all of it, with one home at any time, whenever the mover dies or sleeps."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tenure.client.tenant_move import _Stores
from tenure.core import commands as c
from tenure.core import lifecycle, regions
from tenure.core import queries as q
from tenure.core import tenant_moves as rules
from tenure.core.errors import InvalidInput, MoveRefused, NotHome, StoreUnavailable, TenantMoving, TenureError
from tenure.core.records import KINDS, Claim, Cursor, Result, Seal, Spawn, Task, replace
from tenure.engine import Context, Engine, tenant_move
from tenure.engine.reads.query_table import read_query
from tenure.engine.runtime.tenancy import TenantEngines, row_of
from tenure.engine.tenant_move import NewPlace
from tenure.stores.memory import Memory
from tenure.stores.port import Store
from tenure.stores.router import Router
from tenure.testing import FakeClock
from tenure.testing.factories import PROJECT, SECRETS, Scene
from tests.engine.rich_scene import enrich
from tests.servers.store_servers import SERVERS

CLOCK = FakeClock()
ACME: Context = replace(SECRETS, tenant="acme")
THERE = "postgresql://there/db"
STEPS = ("begin", "freeze", "copy", "switch", "open")


class Died(BaseException):
    """The mover was killed: nothing of it runs any more."""


class World:
    """A home store, another store, and the tenant `acme`."""

    def __init__(self, home: Store, there: Store) -> None:
        self.home = Scene(home, CLOCK)
        self.stores = {THERE: there}
        self.home.engine.do(c.AddTenant(tenant="acme"))
        self.engines = TenantEngines(self.home.engine, lambda: 0.0, router=Router(self.open, lambda: 0.0))
        self.acme = Scene(home, CLOCK, seed=3, context=ACME)

    def open(self, url: str) -> Store:
        if url not in self.stores:
            raise StoreUnavailable(f"{url} is not there")
        return self.stores[url]

    @property
    def row(self) -> Any:
        return row_of(self.home.store, "acme")

    @property
    def engine(self) -> Engine:
        """Of the tenant, where its row says that it is."""
        return self.engines.find("acme")

    def stores_of(self) -> _Stores:
        return _Stores(self.home.engine, "acme", self.open)

    def begin(self, url: str | None = THERE, region: str | None = None) -> None:
        tenant_move.begin(self.home.engine, "acme", NewPlace(url, region))

    def finish(self, step: Callable[[str], None] = lambda _: None, **how: Any) -> tenant_move.MovedTenant:
        return tenant_move.finish(self.home.engine, "acme", self.stores_of(), step, **how)

    def move(self, url: str | None = THERE, region: str | None = None) -> tenant_move.MovedTenant:
        self.begin(url, region)
        return self.finish()

    def stay(self) -> None:
        tenant_move.call_off(self.home.engine, "acme", self.stores_of())

    def die_after(self, step: str, monkeypatch: pytest.MonkeyPatch) -> None:
        """Begin a move whose process is killed after this step."""
        self.begin()
        if step == "begin":
            return

        def killed(done: str) -> None:
            if done == step:
                raise Died

        with monkeypatch.context() as patched:
            patched.setattr(tenant_move, "call_off", lambda *_: None)
            with pytest.raises(Died):
                self.finish(killed)

    def takes_writes(self) -> list[str]:
        """The stores that have rows of the tenant, and take its writes."""
        taken = []
        for store in (self.home.store, *self.stores.values()):
            if not store.mark("acme"):
                continue
            try:
                Engine(store, self.home.dice, ACME).do(c.DefineProject(project="x"))
            except TenantMoving:
                continue
            taken.append(store.url)
        return taken


@pytest.fixture
def opened(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Callable[[str], Store]]:
    stores: list[Store] = []

    def open_one(kind: str) -> Store:
        folder = tmp_path / f"store-{len(stores)}"
        folder.mkdir()
        if kind == "memory":
            stores.append(Memory(f"memory://{len(stores)}", clock=CLOCK))
        else:
            request.getfixturevalue(kind)
            stores.append(SERVERS[kind].open_store(folder, CLOCK))
        return stores[-1]

    yield open_one
    for store in stores:
        store.close()


@pytest.fixture
def world(opened: Callable[[str], Store]) -> World:
    return World(opened("memory"), opened("memory"))


def told(engine: Engine) -> dict[str, Any]:
    """All that a store has of the tenant, but for what a copy changes: positions in the log, seals, the leader."""
    apart = {"log_cursor", "trigger", "webhook", "sink", "seal", "leader", "spawn", "reservation"}
    with engine.store.begin("acme", write=False) as tx:
        names = ("", *(row.id for row in tx.find(tenant_move.Project, {})))
        rows = {
            f"{name} {kind.table}": tx.find(row, {"project": name})
            for name in names
            for row, kind in KINDS.items()
            if kind.table not in apart
        }
        events = tx.events({}, limit=1_000_000)
    return rows | {"event": [e.id for e in events if e.kind not in ("epoch.started", "leader.lost")]}


@pytest.mark.parametrize(
    ("here", "there"),
    [
        ("memory", "postgres"),
        pytest.param("postgres", "postgres", marks=pytest.mark.nightly),
        pytest.param("postgres", "mariadb", marks=pytest.mark.nightly),
        pytest.param("mariadb", "postgres", marks=pytest.mark.nightly),
        pytest.param("valkey", "postgres", marks=pytest.mark.nightly),
    ],
)
def test_everything_arrives_and_comes_back(opened: Callable[[str], Store], here: str, there: str) -> None:
    world = World(opened(here), opened(there))
    rich = enrich(world.acme)
    world.acme.engine.do(c.CreateKey(name="k", role="agent", agent="ann"))
    head = read_query(world.acme.engine, q.AuditHead(project=PROJECT))["head"]
    moved = world.move(region="us")
    assert (moved.number, moved.region) == (1, "us")
    assert (world.row.isolation, world.row.region, world.row.moving, world.row.other_store) == (
        "instance",
        "us",
        "",
        b"",
    )
    assert world.engine.store is world.stores[THERE]
    assert told(world.engine) == told(Engine(world.home.store, world.home.dice, ACME))
    assert world.engine.verify() == []
    assert read_query(world.engine, q.VerifyAudit(project=PROJECT, head=head))["findings"] == []
    for receipt in rich.receipts.values():
        outcome = world.engine.do(c.Submit(project=PROJECT, receipt=receipt, data="late"))
        assert outcome.outcome == "STALE_EPOCH"
    if here == "valkey":
        return  # it cannot replace what was left there
    world.engine.do(c.Add(project=PROJECT, task=c.NewTask(title="made there")))
    world.move(None)
    assert (world.row.isolation, world.row.store) == ("logical", b"")
    assert told(world.engine) == told(Engine(world.stores[THERE], world.home.dice, ACME))
    assert world.engine.verify() == []
    assert world.home.engine.verify() == []
    audit = read_query(world.engine, q.VerifyAudit(project=PROJECT, head=head))
    assert audit["findings"] == []
    assert world.takes_writes() == [world.home.store.url]


def test_live_claims_end_with_their_attempt_given_back_and_late_results_are_kept(world: World) -> None:
    key = world.acme.add("work", max_attempts=1)
    receipt = world.acme.take(key)
    before = world.engine.read(lambda tx: tx.epoch)
    held: list[Any] = []

    def step(done: str) -> None:
        if done == "freeze":
            held.append(world.acme.engine.read(lambda tx: tx.find(Task, {"state": lifecycle.HELD})))

    world.begin()
    world.finish(step)
    assert held == [[]]  # before anything is copied
    moved = Scene(world.stores[THERE], CLOCK, seed=4, context=ACME)
    task = moved.task(key)
    assert (task.state, task.attempts) == ("ready", 0)
    assert moved.rows(Claim)[0].reason == "ERROR"
    assert moved.engine.read(lambda tx: tx.epoch) != before
    assert moved.submit(receipt, "late").outcome == "STALE_EPOCH"
    assert [result.data for result in moved.rows(Result)] == ["late"]
    again = moved.take(key, "bo")
    assert moved.submit(again).outcome == "ACCEPTED"
    assert moved.submit(receipt, "later").outcome != "ACCEPTED"


def test_other_tenants_keep_their_epoch_and_their_claims(world: World) -> None:
    world.home.engine.do(c.AddTenant(tenant="zeta"))
    zeta = Scene(world.home.store, CLOCK, seed=5, context=replace(SECRETS, tenant="zeta"))
    receipt = zeta.take(zeta.add("theirs"))
    world.move()
    assert zeta.do(c.Renew, receipt=receipt).outcome == "RENEWED"
    assert zeta.submit(receipt).outcome == "ACCEPTED"


def test_while_it_moves_writes_are_refused_and_reads_go_on(world: World) -> None:
    key = world.acme.add("work")
    receipt = world.acme.take(key)
    seen = []

    def step(done: str) -> None:
        if done in ("freeze", "copy"):
            claim = c.ClaimNext(project=PROJECT, agent="bo", session="s")
            for command in (c.Renew(project=PROJECT, receipt=receipt), claim):
                (answer,) = world.acme.engine.run((command,))
                assert isinstance(answer, TenantMoving), answer
                assert answer.definite
            assert read_query(world.acme.engine, q.Show(project=PROJECT, task=key))["key"] == key
            assert world.takes_writes() == []
            seen.append(done)

    world.begin()
    world.finish(step)
    assert seen == ["freeze", "copy"]


@pytest.mark.parametrize("step", STEPS)
def test_a_mover_that_was_killed_is_run_again(world: World, step: str, monkeypatch: pytest.MonkeyPatch) -> None:
    key = world.acme.add("work")
    world.die_after(step, monkeypatch)
    assert len(world.takes_writes()) == (1 if step in ("begin", "open") else 0)
    assert world.row.moving == ("arriving" if step in ("switch", "open") else "leaving")
    world.finish()
    assert world.takes_writes() == [world.stores[THERE].url]
    assert world.row.moving == ""
    assert world.engine.verify() == []
    assert world.engine.do(c.ClaimTask(project=PROJECT, task=key, agent="bo", session="s")).outcome == "GRANTED"


@pytest.mark.parametrize("step", STEPS)
def test_until_the_switch_a_move_can_be_called_off(world: World, step: str, monkeypatch: pytest.MonkeyPatch) -> None:
    world.acme.add("work")
    world.die_after(step, monkeypatch)
    if step in ("switch", "open"):
        with pytest.raises(MoveRefused):
            world.stay()
        return
    world.stay()
    assert world.takes_writes() == [world.home.store.url]
    assert (world.row.moving, world.row.other_store, world.row.moves) == ("", b"", 1)
    world.acme.add("written since")
    world.move()
    assert world.takes_writes() == [world.stores[THERE].url]
    with world.stores[THERE].begin("acme", write=False) as tx:
        assert len(tx.find(Task, {"project": PROJECT})) == 2


@pytest.mark.parametrize("step", ["freeze", "copy"])
def test_a_mover_that_slept_cannot_go_on_after_it_was_called_off(world: World, step: str) -> None:
    """It wakes when the tenant has been moved by another, has moved back, and is in use."""
    world.acme.add("work")

    def slept(done: str) -> None:
        if done == step:
            world.stay()
            world.move()
            world.engine.do(c.Add(project=PROJECT, task=c.NewTask(title="there")))
            if step == "copy":
                world.move(None)
                Scene(world.home.store, CLOCK, seed=9, context=ACME).add("and back")

    world.begin()
    with pytest.raises((MoveRefused, TenureError)):
        world.finish(slept)
    assert len(world.takes_writes()) == 1
    assert world.engine.store.url in world.takes_writes()
    tasks = world.engine.read(lambda tx: tx.find(Task, {"project": PROJECT}))
    assert len(tasks) == (2 if step == "freeze" else 3)
    assert world.engine.verify() == []


def test_a_mover_that_slept_copies_nothing_that_is_in_use_again(world: World) -> None:
    world.acme.add("work")

    def slept(done: str) -> None:
        if done == "freeze":
            world.stay()
            world.acme.add("written since")

    world.begin()
    with pytest.raises(MoveRefused):
        world.finish(slept)
    assert world.stores[THERE].mark("acme") == 0
    world.move()
    assert len(world.engine.read(lambda tx: tx.find(Task, {"project": PROJECT}))) == 2


def test_a_mover_that_slept_before_the_freeze_opens_what_it_froze(world: World) -> None:
    world.begin()
    row = world.row
    world.stay()
    with pytest.raises(MoveRefused):
        tenant_move._leave(world.home.engine, row, world.stores_of(), lambda _: None, promoted=False)
    assert world.takes_writes() == [world.home.store.url]


def test_a_move_that_fails_is_called_off(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.acme.add("work")
    monkeypatch.setattr(tenant_move, "digest", lambda tx, *_: id(tx))
    with pytest.raises(TenureError):
        world.move()
    assert world.takes_writes() == [world.home.store.url]
    monkeypatch.undo()
    world.move()
    world.stores.clear()
    with pytest.raises(StoreUnavailable):
        world.move("postgresql://nowhere/db")


def test_a_tenant_in_use_is_never_replaced(world: World) -> None:
    Scene(world.stores[THERE], CLOCK, context=ACME).add("somebody's")
    with pytest.raises(MoveRefused) as refused:
        world.move()
    assert "in use" in refused.value.message
    assert world.takes_writes() == [world.home.store.url, world.stores[THERE].url]


@pytest.mark.parametrize("how", [{"url": None}, {"url": "sqlite:///x"}, {"url": "x"}, {"region": "no region"}])
def test_a_target_that_cannot_be_is_refused(world: World, how: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput):
        world.move(**how)
    assert world.takes_writes()[0] == world.home.store.url


def test_only_one_move_is_under_way(world: World) -> None:
    world.begin()
    with pytest.raises(MoveRefused):
        world.begin("postgresql://elsewhere/db")


def test_a_new_epoch_leaves_a_frozen_tenant_frozen(world: World) -> None:
    world.move()
    former = Engine(world.home.store, world.home.dice, ACME)
    former.new_epoch("a failover")
    assert world.takes_writes() == [world.stores[THERE].url]
    assert rules.frozen_by(former.read(lambda tx: tx.epoch)) == 1


def test_a_reader_of_the_log_goes_on_where_it_was(world: World) -> None:
    world.move()
    world.move(None)  # from here on sequences differ there
    template = c.Template(tasks=(c.NewTask(title="follow"),))
    world.acme.do(c.SetTrigger, trigger="t", on="task.completed", template=template)
    world.acme.add("work")
    with world.home.store.begin("acme", write=False) as tx:
        before = {row.id: _after(tx, row.sequence) for row in tx.find(Cursor, {"project": PROJECT})}
    world.move()
    with world.stores[THERE].begin("acme", write=False) as tx:
        after = {row.id: _after(tx, row.sequence) for row in tx.find(Cursor, {"project": PROJECT})}
    assert before
    assert {name: events[: len(before[name])] for name, events in after.items()} == before


def _after(tx: Any, sequence: int) -> list[str]:
    return [event.id for event in tx.events({}, after=sequence, limit=1000)]


def test_processes_of_the_former_store_are_not_taken_along(world: World) -> None:
    assert Spawn not in tenant_move.copied_kinds()
    assert Seal in tenant_move.copied_kinds()


# --- the freeze, in the store ---------------------------------------------------------------------------------


def test_the_fast_path_is_frozen_too(opened: Callable[[str], Store]) -> None:
    scene = Scene(opened("postgres"), CLOCK, seed=3, context=ACME)
    scene.know("ann")
    receipt = scene.take(scene.add("held", priority=60))
    scene.add("never claimed, so that the fast path may take it", priority=20)
    tenant_move._freeze(tenant_move.MoverEngine(scene.store, scene.dice, ACME), 1)
    for command in (
        c.ClaimNext(project=PROJECT, agent="ann", session="s-ann"), c.Renew(project=PROJECT, receipt=receipt),
        c.Submit(project=PROJECT, receipt=receipt, data="x"),
    ):  # fmt: skip
        (answer,) = scene.engine.run((command,))
        assert isinstance(answer, TenantMoving), command


@pytest.mark.parametrize("kind", ["postgres", pytest.param("mariadb", marks=pytest.mark.nightly)])
def test_a_copy_of_the_database_leaves_a_frozen_tenant_frozen(opened: Callable[[str], Store], kind: str) -> None:
    store: Any = opened(kind)
    scene = Scene(store, CLOCK, context=ACME)
    tenant_move._freeze(tenant_move.MoverEngine(store, scene.dice, ACME), 7)
    before = scene.engine.read(lambda tx: tx.epoch)
    here, store.place = store.place, "elsewhere"
    with store.begin("acme", write=True) as tx:
        tx.set_epoch(before)  # as it was where it was copied from
    store.place = here
    store.settled_here()
    after = scene.engine.read(lambda tx: tx.epoch)
    assert after != before
    assert rules.frozen_by(after) == 7


def test_an_engine_elsewhere_writes_nothing_whoever_asks() -> None:
    context = replace(SECRETS, elsewhere=lambda: regions.elsewhere("acme", "us", {"us": "https://us"}))
    engine = Engine(Memory(clock=CLOCK), Scene(Memory(clock=CLOCK), CLOCK).dice, context)
    with pytest.raises(NotHome) as refused:
        engine.do(c.DefineProject(project="p"))
    assert (refused.value.region, refused.value.home) == ("us", "https://us")
    with pytest.raises(NotHome):
        engine.new_epoch("a failover")


# --- a promoted standby ---------------------------------------------------------------------------------------


def test_a_promoted_standby_becomes_the_home_without_a_copy(world: World) -> None:
    """The standby of the former store has its rows; the former store is gone."""
    world.move()
    scene = Scene(world.stores[THERE], CLOCK, seed=4, context=ACME)
    receipt = scene.take(scene.add("held"))
    standby = world.stores.pop(THERE)
    world.engines.close_one("acme")
    world.stores["postgresql://promoted/db"] = standby
    world.begin("postgresql://promoted/db", "us")
    moved = world.finish(promoted=True)
    assert (moved.rows, world.row.region) == (0, "us")
    assert world.engine.store is standby
    assert scene.submit(receipt).outcome == "STALE_EPOCH"
    assert scene.engine.verify() == []


def test_a_former_store_that_still_writes_forbids_it(world: World) -> None:
    world.begin()
    with pytest.raises(MoveRefused) as refused:
        world.finish(promoted=True)
    assert "still takes writes" in refused.value.message
    assert world.takes_writes()[0] == world.home.store.url
