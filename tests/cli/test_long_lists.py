"""A list that stops says so: each verb with `--limit`, by its declaration, so that a new one is asked here too."""

from __future__ import annotations

import pytest

from tenure.cli.main import function_of
from tenure.cli.verbs import VERBS
from tenure.stores.sqlite import Sqlite
from tenure.testing.factories import PROJECT, Scene
from tests.cli.conftest import Tenure
from tests.cli.shop import just_now
from tests.engine.rich_scene import with_long_lists


def has_limit(where: str) -> bool:
    return any("--limit" in names for names, _ in getattr(function_of(where), "declared", ()))


LISTS = [verb for verb, listed in VERBS.items() if has_limit(listed.where)]
WORDS = {"webhook log": ("out",), "spawn list": ("--all",), "inbox": ("--agent", "ann", "--keep")}  # beside the verb


@pytest.fixture
def lists(bare: Tenure) -> Tenure:
    clock = just_now(3 * 3600.0)
    path = bare.folder / ".tenure" / "tenure.db"
    path.parent.mkdir()
    scene = Scene(Sqlite(str(path), clock=clock), clock)
    with_long_lists(scene)
    scene.store.close()
    return bare


def words_of(verb: str) -> tuple[str, ...]:
    return *verb.split(), *WORDS.get(verb, ()), "--project", PROJECT


def test_every_list_says_that_it_stopped_and_what_shows_more(lists: Tenure) -> None:
    silent = {}
    for verb in LISTS:
        cut, whole = (lists(*words_of(verb), "--limit", limit) for limit in (1, 1000))
        if not cut.out.splitlines()[-1].startswith("… more") or "… more" in whole.out:
            silent[verb] = cut, whole
    assert silent == {}


def test_every_list_says_so_beside_json_too(lists: Tenure) -> None:
    silent = {}
    for verb in LISTS:
        cut, whole = (lists(*words_of(verb), "--limit", limit, "--json") for limit in (1, 1000))
        if len(cut.json) != 1 or "… more" not in cut.err or len(whole.json) < 2 or "… more" in whole.err:
            silent[verb] = cut, whole
    assert silent == {}


def test_a_limit_that_no_list_keeps_is_refused(lists: Tenure) -> None:
    for verb in LISTS:
        for limit in (0, 10_001):
            said = lists(*words_of(verb), "--limit", limit)
            assert said.code == 8, verb
            assert f"(got {limit})" in said.err, verb


@pytest.mark.parametrize("verb", ["list", "budget list", "log", "inbox"])
def test_page_after_page_shows_all_of_it(lists: Tenure, verb: str) -> None:
    first = ("--after", "0") if verb == "log" else ()
    whole = lists(*words_of(verb), *first, "--limit", 1000, "--json").json
    found, option = [], first
    while True:
        said = lists(*words_of(verb), *option, "--limit", 7 if verb in ("list", "log") else 1, "--json")
        found += said.json
        if not said.err:
            break
        option = tuple(said.err.split("add ")[1].split())
    assert [one["id"] for one in found] == [one["id"] for one in whole]  # time goes on between two pages


def test_the_log_is_shown_from_its_end_unless_a_place_is_named(lists: Tenure) -> None:
    assert lists("log", "--project", PROJECT, "--limit", 1).out.endswith(
        "\n… more: add --after 0 for the oldest first\n"
    )
    refused = lists("log", "--project", PROJECT, "--after", 0, "--follow")
    assert (refused.code, "exclude each other" in refused.err) == (2, True)


def test_a_verb_for_many_tasks_reaches_all_of_them(lists: Tenure, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tenure.cli.task_reads.PAGE", 2)
    ready = {one["key"] for one in lists("list", "-s", "ready", "--limit", 1000, "--project", PROJECT, "--json").json}
    would = lists("cancel", "-s", "ready", "--dry-run", "--project", PROJECT, "--json").json
    assert len(ready) > 4
    assert {one["name"] for one in would} == ready
