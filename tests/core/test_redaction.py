"""Texts without secrets."""

from __future__ import annotations

import json
import time

import pytest

from tenure.core import keys
from tenure.core.redaction import GONE, Redacted, value_without_secrets, without_secrets
from tenure.core.secret_names import is_secret_name, names_credential

ID, SECRET = "0123456789abc", "s" * 52
BODY = "Zx9" + "aB3dE6gH" * 6  # of a key, in no provider's hands

FORMS = {
    "anthropic": f"sk-ant-api03-{BODY}-AA",
    "openai": f"sk-{BODY}",
    "openai project": f"sk-proj-{BODY}_{BODY}",
    "openrouter": f"sk-or-v1-{BODY}",
    "github": f"ghp_{BODY[:36]}",
    "github oauth": f"gho_{BODY[:36]}",
    "github server": f"ghs_{BODY[:36]}",
    "github fine": f"github_pat_{BODY[:22]}_{BODY}",
    "gitlab": f"glpat-{BODY[:20]}",
    "aws": "AKIA" + "Q3EGRZ7LJ2XWDP4M",
    "aws session": "ASIA" + "Q3EGRZ7LJ2XWDP4M",
    "slack": f"xoxb-{'1234567890'}-{BODY[:24]}",
    "slack app": f"xapp-1-{BODY[:24]}",
    "google": f"AIza{BODY[:35]}",
    "hugging face": f"hf_{BODY[:34]}",
    "stripe": f"sk_live_{BODY[:24]}",
    "json web token": f"eyJhbGciOiJIUzI1NiJ9.{BODY[:20]}.{BODY[:30]}",
    "bearer": f"Bearer {BODY}",
    "basic": "Basic Ym86aHVudGVyMg==",
    "receipt": "B-003@7:0123456789abcdef0123",
    "url": "postgresql://bo:hunter2secret@db/x",
    "key in url": "https://x/y?key=hunter2secret&a=1",
    "own key": f"tnr_local_{ID}_{SECRET}",
}
NAMED = [
    "password='hunter2secret'",
    'password="hunter2secret"',
    "password=hunter2secret",
    "PASSWORD = hunter2secret",
    "db_password: 'hunter2secret'",
    "dbPassword=hunter2secret",
    "{'api_key': 'hunter2secret'}",
    '{"api_key": "hunter2secret"}',
    '{"api_key":"hunter2secret"}',
    "{'x-api-key': b'hunter2secret'}",
    "Headers([('authorization', 'hunter2secret')])",
    "(b'X-Api-Key', b'hunter2secret')",
    json.dumps({"body": json.dumps({"client_secret": "hunter2secret"})}),
    json.dumps(json.dumps({"body": json.dumps({"client_secret": "hunter2secret"})})),
    '{"password": "hunter\\"hunter2secret"}',
    "Authorization: Token hunter2secret",
    "authorization: hunter2secret",
    "Cookie: session=hunter2secret; other=hunter2secret",
    "export API_KEY=hunter2secret",
    "failed: password: hunter2secret, user: bo",
    "deploy --password hunter2secret now",
    "auth_token: huntertwosecret".replace("huntertwosecret", "hunter2secret"),
    "  password: correcthorse".replace("correcthorse", "hunter2secret"),
    "access_token%3Dhunter2secret",
]
KEPT = [
    "no such file or directory: 'a/b.py'",
    "commit 8c81d6ea5f0e4b7a9d1c2b3a4f5e6d7c8b9a0f1e is missing",
    "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    "task_01J9ZK3V5Q8R7T6W4X2Y1A0B3C is unknown",
    "B-003-implement-repositories::2 is held",
    "KeyError: key=B-003-implement-repositories",
    "B-003@7 has no claim",
    "https://github.com/acme/shop/pull/12#issuecomment-99",
    "artifact://shop/A-001/result.json",
    "branch task-implement-something-rather-long-name-here",
    "max_tokens=100, input_tokens: 2000",
    "Unexpected token: expected a comma",
    "the password: it is too short",
    "basic validation of the basic arithmetics",
    "if token == expected:",
    "def login(user: str, password: str) -> None:",
    "localhost:8080/a@b",
    "sk-learn-feature-selection is not installed",
    '{"secret_name": "staging", "password_hint": "a colour"}',
]


@pytest.mark.parametrize("tenant", ["local", "acme-2", "a", "0123456789abc", "x" * 40])
def test_the_secret_of_a_key_is_taken_out(tenant: str) -> None:
    key = keys.spelled(tenant, ID, SECRET)
    assert without_secrets(f"with {key}, and {key.upper()}.") == (
        f"with tnr_{tenant}_{ID}_…, and TNR_{tenant.upper()}_{ID.upper()}_…."
    )


def test_the_secret_of_a_key_from_before_tenants_is_taken_out() -> None:
    assert without_secrets(f"tnr_{ID}_{SECRET}") == f"tnr_{ID}_…"
    assert without_secrets(f"tnr_{ID}_{SECRET[:9]}") == f"tnr_{ID}_…"


@pytest.mark.parametrize("place", ["{}", "ValueError: {}", "a\n{} b\nc", "('{}',)", '{{"at": "{}"}}', "x={}"])
@pytest.mark.parametrize("form", FORMS)
def test_a_key_is_taken_out_by_its_form(form: str, place: str) -> None:
    clean = without_secrets(place.format(FORMS[form]))
    assert GONE in clean
    for part in (BODY[:16], "hunter2", "Q3EGRZ7L", "Ym86aHVu", "0123456789abcdef", SECRET[:12]):
        assert part not in clean


@pytest.mark.parametrize("text", NAMED)
def test_a_value_is_taken_out_by_its_name(text: str) -> None:
    clean = without_secrets(text)
    assert GONE in clean
    assert "hunter2" not in clean


@pytest.mark.parametrize("text", KEPT)
def test_what_is_no_secret_stays(text: str) -> None:
    assert without_secrets(text) == text


def test_a_private_key_is_taken_out_of_one_text_and_of_many_lines() -> None:
    key = f"-----BEGIN RSA PRIVATE KEY-----\n{BODY}\n{BODY}\n-----END RSA PRIVATE KEY-----"
    assert without_secrets(f"a {key} b") == f"a -----BEGIN RSA PRIVATE KEY-----{GONE}-----END RSA PRIVATE KEY----- b"
    assert BODY not in without_secrets(key.replace("\n", "\\n"))
    assert BODY not in without_secrets(key[:-20])  # cut
    lines = Redacted()
    after = [lines.line(line) for line in ["before", *key.splitlines(), "after"]]
    assert BODY not in "".join(after)
    assert (after[0], after[-1]) == ("before", "after")


def test_a_private_key_without_an_end_does_not_hide_what_follows_for_ever() -> None:
    lines = Redacted()
    after = [lines.line(line) for line in ["-----BEGIN PRIVATE KEY-----", *["x"] * 300]]
    assert (after[1], after[-1]) == (GONE, "x")


def test_json_stays_json_whatever_is_taken_out() -> None:
    event = {"type": "text", "text": f'export A=\\{FORMS["openai"]}\\" token=ab\\c"', "auth": {"password": "h"}}
    clean = Redacted().line(json.dumps(event))
    assert BODY not in clean
    assert json.loads(clean)["auth"] == {"password": GONE}
    untouched = '{ "a" : 1.0,   "b":[1e3] }'
    assert Redacted().line(untouched) == untouched
    assert Redacted().line("[" * 100_000) == "[" * 100_000
    assert value_without_secrets({"n": 1, "token": None}) == {"n": 1, "token": None}


def test_names_of_fields_are_among_those_of_texts() -> None:
    for name in ("password", "dbPassword", "API-KEY", "client_secret", "x-private-key"):
        assert is_secret_name(name)
        assert names_credential(name)
    assert names_credential("Authorization")
    assert not is_secret_name("token")
    assert not names_credential("password_hint")


@pytest.mark.parametrize(
    "part",
    ["eyJ", "-eyJaaaaa", "eyJaaaaaa.", "token", "token:", "token=", "token='", "'token', '", "('token','", "\\", '"',
     "sk-ant-", "password ", "://a:", "://", "-----BEGIN PRIVATE KEY-----", "-", "basic ", "basic a", "bearer ", "@1:",
     "--token ", "authorization: ", "cookie: a", "cookie: ", " ", "\n", "\ntoken : ", "tnr_", "tnr_a-", "tnr_aaaa-",
     "key="],
)  # fmt: skip
def test_a_megabyte_of_anything_takes_seconds(part: str) -> None:
    text = (part * (1_000_000 // len(part) + 1))[:1_000_000] + " password bearer tnr_ @ eyj :// sk- key= private key"
    began = time.process_time()
    without_secrets(text)
    assert time.process_time() - began < 10


def test_five_megabytes_of_output_take_seconds() -> None:
    text = "".join(f"{n} INFO module.py:{n} token=abc{n} the request '/a/b?c={n}' took {n} ms\n" for n in range(70_000))
    assert len(text) > 5_000_000 - 500_000
    began = time.process_time()
    clean = without_secrets(text)
    assert time.process_time() - began < 30
    assert "token=abc" not in clean
