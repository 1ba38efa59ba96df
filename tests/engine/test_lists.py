"""A list that stops says so: each query with a `limit`, by its declaration, so that a new one is asked here too."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tenure.client import Client
from tenure.core import commands as c
from tenure.core import queries as q
from tenure.core.errors import InvalidInput
from tenure.engine.reads.query_table import read_query
from tenure.engine.reads.tasks import session
from tenure.stores.sqlite import Sqlite
from tenure.testing.clock import FakeClock
from tenure.testing.factories import PROJECT, Scene
from tests.engine.rich_scene import Rich, every_look, with_long_lists

LISTS = sorted((kind for kind in q.ALL if kind.largest), key=lambda kind: kind.__name__)
PAGED = [kind for kind in LISTS if "after" in kind.__struct_fields__]
CLOCK = FakeClock()


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("lists") / "store.db"


@pytest.fixture(scope="module")
def scene(path: Path) -> Iterator[Scene]:
    scene = Scene(Sqlite(str(path), clock=CLOCK), CLOCK)
    yield scene
    assert scene.engine.verify() == []
    scene.store.close()


@pytest.fixture(scope="module")
def rich(scene: Scene) -> Rich:
    return with_long_lists(scene)


def fields_of(kind: type[q.Query], scene: Scene, rich: Rich) -> dict[str, Any]:
    """What it takes for the longest of its lists."""
    asked = [fields for one, fields in every_look(rich) if one is kind]
    return max(asked, key=lambda fields: len(look(scene, kind, **fields)))


def look(scene: Scene, kind: type[q.Query], **fields: Any) -> q.Page[Any]:
    found: q.Page[Any] = read_query(scene.engine, kind(project=PROJECT, **fields))
    assert isinstance(found, q.Page)
    return found


def test_every_query_with_a_limit_says_what_its_largest_is() -> None:
    assert (
        sorted((kind for kind in q.ALL if "limit" in kind.__struct_fields__), key=lambda kind: kind.__name__) == LISTS
    )


@pytest.mark.parametrize("kind", LISTS, ids=lambda kind: kind.__name__)
def test_a_list_that_stops_says_so_and_a_whole_one_does_not(kind: type[q.Query], scene: Scene, rich: Rich) -> None:
    fields = fields_of(kind, scene, rich)
    whole = look(scene, kind, **{**fields, "limit": kind.largest})
    assert (len(whole) > 1, whole.more, whole.next) == (True, False, None)
    exact = look(scene, kind, **{**fields, "limit": len(whole)})
    assert (exact, exact.more, exact.next) == (whole, False, None)
    short = look(scene, kind, **{**fields, "limit": len(whole) - 1})
    assert (len(short), short.more, short.largest) == (len(whole) - 1, True, kind.largest)


@pytest.mark.parametrize("size", [1, 2, 3])
@pytest.mark.parametrize("kind", PAGED, ids=lambda kind: kind.__name__)
def test_the_next_of_each_page_leads_to_the_end(kind: type[q.Query], size: int, scene: Scene, rich: Rich) -> None:
    fields = fields_of(kind, scene, rich) | ({"last": False} if "last" in kind.__struct_fields__ else {})
    whole = look(scene, kind, **{**fields, "limit": kind.largest})
    page = look(scene, kind, **{**fields, "limit": size})
    found = [*page]
    while page.more:
        page = look(scene, kind, **{**fields, "limit": size, "after": page.next})
        found += page
    assert found == whole


@pytest.mark.parametrize("over", [True, False], ids=["too many", "none"])
@pytest.mark.parametrize("kind", LISTS, ids=lambda kind: kind.__name__)
def test_a_limit_that_no_answer_keeps_is_refused(
    kind: type[q.Query], over: bool, path: Path, scene: Scene, rich: Rich
) -> None:
    limit = kind.largest + 1 if over else 0
    fields = fields_of(kind, scene, rich) | {"limit": limit}
    told = f"limit must be from 1 to {kind.largest} .got {limit}."
    with pytest.raises(InvalidInput, match=told):
        look(scene, kind, **fields)
    with Client(str(path), PROJECT, clock=CLOCK) as client, pytest.raises(InvalidInput, match=told):
        client.query(kind(project=PROJECT, **fields))


def test_a_search_that_stops_says_where_to_search_on(scene: Scene, rich: Rich, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tenure.engine.reads.tasks.MOST_SEARCHED", 4)
    monkeypatch.setattr("tenure.engine.reads.tasks.MOST_LISTED", 2)
    whole = {task["key"] for task in look(scene, q.Tasks, limit=1000) if "to-be-hosted" in task["key"]}
    page, found, pages = look(scene, q.Tasks, text="hosted"), list[str](), 1
    while page.more:
        found += [task["key"] for task in page]
        page, pages = look(scene, q.Tasks, text="hosted", after=page.next), pages + 1
    assert ({*found, *(task["key"] for task in page)}, pages > 2) == (whole, True)


def test_a_session_says_that_older_entries_are_left_out(
    scene: Scene, rich: Rich, monkeypatch: pytest.MonkeyPatch
) -> None:
    def memory() -> Any:
        return scene.engine.read_settled((PROJECT,), lambda work: session(work, PROJECT, rich.session))

    entries = [one for one in memory()["task_log"] if "time" in one]
    assert not memory()["more"]
    monkeypatch.setattr("tenure.engine.reads.tasks.MOST_LISTED", 2)
    assert memory()["more"]
    assert len([one for one in memory()["task_log"] if "time" in one]) <= 2 < len(entries)


def test_mail_to_many_fills_the_page_with_messages_not_with_recipients(
    scene: Scene, rich: Rich, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tenure.engine.reads.tasks.MOST_LISTED", 2)
    for n in range(3):
        scene.do(c.Send, sender="boss", to="@all", text=f"to everybody {n}")
    found = look(scene, q.Messages, limit=3)
    assert [one["text"] for one in found] == [f"to everybody {n}" for n in (2, 1, 0)]
    assert all(len(one["recipients"]) > 2 for one in found)
    assert found.more


def test_a_row_that_waits_no_more_hides_no_verdict_behind_it(
    scene: Scene, rich: Rich, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = look(scene, q.Validations)
    monkeypatch.setattr("tenure.engine.checks.validation_reads.PAGE", 1)
    assert look(scene, q.Validations) == whole
    assert [one["what"] for one in look(scene, q.Todo)].count("review") > 0
