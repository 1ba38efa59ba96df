"""Behind a proxy: only the one that is named is believed."""

from __future__ import annotations

from ipaddress import ip_network
from typing import Any

import pytest

from tenure.core.errors import NotAllowed, NotSignedIn
from tenure.server.auth.policy import Policy
from tenure.server.auth.request_source import request_source
from tests.server.auth.conftest import Door

PROXIES = (ip_network("10.0.0.0/24"), ip_network("127.0.0.1"))
THROUGH: dict[str, Any] = {
    "peer": "10.0.0.7", "host": "backend:7420", "x_forwarded_for": "203.0.113.5", "x_forwarded_proto": "https",
    "x_forwarded_host": "tenure.example",
}  # fmt: skip


@pytest.fixture
def proxied() -> Door:
    return Door(Policy(host="0.0.0.0", proxies=PROXIES))


def test_what_the_named_proxy_says_stands(proxied: Door) -> None:
    who = proxied.admit(proxied.key(), **THROUGH, origin="https://tenure.example", method="POST")
    assert who.address == "203.0.113.5"


def test_a_proxy_that_does_not_say_https_is_no_protection(proxied: Door) -> None:
    for proto in ("http", None):
        with pytest.raises(NotAllowed, match="plain HTTP"):
            proxied.admit(proxied.key(), **THROUGH | {"x_forwarded_proto": proto})


def test_anybody_else_can_say_https_in_vain(proxied: Door) -> None:
    with pytest.raises(NotAllowed, match="plain HTTP"):
        proxied.admit(proxied.key(), **THROUGH | {"peer": "203.0.113.5"})


def test_with_a_proxy_on_this_host_nobody_gets_in_unsigned() -> None:
    door = Door(Policy(proxies=(ip_network("127.0.0.1"),)))
    for said in ({}, {"x_forwarded_for": "127.0.0.1", "x_forwarded_proto": "https", "x_forwarded_host": "localhost"}):
        with pytest.raises(NotSignedIn):
            door.admit(**said)  # type: ignore[arg-type]
    door.admit(door.key())  # a program of this host, past the proxy


def address(forwarded: str, peer: str = "10.0.0.7") -> str | None:
    return request_source([(b"x-forwarded-for", forwarded.encode())], peer, "http", proxies=PROXIES).address


def test_the_visitor_is_the_last_that_no_proxy_of_ours_is() -> None:
    assert address("203.0.113.5") == "203.0.113.5"
    assert address("1.1.1.1, 203.0.113.5, 10.0.0.8") == "203.0.113.5"  # the first one is the visitor's own word
    assert address("10.0.0.8, 10.0.0.9") == "10.0.0.7"
    assert address("nonsense") == "10.0.0.7"
    assert address("203.0.113.5", peer="198.51.100.1") == "198.51.100.1"
    lines = [(b"x-forwarded-for", b"1.1.1.1"), (b"x-forwarded-for", b"203.0.113.5")]
    assert request_source(lines, "10.0.0.7", "http", proxies=PROXIES).address == "203.0.113.5"
