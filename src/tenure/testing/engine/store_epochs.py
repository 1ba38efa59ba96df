"""An epoch that a person begins is one of every tenant of the store."""

from __future__ import annotations

import pytest

from tenure.core import commands as c
from tenure.core.commands import NewTask
from tenure.core.records import Claim, Task, replace
from tenure.core.tenant_moves import frozen, frozen_by
from tenure.core.tenant_records import HOME
from tenure.engine import Engine
from tenure.engine.runtime.unit_of_work import UnitOfWork
from tenure.stores.port import TENANTS
from tenure.testing.engine.stage import Stage
from tenure.testing.factories import PROJECT, Scene, code_of

NAMES = ("acme", HOME, "zeta")


class Epochs(Stage):
    @pytest.fixture
    def engines(self, scene: Scene) -> dict[str, Engine]:
        """Three tenants with the same names; `zeta` has begun an epoch of its own before."""
        if TENANTS not in scene.store.features:
            pytest.skip("keeps one tenant")
        made = {HOME: scene.engine}
        for name in ("acme", "zeta"):
            made[name] = Engine(scene.store, scene.dice, replace(scene.engine.context, tenant=name))
            made[name].do(c.DefineProject(project=PROJECT))
        made["zeta"].new_epoch("of its own", alone=True)
        return made

    def take(self, engine: Engine) -> tuple[str, str]:
        """A task, and the receipt of its live claim."""
        engine.do(c.Add(project=PROJECT, task=NewTask(title="t", max_attempts=1)))
        granted = engine.do(c.ClaimNext(project=PROJECT, agent="ann", session="s"))
        assert granted.task is not None
        return str(granted.task["id"]), str(granted.receipt)

    def task(self, engine: Engine, id: str) -> Task:
        (row,) = engine.read(lambda tx: tx.load(Task, [(PROJECT, id)]))
        return row

    @pytest.mark.parametrize("begun_by", ["local", "acme"])
    def test_a_new_epoch_voids_the_receipts_of_every_tenant(
        self, scene: Scene, engines: dict[str, Engine], begun_by: str
    ) -> None:
        held = {name: self.take(engine) for name, engine in engines.items()}
        begun = engines[begun_by].new_epoch("a failover")
        assert (begun.tenants, begun.unrecorded) == (NAMES, ())
        epochs = {name: engine.read(lambda tx: tx.epoch) for name, engine in engines.items()}
        assert begun.epoch == epochs[begun_by]
        assert len({*epochs.values()}) == 3  # the receipts of one must not be valid for another
        for name, engine in engines.items():
            id, receipt = held[name]
            row = self.task(engine, id)
            assert (row.state, row.attempts) == ("ready", 0), name
            events = engine.read(lambda tx: tx.events({}))
            started = [event for event in events if event.kind == "epoch.started"][-1]
            assert (started.message, started.details["epoch"]) == ("a failover", epochs[name])
            assert [event.task for event in events if event.kind == "task.epoch_ended"] == [id]
            for command in (c.Renew, c.Submit):
                assert code_of(engine.do(command(project=PROJECT, receipt=receipt))) == "STALE_EPOCH", name
            again = engine.do(c.ClaimNext(project=PROJECT, agent="bo", session="t"))
            assert (again.outcome, again.generation) == ("GRANTED", 2)
            assert code_of(engine.do(c.Submit(project=PROJECT, receipt=str(again.receipt)))) == "ACCEPTED"

    def test_alone_it_is_one_of_its_own_tenant(self, scene: Scene, engines: dict[str, Engine]) -> None:
        held = {name: self.take(engine)[1] for name, engine in engines.items()}
        assert engines["acme"].new_epoch("its own", alone=True).tenants == ("acme",)
        codes = {name: code_of(e.do(c.Renew(project=PROJECT, receipt=held[name]))) for name, e in engines.items()}
        assert codes == {HOME: "RENEWED", "acme": "STALE_EPOCH", "zeta": "RENEWED"}

    def test_the_fence_of_the_others_needs_no_look_at_them(self, scene: Scene, engines: dict[str, Engine]) -> None:
        """As where the process that began it died after its first commit."""
        held = {name: self.take(engine) for name, engine in engines.items()}
        assert scene.store.begin_epochs(HOME) == ["acme", "zeta"]
        for name in ("acme", "zeta"):
            assert code_of(engines[name].do(c.Submit(project=PROJECT, receipt=held[name][1]))) == "STALE_EPOCH"
        assert code_of(scene.engine.do(c.Submit(project=PROJECT, receipt=held[HOME][1]))) == "ACCEPTED"
        scene.pass_time(seconds=3600)
        for name in ("acme", "zeta"):
            again = engines[name].do(c.ClaimNext(project=PROJECT, agent="bo", session="t"))
            row = self.task(engines[name], held[name][0])
            assert (again.outcome, row.generation, row.attempts, row.given_back) == ("GRANTED", 2, 1, 1)

    def test_a_claim_of_the_new_epoch_outlives_what_follows_the_fence(
        self, scene: Scene, engines: dict[str, Engine]
    ) -> None:
        """Somebody may claim between the two."""
        real = scene.store.begin_epochs
        taken = []

        def begin(besides: str) -> list[str]:
            found = real(besides)
            taken.append(self.take(engines["acme"]))
            reserved = engines["acme"].do(c.Reserve(project=PROJECT, patterns=("x/**",), agent="ann", session="s"))
            taken.append(("", str(reserved.receipt)))
            return found

        scene.store.begin_epochs = begin  # type: ignore[method-assign]  # the moment, not the store
        scene.engine.new_epoch("a failover")
        del scene.store.begin_epochs
        assert code_of(engines["acme"].do(c.RenewReservation(project=PROJECT, receipt=taken[1][1]))) == "RENEWED"
        assert code_of(engines["acme"].do(c.Submit(project=PROJECT, receipt=taken[0][1]))) == "ACCEPTED"

    def test_a_tenant_that_moves_stays_frozen_and_as_it_was(self, scene: Scene, engines: dict[str, Engine]) -> None:
        def freeze(work: UnitOfWork) -> None:
            work.tx.set_epoch(frozen(work.epoch, 7))

        engines["acme"].transact((), freeze)
        before = engines["acme"].read(lambda tx: (tx.epoch, tx.events({}), tx.find(Claim, {})))
        scene.engine.new_epoch("a failover")
        after = engines["acme"].read(lambda tx: (tx.epoch, tx.events({}), tx.find(Claim, {})))
        assert (frozen_by(after[0]), after[0] != before[0], after[1:]) == (7, True, before[1:])
