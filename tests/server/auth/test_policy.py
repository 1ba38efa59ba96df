"""What the settings ask for, and what is refused before the server listens."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tenure.config import BadConfig, read_settings
from tenure.server.auth.policy import Policy, check_bind, policy_of
from tenure.trust.grants import Trusted, Untrusted


def policy(**settings: Any) -> Policy:
    environ = {f"TENURE_SERVE_{name.upper()}": str(value) for name, value in settings.items()}
    return policy_of(read_settings("/", environ))


JWT = {"jwt_issuer": "i", "jwt_audience": "a"}


def test_the_settings_become_a_policy() -> None:
    made = policy(
        host="0.0.0.0", hosts="Tenure.Example., other", trusted_proxy="10.0.0.7, 10.1.0.0/16", tls_cert="c",
        tls_key="k", jwt_secret="s" * 32, rate=5, **JWT,
    )  # fmt: skip
    assert made.hosts == {"tenure.example", "other"}
    assert [str(network) for network in made.proxies] == ["10.0.0.7/32", "10.1.0.0/16"]
    assert (made.has_tls, made.rate, made.is_open) == (True, 5.0, False)
    assert made.jwt is not None


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({"auth": "off"}, "must be one of auto, required, open"),
        ({"tls_cert": "c"}, "must be set together"),
        ({"rate": -1}, "0 or more"),
        ({"rate": "nan"}, "0 or more"),
        ({"trusted_proxy": "proxy.example"}, "not a valid address"),
        ({**JWT}, "is missing"),
        ({"jwt_secret": "s" * 32, "jwt_issuer": "i"}, "jwt_audience is missing"),
        ({"jwt_secret": "s" * 32, "jwt_audience": "a"}, "jwt_issuer is missing"),
        ({"jwt_secret": "short", **JWT}, "5 characters"),
        ({"jwt_secret": "s" * 32, "jwt_jwks": "https://x/keys", **JWT}, "not both"),
        ({"jwt_jwks": "http://issuer.example/keys", **JWT}, "https"),
        ({"jwt_jwks": "file:///etc/passwd", **JWT}, "https"),
    ],
    ids=str,
)
def test_settings_that_do_not_go_together_are_refused(settings: dict[str, Any], why: str) -> None:
    with pytest.raises(BadConfig, match=why):
        policy(**settings)


@pytest.mark.parametrize("host", ["127.0.0.1", "::1", "localhost", "127.8.8.8"])
def test_loopback_needs_nothing(host: str) -> None:
    check_bind(policy(host=host), has_keys=False)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.0.7", "tenure.example", ""])
def test_elsewhere_somebody_must_be_able_to_sign_in(host: str) -> None:
    elsewhere = Policy(host=host, has_tls=True)
    with pytest.raises(BadConfig, match="there is no API key") as told:
        check_bind(elsewhere, has_keys=False)
    assert "tenure key create" in (told.value.hint or "")
    check_bind(elsewhere, has_keys=True)
    check_bind(policy(host="0.0.0.0", tls_cert="c", tls_key="k", jwt_secret="s" * 32, **JWT), has_keys=False)


def test_elsewhere_there_must_be_tls_or_a_named_proxy() -> None:
    with pytest.raises(BadConfig, match="plain HTTP"):
        check_bind(policy(host="0.0.0.0"), has_keys=True)
    check_bind(policy(host="0.0.0.0", trusted_proxy="10.0.0.7"), has_keys=True)


def test_where_all_must_sign_in_somebody_must_be_able_to() -> None:
    with pytest.raises(BadConfig, match="everybody must sign in"):
        check_bind(policy(auth="required"), has_keys=False)
    check_bind(policy(auth="required"), has_keys=True)


@pytest.mark.parametrize(
    "line",
    [
        'jwt_secret = "' + "s" * 32 + '"',
        'metrics_token = "token"',
        'trusted_proxy = "0.0.0.0/0"',
        'auth = "auto"',
        'hosts = "x"',
    ],
)
def test_a_repositorys_own_file_does_not_say_who_gets_in(tmp_path: Path, line: str) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / "tenure.toml").write_text(f"[serve]\n{line}\n")
    with pytest.raises(BadConfig, match="a shared file may not"):
        policy_of(read_settings(str(tmp_path), {}))


def test_a_repositorys_own_file_may_suggest_a_port_once_it_is_trusted(tmp_path: Path) -> None:
    environ = {"TENURE_STATE": str(tmp_path / "state")}
    file = tmp_path / "tenure.toml"
    file.write_text("[serve]\nport = 8080\n")
    with pytest.raises(Untrusted, match=r"serve\.port = 8080"):
        read_settings(str(tmp_path), environ)["serve.port"]
    Trusted(tmp_path / "state").trust(file, {"serve": {"port": 8080}})
    settings = read_settings(str(tmp_path), environ)
    assert settings["serve.port"].value == 8080
    policy_of(settings)
