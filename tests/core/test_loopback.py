"""Which hosts are this machine: only those that no name server and no router can redirect."""

import pytest

from tenure.core.loopback import is_loopback


@pytest.mark.parametrize(
    "host", ["", "localhost", "LocalHost", "127.0.0.1", "127.8.0.1", "::1", "[::1]", "/run/s.sock", "@s"]
)
def test_this_machine(host: str) -> None:
    assert is_loopback(host)


@pytest.mark.parametrize(
    "host", ["db.example.com", "127.example.com", "127.0.0.1.example.com", "10.0.0.7", "0.0.0.0", "2001:db8::1", "nats"]
)
def test_another_machine(host: str) -> None:
    assert not is_loopback(host)
