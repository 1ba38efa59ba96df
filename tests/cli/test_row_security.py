"""`db rls`, and what `doctor` says of the role of a store in PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.cli.conftest import Tenure
from tests.servers.postgres import PostgresServer
from tests.servers.restricted import OWNER, ROLE, url_as

SCHEMA = "command_line_rls"


@pytest.fixture
def team(bare: Tenure, restricted: PostgresServer) -> Iterator[Tenure]:
    """A folder whose commands open a store as the owner of its tables."""
    bare.environ["TENURE_URL"] = url_as(OWNER, SCHEMA, restricted.url)
    assert bare.process("init").code == 0
    yield bare
    restricted.ask(f"DROP SCHEMA {SCHEMA} CASCADE")


def as_role(team: Tenure, role: str) -> str:
    return team.environ["TENURE_URL"].replace(f"//{OWNER}@", f"//{role}@")


def database(team: Tenure) -> list[tuple[str, str]]:
    findings = team.process("doctor", "--json").json
    return [(one["level"], one["message"]) for one in findings if one["check"] == "database"]


def test_a_store_is_restricted_used_with_the_role_and_opened_up_again(team: Tenure) -> None:
    assert database(team) == [("note", f"the role {OWNER} owns its tables, and sees every tenant")]
    before = team.process("db", "rls", "check", "--json")
    assert (before.code, before.json["ok"]) == (10, False)
    assert team.process("db", "rls", "on").code == 8
    done = team.process("db", "rls", "on", "--role", ROLE)
    assert (done.code, "row-level security is on" in done.out) == (0, True)
    refused = team.process("list", "--json")
    assert (refused.code, refused.json["error"]["code"]) == (11, "UNSAFE_ROLE")
    assert team.process("db", "rls", "check").code == 0

    team.environ["TENURE_OWNER_URL"] = team.environ["TENURE_URL"]
    team.environ["TENURE_URL"] = as_role(team, ROLE)
    assert database(team) == [("ok", f"{ROLE} sees one tenant at a time")]
    assert team.process("add", "Design", "--track", "B").code == 0
    assert team.process("claim", "--session", "ann").code == 0
    assert team.process("done", "--session", "ann").code == 0
    assert team.process("db", "check").code == 0
    assert team.process("db", "archive", "--older-than", "0").code == 0
    assert team.process("db", "new-epoch", "-m", "restored").code == 0
    assert team.process("db", "upgrade").code == 0
    assert team.process("doctor", "--verify").code == 0
    assert team.process("db", "rls", "off").code == 0
    assert team.process("db", "check").code == 0


def test_the_sql_is_printed_and_nothing_is_changed(team: Tenure) -> None:
    script = team.process("db", "rls", "on", "--role", ROLE, "--print").out
    assert script.startswith("BEGIN;\n")
    assert "ENABLE ROW LEVEL SECURITY" in script
    assert team.process("list").code == 0


def test_a_superuser_is_warned_of(team: Tenure) -> None:
    team.environ["TENURE_URL"] = as_role(team, "tenure")
    assert database(team) == [("warning", "the role tenure is a superuser: no policy could restrict it")]


def test_a_server_that_nobody_verifies_is_warned_of(team: Tenure) -> None:
    url = team.environ["TENURE_URL"]
    team.environ["TENURE_URL"] = url.replace("/postgres?", ",db.example.invalid:5432/postgres?") + (
        "&sslmode=disable&allow_insecure=1"
    )
    assert ("warning", "allow_insecure: nobody verifies who the server is, and others may read the traffic") in (
        database(team)
    )


def test_another_store_has_no_row_level_security(bare: Tenure) -> None:
    assert bare.process("init").code == 0
    refused = bare.process("db", "rls", "on", "--role", "x", "--json")
    assert (refused.code, refused.json["error"]["code"]) == (8, "INVALID_INPUT")


def test_the_owners_url_of_one_store_is_not_used_for_another(bare: Tenure, restricted: PostgresServer) -> None:
    """Another database, which that role could change: nothing is made there, and everything here."""
    other = restricted.create("others_place")
    here = url_as(OWNER, SCHEMA, restricted.url)
    bare.environ |= {"TENURE_URL": here.replace(f"//{OWNER}@", "//tenure@"), "TENURE_OWNER_URL": other}
    try:
        assert bare.process("init", "--project", "p").code == 0
        assert bare.process("list", "--project", "p", TENURE_URL=other, TENURE_OWNER_URL="").code == 1  # no store
        said = bare.process("db", "rls", "on", "--role", ROLE)
        assert (said.code, "TENURE_OWNER_URL does not count" in said.err) == (8, True)
        assert bare.process("db", "rls", "on", "--role", ROLE, TENURE_OWNER_URL=bare.environ["TENURE_URL"]).code == 0
    finally:
        restricted.ask(f"DROP SCHEMA IF EXISTS {SCHEMA} CASCADE")
        restricted.drop("others_place")
