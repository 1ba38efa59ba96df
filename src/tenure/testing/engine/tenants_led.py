"""One leader for all tenants of a store: it serves those with work, takes each with its first write, and is fenced."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from tenure.core import commands as c
from tenure.core import team
from tenure.core.commands import NewTask, Principal
from tenure.core.errors import Bug
from tenure.core.events import Event
from tenure.core.queries import Status
from tenure.core.records import STORE, Leader, Task
from tenure.engine import Engine
from tenure.engine.duties.coordinator import LEASE, Coordinator
from tenure.engine.duties.election import take
from tenure.engine.reads.coordinator_status import logs, status
from tenure.engine.reads.query_table import read_query
from tenure.engine.runtime.tenancy import TenantEngines
from tenure.engine.runtime.unit_of_work import Refused, UnitOfWork
from tenure.engine.verbs.lead import COORDINATOR
from tenure.stores.port import TENANTS
from tenure.testing.engine.coordinators import Office
from tenure.testing.engine.stage import Stage
from tenure.testing.factories import PROJECT, Scene


class Block:
    """A store with the tenants `acme` and `zeta`, and processes that lead it."""

    def __init__(self, scene: Scene) -> None:
        self.scene, self.office = scene, Office(scene)
        self.engines = {}
        for name in ("acme", "zeta"):
            scene.do(c.AddTenant, project="", tenant=name)
            self.engines[name] = self.of(scene.engine, name)
            self.engines[name].do(c.DefineProject(project=PROJECT))

    def of(self, home: Engine, name: str) -> Engine:
        return TenantEngines(home, lambda: 0.0).find(name)

    def another(self, name: str) -> Coordinator:
        made = self.office.another(name)
        engines = TenantEngines(made.engine, self.office.watches[name])
        return Coordinator(made.engine, name, self.office.watches[name], engines=engines)

    def leader_row(self, tenant: str) -> Leader | None:
        found = self.engines[tenant].read(lambda tx: tx.load(Leader, ((STORE, COORDINATOR),)))
        return found[0] if found else None

    def lose_lease(self, tenant: str) -> str:
        """A task whose holder is gone; its key."""
        engine = self.engines[tenant]
        engine.do(c.Add(project=PROJECT, task=NewTask(title="t")))
        granted = engine.do(c.ClaimNext(project=PROJECT, agent="a", session="s", lease=30))
        assert granted.task is not None
        return str(granted.task["id"])

    def state(self, tenant: str, id: str) -> str:
        (row,) = self.engines[tenant].read(lambda tx: tx.load(Task, ((PROJECT, id),)))
        return row.state

    def events(self, tenant: str, kind: str) -> list[Event]:
        return self.engines[tenant].read(lambda tx: tx.events({"kind": kind}))


def write(engine: Engine) -> None:
    def decide(work: UnitOfWork) -> None:
        work.record("task.noted", project=PROJECT, message="by a leader")

    engine.transact((PROJECT,), decide)


class TenantsLed(Stage):
    @pytest.fixture
    def block(self, scene: Scene) -> Block:
        if TENANTS not in scene.store.features:
            pytest.skip("keeps only one tenant")
        return Block(scene)

    def test_the_leader_of_the_store_settles_what_is_due_in_every_tenant(self, block: Block) -> None:
        one = block.another("one")
        one.step()
        tasks = {name: block.lose_lease(name) for name in block.engines}
        block.office.pass_time(40)
        assert one.tenants is not None
        one.tenants.heard(set(tasks))
        for _ in range(3):
            one.step()
        assert {block.state(name, id) for name, id in tasks.items()} <= {"ready", "retrying"}
        assert all(block.events(name, "task.lease_expired") for name in tasks)

    def test_a_tenant_without_work_is_never_taken(self, block: Block) -> None:
        one = block.another("one")
        for _ in range(5):
            one.step()
            block.office.pass_time(5)
        assert block.leader_row("acme") is None
        assert one.tenants is not None
        assert one.tenants.led() == []
        before = block.engines["acme"].mark()
        block.office.pass_time(LEASE / 3)
        one.step()
        assert block.engines["acme"].mark() == before

    def test_a_tenant_without_work_is_not_asked(self, block: Block, monkeypatch: pytest.MonkeyPatch) -> None:
        one, two = block.another("one"), block.another("two")
        block.office.pass_time(700)  # so much before its end a leader has looked at everything
        for _ in range(3):
            one.step()
            block.office.pass_time(LEASE / 2)
        one.resign()
        asked: Counter[str] = Counter()
        kind = type(block.scene.store)
        begin, tenants_due = kind.begin, kind.tenants_due

        def noted(store: Any, tenant: str, *, write: bool) -> Any:
            asked[tenant] += 1
            return begin(store, tenant, write=write)

        def of_all_at_once(*given: Any) -> Any:  # which in some stores is a transaction for each
            before = asked.copy()
            found = tenants_due(*given)
            asked.clear()
            asked.update(before)
            return found

        block.lose_lease("zeta")
        monkeypatch.setattr(kind, "begin", noted)
        monkeypatch.setattr(kind, "tenants_due", of_all_at_once)
        for _ in range(20):
            two.step()
            block.office.pass_time(2)
        assert asked["zeta"] > 0
        assert asked["acme"] == 0

    def test_a_new_leader_looks_at_what_changed_while_nobody_led(self, block: Block) -> None:
        one, two = block.another("one"), block.another("two")
        one.step()
        one.resign()
        id = block.lose_lease("acme")
        block.office.pass_time(700)
        two.step()
        assert block.state("acme", id) in ("ready", "retrying")

    def test_a_tenant_is_taken_with_the_first_write_and_listed(self, block: Block) -> None:
        one = block.another("one")
        one.step()
        led = one.led_of("acme")
        assert led is not None
        write(led)
        row = block.leader_row("acme")
        assert row is not None
        assert (row.holder, row.store_term) == ("one", one.term)
        assert one.tenants is not None
        assert one.tenants.led() == ["acme"]
        seen = status(one.engine, one)
        assert seen["tenants"] == ["local", "acme"]
        view = status(block.engines["zeta"], one, home=one.engine)
        assert (view["active"], view["tenants"], view["last_error"]) == (True, [], None)

    def test_the_next_leader_takes_a_tenant_at_once_and_the_one_before_writes_nothing_more(self, block: Block) -> None:
        one, two = block.another("one"), block.another("two")
        one.step()
        before = one.led_of("acme")
        assert before is not None
        write(before)
        block.office.pass_by("one", LEASE + 1)  # it sleeps, and does not know that its lease is over
        two.step()
        assert (one.term, two.term) == (1, 2)
        write(before)  # no successor has written here yet: it is still the tenant's leader
        after = two.led_of("acme")
        assert after is not None
        write(after)
        with pytest.raises(Refused):
            write(before)
        assert len(block.events("acme", "task.noted")) == 3
        assert [event.details["term"] for event in block.events("acme", "leader.elected")] == [1, 2]

    def test_a_leader_of_an_earlier_term_never_takes_a_tenant_back(self, block: Block) -> None:
        engine = block.engines["acme"]
        assert take(engine, "two", 60, None, 7).outcome == "ELECTED"
        block.office.pass_time(120)  # its lease in the tenant is over
        assert take(engine, "one", 60, None, 6).outcome == "DENIED_LEADER"
        assert take(engine, "two", 60, None, 7).outcome == "ELECTED"

    def test_a_tenant_that_another_process_leads_for_itself_is_left_to_it(self, block: Block) -> None:
        alone = Coordinator(block.engines["acme"], "alone", block.office.watches.setdefault("alone", lambda: 0.0))  # type: ignore[arg-type]
        alone.step()
        one = block.another("one")
        one.step()
        led = one.led_of("acme")
        assert led is not None
        with pytest.raises(Refused):
            write(led)
        other = one.led_of("zeta")
        assert other is not None
        write(other)

    def test_schedules_fire_in_every_tenant(self, block: Block) -> None:
        one = block.another("one")
        one.step()
        template = c.Template(tasks=(NewTask(title="nightly"),))
        for engine in block.engines.values():
            assert engine.do(c.SetSchedule(project=PROJECT, schedule="s", cron="* * * * *", template=template)).ok
        assert one.tenants is not None
        one.tenants.heard(set(block.engines))
        one.step()
        block.office.pass_time(61)
        for _ in range(3):
            one.step()
        for engine in block.engines.values():
            assert len(engine.read(lambda tx: tx.find(Task, {"project": PROJECT}))) == 1

    def test_tenants_that_are_added_later_are_served_and_closed_ones_no_more(self, block: Block) -> None:
        one = block.another("one")
        one.step()
        block.scene.do(c.AddTenant, project="", tenant="beta")
        block.scene.do(c.CloseTenant, project="", tenant="acme")
        assert one.tenants is not None
        one.tenants.relist()
        one.step()
        assert one.led_of("beta") is not None
        assert one.led_of("acme") is None

    def test_the_log_of_a_tenant_has_its_own_notes_alone(self, block: Block) -> None:
        one = block.another("one")
        one.step()
        one._tenant = "acme"
        one._fail("acme's trouble")
        one._tenant = "local"
        lines = logs(block.engines["acme"], one.notes)
        assert [line["message"] for line in lines if line["kind"] == "coordinator.note"] == ["acme's trouble"]
        for other in (block.engines["zeta"], block.scene.engine):
            assert "acme's trouble" not in str(logs(other, one.notes))

    def test_an_engine_refuses_a_request_that_signed_in_to_another_tenant(self, block: Block) -> None:
        engine, foreign = block.engines["acme"], Principal(tenant="zeta")
        command = c.Add(project=PROJECT, task=NewTask(title="t"))
        for ask in (engine.run, engine.preview):
            with pytest.raises(Bug):
                ask([command], foreign)
        with pytest.raises(Bug):
            read_query(engine, Status(project=PROJECT), foreign)
        own = Principal(tenant="acme")
        assert engine.do(command, own).ok
        assert read_query(engine, Status(project=PROJECT), own)["project"] == PROJECT

    def test_a_store_term_orders_leaders_of_a_tenant(self) -> None:
        row = team.elected(None, "", COORDINATOR, "one", 60, None, 0, store_term=3)
        assert row is not None
        assert team.elected(row, "", COORDINATOR, "two", 60, None, 1) is None
        assert team.elected(row, "", COORDINATOR, "two", 60, None, 1, store_term=3) is None
        later = team.elected(row, "", COORDINATOR, "two", 60, None, 1, store_term=4)
        assert later is not None
        assert (later.holder, later.term) == ("two", 2)
        assert team.elected(later, "", COORDINATOR, "one", 60, None, 1000, store_term=3) is None
