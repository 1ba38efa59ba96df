"""A store without snapshots answers conflicts to torn reads, and every caller of a read runs it again."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import tenure
from tenure.core.errors import Conflict
from tenure.engine.runtime.engine import TRIES
from tenure.stores.port import Clock, Store
from tenure.testing.clock import FakeClock
from tenure.testing.engine.archive import Archive
from tenure.testing.engine.artifacts import Artifacts
from tenure.testing.engine.coordinators import Coordinators
from tenure.testing.engine.gauges import Gauges
from tenure.testing.engine.hooks_and_notices import HooksAndNotices
from tenure.testing.engine.overview import Overview
from tenure.testing.engine.relays import Relays
from tenure.testing.engine.tenants_led import TenantsLed
from tenure.testing.engine.triggers import Triggers
from tenure.testing.engine.webhooks import Webhooks
from tenure.testing.engine_suite import EngineSuite
from tenure.testing.factories import Scene
from tenure.testing.suites.store import StoreSuite
from tests.stores.torn import Torn

SOURCE = Path(tenure.__file__).parent


class TestTorn(StoreSuite):
    def open_store(self, tmp_path: Path, clock: Clock) -> Store:
        return Torn(clock=clock)


class _Tears:
    def open_store(self, tmp_path: Path, clock: Clock) -> Store:
        return Torn(clock=clock, tears=True)


class TestEveryReadIsTornOnce(
    _Tears, Overview, Gauges, Relays, Webhooks, HooksAndNotices, Triggers, Coordinators, TenantsLed, Archive, Artifacts
):
    pass


@pytest.mark.nightly
class TestTheWholeSuiteOnTornReads(_Tears, EngineSuite):
    pass


def test_a_read_that_is_torn_again_and_again_ends_with_the_conflict() -> None:
    clock = FakeClock()
    store = Torn(clock=clock)
    scene = Scene(store, clock)
    asked = 0

    def ask(tx: object) -> None:
        nonlocal asked
        asked += 1
        tx.now  # type: ignore[attr-defined]  # noqa: B018 - the first query
        scene.add()
        tx.now  # type: ignore[attr-defined]  # noqa: B018 - the second, after another's commit

    with pytest.raises(Conflict, match="rows changed"):
        scene.engine.read(ask)
    assert (asked, store.torn) == (TRIES, TRIES)


def test_reads_go_through_the_engine_alone() -> None:
    """A read transaction that is begun elsewhere would not run again; a tenant's row is read again where it is, and
    a leader looks at a tenant whose due rows it could not read."""
    found = [
        f"{file.relative_to(SOURCE)}:{node.lineno}"
        for file in SOURCE.rglob("*.py")
        if "testing" not in file.parts
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "begin"
        and any(k.arg == "write" and getattr(k.value, "value", None) is False for k in node.keywords)
    ]
    places = sorted(place.partition(":")[0] for place in found)
    assert places == [
        "engine/runtime/engine.py",
        "engine/runtime/tenancy.py",
        "stores/tenants_due.py",
        "stores/valkey/check.py",
    ]
