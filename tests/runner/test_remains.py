"""What a run leaves behind, judged by its own attempts and the store."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tenure.agents.runner import remains
from tenure.agents.runner.remains import Remains, remains_of
from tenure.agents.runner.shared import FOREVER, ONCE, UNTIL_EMPTY, AttemptEnd, Options, Shared
from tenure.agents.unlanded import Unlanded
from tenure.client import Client
from tenure.config import Home


@pytest.fixture
def client(tmp_path: Path) -> Client:
    made = Client(str(tmp_path / ".tenure" / "tenure.db"), "default", agent="ann", create=True)
    made.init()
    made.add("One", max_attempts=1)
    return made


def shared(client: Client, tmp_path: Path, what: str, **options: Any) -> Shared:
    """After one attempt at A-001 that ended so."""
    folder = tmp_path / ".tenure"
    home = Home(url=str(folder / "tenure.db"), folder=str(folder))
    fields = {"cli": None, "program": "", "name": "x", "home": home, "project": "default", "folder": str(tmp_path)}
    made = Shared(Options(**{**fields, "environ": {}, "mode": ONCE, **options}), lambda text: None)
    made.ended(AttemptEnd("x-1", "A-001-one", 1, what))
    return made


def test_a_refused_result_counts_until_the_task_is_completed(client: Client, tmp_path: Path) -> None:
    run = shared(client, tmp_path, "refused")
    assert remains_of(run, client) == Remains(refused=("A-001-one",))
    client.submit(client.claim("A-001").receipt, "done")
    assert remains_of(run, client) == Remains()


def test_accepted_work_of_the_run_that_has_not_landed_counts(
    client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours, other = (Unlanded(key, "completed", "branch", "main", 1) for key in ("A-001-one", "A-002-two"))
    monkeypatch.setattr(remains, "unlanded", lambda folder, client: [ours, other])
    assert remains_of(shared(client, tmp_path, "completed", land=True), client).unlanded == ("A-001-one",)
    assert remains_of(shared(client, tmp_path, "completed"), client) == Remains()


def test_only_a_run_that_ends_by_itself_is_judged(client: Client, tmp_path: Path) -> None:
    client.fail(client.claim("A-001").receipt, "broken")
    dead = Remains(dead=("A-001-one",))
    for mode, options, expected in (
        (ONCE, {}, dead), (UNTIL_EMPTY, {}, dead._replace(waits=True)), (FOREVER, {"most_tasks": 1}, dead),
        (FOREVER, {}, Remains()), (ONCE, {"spawn": "spawn_1"}, Remains()),
    ):  # fmt: skip
        assert remains_of(shared(client, tmp_path, "failed", mode=mode, **options), client) == expected
