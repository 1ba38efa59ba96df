"""`db new-epoch`: which tenants it is of, and which it names as left out."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.cli.conftest import Tenure
from tests.servers.postgres import PostgresServer
from tests.servers.restricted import OWNER, ROLE, url_as

NAMES = ("acme", "local", "zeta")


@pytest.fixture
def team(bare: Tenure, postgres: PostgresServer) -> Iterator[Tenure]:
    """A folder whose commands use a store with three tenants; each has a live claim of session `s`."""
    bare.environ["TENURE_URL"] = f"{postgres.url}?schema=epochs"
    bare.environ["TENURE_MASTER_KEY"] = "0123456789abcdef" * 4
    yield bare
    postgres.ask("DROP SCHEMA IF EXISTS epochs, epochs_elsewhere CASCADE")


def hold(team: Tenure, *names: str) -> dict[str, str]:
    """The receipt of a live claim in each tenant."""
    receipts = {}
    for name in names:
        assert team.process("--tenant", name, "init").code == 0
        assert team.process("add", "one", "--tenant", name).code == 0
        receipts[name] = team.process("claim", "--session", "s", "--tenant", name, "--json").json["receipt"]
    return receipts


def answers(team: Tenure, receipts: dict[str, str]) -> dict[str, str]:
    return {
        name: team.process("renew", "--receipt", receipt, "--tenant", name, "--json").json["outcome"]
        for name, receipt in receipts.items()
    }


def test_it_is_one_of_every_tenant_and_with_a_name_of_one(team: Tenure) -> None:
    assert team.process("init").code == 0
    for name in ("acme", "zeta"):
        assert team.process("tenant", "add", name).code == 0
    receipts = hold(team, *NAMES)
    one = team.process("db", "new-epoch", "-m", "its own", "--tenant", "acme", "--json").json
    assert (one["tenants"], one["elsewhere"]) == (["acme"], [])
    assert answers(team, receipts) == {"acme": "STALE_EPOCH", "local": "RENEWED", "zeta": "RENEWED"}
    receipts["acme"] = team.process("claim", "--session", "t", "--tenant", "acme", "--json").json["receipt"]
    text = team.process("db", "new-epoch", "-m", "a failover").out
    assert "every earlier receipt of 3 tenants is void" in text
    assert answers(team, receipts) == dict.fromkeys(NAMES, "STALE_EPOCH")
    for name in NAMES:
        assert team.process("claim", "--session", "u", "--tenant", name, "--json").json["outcome"] == "GRANTED"


def test_it_is_of_tenants_with_their_own_schema_too_and_names_those_elsewhere(
    team: Tenure, postgres: PostgresServer
) -> None:
    assert team.process("init").code == 0
    assert team.process("tenant", "add", "acme").code == 0
    assert team.process("tenant", "add", "zeta", "--isolation", "schema").code == 0
    away = ("--isolation", "instance", "--store", f"{postgres.url}?schema=epochs_elsewhere")
    assert team.process("tenant", "add", "rover", *away).code == 0
    receipts = hold(team, *NAMES, "rover")
    begun = team.process("db", "new-epoch", "-m", "a failover", "--json").json
    assert (begun["tenants"], begun["unrecorded"], begun["elsewhere"]) == ([*NAMES], [], ["rover"])
    assert answers(team, receipts) == {**dict.fromkeys(NAMES, "STALE_EPOCH"), "rover": "RENEWED"}
    text = team.process("db", "new-epoch", "-m", "a failover").out
    assert "not of rover: each has another store; --tenant NAME begins its epoch" in text
    assert team.process("db", "new-epoch", "-m", "there too", "--tenant", "rover").code == 0
    assert answers(team, receipts)["rover"] == "STALE_EPOCH"


def test_a_role_that_sees_one_tenant_begins_it_in_all(team: Tenure, restricted: PostgresServer) -> None:
    owner = team.environ["TENURE_URL"] = url_as(OWNER, "epochs", restricted.url)
    assert team.process("init").code == 0
    assert team.process("db", "rls", "on", "--role", ROLE).code == 0
    team.environ["TENURE_URL"] = owner.replace(f"//{OWNER}@", f"//{ROLE}@")
    for name in ("acme", "zeta"):
        assert team.process("tenant", "add", name).code == 0
    receipts = hold(team, *NAMES)
    assert team.process("db", "new-epoch", "-m", "a failover", "--json").json["tenants"] == [*NAMES]
    assert answers(team, receipts) == dict.fromkeys(NAMES, "STALE_EPOCH")
