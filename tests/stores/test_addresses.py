"""The URLs of stores on servers: beyond this machine a server must prove who it is."""

import pytest

from tenure.core.errors import InvalidInput
from tenure.stores.mariadb import address as mariadb
from tenure.stores.open_store import is_insecure
from tenure.stores.valkey import address as valkey


@pytest.mark.parametrize("hosts", ["db.example.com", "10.0.0.7", "[2001:db8::1]:3307", "127.0.0.1,db.example.com"])
def test_a_mariadb_elsewhere_is_verified(hosts: str) -> None:
    where = mariadb.parse(f"mariadb://ann@{hosts}/work")
    assert (where.is_encrypted, where.is_insecure) == (True, False)
    where = mariadb.parse(f"mariadb://ann@{hosts}/work?allow_insecure=1")
    assert (where.is_encrypted, where.is_insecure) == (False, True)
    assert "allow_insecure=1" in where.shown


@pytest.mark.parametrize(
    "rest", ["127.0.0.1/work", "127.8.0.1/work", "localhost/work", "[::1]/work", "/work", "db/work?socket=/run/s"]
)
def test_a_mariadb_on_this_machine_is_not(rest: str) -> None:
    where = mariadb.parse(f"mariadb://ann@{rest}")
    assert (where.is_encrypted, where.is_insecure) == (False, False)


@pytest.mark.parametrize("host", ["localhost", "db.example.com"])
def test_authorities_of_ones_own_are_asked_everywhere(host: str) -> None:
    where = mariadb.parse(f"mariadb://ann@{host}/work?ssl_ca=/ca.pem&allow_insecure=1")
    assert (where.is_encrypted, where.ssl_ca, where.is_insecure) == (True, "/ca.pem", False)


@pytest.mark.parametrize("scheme", ["valkey", "redis"])
@pytest.mark.parametrize("hosts", ["db.example.com", "10.0.0.7", "127.0.0.1,db.example.com"])
def test_a_valkey_elsewhere_needs_tls(scheme: str, hosts: str) -> None:
    with pytest.raises(InvalidInput, match=r"not encrypted.*allow_insecure=1"):
        valkey.parse(f"{scheme}://{hosts}/0")
    assert valkey.parse(f"{scheme}://{hosts}/0?allow_insecure=1").is_insecure
    assert not valkey.parse(f"{scheme}s://{hosts}/0").is_insecure
    assert not valkey.parse(f"{scheme}://127.0.0.1,[::1]:7000/0").is_insecure


@pytest.mark.parametrize(
    "url", ["mariadb://db.example.com/work?allow_insecure=yes", "valkey://db.example.com/0?allow_insecure=yes"]
)
def test_only_1_allows_it(url: str) -> None:
    with pytest.raises(InvalidInput, match="allow_insecure"):
        is_insecure(url)


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("postgresql://db.example.com/work?allow_insecure=1", True), ("postgresql://db.example.com/work", False),
        ("mysql://db.example.com/work?allow_insecure=1", True), ("redis://db.example.com/0?allow_insecure=1", True),
        ("memory://", False), (".tenure/tenure.db", False),
    ],
)  # fmt: skip
def test_doctor_knows_which_stores_nobody_verifies(url: str, expected: bool) -> None:
    assert is_insecure(url) is expected
