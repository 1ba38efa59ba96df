"""`tenure pool` and `tenure spawn list` from a shell."""

from __future__ import annotations

from tenure.client import Client
from tenure.core.records import Spawn, replace
from tests.cli.conftest import Tenure


def spawned(tenure: Tenure) -> None:
    """One process that starts, and one that ended."""
    with Client(str(tenure.folder / ".tenure" / "tenure.db")) as client:
        now = client.now()
        row = Spawn(
            project=client.project, id="spawn_1", pool="coders", place=1, agent="coders-1", task="task_1",
            task_key="A-001-parse", spawner="local", handle="4711:99", term=1, started_at=now,
            offer_until=now + 120_000_000,
        )  # fmt: skip
        over = replace(row, id="spawn_0", place=2, agent="coders-2", state="ended", ended_at=now, why="its agent left")
        for one in (row, over):
            client.engine.transact((client.project,), lambda work, one=one: work.put(one))


def test_a_pool_from_its_first_setting_to_its_end(tenure: Tenure) -> None:
    made = tenure("pool", "set", "coders", "--agent", "claude", "--size", "3", "--type", "code", "--json")
    assert (made.code, made.json["outcome"], made.json["pool"]["size"]) == (0, "CREATED", 3)
    assert "nothing is started: `tenure serve`" in tenure("pool", "list").out
    assert "updated, ok: 0 of 5 claude by local" in tenure("pool", "set", "coders", "--size", "5").out
    shown = tenure("pool", "show", "coders")
    assert "types code" in shown.out
    assert "ends after 1 min" in shown.out
    assert "paused (lunch)" in tenure("pool", "pause", "coders", "-m", "lunch").out
    assert "coders  updated, ok" in tenure("pool", "resume", "coders").out
    assert "pool coders is removed" in tenure("pool", "remove", "coders").out
    assert tenure("pool", "list").out == "no pools\n"


def test_the_processes_of_pools_are_listed(tenure: Tenure) -> None:
    assert tenure("spawn", "list").out == "no processes\n"
    tenure("pool", "set", "coders", "--agent", "claude", "--size", "3")
    spawned(tenure)
    live = tenure("spawn", "list")
    assert "coders-1" in live.out
    assert "4711:99" in live.out
    assert "coders-2" not in live.out
    assert "its agent left" in tenure("spawn", "list", "coders", "--all").out
    assert [one["id"] for one in tenure("spawn", "list", "--state", "ended", "--json").json] == ["spawn_0"]
    assert "coders-1" in tenure("pool", "show", "coders").out
    assert "0 of 3   1" in tenure("pool", "list").out


def test_what_a_pool_cannot_be_is_refused_with_what_to_do(tenure: Tenure) -> None:
    for words, code, said in (
        (("pool", "set", "coders"), 8, "which program"),
        (("pool", "set", "coders", "--agent", "claude", "--size", "0"), 8, "got 0"),
        (("pool", "set", "a:b", "--agent", "claude"), 8, "ASCII letters"),
        (("pool", "show", "coders"), 4, "no pool 'coders'"),
        (("spawn", "list", "--state", "asleep"), 8, "asleep"),
        (("spawn", "list", "--all", "--state", "lost"), 2, "exclude each other"),
    ):
        refused = tenure(*words)
        assert refused.code == code, words
        assert said in refused.err
