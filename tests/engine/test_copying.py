"""A project moved to another store: all of it or nothing, in an epoch that no old receipt knows."""

import hashlib
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import product
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tenure.artifacts.local import LocalArtifacts
from tenure.artifacts.memory import MemoryArtifacts
from tenure.artifacts.port import put
from tenure.core import commands as c
from tenure.core import signatures
from tenure.core.commands import NewTask, Template, Totals
from tenure.core.errors import CopyRefused, InvalidInput, NotFound, SecretUnreadable, StoreCorrupt
from tenure.core.filters import Where
from tenure.core.records import KINDS, Archived, Brief, Budget, Message, Project, Reservation, Row, Spawn, Task, replace
from tenure.core.task_secrets import SHOWN
from tenure.engine import Context, Engine, project_copy
from tenure.engine.archive import mover
from tenure.engine.reads import event_log
from tenure.engine.relay.webhook_verbs import keys_of, named
from tenure.engine.sources import schedules, trigger_duty
from tenure.engine.verify.artifact_rows import lost
from tenure.sealing.cipher import Cipher
from tenure.sealing.master_key import KeySource
from tenure.stores.memory import Memory
from tenure.stores.port import Change, Store
from tenure.stores.sqlite import Sqlite
from tenure.testing import FakeClock
from tenure.testing.engine.histories import play
from tenure.testing.factories import PROJECT, SECRETS, Dice, Scene, reading
from tenure.testing.samples import event_of, row_of
from tests.servers.store_servers import SERVERS

CLOCK = FakeClock()
SHIPPED = ("memory", "sqlite", *(kind for kind in SERVERS if kind != "redis"))
DAILY = [
    ("sqlite", "postgres"), ("postgres", "sqlite"), ("sqlite", "sqlite"), ("memory", "postgres"),
    ("mariadb", "sqlite"), ("postgres", "mariadb"), ("valkey", "sqlite"), ("mariadb", "valkey"),
]  # fmt: skip
PAIRS = [  # every direction
    *DAILY,
    *(pytest.param(pair, marks=pytest.mark.nightly) for pair in product(SHIPPED, SHIPPED) if pair not in DAILY),
]


@pytest.fixture
def opened(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Callable[[str], Store]]:
    stores: list[Store] = []

    def open_one(kind: str) -> Store:
        folder = tmp_path / f"store-{len(stores)}"
        folder.mkdir()
        if kind in SERVERS:
            request.getfixturevalue(kind)
            stores.append(SERVERS[kind].open_store(folder, CLOCK))
        else:
            stores.append(Sqlite(str(folder / "store.db"), clock=CLOCK) if kind == "sqlite" else _memory(len(stores)))
        return stores[-1]

    yield open_one
    for store in stores:
        store.close()


def _memory(number: int) -> Memory:
    return Memory(f"memory://{number}", clock=CLOCK)


def told(store: Store, project: str = PROJECT) -> dict[str, list[Any]]:
    """All that a store has of a project, sequences aside."""
    with store.begin("local", write=False) as tx:
        rows: dict[str, list[Any]] = {kind.table: tx.find(row, {"project": project}) for row, kind in KINDS.items()}
        events = tx.events({"project": project}, limit=1_000_000)
    log = [(e.id, e.time, e.kind, e.task, e.version, msgspec.json.encode(e.patch)) for e in events]
    return rows | {"event": log}


def busy(store: Store) -> Scene:
    """A scene with something of everything, and nothing that is held."""
    scene = Scene(store, CLOCK)
    play(scene, 7, 120)
    for task in scene.rows(Task, state=("claimed", "running")):
        scene.do(c.Recover, task=task.key)
    receipt = scene.take(scene.add("with usage"))
    scene.submit(receipt, "x" * 5000, usage=(Totals(model="opus", fresh=1, cost_usd="0.1"),))
    assert mover.move_all(scene.engine, PROJECT, older=0).tasks
    return scene


@pytest.mark.parametrize("kinds", PAIRS, ids="→".join)
def test_everything_is_there_and_no_old_receipt_is_good(kinds: tuple[str, str], opened: Any) -> None:
    scene = busy(opened(kinds[0]))
    target = Engine(opened(kinds[1]), Dice(99))
    accepted, expired = scene.take(scene.add("a")), scene.take(scene.add("b"), lease=30)
    scene.submit(accepted, "kept")
    scene.pass_time(seconds=31)
    scene.engine.sweep()
    before = told(scene.store)
    copied = project_copy.copy_project(scene.engine, target, PROJECT)
    after = told(target.store)
    stay = ("event", "spawn")  # a spawn's process belongs to the old store
    assert copied.rows == {name: len(rows) for name, rows in told(scene.store).items() if name not in stay}
    for name, rows in after.items():
        if name == "event":
            assert rows[: len(before[name])] == before[name]
            assert [event[2] for event in rows[len(before[name]) :]][:1] == ["project.stopped"]
        elif name not in ("reservation", "project"):
            assert rows == before[name], name
    assert scene.engine.verify() == []
    assert target.verify() == []
    there = Scene(target.store, CLOCK, seed=5)
    assert there.do(c.Renew, receipt=expired).outcome == "STALE_EPOCH"
    assert there.submit(expired, "late").outcome == "STALE_EPOCH"
    assert [r.data for r in there.results(_ref(expired))] == ["late"]
    assert there.submit(accepted, "kept").outcome == "ACCEPTED"  # it was, and is told so
    assert there.claim(_ref(expired), "zed").generation == 2
    assert there.engine.verify() == []


def _ref(receipt: str) -> str:
    return receipt.partition("@")[0]


def test_rows_of_every_kind_are_copied_whatever_kinds_there_will_be(opened: Any) -> None:
    old, new = opened("memory"), opened("sqlite")
    many = project_copy.PAGE + 1
    rows: dict[type[Row], list[Any]] = {
        kind: [row_of(kind, project="p", id=f"{n:04d}", **_unique(kind, n)) for n in range(many)] for kind in KINDS
    }
    with old.begin("local", write=True) as tx:
        tx.save([Change(None, row) for kind in rows for row in rows[kind]])
        tx.save([Change(None, row_of(kind, project="q", id="other")) for kind in KINDS])
        tx.append([event_of(id=str(n), time=n, task="t", version=n) for n in range(many)])
        tx.append([event_of(id="other", project="q")])
    with old.begin("local", write=False) as source, new.begin("local", write=True) as target:
        counts, events = project_copy.copy_all(source, target, "p")
    assert counts == {KINDS[kind].table: many for kind in KINDS if kind is not Spawn}
    assert events == many
    with new.begin("local", write=False) as tx:
        assert {kind: tx.find(kind, {}) for kind in KINDS} == rows | {Spawn: []}
        assert [(e.id, e.time, e.version) for e in tx.events({})] == [(str(n), n, n) for n in range(many)]


def _unique(kind: type[Row], n: int) -> dict[str, Any]:
    """What no two rows of a project may share."""
    names = {"ref": str(n), "task": str(n), "idempotency_key": str(n)}
    return {name: value for name, value in names.items() if name in kind.__struct_fields__}


def test_live_claims_refuse_the_copy_and_are_named(opened: Any) -> None:
    scene, target = Scene(opened("sqlite"), CLOCK), Engine(opened("memory"), Dice())
    receipt = scene.take(scene.add("held"), "ann", lease=600)
    before = told(scene.store)["task"]
    with pytest.raises(CopyRefused, match=r"A-001 by ann") as refused:
        project_copy.copy_project(scene.engine, target, PROJECT)
    assert "600 s" in (refused.value.hint or "")
    assert told(target.store)["project"] == []
    assert told(scene.store)["task"] == before
    assert scene.row(Project, PROJECT).stopped == {}  # it goes on as before
    assert scene.do(c.Renew, receipt=receipt).outcome == "RENEWED"
    scene.pass_time(seconds=601)
    assert project_copy.copy_project(scene.engine, target, PROJECT).rows["task"] == 1


def test_a_project_of_that_name_is_never_mixed_with(opened: Any) -> None:
    scene, other = Scene(opened("sqlite"), CLOCK), Scene(opened("memory"), CLOCK)
    other.add("mine")
    before = told(other.store)
    with pytest.raises(CopyRefused, match="already"):
        project_copy.copy_project(scene.engine, other.engine, PROJECT)
    assert told(other.store) == before
    assert scene.row(Project, PROJECT).stopped == {}
    with pytest.raises(InvalidInput, match="the same store"):
        project_copy.copy_project(scene.engine, scene.engine, PROJECT)
    with pytest.raises(NotFound):
        project_copy.copy_project(scene.engine, other.engine, "unknown")


def test_nobody_goes_on_by_mistake_where_the_project_was(opened: Any) -> None:
    scene, target = Scene(opened("sqlite"), CLOCK), Engine(opened("sqlite"), Dice(3))
    key = scene.add()
    scene.do(c.StopLine, scope="track:B", reason="mine")
    project_copy.copy_project(scene.engine, target, PROJECT)
    refused = scene.claim(key)
    assert (refused.outcome, target.store.url in refused.message) == ("DENIED_PAUSED", True)
    there = Scene(target.store, CLOCK, seed=8)
    assert there.row(Project, PROJECT).stopped == {"track:B": "mine"}
    assert there.claim(key).outcome == "GRANTED"


def test_a_line_that_a_person_stopped_stays_stopped(opened: Any) -> None:
    scene, target = Scene(opened("memory"), CLOCK), Engine(opened("memory"), Dice(3))
    scene.do(c.StopLine, scope="project:", reason="holiday")
    project_copy.copy_project(scene.engine, target, PROJECT)
    for store in (scene.store, target.store):
        assert told(store)["project"][0].stopped == {"project:": "holiday"}


def test_others_in_the_store_it_goes_to_are_not_disturbed(opened: Any) -> None:
    scene, target = Scene(opened("sqlite"), CLOCK), Engine(opened("sqlite"), Dice(4))
    stale = scene.take(scene.add(), lease=30)
    scene.pass_time(seconds=31)
    target.do(c.DefineProject(project="q"))
    target.do(c.Add(project="q", task=NewTask(title="theirs")))
    theirs = target.do(c.ClaimNext(project="q", agent="cy", session="s"))
    epoch = project_copy.copy_project(scene.engine, target, PROJECT).epoch
    with reading(target) as work:
        assert work.epoch == epoch
    assert target.do(c.Renew(project="q", receipt=theirs.receipt or "")).outcome == "RENEWED"
    assert target.do(c.Submit(project=PROJECT, receipt=stale, data=1)).outcome == "STALE_EPOCH"


def test_an_epoch_that_old_receipts_know_ends_with_their_arrival(opened: Any) -> None:
    scene, store = Scene(opened("memory"), CLOCK), opened("memory")
    stale = scene.take(scene.add(), lease=30)
    scene.pass_time(seconds=31)
    store.epoch = scene.store.epoch  # as where both come from one file
    target = Engine(store, Dice(4))
    target.do(c.DefineProject(project="q"))
    project_copy.copy_project(scene.engine, target, PROJECT)
    assert target.do(c.Submit(project=PROJECT, receipt=stale, data=1)).outcome == "STALE_EPOCH"


def test_reservations_end_with_the_move(opened: Any) -> None:
    scene, target = Scene(opened("sqlite"), CLOCK), Engine(opened("memory"), Dice())
    target.do(c.DefineProject(project="q"))
    scene.do(c.Reserve, patterns=("env:x",), agent="ann", session="s", lease=3000)
    project_copy.copy_project(scene.engine, target, PROJECT)
    assert told(target.store)["reservation"] == []
    assert len(scene.rows(Reservation)) == 1
    assert target.verify() == []


@pytest.mark.parametrize("at", ["copy_rows", "copy_events", "digest", "_arrive"])
def test_whatever_fails_on_the_way_nothing_is_there(at: str, opened: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    scene, target = Scene(opened("sqlite"), CLOCK), Engine(opened("sqlite"), Dice(3))
    scene.finish(scene.add(), scene.add())

    def fails(*_: Any, **__: Any) -> Any:
        raise StoreCorrupt("cut off")

    monkeypatch.setattr(project_copy, at, fails)
    with pytest.raises(StoreCorrupt):
        project_copy.copy_project(scene.engine, target, PROJECT)
    assert all(rows == [] for rows in told(target.store).values())
    assert scene.row(Project, PROJECT).stopped == {}
    assert scene.engine.verify() == []
    monkeypatch.undo()
    assert project_copy.copy_project(scene.engine, target, PROJECT).rows["task"] == 2


def test_a_row_that_arrives_otherwise_is_noticed(opened: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    scene, target = Scene(opened("memory"), CLOCK), Engine(opened("memory"), Dice(3))
    scene.add("one")
    copied = project_copy.copy_events

    def forgetful(old: Any, new: Any, where: Where) -> int:
        (brief,) = new.find(Brief, {"project": PROJECT})
        new.save([Change(brief, replace(brief, title="another"))])
        return copied(old, new, where)

    monkeypatch.setattr(project_copy, "copy_events", forgetful)
    with pytest.raises(StoreCorrupt, match="differs from data written"):
        project_copy.copy_project(scene.engine, target, PROJECT)
    assert told(target.store)["task"] == []


CUT_OFF = """
import sys, time
from tenure.client.caller import SystemRandom
from tenure.engine import Engine, project_copy
from tenure.stores.sqlite import Sqlite
old, new = (Engine(Sqlite(path), SystemRandom()) for path in sys.argv[1:])
def wait(*_):
    print("half", flush=True)
    time.sleep(600)
project_copy.copy_events = wait
project_copy.copy_project(old, new, "p")
"""


def test_a_copy_that_is_killed_leaves_nothing_half_and_can_be_run_again(tmp_path: Path) -> None:
    paths = [str(tmp_path / name) for name in ("old.db", "new.db")]
    scene = Scene(Sqlite(paths[0], clock=CLOCK), CLOCK)
    scene.finish(*(scene.add(str(n)) for n in range(20)))
    scene.store.close()
    process = subprocess.Popen([sys.executable, "-c", CUT_OFF, *paths], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    with process, suppress(ProcessLookupError):
        assert process.stdout.readline() == "half\n"
        process.send_signal(signal.SIGKILL)
    old, new = (Engine(Sqlite(path), Dice(n)) for n, path in enumerate(paths))
    assert all(rows == [] for rows in told(new.store).values())
    assert new.verify() == []
    assert project_copy.copy_project(old, new, PROJECT).rows["task"] == 20
    assert told(new.store)["project"][0].stopped == {}  # although the first try had stopped it
    assert old.verify() == new.verify() == []
    for engine in (old, new):
        engine.store.close()


def test_budgets_come_along_and_the_other_tenants_counts_from_now_on(opened: Any) -> None:
    old, new = opened("sqlite"), opened("memory")
    here, there = Scene(old, CLOCK), Engine(new, Dice(1))
    here.do(c.SetBudget, scope="tenant", usd="9")
    here.do(c.SetBudget, usd="5", default_estimate="1")
    key = here.add(constraints={"max_cost_usd": "2"})
    here.submit(here.take(key), usage=(Totals(model="x", cost_usd="0.5"),))
    there.do(c.DefineProject(project="other"))
    there.do(c.SetBudget(project="other", scope="tenant", usd="1", default_estimate="1"))
    project_copy.copy_project(here.engine, there, PROJECT)
    with reading(there, (PROJECT,)) as work:
        rows = {row.id: (row.consumed, row.reserved) for row in work.find(Budget, {"project": PROJECT})}
        (project,) = work.find(Project, {"id": PROJECT})
    assert sorted(rows) == ["project", f"task:{here.task(key).id}"]
    assert set(rows.values()) == {(5 * 10**8, 0)}
    assert set(project.funded) == {"tenant", "project"}
    for _ in range(2):
        there.do(c.Add(project=PROJECT, task=NewTask(title="more")))
    claim = c.ClaimNext(project=PROJECT, agent="a", session="s", n=2)
    assert len(there.do(claim).claims or ()) == 1
    assert there.verify() == []


def test_archived_tasks_come_along_with_their_log(opened: Any) -> None:
    scene, target = Scene(opened("sqlite"), CLOCK), Engine(opened("sqlite"), Dice(3))
    receipt = scene.take(scene.add())
    scene.submit(receipt, "x")
    mover.move_all(scene.engine, PROJECT, older=0)
    project_copy.copy_project(scene.engine, target, PROJECT)
    with reading(target, (PROJECT,)) as work:
        log = [e["kind"] for e in event_log.log(work, PROJECT, task="A-001")]
        assert log == ["task.created", "task.claimed", "task.completed"]
    assert target.do(c.Submit(project=PROJECT, receipt=receipt, data="x")).outcome == "ACCEPTED"
    assert len(told(target.store)["archived"]) == 1
    assert isinstance(told(target.store)["archived"][0], Archived)
    assert target.verify() == []


# --- what lies outside of the store ---


def test_bytes_of_artifacts_go_before_the_rows_that_refer_to_them(opened: Callable[[str], Store]) -> None:
    old = Scene(opened("sqlite"), CLOCK)
    places = MemoryArtifacts(), MemoryArtifacts()
    old.engine = Engine(old.store, old.dice, Context(artifacts=lambda _: places[0]))
    new = Engine(opened("postgres"), Dice(9), Context(artifacts=lambda _: places[1]))
    receipt = old.take(old.add("work"))
    for name in ("a", "b", "c"):
        kept = put(places[0], [name.encode()], largest=10)
        old.do(c.PutArtifact, receipt=receipt, name=name, digest=kept.digest, size=kept.size, since=CLOCK.now)
    old.submit(receipt)
    digest = hashlib.sha256(b"c").hexdigest()
    places[0].delete(digest)  # gone before: verify tells of it on both sides, and the rest goes
    project_copy.copy_project(old.engine, new, PROJECT)
    carried = {listed.digest for listed in places[1].listed()}
    assert carried == {hashlib.sha256(name).hexdigest() for name in (b"a", b"b")}
    assert [digest in finding for finding in lost(new)] == [True]


def test_a_content_that_is_cut_short_there_is_copied_whole(opened: Callable[[str], Store], tmp_path: Path) -> None:
    """As a copy of the folder leaves it that was broken off, or a disk that was full."""
    old, there = Scene(opened("sqlite"), CLOCK), tmp_path / "there"
    places = MemoryArtifacts(), LocalArtifacts(there)
    old.engine = Engine(old.store, old.dice, Context(artifacts=lambda _: places[0]))
    new = Engine(opened("memory"), Dice(9), Context(artifacts=lambda _: places[1]))
    receipt = old.take(old.add("work"))
    kept = put(places[0], [b"all of it"], largest=10)
    old.do(c.PutArtifact, receipt=receipt, name="a", digest=kept.digest, size=kept.size, since=CLOCK.now)
    old.submit(receipt)
    put(places[1], [b"all of it"], largest=10)
    (file,) = (one for one in there.rglob("*") if one.is_file() and one.stat().st_size == kept.size)
    file.chmod(0o600)
    file.write_bytes(b"all")
    project_copy.copy_project(old.engine, new, PROJECT)
    assert b"".join(places[1].read(kept.digest)) == b"all of it"
    assert [*lost(new)] == []


def test_without_a_place_for_its_artifacts_a_project_stays(opened: Callable[[str], Store]) -> None:
    old = Scene(opened("sqlite"), CLOCK)
    other = Engine(opened("sqlite"), Dice(9))
    place = MemoryArtifacts()
    old.engine = Engine(old.store, old.dice, Context(artifacts=lambda _: place))
    receipt = old.take(old.add("work"))
    kept = put(place, [b"a"], largest=10)
    old.do(c.PutArtifact, receipt=receipt, name="a", digest=kept.digest, size=1, since=CLOCK.now)
    old.submit(receipt)
    with pytest.raises(CopyRefused, match="has no artifact store") as told:
        project_copy.copy_project(old.engine, other, PROJECT)
    assert "--artifacts" in (told.value.hint or "")
    old.take(old.add("more"))  # and claiming goes on where it was


# --- schedules and triggers


@pytest.mark.parametrize("kinds", PAIRS, ids="→".join)
def test_schedules_and_triggers_go_on_there_and_not_here(kinds: tuple[str, str], opened: Any) -> None:
    old, new = Scene(opened(kinds[0]), CLOCK), Engine(opened(kinds[1]), Dice(9), SECRETS)
    template = Template(tasks=(NewTask(title="Look at {event.key}"),))
    other = Template(tasks=(NewTask(title="Tick"),))
    for number in range(9):  # so that the sequences there are lower
        old.engine.do(c.DefineProject(project=f"other-{number}"))
    old.do(c.SetSchedule, schedule="s", cron="* * * * *", template=other)
    old.do(c.SetTrigger, trigger="t", on="task.noted", template=template)
    secret = old.do(c.SetTrigger, trigger="w", on="webhook", template=other).secret
    heard, unheard = old.add("heard"), old.add("unheard")
    old.do(c.Note, task=heard, text="x")
    trigger_duty.hear(old.engine, PROJECT)
    old.do(c.Note, task=unheard, text="x")
    project_copy.copy_project(old.engine, new, PROJECT)
    old.pass_time(seconds=60)
    assert schedules.projects_due(old.engine, old.now) == trigger_duty.projects_with_news(old.engine, old.now) == []
    assert schedules.projects_due(new, old.now) == trigger_duty.projects_with_news(new, old.now) == [PROJECT]
    trigger_duty.hear(new, PROJECT)
    schedules.fire(new, PROJECT)
    assert new.verify() == []
    there = Scene(new.store, CLOCK, seed=5)
    made = sorted(task.key.partition("-")[2][4:] for task in there.rows(Task) if task.created_by != "human:olaf")
    assert made == [f"look-at-{heard.lower()}", f"look-at-{unheard.lower()}", "tick"]
    headers = signatures.signed_headers("standard", signatures.key_of("standard", secret or ""), "m", b"{}", CLOCK.now)
    assert there.do(c.Deliver, trigger="w", headers=headers, body=b"{}").outcome == "CREATED"


# --- secrets ------------------------------------------------------------------------------------------------

OTHER_KEY = Context(sealer=Cipher(KeySource({"TENURE_MASTER_KEY": "a5" * 32})))


@pytest.mark.parametrize("kinds", DAILY[:2], ids="-".join)
def test_a_webhook_signs_with_the_same_secret_under_another_master_key(
    opened: Callable[[str], Store], kinds: tuple[str, str]
) -> None:
    scene = Scene(opened(kinds[0]), CLOCK)
    secret = scene.do(c.SetWebhook, webhook="ci", url="https://ci.example.com/").secret
    target = Engine(opened(kinds[1]), Dice(2), OTHER_KEY)
    project_copy.copy_project(scene.engine, target, PROJECT)
    with reading(target, (PROJECT,)) as work:
        row = named(work, PROJECT, "ci")
        (key,) = keys_of(work, row)
    assert (row.enabled, signatures.spelled(signatures.STANDARD, key)) == (True, secret)


def test_a_webhook_whose_secret_cannot_be_opened_is_paused_there(opened: Callable[[str], Store]) -> None:
    scene = Scene(opened("sqlite"), CLOCK)
    scene.do(c.SetWebhook, webhook="ci", url="https://ci.example.com/")
    scene.engine = Engine(scene.store, scene.dice)
    target = Engine(opened("sqlite"), Dice(2), SECRETS)
    project_copy.copy_project(scene.engine, target, PROJECT)
    with reading(target, (PROJECT,)) as work:
        row = named(work, PROJECT, "ci")
    assert (row.enabled, row.secret) == (False, b"")
    assert "rotate it" in (row.disabled_for or "")


@pytest.mark.parametrize("kinds", DAILY[:2], ids="-".join)
def test_who_knew_a_secret_before_the_move_is_searched_for_it_there(
    opened: Callable[[str], Store], kinds: tuple[str, str]
) -> None:
    scene = Scene(opened(kinds[0]), CLOCK)
    scene.know("ann", "bob")
    scene.submit(scene.take(scene.add("deploy", spec={"context": {"A": {"$secret": "correct horse"}}})))
    target = Engine(opened(kinds[1]), Dice(2), OTHER_KEY)
    project_copy.copy_project(scene.engine, target, PROJECT)
    target.do(c.Send(project=PROJECT, sender="ann", to="bob", text="it was correct horse"))
    (message,) = target.read(lambda tx: tx.find(Message, {}))
    assert message.text == f"it was {SHOWN}"


def test_a_task_whose_secret_could_not_be_copied_gets_a_new_one(opened: Callable[[str], Store]) -> None:
    scene = Scene(opened("sqlite"), CLOCK)
    key = scene.add("deploy", spec={"context": {"A": {"$secret": "correct horse"}}})
    scene.engine = Engine(scene.store, scene.dice)
    target = Engine(opened("sqlite"), Dice(2), SECRETS)
    project_copy.copy_project(scene.engine, target, PROJECT)
    claim = c.ClaimTask(project=PROJECT, task=key, agent="ann", session="s")
    with pytest.raises(SecretUnreadable, match="which this store does not have"):
        target.do(claim)
    target.do(c.Edit(project=PROJECT, task=key, changes={"spec": {"context": {"A": {"$secret": "battery staple"}}}}))
    assert target.do(claim).secrets == {"A": "battery staple"}
