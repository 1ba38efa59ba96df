"""The one way out of webhooks and Slack: to allowed addresses alone, bounded in time and size."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from ipaddress import IPv4Address, IPv6Address
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenure.core.errors import InvalidInput
from tenure.core.target_urls import checked_url
from tenure.sinks.addresses import is_allowed, is_public, judged, networks_of, parsed
from tenure.sinks.http_sender import LARGEST_ANSWER, HttpSender, SendFailed
from tests.sinks.receivers import Behave, Receiver, Request, answer, authority, in_turn

LOOPBACK = networks_of(["127.0.0.0/8"])


def to_loopback(_host: str, _port: int) -> Sequence[str]:
    return ["127.0.0.1"]


@pytest.fixture
def sender() -> Iterator[HttpSender]:
    """One whose owner allows http and loopback: the receivers are here."""
    sender = HttpSender(allow_http=True, networks=LOOPBACK, resolve=to_loopback)
    yield sender
    sender.close()


# --- addresses ----------------------------------------------------------------------------------------------

REFUSED = [
    "127.0.0.1", "127.255.255.255", "0.0.0.0", "10.1.2.3", "172.16.0.1", "172.31.255.255", "192.168.1.1",
    "169.254.169.254", "169.254.170.2", "100.64.0.1", "100.100.100.200", "168.63.129.16", "192.0.0.192", "198.18.0.1",
    "224.0.0.1", "255.255.255.255", "240.0.0.1", "192.0.2.1", "::1", "::", "fe80::1", "fe80::1%eth0", "fc00::1",
    "fd00:ec2::254", "ff02::1", "2001:db8::1", "2001::1", "::ffff:127.0.0.1", "::ffff:169.254.169.254",
    "64:ff9b::7f00:1", "64:ff9b::a9fe:a9fe", "64:ff9b:1::808:808", "2002:7f00:1::", "2002:a9fe:a9fe::1", "::127.0.0.1",
    "::ffff:0:127.0.0.1", "fec0::1", "100::1", "5f00::1",
]  # fmt: skip
PUBLIC = [
    "8.8.8.8", "1.1.1.1", "172.15.255.255", "172.32.0.1", "100.63.255.255", "100.128.0.1", "169.253.255.255",
    "2606:4700::1111", "2a00:1450::1", "2606:4700::1111%2", "::ffff:8.8.8.8", "64:ff9b::808:808", "2002:808:808::1",
]  # fmt: skip


@pytest.mark.parametrize("address", REFUSED)
def test_an_address_that_is_not_on_the_public_internet_is_refused(address: str) -> None:
    assert not is_public(parsed(address))
    sent: list[bytes] = []
    with pytest.raises(SendFailed, match="not on the public internet; nothing was sent"):
        sent.append(HttpSender(resolve=lambda *_: [address]).post("https://example.org/", {}, b"").body)
    assert sent == []


@pytest.mark.parametrize("address", PUBLIC)
def test_a_public_address_is_allowed_however_it_is_spelled(address: str) -> None:
    assert is_public(parsed(address))


@given(st.integers(0, 2**32 - 1).map(IPv4Address))
def test_ipv4_inside_ipv6_is_judged_as_the_ipv4_address(address: IPv4Address) -> None:
    number = int(address)
    forms = [0xFFFF << 32 | number, 0x64FF9B << 96 | number, 0x2002 << 112 | number << 80]
    for form in forms:
        assert judged(IPv6Address(form)) == address
        assert is_public(IPv6Address(form)) == is_public(address)
    if is_public(address):
        assert address.is_global
        assert not address.is_multicast


@given(st.integers(0, 2**128 - 1).map(IPv6Address))
def test_nothing_is_public_that_the_standard_library_knows_as_private(address: IPv6Address) -> None:
    meant = judged(address)
    if is_public(address):
        assert meant.is_global
        assert not (meant.is_multicast)
        assert not (meant.is_loopback)
        assert not (meant.is_link_local)
        assert not (meant.is_unspecified)


def test_an_owner_may_allow_a_network() -> None:
    networks = networks_of(["10.2.0.0/16", "fd00::/8"])
    assert is_allowed(parsed("10.2.3.4"), networks)
    assert is_allowed(parsed("::ffff:10.2.3.4"), networks)
    assert is_allowed(parsed("fd00::1%eth0"), networks)
    assert not is_allowed(parsed("10.3.0.1"), networks)
    assert not is_allowed(parsed("169.254.169.254"), networks)


def test_one_forbidden_address_among_others_refuses_the_name() -> None:
    with pytest.raises(SendFailed, match=r"10\.0\.0\.1"):
        HttpSender(resolve=lambda *_: ["8.8.8.8", "10.0.0.1"]).post("https://example.org/", {}, b"")


@pytest.mark.parametrize("host", ["127.1", "2130706433", "0x7f.0.0.1", "0177.0.0.1", "localhost", "[::ffff:127.0.0.1]"])
def test_odd_spellings_of_loopback_are_judged_by_what_they_resolve_to(host: str) -> None:
    with Receiver() as receiver:
        with pytest.raises((SendFailed, InvalidInput)):
            HttpSender(allow_http=True).post(f"http://{host}:{receiver.port}/", {}, b"")
        assert receiver.connections == 0


def test_the_name_is_resolved_once_and_a_second_answer_has_no_effect() -> None:
    answers = iter([["8.8.8.8"], ["127.0.0.1"]])
    asked: list[str] = []

    def resolve(host: str, _port: int) -> Sequence[str]:
        asked.append(host)
        return next(answers)

    with Receiver() as receiver:
        sender = HttpSender(allow_http=True, resolve=resolve)
        target = checked_url(f"http://rebind.test:{receiver.port}/", allow_http=True)
        assert [str(one) for one in sender._addresses(target, sender._monotonic() + 10)] == ["8.8.8.8"]
        assert asked == ["rebind.test"]
        # The next delivery asks again, and that answer is judged too.
        with pytest.raises(SendFailed, match="nothing was sent"):
            sender.post(f"http://rebind.test:{receiver.port}/", {}, b"x")
        assert receiver.connections == 0


def test_the_connection_goes_to_the_judged_address_and_keeps_the_name() -> None:
    """The resolver's second answer is a receiver that must never hear anything."""
    with Receiver() as receiver:
        asked: list[str] = []

        def resolve(host: str, _port: int) -> Sequence[str]:
            asked.append(host)
            return ["127.0.0.1"] if len(asked) == 1 else ["127.0.0.2"]

        sender = HttpSender(allow_http=True, networks=networks_of(["127.0.0.1/32"]), resolve=resolve)
        assert sender.post(receiver.url, {"a": "b"}, b"body").status == 200
        assert asked == ["receiver.test"]
        (request,) = receiver.requests
        assert request.headers["host"] == f"receiver.test:{receiver.port}"
        sender.close()


# --- URLs ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("http://example.org/", "must begin with https"),
        ("ftp://example.org/", "not a valid URL"),
        ("file:///etc/passwd", "not a valid URL"),
        ("//example.org/", "not a valid URL"),
        ("https://", "not a valid URL"),
        ("https:///path", "not a valid URL"),
        ("https://example.org:0/", "not a valid URL"),
        ("https://example.org:99999/", "not a valid URL"),
        ("https://exa mple.org/", "not a valid URL"),
        ("https://example.org/\r\nHost: evil", "not a valid URL"),
        ("https://user:pass@example.org/", "user name or a password"),
        ("https://user@example.org/", "user name or a password"),
        ("https://example.org/#part", "fragment"),
        ("https://exämple.org/", "not a valid URL"),
        ("https://a%2eb.org/", "invalid name"),
        ("https://[::1/", "not a valid URL"),
        ("https://[zz::1]/", "not a valid URL|invalid address"),
        ("https://example.org/" + "a" * 2000, "not a valid URL"),
    ],
)
def test_a_url_that_may_not_be_sent_to_is_refused_with_its_reason(url: str, said: str) -> None:
    with pytest.raises(InvalidInput, match=said) as found:
        checked_url(url)
    assert "pass" not in found.value.message.replace("password", "")


def test_a_good_url_is_taken_apart_and_only_its_origin_is_shown() -> None:
    target = checked_url("https://hooks.example.org:8443/services/T0/SECRET?token=x")
    assert target == ("https", "hooks.example.org", 8443, "/services/T0/SECRET?token=x")
    assert target.shown == "https://hooks.example.org:8443"
    assert checked_url("https://[2001:db8::1%25eth0]/").host == "2001:db8::1"
    assert checked_url("https://[2001:db8::1]").shown == "https://[2001:db8::1]"


def test_no_error_has_the_path_of_the_url(sender: HttpSender) -> None:
    with Receiver(lambda sock, _: sock.close()) as receiver:
        with pytest.raises(SendFailed) as found:
            sender.post(f"http://receiver.test:{receiver.port}/services/SECRET?token=x", {}, b"")
        assert "SECRET" not in str(found.value)


# --- receivers ----------------------------------------------------------------------------------------------


def test_a_request_arrives_as_it_was_given(sender: HttpSender) -> None:
    with Receiver(answer(202, b"taken", "Retry-After: 7")) as receiver:
        found = sender.post(receiver.url + "?a=b", {"webhook-id": "m1", "Content-Type": "application/json"}, b'{"a":1}')
        assert (found.status, found.retry_after, found.body) == (202, "7", b"taken")
        (request,) = receiver.requests
        assert request.line == "POST /hook?a=b HTTP/1.1"
        assert request.body == b'{"a":1}'
        assert (request.headers["webhook-id"], request.headers["content-length"]) == ("m1", "7")
        assert set(request.headers) == {"host", "content-length", "webhook-id", "content-type"}


def test_proxies_of_the_environment_are_not_used(sender: HttpSender, monkeypatch: pytest.MonkeyPatch) -> None:
    with Receiver() as proxy, Receiver() as receiver:
        for name in ("http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"):
            monkeypatch.setenv(name, f"http://127.0.0.1:{proxy.port}")
        assert sender.post(receiver.url, {}, b"").status == 200
        assert (proxy.connections, receiver.connections) == (0, 1)


def test_a_redirect_to_loopback_is_not_followed(sender: HttpSender) -> None:
    with Receiver() as inner, Receiver() as receiver:
        receiver.behave = answer(307, b"", f"Location: http://127.0.0.1:{inner.port}/admin")
        assert sender.post(receiver.url, {}, b"").status == 307
        assert inner.connections == 0


def test_a_receiver_that_is_down_is_named(sender: HttpSender) -> None:
    with Receiver() as receiver:
        url = receiver.url
    with pytest.raises(SendFailed, match=r"^http://receiver\.test:\d+ cannot be reached: Connection refused"):
        sender.post(url, {}, b"")


def test_the_next_address_is_tried_where_one_refuses() -> None:
    with Receiver() as receiver:
        sender = HttpSender(allow_http=True, networks=LOOPBACK, resolve=lambda *_: ["127.0.0.9", "127.0.0.1"])
        assert sender.post(receiver.url, {}, b"").status == 200
        sender.close()


def trickle(sock: socket.socket, data: bytes, ended: threading.Event) -> None:
    for byte in data:
        sock.sendall(bytes([byte]))
        if ended.wait(0.02):
            return


def test_an_answer_that_comes_byte_by_byte_is_cut_off_in_time(sender: HttpSender) -> None:
    with Receiver() as receiver:
        receiver.behave = lambda sock, _: trickle(sock, b"HTTP/1.1 200 OK\r\n" + b"x: y\r\n" * 10_000, receiver.ended)
        with pytest.raises(SendFailed, match="did not answer in time"):
            sender.post(receiver.url, {}, b"", 0.3)


def test_a_body_that_stalls_does_not_undo_the_status(sender: HttpSender) -> None:
    head = b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n"

    def behave(sock: socket.socket, _: Request) -> None:
        sock.sendall(head)
        trickle(sock, b"x" * 10_000, receiver.ended)

    with Receiver(behave) as receiver:
        found = sender.post(receiver.url, {}, b"", 0.3)
        assert found.status == 200
        assert found.body.startswith(b"x")
        assert sender.post(receiver.url, {}, b"", 0.3).status == 200
        assert receiver.connections == 2


def test_a_receiver_that_says_nothing_is_cut_off_in_time(sender: HttpSender) -> None:
    with Receiver() as receiver:
        receiver.behave = lambda *_: receiver.ended.wait(30) and None
        with pytest.raises(SendFailed, match="did not answer in time"):
            sender.post(receiver.url, {}, b"", 0.2)


def test_a_receiver_that_does_not_read_is_cut_off_in_time(sender: HttpSender) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, pytest.raises(SendFailed, match="did not answer in time"):
        sender.post(f"http://receiver.test:{server.getsockname()[1]}/", {}, b"x" * (32 << 20), 0.3)


def test_a_name_server_that_hangs_is_left_in_time() -> None:
    hang = threading.Event()
    sender = HttpSender(resolve=lambda *_: [str(hang.wait(30))])
    with pytest.raises(SendFailed, match="could not be resolved in time"):
        sender.post("https://example.org/", {}, b"", 0.1)
    hang.set()


def test_a_name_that_does_not_exist_is_named() -> None:
    def resolve(_host: str, _port: int) -> Sequence[str]:
        raise socket.gaierror(socket.EAI_NONAME, "unknown")

    with pytest.raises(SendFailed, match=r"^https://nowhere\.test: the name cannot be resolved"):
        HttpSender(resolve=resolve).post("https://nowhere.test/", {}, b"")
    with pytest.raises(SendFailed, match="has no address"):
        HttpSender(resolve=lambda *_: []).post("https://nowhere.test/", {}, b"")
    with pytest.raises(SendFailed, match="not an address"):
        HttpSender(resolve=lambda *_: ["what"]).post("https://nowhere.test/", {}, b"")


def endless(head: bytes, piece: bytes) -> Behave:
    def behave(sock: socket.socket, _: Request) -> None:
        sock.sendall(head)
        while True:
            sock.sendall(piece)

    return behave


def test_of_a_huge_body_only_the_beginning_is_read(sender: HttpSender) -> None:
    for head in (b"Content-Length: 99999999999\r\n\r\n", b"\r\n", b"Transfer-Encoding: chunked\r\n\r\n"):
        piece = b"1000\r\n" + b"x" * 4096 + b"\r\n" if b"chunked" in head else b"x" * 4096
        with Receiver(endless(b"HTTP/1.1 200 OK\r\n" + head, piece)) as receiver:
            found = sender.post(receiver.url, {}, b"")
            assert (found.status, len(found.body)) == (200, LARGEST_ANSWER)


@pytest.mark.parametrize(
    "piece",
    [b"x: " + b"y" * 1000 + b"\r\n", b"HTTP/1.1 100 Continue\r\n\r\n", b"x" * 4096],
    ids=["many", "100", "long"],
)
def test_endless_headers_are_refused(sender: HttpSender, piece: bytes) -> None:
    head = b"HTTP/1.1 200 OK\r\n" if b"100" not in piece else b""
    said = r"too many headers|answer is broken"
    with Receiver(endless(head, piece)) as receiver, pytest.raises(SendFailed, match=said):
        sender.post(receiver.url, {}, b"")


def test_what_is_not_http_is_a_broken_answer(sender: HttpSender) -> None:
    mail = Receiver(lambda sock, _: sock.sendall(b"220 mail.example.org ESMTP\r\n"))
    with mail as receiver, pytest.raises(SendFailed, match="its answer is broken: BadStatusLine"):
        sender.post(receiver.url, {}, b"")


# --- connections --------------------------------------------------------------------------------------------


def test_a_connection_is_used_again_and_replaced_where_the_receiver_closed_it(sender: HttpSender) -> None:
    with Receiver() as receiver:
        for _ in range(3):
            assert sender.post(receiver.url, {}, b"a").status == 200
        assert receiver.connections == 1
        closing = answer(200, b"")
        receiver.behave = lambda sock, request: (closing(sock, request), False)[1]
        assert sender.post(receiver.url, {}, b"b").status == 200
        receiver.behave = answer()
        assert sender.post(receiver.url, {}, b"c").status == 200
        assert [request.body for request in receiver.requests] == [b"a", b"a", b"a", b"b", b"c"]
        assert receiver.connections == 2


def test_a_kept_connection_that_dies_with_the_request_is_tried_once_more(sender: HttpSender) -> None:
    with Receiver(in_turn(answer(), lambda *_: False, answer(201))) as receiver:
        assert sender.post(receiver.url, {}, b"a").status == 200
        assert sender.post(receiver.url, {}, b"b").status == 201
        assert receiver.connections == 2


def test_a_new_connection_that_dies_is_a_failure(sender: HttpSender) -> None:
    with Receiver(lambda *_: False) as receiver:
        with pytest.raises(SendFailed, match="closed the connection without an answer"):
            sender.post(receiver.url, {}, b"a")
        assert receiver.connections == 1


def test_a_connection_is_not_used_again_for_another_name_and_not_when_it_is_old() -> None:
    now = [0.0]
    sender = HttpSender(allow_http=True, networks=LOOPBACK, resolve=to_loopback, monotonic=lambda: now[0])
    with Receiver() as receiver:
        sender.post(receiver.url, {}, b"")
        sender.post(receiver.url.replace("receiver", "other"), {}, b"")
        assert receiver.connections == 2
        now[0] = 31.0
        sender.post(receiver.url, {}, b"")
        assert receiver.connections == 3
        sender.close()


def test_eight_deliveries_are_in_flight_at_the_same_time(sender: HttpSender) -> None:
    together = threading.Barrier(8)

    def behave(sock: socket.socket, request: Request) -> bool | None:
        together.wait(20)
        return answer()(sock, request)

    with Receiver(behave) as receiver, ThreadPoolExecutor(8) as threads:
        found = list(threads.map(lambda n: sender.post(receiver.url, {}, b"%d" % n).status, range(8)))
        assert found == [200] * 8
        assert receiver.most_at_once == 8


# --- TLS ----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def tls(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, ssl.SSLContext]:
    return authority(tmp_path_factory.mktemp("ca"), "receiver.test")


def https(authorities: str | None) -> HttpSender:
    return HttpSender(networks=LOOPBACK, resolve=to_loopback, authorities=authorities)


def test_the_certificate_is_checked_for_the_name_although_the_connection_goes_to_an_address(
    tls: tuple[str, ssl.SSLContext],
) -> None:
    names: list[str | None] = []
    ca, context = tls
    context.sni_callback = lambda _sock, name, _context: names.append(name)
    with Receiver(context=context) as receiver:
        sender = https(ca)
        for _ in range(2):
            assert sender.post(receiver.url, {}, b"x").status == 200
        assert receiver.connections == 1
        assert names == ["receiver.test"]
        sender.close()


def test_a_certificate_of_another_name_is_refused_and_nothing_is_sent(tls: tuple[str, ssl.SSLContext]) -> None:
    ca, context = tls
    with Receiver(context=context) as receiver:
        with pytest.raises(SendFailed, match="certificate is not valid: Hostname mismatch"):
            https(ca).post(receiver.url.replace("receiver.test", "other.test"), {}, b"x")
        assert receiver.requests == []


def test_a_certificate_of_an_unknown_authority_is_refused(tls: tuple[str, ssl.SSLContext], tmp_path: Path) -> None:
    other, _ = authority(tmp_path, "receiver.test")
    with Receiver(context=tls[1]) as receiver:
        for authorities in (None, other):
            with pytest.raises(SendFailed, match="certificate is not valid"):
                https(authorities).post(receiver.url, {}, b"x")
        assert receiver.requests == []


def test_a_handshake_that_stalls_is_cut_off_in_time(tls: tuple[str, ssl.SSLContext]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, pytest.raises(SendFailed, match="did not answer in time"):
        https(tls[0]).post(f"https://receiver.test:{server.getsockname()[1]}/", {}, b"x", 0.2)


def test_plain_http_behind_https_is_a_failure_of_tls(tls: tuple[str, ssl.SSLContext]) -> None:
    said = r"TLS failed|did not answer in time"
    with Receiver(lambda *_: None) as receiver, pytest.raises(SendFailed, match=said):
        https(tls[0]).post(receiver.url.replace("http:", "https:"), {}, b"x", 0.5)
