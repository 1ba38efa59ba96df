"""What looks give back has the shapes that `core/views` says, and nothing beside them."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, is_typeddict

import msgspec
import pytest

from tenure.core import commands as c
from tenure.core import queries as q
from tenure.core import views
from tenure.core.instants import is_instant
from tenure.core.lifecycle import STATES
from tenure.core.outcomes import Outcome
from tenure.core.views.task_views import Instant
from tenure.engine.reads.query_table import read_query
from tenure.stores.memory import Memory
from tenure.stores.sqlite import Sqlite
from tenure.testing.clock import FakeClock
from tenure.testing.factories import PROJECT, Scene
from tests.engine.rich_scene import OF_STORE, Rich, enrich, every_look


class Stage:
    """A rich project, with all outcomes that were given on the way there."""

    def __init__(self, folder: Path) -> None:
        clock = FakeClock()
        self.scene = Scene(Sqlite(str(folder / "store.db"), clock=clock), clock)
        self.rich: Rich = enrich(self.scene)
        self.outcomes = [answer for answer in self.scene.answers if isinstance(answer, Outcome)]
        several = Scene(Memory(clock=clock), clock)  # a file keeps one tenant
        self.outcomes.append(several.do(c.AddTenant, project="", tenant="acme"))

    def look(self, kind: type[q.Query], **fields: Any) -> Any:
        return read_query(self.scene.engine, kind(project="" if kind in OF_STORE else PROJECT, **fields))


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    stage = Stage(tmp_path_factory.mktemp("views"))
    yield stage
    assert stage.scene.engine.verify() == []
    stage.scene.store.close()


def drift(value: Any, kind: Any) -> list[str]:
    """What the type does not say of the value, or says and is not so."""
    try:
        typed = msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        return [str(error)]
    return _lost(msgspec.to_builtins(value), msgspec.to_builtins(typed), "$")


def _lost(value: Any, typed: Any, where: str) -> list[str]:
    if isinstance(value, dict):
        lost = [f"{where}.{name} is not in the type" for name in value.keys() - typed.keys()]
        return lost + [
            x for name in value.keys() & typed.keys() for x in _lost(value[name], typed[name], f"{where}.{name}")
        ]
    if isinstance(value, (list, tuple)):
        return [
            x
            for n, (one, other) in enumerate(zip(value, typed, strict=True))
            for x in _lost(one, other, f"{where}[{n}]")
        ]
    return [] if value == typed else [f"{where}: {value!r} is {typed!r} in the type"]


def test_every_look_gives_what_its_type_says(stage: Stage) -> None:
    wrong = {}
    for kind, fields in every_look(stage.rich):
        found = drift(stage.look(kind, **fields), views.OF[kind])
        if found:
            wrong[f"{kind.__name__} {fields}"] = found[:5]
    assert wrong == {}


def test_every_query_has_its_type_and_is_asked_here(stage: Stage) -> None:
    assert set(views.OF) == set(q.ALL)
    assert {kind for kind, _ in every_look(stage.rich)} == set(q.ALL)


def test_the_scene_is_rich_enough_to_tell(stage: Stage) -> None:
    """Each state, and every field that a view may leave out: one that is never there would prove nothing."""
    tasks = stage.look(q.Tasks, limit=1000, archived=True)
    assert {task["state"] for task in tasks} == set(STATES)
    keys = [*stage.rich.tasks.values(), stage.rich.archived]
    seen = {name for key in keys for name in stage.look(q.Show, task=key)} | {name for task in tasks for name in task}
    assert set(views.TaskInFull.__annotations__) - seen == set()
    looks = list(every_look(stage.rich))
    answered = {kind for kind, fields in looks if stage.look(kind, **fields)}
    assert {kind.__name__ for kind, _ in looks if kind not in answered} == set()


def test_what_outcomes_carry_has_the_types_of_views(stage: Stage) -> None:
    carried = {name: [getattr(o, name) for o in stage.outcomes if getattr(o, name)] for name in views.IN_OUTCOME}
    assert [name for name, found in carried.items() if not found] == []
    wrong = {name: drift(found, list[kind]) for name, kind in views.IN_OUTCOME.items() for found in [carried[name]]}  # type: ignore[valid-type]
    assert {name: found for name, found in wrong.items() if found} == {}


def test_instants_are_named_so_that_the_wire_spells_them(stage: Stage) -> None:
    """The wire knows instants by their names alone; a view that named one otherwise would send a bare number."""
    large = {
        name for kind, fields in every_look(stage.rich) for name in _numbers_like_instants(stage.look(kind, **fields))
    }
    assert {name for name in large if not is_instant(name)} == set()
    assert Instant is int


def test_every_instant_that_a_view_declares_is_named_so_too() -> None:
    """Also one that no row of the scene has."""
    modules = [sys.modules[name] for name in list(sys.modules) if name.startswith("tenure.core.views.")]
    kinds = [kind for module in modules for kind in vars(module).values() if is_typeddict(kind)]
    declared = {name for kind in kinds for name, said in kind.__annotations__.items() if "Instant" in str(said)}
    assert len(declared) > 40
    assert {name for name in declared if not is_instant(name)} == set()


def _numbers_like_instants(value: Any, name: str = "") -> Iterator[str]:
    if isinstance(value, msgspec.Struct):
        value = msgspec.to_builtins(value)
    if isinstance(value, dict):
        for key, part in value.items():
            if key not in ("metadata", "details", "data"):
                yield from _numbers_like_instants(part, key)
    elif isinstance(value, (list, tuple)):
        for part in value:
            yield from _numbers_like_instants(part, name)
    elif isinstance(value, int) and not isinstance(value, bool) and value > 1_600_000_000_000_000:
        yield name


def test_no_start_pays_for_the_types() -> None:
    """Nothing of the engine or the client loads them: they are for the type checker, the document and this test."""
    script = """
import pkgutil, sys, importlib, tenure.engine, tenure.client
for package in (tenure.engine, tenure.client):
    for module in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
        importlib.import_module(module.name)
print([name for name in sys.modules if name.startswith("tenure.core.views")])
"""
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"
