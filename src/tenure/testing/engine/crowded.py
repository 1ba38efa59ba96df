"""What a claim reads beside many live claims and sessions: their number, and none of their rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any
from unittest.mock import patch

import pytest

from tenure.core import commands as c
from tenure.core.records import Task
from tenure.stores.port import Store, Transaction
from tenure.testing.engine.stage import Stage
from tenure.testing.engine.tenant_limits import OTHER, TenantScene
from tenure.testing.factories import PROJECT, Scene, code_of

CROWD = 120
FEW = 20  # rows that a claim reads, at most, however many live claims there are


class Crowded(Stage):
    def test_a_claim_under_a_limit_reads_no_row_of_the_live_claims_beside_it(self, scene: Scene) -> None:
        scene.do(c.DefineProject, limits={"max_concurrent_claims": 10_000, "max_active_sessions": 10_000})
        scene.run(*[_new()] * (CROWD + 15))
        for n in range(CROWD):
            scene.next("bo", session=f"s{n}")
        with reading(scene.store) as rows:
            assert scene.next("ann").outcome == "GRANTED"
        assert 0 < len(rows) <= FEW
        key = scene.add()
        with reading(scene.store) as rows:
            scene.take(key, "cy")
        assert 0 < len(rows) <= FEW
        with reading(scene.store) as rows:
            granted = scene.next("ann", n=10)
        assert len(granted.claims or ()) == 10
        assert len(rows) <= FEW + 10 * 5  # each task, its brief, its claim and its offers

    def test_an_agent_with_a_limit_of_its_own_reads_none_of_the_tasks_that_it_holds(self, scene: Scene) -> None:
        scene.do(c.Register, agent="ann", max_concurrent_tasks=CROWD + 1)
        scene.run(*[_new()] * (CROWD + 2))
        for n in range(CROWD):
            scene.next("ann", session=f"s{n}")
        with reading(scene.store) as rows:
            assert scene.next("ann").outcome == "GRANTED"
        assert 0 < len(rows) <= FEW
        assert code_of(scene.try_to(c.ClaimNext, agent="ann", session="s")) == "DENIED_LIMIT"

    def test_a_claim_in_a_tenant_reads_no_row_of_the_live_claims_in_its_projects(self, scene: Scene) -> None:
        acme = TenantScene(scene, max_concurrent_claims=10_000, max_active_sessions=10_000)
        for project in (PROJECT, OTHER):
            acme.fill(CROWD, project)
            acme.claims(CROWD - 5, project)
        with reading(acme.store) as rows:
            assert acme.granted(1) == 1
        assert 0 < len(rows) <= FEW

    @pytest.mark.parametrize("size", [1, 7])
    def test_a_limit_is_exact_inside_a_batch_of_claims(self, scene: Scene, size: int) -> None:
        scene.do(c.DefineProject, limits={"max_concurrent_claims": 100})
        scene.run(*[_new()] * 150)
        first = scene.next("ann", n=40).claims or ()
        claim = c.ClaimNext(project=PROJECT, agent="bo", session="t", n=size)
        ended = c.Submit(project=PROJECT, receipt=first[0].receipt or "", data="x")
        answers = scene.run(*[claim] * 45, ended, *[claim] * 55)
        codes = [code_of(answer) for answer in answers]
        assert codes.count("ACCEPTED") == 1
        assert codes[-1] == "DENIED_LIMIT"
        assert len(scene.rows(Task, state="claimed")) == 100

    def test_a_limit_is_exact_where_two_limits_are_counted(self, scene: Scene) -> None:
        """Nothing that was counted up to the lower limit is taken for the number of all."""
        scene.run(*[_new()] * 20)
        scene.next("bo", n=8)
        lower, higher = (
            c.DefineProject(project=PROJECT, change_limits={"max_concurrent_claims": most}) for most in (5, 12)
        )
        claim = c.ClaimNext(project=PROJECT, agent="ann", session="s")
        answers = scene.run(lower, claim, higher, *[claim] * 6)
        codes = ["UPDATED", "DENIED_LIMIT", "UPDATED", *["GRANTED"] * 4, *["DENIED_LIMIT"] * 2]
        assert [code_of(answer) for answer in answers] == codes

    def test_a_refused_command_of_a_batch_leaves_no_claim_in_the_count(self, scene: Scene) -> None:
        scene.do(c.DefineProject, limits={"max_concurrent_claims": 2})
        keys = [scene.add() for _ in range(4)]
        lost = c.ClaimTask(project=PROJECT, task=keys[0], agent="ann", session="s", lease=-1)
        taken = [c.ClaimTask(project=PROJECT, task=key, agent="ann", session="s") for key in keys[1:]]
        codes = [code_of(answer) for answer in scene.run(lost, taken[0], lost, taken[1], taken[2])]
        assert codes == ["INVALID_INPUT", "GRANTED", "INVALID_INPUT", "GRANTED", "DENIED_LIMIT"]

    def test_idle_sessions_that_hold_tasks_count_and_others_do_not(self, scene: Scene) -> None:
        scene.do(c.DefineProject, limits={"max_active_sessions": 2})
        scene.take(scene.add(), "ann", lease=86_400)
        scene.next("bo", session="t")
        scene.pass_time(hours=5)
        scene.next("cy", session="u")  # that of bo is over, that of ann is not
        refused = scene.try_to(c.ClaimNext, agent="dee", session="v")
        assert code_of(refused) == "LIMIT_REACHED"


@contextmanager
def reading(store: Store) -> Iterator[list[Any]]:
    """The rows that transactions hand over meanwhile."""
    rows: list[Any] = []
    begin = store.begin

    def counted(tenant: str, *, write: bool) -> AbstractContextManager[Transaction]:
        return _counting(begin(tenant, write=write), rows)

    with patch.object(store, "begin", counted):
        yield rows


@contextmanager
def _counting(began: AbstractContextManager[Transaction], rows: list[Any]) -> Iterator[Any]:
    with began as tx:
        yield _Counting(tx, rows)


class _Counting:
    """A transaction that notes the rows that it hands over."""

    def __init__(self, tx: Transaction, rows: list[Any]) -> None:
        self._tx, self._rows = tx, rows

    def __getattr__(self, name: str) -> Any:
        ask = getattr(self._tx, name)
        return self._kept(ask) if name in ("load", "find", "due") else ask

    def _kept(self, ask: Callable[..., list[Any]]) -> Callable[..., list[Any]]:
        def asked(*arguments: Any, **options: Any) -> list[Any]:
            found = ask(*arguments, **options)
            self._rows.extend(found)
            return found

        return asked


def _new() -> c.Add:
    return c.Add(project=PROJECT, task=c.NewTask(title="t"))
