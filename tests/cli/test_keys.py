"""`tenure key` from a shell."""

from __future__ import annotations

import re

from tests.cli.conftest import Tenure

KEY = r"tnr_local_[0-9a-z]{13}_[0-9a-z]{52}"


def test_a_key_is_printed_alone_for_programs(tenure: Tenure) -> None:
    made = tenure("key", "create", "ci", "--role", "member", "--user", "mia", "--expires", "90d")
    assert made.code == 0
    assert re.fullmatch(KEY + "\n", made.out)
    (listed,) = tenure("key", "list", "--json").json
    assert (listed["name"], listed["role"], listed["user"], listed["status"]) == ("ci", "member", "mia", "live")
    assert listed["id"] == made.out.split("_")[2]
    secret = made.out.strip().split("_")[3]
    shown = tenure("key", "list").out + tenure("log", "--json").out
    assert secret not in shown
    assert listed["expires_at"][:10] in shown


def test_a_key_is_rotated_and_revoked_by_its_name(tenure: Tenure) -> None:
    first = tenure("key", "create", "bot", "--for-agent", "bo", "--only", "default", "--json").json
    assert (first["key"]["agent"], first["key"]["projects"]) == ("bo", ["default"])
    second = tenure("key", "rotate", "bot", "--grace", "10m", "--json").json
    assert first["secret"] != second["secret"]
    assert re.fullmatch(KEY, second["secret"])
    revoked = tenure("key", "revoke", "bot")
    assert (revoked.code, "revoked" in revoked.out) == (0, True)
    assert tenure("key", "list").out == "no keys\n"
    assert [k["status"] for k in tenure("key", "list", "--all", "--json").json] == ["revoked"]
    assert tenure("key", "rotate", "bot").code == 4
    assert tenure("key", "rotate", first["key"]["id"]).code == 7
    assert tenure("doctor", "--verify").code == 0


def test_what_cannot_be_is_refused_with_its_code(tenure: Tenure) -> None:
    assert tenure("key", "create", "x", "--role", "root").code == 8
    assert tenure("key", "create", "x", "--role", "member", "--for-agent", "bo").code == 8
    assert tenure("key", "create", "x", "--only", "nowhere").code == 4
    assert tenure("key", "revoke", "nobody").code == 4
    assert tenure("key").code == 2


def test_agents_make_no_keys(tenure: Tenure) -> None:
    for words in (("key", "create", "x"), ("key", "list"), ("key", "revoke", "x")):
        assert tenure.process(*words, TENURE_ROLE="agent").code == 7


def test_a_secret_setting_is_not_shown(tenure: Tenure) -> None:
    said = tenure.process("config", "--json", TENURE_SERVE_JWT_SECRET="open sesame, open sesame, open")
    assert said.json["serve.jwt_secret"]["value"] == "…"
    assert "sesame" not in said.out
