"""The URL of a PostgreSQL store: beyond this machine the server must prove who it is."""

import pytest
from psycopg import conninfo

from tenure.core.errors import InvalidInput
from tenure.stores.postgres.address import parse


@pytest.fixture(autouse=True)
def no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("PGHOST", "PGSSLMODE", "PGSSLROOTCERT"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://ann@db.example.com/work",
        "postgresql://ann@10.0.0.7/work",
        "postgresql://ann@[2001:db8::1]/work",
        "postgresql://ann@127.0.0.1,db.example.com/work",
        "postgresql://ann@/work?host=db.example.com",
        "postgresql://ann@/work?host=localhost&hostaddr=10.0.0.7",
        "postgresql://ann@/?service=work",
    ],
)
def test_a_server_elsewhere_is_verified(url: str) -> None:
    address = parse(url)
    assert conninfo.conninfo_to_dict(address.conninfo)["sslmode"] == "verify-full"
    assert not address.is_insecure


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.0.1", "localhost", "[::1]", ""])
def test_a_server_on_this_machine_is_not(host: str) -> None:
    address = parse(f"postgresql://ann@{host}/work")
    assert "sslmode" not in conninfo.conninfo_to_dict(address.conninfo)
    assert not address.is_insecure
    assert parse("postgresql://ann@/work?host=/run/postgresql").is_insecure is False


def test_the_host_of_the_environment_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PGHOST", "db.example.com")
    monkeypatch.setenv("PGSSLMODE", "disable")  # whoever sets this has not said so in the URL
    assert conninfo.conninfo_to_dict(parse("postgresql://ann@/work").conninfo)["sslmode"] == "verify-full"


@pytest.mark.parametrize("mode", ["disable", "allow", "prefer", "require"])
def test_a_weaker_mode_must_be_spelled_out(mode: str) -> None:
    url = f"postgresql://ann@db.example.com/work?sslmode={mode}"
    with pytest.raises(InvalidInput, match=f"sslmode={mode} does not verify.*allow_insecure=1"):
        parse(url)
    address = parse(f"{url}&allow_insecure=1")
    assert conninfo.conninfo_to_dict(address.conninfo)["sslmode"] == mode
    assert address.is_insecure
    assert "allow_insecure=1" in address.shown


def test_an_authority_of_ones_own_is_kept() -> None:
    settings = conninfo.conninfo_to_dict(parse("postgresql://ann@db.example.com/w?sslrootcert=/ca.pem").conninfo)
    assert (settings["sslmode"], settings["sslrootcert"]) == ("verify-full", "/ca.pem")
    weaker = conninfo.conninfo_to_dict(
        parse("postgresql://ann@db.example.com/w?sslmode=verify-ca&sslrootcert=/ca.pem").conninfo
    )
    assert weaker["sslmode"] == "verify-ca"


def test_the_direct_address_is_verified_too() -> None:
    direct = parse("postgresql://ann@127.0.0.1:6432/work?direct=db.example.com:5432").direct
    assert direct is not None
    assert conninfo.conninfo_to_dict(direct)["sslmode"] == "verify-full"


def test_what_allow_insecure_may_be() -> None:
    with pytest.raises(InvalidInput, match="allow_insecure must be 1 or 0"):
        parse("postgresql://ann@db.example.com/work?allow_insecure=yes")
