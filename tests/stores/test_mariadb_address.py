"""The URL of a MariaDB store: beyond this machine the server must prove who it is."""

import pytest

from tenure.core.errors import InvalidInput
from tenure.stores.mariadb.address import parse


@pytest.mark.parametrize(
    "url",
    ["mariadb://ann@db.example.com/work", "mariadb://ann@10.0.0.7/work", "mariadb://ann@127.0.0.1,db.example.com/work"],
)
def test_a_server_elsewhere_is_verified_unless_that_is_spelled_out(url: str) -> None:
    address = parse(url)
    assert (address.is_verified, address.is_insecure) == (True, False)
    weaker = parse(f"{url}?allow_insecure=1")
    assert (weaker.is_verified, weaker.is_insecure) == (False, True)
    assert parse(f"{url}?allow_insecure=1&ssl_ca=/ca.pem").is_verified


@pytest.mark.parametrize("place", ["127.0.0.1/work", "localhost/work", "[::1]/work", "x/work?socket=/run/a.sock"])
def test_a_server_on_this_machine_is_not(place: str) -> None:
    address = parse(f"mariadb://ann@{place}")
    assert (address.is_verified, address.is_insecure) == (False, False)


def test_what_allow_insecure_may_be() -> None:
    with pytest.raises(InvalidInput, match="allow_insecure must be 1 or 0"):
        parse("mariadb://ann@db.example.com/work?allow_insecure=yes")
