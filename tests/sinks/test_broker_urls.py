"""The URLs of brokers: beyond this machine a broker must prove who it is."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from tenure.core.errors import InvalidInput
from tenure.sinks.broker_urls import PLAIN, Address, is_insecure, parse
from tenure.sinks.nats import NatsSink
from tenure.sinks.open_sink import BROKERS, open_sink, open_source
from tenure.sinks.port import SinkUnavailable
from tenure.sinks.redis_commands import RedisCommandChannel
from tenure.sinks.redis_keys import RuntimeKeys
from tenure.sinks.subscriptions import Subscription
from tests.sinks.receivers import authority

ELSEWHERE = ["broker.example.com", "10.0.0.7:1", "[2001:db8::1]:1", "127.example.com"]
HERE = ["localhost", "127.0.0.1:1", "127.8.0.1", "[::1]:1", "[::1]"]
USERS: dict[str, Callable[[str], object]] = {
    "sink": open_sink, "source": lambda url: open_source(url, Subscription("pool")),
}  # fmt: skip
OF_REDIS: dict[str, Callable[[str], object]] = {
    "keys": RuntimeKeys, "commands": lambda url: RedisCommandChannel(url, "local"),
}  # fmt: skip


@pytest.mark.parametrize("scheme", sorted(PLAIN))
@pytest.mark.parametrize("host", ELSEWHERE)
def test_a_broker_elsewhere_needs_tls(scheme: str, host: str) -> None:
    for opened in (USERS | OF_REDIS if scheme == "redis+stream" else USERS).values():
        with pytest.raises(InvalidInput, match="not encrypted") as raised:
            opened(f"{scheme}://ann:s3cret@{host}")
        assert f"Use {PLAIN[scheme]}://" in (raised.value.hint or "")
        assert "allow_insecure=1" in (raised.value.hint or "")
        assert "s3cret" not in f"{raised.value.message} {raised.value.hint}"
        opened(f"{scheme}://{host}/?allow_insecure=1")
        opened(f"{PLAIN[scheme]}://{host}")


@pytest.mark.parametrize("scheme", ["nats", "amqp"])
def test_one_host_elsewhere_among_those_here_is_enough(scheme: str) -> None:
    with pytest.raises(InvalidInput, match="not encrypted"):
        open_sink(f"{scheme}://127.0.0.1,broker.example.com:1")


@pytest.mark.parametrize("scheme", sorted(PLAIN))
@pytest.mark.parametrize("host", HERE)
def test_a_broker_on_this_machine_needs_none(scheme: str, host: str) -> None:
    open_sink(f"{scheme}://{host}")
    assert not is_insecure(f"{scheme}://{host}/?allow_insecure=1")


@pytest.mark.parametrize("scheme", sorted(BROKERS))
@pytest.mark.parametrize("value", ["yes", "true", "", "2"])
def test_only_1_allows_it(scheme: str, value: str) -> None:
    with pytest.raises(InvalidInput, match="allow_insecure must be 1 or 0"):
        open_sink(f"{scheme}://broker.example.com/?allow_insecure={value}")


@pytest.mark.parametrize("scheme", sorted(PLAIN))
def test_authorities_without_tls_would_verify_nothing_and_are_refused(scheme: str) -> None:
    with pytest.raises(InvalidInput, match="`ca` would verify nothing"):
        open_sink(f"{scheme}://broker.example.com/?ca=/ca.pem&allow_insecure=1")


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("nats://n.example.com/?allow_insecure=1", True), ("tls://n.example.com/?allow_insecure=1", False),
        ("amqp://n.example.com/?allow_insecure=1", True), ("amqps://n.example.com", False),
        ("redis+stream://n.example.com/?allow_insecure=1", True), ("nats://localhost", False),
        ("sample:///a/file", False),
    ],
)  # fmt: skip
def test_doctor_knows_which_brokers_nobody_verifies(url: str, expected: bool) -> None:
    assert is_insecure(url) is expected


def test_an_address_of_ipv6_loses_its_brackets() -> None:
    address: Address = parse("nats://[::1]:7,[::2],host/?allow_insecure=1", ())
    assert address.places == [("::1", 7), ("::2", None), ("host", None)]


class OneLine:
    """Sends one line to a client, speaks TLS if it can, keeps what it receives and refuses it."""

    def __init__(self, line: bytes, context: ssl.SSLContext | None = None) -> None:
        self.line, self.context, self.received = line, context, b""
        self._server = socket.create_server(("127.0.0.1", 0))
        self.port = self._server.getsockname()[1]
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        with suppress(OSError):
            sock, _ = self._server.accept()
            with sock:
                if self.line:
                    sock.sendall(self.line)
                if self.context is not None:
                    sock = self.context.wrap_socket(sock, server_side=True)
                while more := sock.recv(4096):
                    self.received += more
                    if self.context is None or not self.line or b"PING" in self.received:
                        sock.sendall(b"-ERR 'Authorization Violation'\r\n")
                        break
                sock.close()

    def end(self) -> bytes:
        self._server.close()
        self._thread.join(10)
        return self.received


INFO = b'INFO {"server_id":"x","version":"2.12.0","max_payload":1048576%s}\r\n'


@pytest.mark.parametrize("offer", [b"", b',"tls_required":false', b',"tls_available":true'])
def test_a_nats_server_that_does_not_encrypt_never_gets_the_password(offer: bytes) -> None:
    server = OneLine(INFO % offer)
    sink = NatsSink(f"tls://ann:s3cret@localhost:{server.port}")
    try:
        with pytest.raises(SinkUnavailable):
            sink.identity()
    finally:
        sink.close()
    assert b"s3cret" not in server.end()


@pytest.mark.parametrize(
    ("name", "offer", "is_known", "gets"),
    [
        ("localhost", b',"tls_required":true', True, True), ("localhost", b',"tls_available":true', True, True),
        ("other.example.com", b',"tls_required":true', True, False),
        ("localhost", b',"tls_required":true', False, False),
    ],
)  # fmt: skip
def test_a_nats_server_gets_the_password_once_its_certificate_is_verified(
    tmp_path: Path, name: str, offer: bytes, is_known: bool, gets: bool
) -> None:
    ca, context = authority(tmp_path, name)
    server = OneLine(INFO % offer, context)
    sink = NatsSink(f"tls://ann:s3cret@localhost:{server.port}{f'/?ca={ca}' if is_known else ''}")
    try:
        with pytest.raises(SinkUnavailable):
            sink.identity()
    finally:
        sink.close()
    assert (b"s3cret" in server.end()) is gets


@pytest.mark.parametrize("scheme", ["amqps", "rediss+stream"])
@pytest.mark.parametrize(
    ("name", "is_known", "gets"),
    [("localhost", True, True), ("other.example.com", True, False), ("localhost", False, False)],
)
def test_another_broker_gets_nothing_before_its_certificate_is_verified(
    tmp_path: Path, scheme: str, name: str, is_known: bool, gets: bool
) -> None:
    ca, context = authority(tmp_path, name)
    server = OneLine(b"", context)
    sink = open_sink(f"{scheme}://ann:s3cret@localhost:{server.port}{f'/?ca={ca}' if is_known else ''}")
    try:
        with pytest.raises(SinkUnavailable):
            sink.identity()
    finally:
        sink.close()
    assert bool(server.end()) is gets
