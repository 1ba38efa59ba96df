"""The same verbs on PostgreSQL: only the store's URL differs."""

from __future__ import annotations

import pytest

from tests.cli.conftest import Tenure
from tests.servers.postgres import PostgresServer


@pytest.fixture
def team(bare: Tenure, postgres: PostgresServer) -> Tenure:
    """A folder whose commands speak to a server."""
    bare.environ["TENURE_URL"] = f"{postgres.url}?schema=command_line"
    return bare


def test_a_store_is_made_used_and_its_zombie_refused(team: Tenure) -> None:
    assert team.process("list").code == 1
    assert team.process("init").code == 0
    assert "Already here" in team.process("init").out
    assert team.process("add", "Design the schema", "--track", "B").code == 0
    assert team.process("claim", "--session", "ann", "--lease", 1).code == 0
    assert team.process("claim", "--session", "bo", "--wait", 30, "--json").json["generation"] == 2
    zombie = team.process("done", "B-001", "--session", "ann", "--json")
    assert (zombie.code, zombie.json["outcome"]) == (6, "STALE_GENERATION")
    assert team.process("done", "--session", "bo").code == 0
    entries = team.process("history", "B-001", "--json").json
    assert [(e["release_reason"], e["result_accepted"]) for e in entries] == [("EXPIRED", False), ("COMPLETED", True)]
    assert team.process("doctor", "--verify").code == 0
    assert not (team.folder / ".tenure").exists()
