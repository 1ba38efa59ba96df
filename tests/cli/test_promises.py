"""`doctor --verify`: every promise that rows can be asked about, asked of rows that somebody has spoiled."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tests.cli.conftest import Tenure
from tests.cli.shop import LEASE, busy_shop, just_now


def promises(tenure: Tenure, code: int = 0) -> list[tuple[str, str]]:
    said = tenure("doctor", "--project", "shop", "--verify", "--json")
    assert said.code == code, said.out
    return [(one["level"], one["message"]) for one in said.json if one["check"] == "promises"]


def spoil(path: Path, statement: str) -> None:
    with closing(sqlite3.connect(path)) as store, store:
        assert store.execute(statement).rowcount > 0


def test_verify_asks_every_promise(bare: Tenure) -> None:
    shop = busy_shop(bare.folder / ".tenure" / "tenure.db", just_now())
    shop.close()
    assert [level for level, _ in promises(bare)] == ["ok"]
    spoil(shop.path, "UPDATE task SET state = 'completed' WHERE ref = 'E-001'")
    broken = promises(bare, code=7)
    assert ("error", "E-001-ship-it: completed without an accepted result in run 1") in broken
    assert bare("doctor", "--project", "shop").code == 0  # the quick look does not read every row


@pytest.mark.parametrize(
    ("damage", "sentence"),
    [
        ("UPDATE task SET attempts = 3 WHERE ref = 'C-001'", "C-001-write-the-api: attempts 3, claims of run 1 say 2"),
        (
            "DELETE FROM claim WHERE generation = 1 AND agent = 'bo'",
            "C-001-write-the-api: generation 2, but claims [2]",
        ),
        (
            "UPDATE event SET details = replace(details, '2', '1') WHERE kind = 'leader.elected'",
            "term 1 of agent after",
        ),
        (
            "UPDATE task SET lease_until = NULL WHERE ref = 'D-001'",
            "D-001-build-the-sign-in-page: held without a lease",
        ),
        ("UPDATE task SET unmet = 0 WHERE ref = 'E-001'", "E-001-ship-it: counts (0, 3, 0), edges say (3, 3, 0)"),
        ("DELETE FROM event WHERE kind = 'task.progress'", "has version"),
        ("UPDATE dead_letter SET error = 'all was well'", "dead_letter"),
    ],
)
def test_each_kind_of_damage_breaks_a_promise(bare: Tenure, damage: str, sentence: str) -> None:
    shop = busy_shop(bare.folder / ".tenure" / "tenure.db", just_now(4000))
    shop.clock.advance(seconds=3601)
    shop.client("cy").lead(lease=LEASE)
    shop.client("ann").claim("D-001", lease=LEASE)
    shop.close()
    spoil(shop.path, damage)
    broken = promises(bare, code=7)
    assert any(sentence in message for _, message in broken), broken
