"""Limits of a tenant: by tier, over all its projects, lowered by a project."""

from __future__ import annotations

from collections.abc import Callable
from threading import Barrier, Thread
from typing import Any

import pytest

from tenure.core import commands as c
from tenure.core import queries as q
from tenure.core import tenant_limits
from tenure.core.commands import NewTask, Principal
from tenure.core.errors import LimitReached, NotAllowed, NotFound
from tenure.core.outcomes import Outcome
from tenure.core.records import ClaimShare, Task, replace
from tenure.engine import Engine
from tenure.engine.reads.query_table import read_query
from tenure.engine.runtime.tenancy import TenantLimits, check_open
from tenure.engine.runtime.unit_of_work import UnitOfWork
from tenure.engine.verbs.claim_shares import denied_by_tenant
from tenure.testing.engine.stage import Stage
from tenure.testing.factories import OWNER, PROJECT, SECRETS, Dice, Scene, code_of

OTHER = "q"


class TenantScene(Scene):
    """A scene in the tenant `acme`, with two projects."""

    def __init__(self, home: Scene, **limits: int) -> None:
        if "tenants" not in home.store.features:
            pytest.skip("keeps the tenant local alone")
        self.home = home
        home.do(c.AddTenant, project="", tenant="acme")
        if limits:
            self.change(tier=None, **limits)
        super().__init__(home.store, home.clock, 5, self.context())
        self.do(c.DefineProject, project=OTHER)

    def context(self) -> Any:
        row = check_open(self.home.store, "acme")
        limits = TenantLimits(self.home.store, row, lambda: self.home.clock.now / 1e6)
        return replace(SECRETS, tenant="acme", limits=limits)

    def change(self, *, tier: str | None = None, **limits: int | None) -> Outcome:
        """Change the tenant's limits, and let the time pass after which every process knows."""
        outcome = self.home.do(c.ChangeTenant, project="", tenant="acme", tier=tier, limits=limits)
        self.home.pass_time(seconds=3)
        return outcome

    def fill(self, count: int, project: str = PROJECT) -> None:
        self.do(c.AddMany, project=project, tasks=tuple(NewTask(title=f"t{n}") for n in range(count)))

    def claims(self, count: int, project: str = PROJECT, **fields: Any) -> list[Outcome]:
        """So many claims, one command each."""
        command = {"project": project, "agent": "ann", "session": "s", **fields}
        return [self.do(c.ClaimNext, **command) for _ in range(count)]

    def granted(self, count: int, project: str = PROJECT) -> int:
        return sum(outcome.outcome == "GRANTED" for outcome in self.claims(count, project))

    def shares(self) -> dict[str, int]:
        return {row.project: row.granted for row in self.engine.read(lambda tx: tx.find(ClaimShare, {}))}

    def limit(self, name: str, project: str = PROJECT) -> tuple[Any, str, Any]:
        found = read_query(self.engine, q.Limits(project=project))
        (one,) = [one for one in found if one["name"] == name]
        return one["value"], one["source"], one["used"]


class LimitsOfTenants(Stage):
    def test_the_101st_claim_of_a_default_tenant_is_refused_over_two_projects(self, scene: Scene) -> None:
        acme = TenantScene(scene)
        acme.fill(80)
        acme.fill(80, OTHER)
        first = acme.do(c.ClaimNext, agent="ann", session="s", n=60)
        assert len(first.claims or ()) == 60
        assert acme.granted(40, OTHER) == 40
        for project in (PROJECT, OTHER):
            (denied,) = acme.claims(1, project)
            assert denied.outcome == "DENIED_LIMIT"
            assert "tenant acme has 100 live claims in all projects" in denied.message
            assert "tenure tenant limits acme" in (denied.hint or "")
        assert acme.engine.verify() == []

    def test_who_was_in_a_tenant_when_it_was_closed_does_nothing_more_in_it(self, scene: Scene) -> None:
        """An embedded worker, or another server, that goes on with the engine that it has."""
        acme = TenantScene(scene)
        receipt = acme.take(acme.add())
        acme.home.do(c.CloseTenant, project="", tenant="acme")
        acme.home.pass_time(seconds=3)
        before = acme.tables()
        claim = c.ClaimNext(project=PROJECT, agent="bo", session="s")
        renew = c.Renew(project=PROJECT, receipt=receipt)
        attempts: list[Callable[[], object]] = [
            lambda: acme.engine.do(claim),
            lambda: acme.engine.run([renew, claim]),
            lambda: acme.engine.preview([claim]),
            lambda: read_query(acme.engine, q.Status(project=PROJECT)),
        ]
        for attempt in attempts:
            with pytest.raises(NotFound, match="no tenant 'acme' here"):
                attempt()
        assert acme.tables() == before
        acme.home.do(c.ReopenTenant, project="", tenant="acme")
        acme.home.pass_time(seconds=3)
        assert acme.engine.do(renew).outcome == "RENEWED"

    def test_a_batch_of_claims_ends_at_the_limit(self, scene: Scene) -> None:
        acme = TenantScene(scene, max_concurrent_claims=10)
        acme.fill(20)
        assert len(acme.do(c.ClaimNext, agent="ann", session="s", n=15).claims or ()) == 10
        named = acme.try_to(c.ClaimTask, task=acme.add(), agent="ann", session="s")
        assert code_of(named) == "DENIED_LIMIT"

    def test_why_counts_the_shares_that_other_projects_do_not_use(self, scene: Scene) -> None:
        acme = TenantScene(scene, max_concurrent_claims=2)
        acme.fill(1, OTHER)
        acme.fill(3)
        (kept,) = acme.claims(1, OTHER)
        assert acme.granted(1) == 1
        ready = acme.add()

        def why_not() -> list[str]:
            (ann,) = read_query(acme.engine, q.Why(project=PROJECT, task=ready))["agents"]
            return list(ann["why_not"])

        assert why_not() == ["tenant acme has 2 live claims in all projects, its max_concurrent_claims limit"]
        acme.do(c.Release, project=OTHER, receipt=kept.receipt)
        shares = acme.shares()
        assert why_not() == []
        assert acme.shares() == shares
        assert acme.granted(2) == 1

    def test_a_claim_within_its_share_leaves_the_share_as_it_is(self, scene: Scene) -> None:
        acme = TenantScene(scene, max_concurrent_claims=32)
        acme.fill(5)
        assert acme.granted(1) == 1
        assert acme.shares() == {PROJECT: 2}
        assert acme.granted(1) == 1
        assert acme.shares() == {PROJECT: 2}
        assert acme.granted(1) == 1
        assert acme.shares() == {PROJECT: 4}

    def test_a_share_changes_only_under_the_locks_that_it_needs(self, scene: Scene) -> None:
        acme = TenantScene(scene, max_concurrent_claims=16)
        held: list[frozenset[str] | None] = []

        def ask(project: str) -> set[str]:
            def decide(work: UnitOfWork) -> Outcome | None:
                held.append(work.locked)
                return denied_by_tenant(work, project)

            assert acme.engine.transact((project,), decide) is None
            return set(held[-1] or ())

        assert ask(PROJECT) == {"", PROJECT}
        assert ask(PROJECT) == {PROJECT}  # within its share
        acme.fill(16)
        acme.claims(15)
        assert acme.shares() == {PROJECT: 15}
        assert ask(OTHER) == {"", OTHER}
        assert acme.shares() == {PROJECT: 15, OTHER: 1}
        assert ask(PROJECT) == {"", PROJECT, OTHER}  # takes the unused one back
        assert acme.shares() == {PROJECT: 16, OTHER: 0}

    def test_a_share_that_is_not_used_goes_to_another_project(self, scene: Scene) -> None:
        acme = TenantScene(scene, max_concurrent_claims=8)
        acme.do(c.DefineProject, project="r")
        for project in (PROJECT, OTHER, "r"):
            acme.fill(10, project)
        held = [outcome.receipt for outcome in acme.claims(4)]
        assert acme.granted(4, OTHER) == 4
        for receipt in held[:3]:
            acme.do(c.Release, receipt=receipt)
        assert acme.granted(5, "r") == 3
        assert sum(acme.shares().values()) == 8
        assert code_of(acme.claims(1)[0]) == "DENIED_LIMIT"
        acme.do(c.Release, receipt=held[3])
        assert acme.granted(5) == 1

    def test_a_lowered_limit_counts_what_is_held_and_a_raised_one_applies_soon(self, scene: Scene) -> None:
        acme = TenantScene(scene, max_concurrent_claims=10)
        acme.fill(20)
        acme.fill(20, OTHER)
        held = [outcome.receipt for outcome in acme.claims(4)]
        assert acme.granted(4, OTHER) == 4
        acme.change(max_concurrent_claims=5)
        assert (acme.granted(1), acme.granted(1, OTHER)) == (0, 0)
        for receipt in held:
            acme.do(c.Release, receipt=receipt)
        assert acme.granted(3, OTHER) == 1
        assert acme.granted(1) == 0
        acme.change(max_concurrent_claims=7)
        assert (acme.granted(1), acme.granted(3, OTHER)) == (1, 1)
        acme.change(max_concurrent_claims=None)
        assert acme.granted(5) == 5

    def test_an_enterprise_tenant_has_more(self, scene: Scene) -> None:
        acme = TenantScene(scene)
        assert acme.limit("max_concurrent_claims") == (100, "tenant", 0)
        assert acme.change(tier="enterprise").outcome == "UPDATED"
        assert acme.change(tier="enterprise").outcome == "UNCHANGED"
        assert acme.limit("max_concurrent_claims") == (1000, "tenant", 0)
        assert acme.limit("max_generations_per_task")[0] == 1000
        (event,) = acme.home.events(kind="tenant.changed")
        assert "max_concurrent_claims" in event.details["changed"]

    def test_a_look_shows_value_source_and_use(self, scene: Scene) -> None:
        acme = TenantScene(scene, max_concurrent_claims=10)
        acme.fill(3)
        acme.fill(3, OTHER)
        acme.claims(2)
        acme.claims(1, OTHER)
        assert acme.limit("max_concurrent_claims") == (10, "tenant", 3)
        acme.do(c.DefineProject, change_limits={"max_concurrent_claims": 2})
        assert acme.limit("max_concurrent_claims") == (2, "project", 2)
        assert acme.limit("max_concurrent_claims", OTHER) == (10, "tenant", 3)
        assert acme.limit("max_active_sessions") == (50, "tenant", 2)
        assert acme.limit("archive_after")[1] == "default"
        assert "live claims, its max_concurrent_claims limit" in acme.claims(1)[0].message

    def test_a_project_lowers_a_limit_and_never_raises_it(self, scene: Scene) -> None:
        acme = TenantScene(scene, max_lease=1000)
        for looser in ({"max_lease": 1001}, {"min_lease": 29}, {"max_concurrent_claims": 101}):
            assert code_of(acme.try_to(c.DefineProject, change_limits=looser)) == "INVALID_INPUT", looser
        for stricter in ({"max_lease": 900}, {"min_lease": 31}, {"max_concurrent_claims": 99}, {"archive_after": 0}):
            assert acme.do(c.DefineProject, change_limits=stricter).outcome == "UPDATED"
        acme.change(max_lease=800, min_lease=40)  # stricter than the project now
        assert (acme.limit("max_lease")[:2], acme.limit("min_lease")[:2]) == ((800, "tenant"), (40, "tenant"))

    def test_leases_results_and_generations_are_within_the_tenants_limits(self, scene: Scene) -> None:
        acme = TenantScene(scene, max_lease=600, max_result_size=1000, max_generations_per_task=2)
        key = acme.add(max_attempts=10)
        for lease in (29, 601):
            assert code_of(acme.try_to(c.ClaimTask, task=key, agent="ann", session="s", lease=lease)) == "INVALID_INPUT"
        receipt = acme.take(key, lease=600)
        assert code_of(acme.try_to(c.Renew, receipt=receipt, lease=601)) == "INVALID_INPUT"
        assert code_of(acme.try_to(c.Submit, receipt=receipt, data="x" * 1000)) == "TOO_LARGE"
        digest = "d" * 64
        put = acme.try_to(c.PutArtifact, receipt=receipt, name="a", digest=digest, size=1001, since=acme.now)
        assert code_of(put) == "TOO_LARGE"
        acme.do(c.Release, receipt=receipt)
        acme.pass_time(minutes=11)
        acme.do(c.Release, receipt=acme.take(key))
        acme.pass_time(minutes=11)
        assert acme.claim(key).outcome == "DENIED_LIMIT"
        assert acme.state(key) == "dead_lettered"

    def test_sessions_count_over_all_projects(self, scene: Scene) -> None:
        acme = TenantScene(scene, max_active_sessions=3)
        for name, project in (("a", PROJECT), ("b", OTHER), ("c", PROJECT)):
            acme.do(c.Register, project=project, agent=name, session=f"s-{name}")
        for project in (PROJECT, OTHER):
            with pytest.raises(LimitReached, match="tenant acme has 3 active sessions in all projects"):
                acme.do(c.Register, project=project, agent="d", session="s-d")
        acme.do(c.Leave, project=OTHER, session="s-b")
        acme.do(c.Register, agent="d", session="s-d")

    def test_the_home_tenant_has_no_limits(self, scene: Scene) -> None:
        acme = TenantScene(scene, max_concurrent_claims=1)
        acme.fill(3)
        assert acme.granted(3) == 1
        for _ in range(3):
            scene.add()
        assert scene.next_keys(3) == ["A-001-work", "A-002-work", "A-003-work"]
        assert code_of(scene.try_to(c.ChangeTenant, project="", tenant="local", tier="default")) == "INVALID_INPUT"

    @pytest.mark.parametrize(
        ("fields", "words"),
        [
            ({"tier": "gold"}, "must be one of default, enterprise"),
            ({"limits": {"tokens_per_line": 1}}, "is not one of tenants"),
            ({"limits": {"max_concurent_claims": 1}}, "did you mean max_concurrent_claims"),
            ({"limits": {"max_concurrent_claims": 0}}, "must be from 1"),
            ({"limits": {"min_lease": 4000}}, "must not exceed max_lease"),
        ],
    )
    def test_bad_limits_are_refused(self, scene: Scene, fields: dict[str, Any], words: str) -> None:
        acme = TenantScene(scene)
        answer = acme.home.try_to(c.ChangeTenant, project="", tenant="acme", **fields)
        assert code_of(answer) == "INVALID_INPUT"
        assert words in str(answer)

    def test_a_tenants_own_owner_does_not_change_its_limits(self, scene: Scene) -> None:
        acme = TenantScene(scene)
        answer = acme.try_to(c.ChangeTenant, project="", tenant="acme", tier="enterprise")
        assert isinstance(answer, NotAllowed)
        by = Principal(role="admin", user="ada")
        assert isinstance(scene.try_to(c.ChangeTenant, project="", tenant="acme", by=by), NotAllowed)

    def test_projects_that_claim_at_once_share_the_limit_exactly(self, scene: Scene) -> None:
        acme = TenantScene(scene, max_concurrent_claims=20)
        projects = [f"p{n}" for n in range(4)]
        for project in projects:
            acme.do(c.DefineProject, project=project)
            acme.fill(20, project)
        answers: list[str] = []
        start = Barrier(len(projects))

        def claim(number: int, project: str) -> None:
            engine = Engine(acme.store, Dice(number + 10), acme.context())
            start.wait()
            for turn in range(10):
                command = c.ClaimNext(project=project, agent=f"a{number}", session=f"s{number}", n=1)
                answer = engine.do(command, OWNER)
                answers.append(answer.outcome)
                if turn % 3 == 2 and answer.receipt is not None:
                    engine.do(c.Release(project=project, receipt=answer.receipt), OWNER)

        threads = [Thread(target=claim, args=numbered) for numbered in enumerate(projects)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        held = acme.engine.read(lambda tx: [t for t in tx.find(Task, {}) if t.state == "claimed"])
        assert len(held) <= 20
        assert len(answers) == 40
        left = 20 - len(held)
        assert sum(acme.granted(20, project) for project in projects) == left
        assert sum(acme.shares().values()) == 20

    def test_every_tier_has_every_limit(self) -> None:
        names = {frozenset(tier) for tier in tenant_limits.TIERS.values()}
        assert len(names) == 1
