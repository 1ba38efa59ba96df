"""`tenant …`, `member …` and `--tenant`."""

from __future__ import annotations

import pytest

from tests.cli.conftest import Tenure
from tests.servers.postgres import PostgresServer


def test_an_embedded_store_has_one_tenant(tenure: Tenure) -> None:
    heads = ["tenant", "state", "tier", "created", "by", "closed", "why"]
    assert tenure("tenant", "list").out.split() == [*heads, "local", "open", *["–"] * 5]
    refused = tenure("tenant", "add", "acme")
    assert (refused.code, "keeps only the tenant local" in refused.err) == (8, True)
    for words in (("--tenant", "acme", "list"), ("list", "--tenant", "acme")):
        assert "keeps only the tenant local" in tenure(*words).err
    assert tenure("list", "--tenant", "local").code == 0
    assert tenure("tenant", "limits", "local").out == "local has no limits\n"


def test_members_are_invited_changed_and_removed(tenure: Tenure) -> None:
    invited = tenure("member", "invite", "ann@example.com", "--role", "owner")
    assert invited.out == "CREATED: ann@example.com is invited as owner\n"
    assert tenure("member", "invite", "bo", "--only", "default", "--json").json["member"]["projects"] == ["default"]
    assert tenure("key", "create", "bo", "--role", "member", "--only", "default").code == 0
    assert (
        tenure("member", "role", "bo", "viewer").out
        == "UPDATED: bo is invited as viewer in default\n  1 of their API keys revoked\n"
    )
    assert tenure("member", "role", "bo", "--everywhere", "--json").json["member"]["projects"] == []
    assert tenure("member", "remove", "bo").out == "UPDATED: bo was viewer and has left\n"
    assert [one["user"] for one in tenure("member", "list", "--json").json] == ["ann@example.com"]
    assert "left" in tenure("member", "list", "--all").out
    last = tenure("member", "remove", "ann@example.com")
    assert (last.code, "only owner" in last.err + last.out) == (7, True)


@pytest.fixture
def team(bare: Tenure, postgres: PostgresServer) -> Tenure:
    """A folder whose commands use a store that keeps several tenants."""
    bare.environ["TENURE_URL"] = f"{postgres.url}?schema=tenants"
    assert bare.process("init").code == 0
    return bare


def test_tenants_of_one_store_see_nothing_of_each_other(team: Tenure) -> None:
    assert team.process("tenant", "add", "acme").out == "CREATED: acme is open\n"
    assert team.process("--tenant", "acme", "init").code == 0
    assert team.process("add", "theirs", "--tenant", "acme").code == 0
    assert team.process("add", "ours").code == 0
    team.environ["TENURE_TENANT"] = "acme"
    assert [one["key"] for one in team.process("list", "--json").json] == ["A-001-theirs"]
    claimed = team.process("claim", "--session", "s", "--json").json
    assert claimed["task"]["key"] == "A-001-theirs"
    assert team.process("key", "create", "ann").out.startswith("tnr_acme_")
    assert team.process("tenant", "list").code == 7
    del team.environ["TENURE_TENANT"]
    # The same session has a receipt of an equal key in the other tenant; it is not presented here.
    assert team.process("done", "A-001", "--session", "s").code != 0
    assert [one["key"] for one in team.process("list", "--json").json] == ["A-001-ours"]
    assert team.process("done", "--session", "s", "--tenant", "acme").code == 0
    raised = team.process("tenant", "limits", "acme", "max_concurrent_claims=500", "--tier", "enterprise")
    assert "max_concurrent_claims" in raised.out
    assert team.process("tenant", "show", "acme", "--json").json["limits"]["max_concurrent_claims"] == 500
    assert team.process("tenant", "close", "acme", "-m", "moved").code == 0
    assert "no tenant 'acme' here" in team.process("list", "--tenant", "acme").err
    assert team.process("list", "--tenant", "nobody").err == team.process("list", "--tenant", "acme").err.replace(
        "acme", "nobody"
    )
    assert team.process("tenant", "reopen", "acme").code == 0
    assert team.process("list", "--tenant", "acme").code == 0


def test_a_tenant_whose_store_cannot_be_opened_is_not_added(team: Tenure) -> None:
    """Its URL is sealed in its row, and could not be corrected."""
    team.environ["TENURE_MASTER_KEY"] = "0123456789abcdef" * 4
    place = ("--isolation", "instance", "--store", "postgresql://nobody@127.0.0.1:1/none")
    refused = team.process("tenant", "add", "lost", *place)
    assert (refused.code, "the tenant's store cannot be opened: " in refused.err) == (8, True)
    assert "cannot be reached" in refused.err
    assert team.process("tenant", "show", "lost").code == 4
    assert team.process("tenant", "add", "lost").code == 0
    again = team.process("tenant", "add", "lost", "--tier", "enterprise")
    assert again.out == "lost  exists: nothing was changed; see `tenure tenant show lost`\n"


def test_a_tenant_moves_to_another_store_and_back(team: Tenure, postgres: PostgresServer) -> None:
    team.environ["TENURE_MASTER_KEY"] = "0123456789abcdef" * 4
    there = f"{postgres.url}?schema=tenants_there"
    assert team.process("tenant", "add", "rover", "--region", "eu").code == 0
    assert team.process("--tenant", "rover", "init").code == 0
    assert team.process("add", "theirs", "--tenant", "rover").code == 0
    refused = team.process("tenant", "move", "rover", "--to", "us")
    assert (refused.code, "needs the URL" in refused.err) == (8, True)
    moved = team.process("tenant", "move", "rover", "--to", "us", "--store", there)
    assert (moved.code, "rover has moved to region us" in moved.out) == (0, True), moved.err
    assert "freeze: done" in moved.err
    shown = team.process("tenant", "show", "rover", "--json").json
    assert (shown["isolation"], shown["region"], shown["moving"]) == ("instance", "us", None)
    assert there not in team.process("tenant", "show", "rover").out
    assert [one["key"] for one in team.process("list", "--tenant", "rover", "--json").json] == ["A-001-theirs"]
    away = "postgresql://nobody@127.0.0.1:1/none"
    failed = team.process("tenant", "move", "rover", "--to", "eu", "--store", away)
    assert (failed.code, "called off: rover stays where it is" in failed.err) == (10, True)
    none = team.process("tenant", "move", "rover")
    assert (none.code, "no move is under way" in none.err) == (8, True)
    assert team.process("tenant", "move", "rover", "--call-off", "--to", "us").code == 2
    assert team.process("tenant", "move", "rover", "--call-off").out == "rover stays where it is\n"
    back = team.process("tenant", "move", "rover", "--to", "home", "--json").json
    assert (back["move"], back["region"]) == (3, None)
    assert team.process("claim", "--session", "s", "--tenant", "rover").code == 0
    assert team.process("tenant", "move", "rover", "--to", "home", TENURE_ROLE="agent").code == 7
