"""Lists over HTTP: their cursors lead through everything once, and what cannot be a page is refused."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import requests

from tenure.engine.reads.tasks import MOST_LISTED, ORDERS
from tenure.testing.factories import PROJECT


@pytest.fixture
def get(api: str) -> Iterator[Any]:
    with requests.Session() as session:
        yield lambda path, **query: session.get(f"{api}/api/v1/projects/{PROJECT}/{path}", params=query)


@pytest.mark.parametrize("order", [sign + name for name in ORDERS for sign in ("", "-")])
def test_cursors_lead_through_all_tasks_once(get: Any, order: str) -> None:
    def everything() -> set[str]:
        return {task["id"] for task in get("tasks", limit=MOST_LISTED).json()["items"]}

    before = everything()
    seen: list[str] = []
    query = {"order": order, "limit": 3}
    while True:
        page = get("tasks", **query).json()
        seen += [task["id"] for task in page["items"]]
        if page["next"] is None:
            break
        query["after"] = page["next"]
    assert len(before) > 2 * 3
    assert before <= set(seen) <= everything()  # schedules may have made some meanwhile
    assert len(set(seen)) == len(seen)


def test_cursors_lead_through_the_log(get: Any) -> None:
    seen: list[int] = []
    page = get("events", last="false", limit=20).json()
    while page["items"]:
        seen += [event["sequence"] for event in page["items"]]
        if page["next"] is None:
            break
        page = get("events", last="false", limit=20, after=page["next"]).json()
    assert len(seen) > 40
    assert seen == sorted(set(seen))


@pytest.mark.parametrize("path", ["tasks", "ready", "messages", "sessions", "usage", "events"])
@pytest.mark.parametrize("limit", [0, -1])
def test_a_page_has_at_least_one_place(get: Any, path: str, limit: int) -> None:
    answer = get(path, limit=limit)
    assert (answer.status_code, answer.json()["code"]) == (400, "INVALID_INPUT")


@pytest.mark.parametrize("after", ['["a","x"]', "[{},1]", "[1]", "[", "x", '[1.5,"x"]', '[true,"x"]'])
def test_a_cursor_of_another_order_is_refused(get: Any, after: str) -> None:
    answer = get("tasks", after=after)
    assert (answer.status_code, answer.json()["code"]) == (400, "INVALID_INPUT")


def test_a_page_that_was_cut_short_says_so(api: str) -> None:
    """What is left comes with the next one. More than a page can have is refused."""
    project = f"{api}/api/v1/projects/many"
    requests.put(project, timeout=30)
    tasks = [{"title": f"t{n}", "name": f"t{n}"} for n in range(MOST_LISTED + 1)]
    assert requests.post(f"{project}/dags", json={"tasks": tasks}, timeout=60).status_code == 201
    refused = requests.get(f"{project}/tasks", params={"limit": 5 * MOST_LISTED}, timeout=60)
    assert (refused.status_code, refused.json()["code"]) == (400, "INVALID_INPUT")
    assert f"from 1 to {MOST_LISTED}" in refused.json()["detail"]
    first = requests.get(f"{project}/tasks", params={"limit": MOST_LISTED}, timeout=60).json()
    rest = requests.get(f"{project}/tasks", params={"limit": 1, "after": first["next"]}, timeout=60).json()
    assert (len(first["items"]), first["more"]) == (MOST_LISTED, True)
    assert (len(rest["items"]), rest["more"], rest["next"]) == (1, False, None)


def test_an_empty_idempotency_key_is_nobodys(api: str) -> None:
    answer = requests.put(f"{api}/api/v1/projects/{PROJECT}", headers={"Idempotency-Key": ""}, timeout=30)
    assert (answer.status_code, answer.json()["code"]) == (400, "INVALID_INPUT")
