"""A clock that is wrong, at the command line: refused where it is ahead, followed where it is behind, put right."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tenure.client import Client
from tenure.core.commands import NewTask
from tenure.core.errors import InvalidInput
from tests.cli.conftest import Said, Tenure
from tests.servers.fixtures import provided

Faked = Callable[..., Said]


@pytest.fixture
def faked(tenure: Tenure, monkeypatch: pytest.MonkeyPatch) -> Faked:
    """`faked("+30d", "add", "x")` runs a command in a process with that clock."""
    program = str(provided("faketime"))

    def run(offset: str, *words: object) -> Said:
        command = Tenure.command(tenure, *words)
        with monkeypatch.context() as patch:
            patch.setattr(tenure, "is_forked", False)
            patch.setattr(tenure, "command", lambda *_: [program, "-f", offset, *command])
            return tenure.process()

    return run


def test_one_command_with_a_clock_ahead_is_refused_and_freezes_nothing(tenure: Tenure, faked: Faked) -> None:
    assert tenure.process("add", "first").code == 0
    said = faked("+30d", "add", "second")
    assert said.code == 10
    assert "s ahead of the clock" in said.err
    assert faked("+30d", "add", "second", "--json").json["error"]["code"] == "CLOCK_JUMP"
    assert "`tenure db clock`" in said.err
    assert tenure.process("add", "third", "--json").json["ref"] == "A-002"
    assert tenure.process("db", "clock", "--json").json["behind"] == 0
    state = faked("+30d", "db", "clock", "--json").json
    assert 29 * 86400 < state["jump"] < 31 * 86400


def test_a_clock_that_was_ahead_from_the_first_command_on_is_put_right(tenure: Tenure, faked: Faked) -> None:
    said = faked("+30d", "db", "clock", "--accept")  # somebody has said that it is right
    assert said.code == 0, said.err
    assert faked("+30d", "add", "ahead").code == 0
    key = faked("+30d", "claim", "--json").json["task"]["ref"]
    state = tenure.process("db", "clock", "--json").json
    assert 29 * 86400 < state["behind"] < 31 * 86400
    doctor = {f["check"]: f for f in tenure.process("doctor", "--json").json}
    assert doctor["clock"]["level"] == "warning"
    assert "tenure db clock --accept" in doctor["clock"]["fix"]
    accepted = tenure.process("db", "clock", "--accept", "--json").json
    assert 29 * 86400 < accepted["back"] < 31 * 86400
    assert [ended.partition("-ahead")[0] for ended in accepted["ended"]] == [key]
    assert tenure.process("db", "clock", "--json").json["behind"] == 0
    assert tenure.process("claim").code == 0
    assert tenure.process("db", "check").code == 0


def test_a_duration_counts_from_the_store_s_now(tenure: Tenure, faked: Faked) -> None:
    assert tenure.process("add", "first").code == 0
    said = faked("-30d", "add", "soon", "--not-before", "2h", "--deadline", "4h", "--json")
    assert said.code == 0, said.err
    path = tenure.folder / ".tenure" / "tenure.db"
    with Client(str(path), "default") as client:
        task, now = client.show("A-002"), client.now()
    assert 0 < task["not_before"] - now <= 7200 * 1_000_000
    assert 7200 * 1_000_000 < task["deadline"] - now <= 4 * 3600 * 1_000_000
    assert faked("-30d", "edit", "A-001", "--deadline", "1h").code == 0
    with Client(str(path), "default") as client:
        assert 0 < client.show("A-001")["deadline"] - client.now() <= 3600 * 1_000_000


@pytest.mark.parametrize(
    "fields", [{"not_before_in": -1.0}, {"deadline_in": float("nan")}, {"not_before": 1, "not_before_in": 1.0}]
)
def test_a_duration_that_cannot_be_is_refused(tenure: Tenure, fields: dict[str, Any]) -> None:
    with Client(str(tenure.folder / ".tenure" / "tenure.db"), "default") as client, pytest.raises(InvalidInput):
        client.plan([NewTask(title="odd", **fields)])


def test_only_an_owner_accepts_a_clock(tenure: Tenure) -> None:
    said = tenure("db", "clock", "--accept", "--role", "agent")
    assert said.code in (2, 9), said.err


def test_a_clock_that_is_right_is_said_so(tenure: Tenure) -> None:
    assert tenure("add", "first").code == 0
    assert tenure("db", "clock").out == "this host's clock is the store's time\n"
    assert "the clock is accepted" in tenure("db", "clock", "--accept").out
