"""Real receivers of webhooks on this machine, good and bad, with and without TLS."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from typing import BinaryIO, NamedTuple, Self

LONG_AGO, FAR_AWAY = datetime(2020, 1, 1, tzinfo=UTC), datetime(2020, 1, 1, tzinfo=UTC) + timedelta(days=365 * 50)


class Request(NamedTuple):
    line: str
    headers: dict[str, str]  # names in lower case
    body: bytes
    connection: int


Behave = Callable[[socket.socket, Request], bool | None]


def answer(status: int = 200, body: bytes = b"ok", *headers: str) -> Behave:
    """Answer every request so, and keep the connection."""

    def behave(sock: socket.socket, _: Request) -> bool:
        lines = [f"HTTP/1.1 {status} Said", f"Content-Length: {len(body)}", *headers]
        sock.sendall("\r\n".join(lines).encode() + b"\r\n\r\n" + body)
        return True

    return behave


def in_turn(*ways: Behave) -> Behave:
    """The first request gets the first way, and so on; the last way stays."""
    left = list(ways)

    def behave(sock: socket.socket, request: Request) -> bool | None:
        way = left.pop(0) if len(left) > 1 else left[0]
        return way(sock, request)

    return behave


class Receiver:
    """Listens on loopback; `behave` answers a request and returns whether the connection stays open."""

    def __init__(self, behave: Behave | None = None, context: ssl.SSLContext | None = None) -> None:
        self.behave = behave or answer()
        self.requests: list[Request] = []
        self.connections = 0
        self.most_at_once = 0
        self.ended = threading.Event()
        self._context = context
        self._now = 0
        self._mutex = threading.Lock()
        self._open: list[socket.socket] = []
        self._server = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.port = self._server.getsockname()[1]
        self._thread = threading.Thread(target=self._accept, daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        return f"{'https' if self._context else 'http'}://receiver.test:{self.port}/hook"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.ended.set()
        with suppress(OSError):
            self._server.shutdown(socket.SHUT_RDWR)
        self._server.close()
        for sock in self._open:
            with suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)
            sock.close()
        self._thread.join()

    def _accept(self) -> None:
        while True:
            try:
                sock, _ = self._server.accept()
            except OSError:
                return
            self.connections += 1
            self._open.append(sock)
            threading.Thread(target=self._serve, args=(sock, self.connections), daemon=True).start()

    def _serve(self, sock: socket.socket, number: int) -> None:
        with suppress(OSError), sock:
            if self._context is not None:
                sock = self._context.wrap_socket(sock, server_side=True)
            with sock, sock.makefile("rb") as file:
                while request := self._read(file, number):
                    with self._mutex:
                        self.requests.append(request)
                        self._now += 1
                        self.most_at_once = max(self.most_at_once, self._now)
                    try:
                        stays = self.behave(sock, request)
                    finally:
                        with self._mutex:
                            self._now -= 1
                    if not stays:
                        return

    def _read(self, file: BinaryIO, number: int) -> Request | None:
        line = file.readline().decode("latin-1")
        if not line:
            return None
        headers = {}
        while (text := file.readline().decode("latin-1").strip()) != "":
            name, _, value = text.partition(":")
            headers[name.lower()] = value.strip()
        body = file.read(int(headers.get("content-length", "0")))
        return Request(line.strip(), headers, body, number)


def authority(folder: Path, *names: str) -> tuple[str, ssl.SSLContext]:
    """The file of an own CA, and the context of a server with its certificate for these names and addresses."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    def general(text: str) -> x509.GeneralName:
        try:
            return x509.IPAddress(ip_address(text))
        except ValueError:
            return x509.DNSName(text)

    def named(text: str) -> x509.Name:
        return x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, text)])

    def certificate(subject: str, key: ec.EllipticCurvePrivateKey) -> x509.CertificateBuilder:
        return (
            x509.CertificateBuilder()
            .subject_name(named(subject))
            .issuer_name(named("Test CA"))
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(LONG_AGO)
            .not_valid_after(FAR_AWAY)
        )

    ca_key, key = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    usage = x509.KeyUsage(
        digital_signature=True, content_commitment=False, key_encipherment=False, data_encipherment=False,
        key_agreement=False, key_cert_sign=True, crl_sign=True, encipher_only=False, decipher_only=False,
    )  # fmt: skip
    ca = (
        certificate("Test CA", ca_key)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .add_extension(usage, critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(ca_key.public_key()), critical=False)
        .sign(ca_key, hashes.SHA256())
    )
    signed = (
        certificate(names[0], key)
        .add_extension(x509.SubjectAlternativeName(list(map(general, names))), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(ca_key.public_key()), critical=False)
        .sign(ca_key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    own = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    (folder / "ca.pem").write_bytes(ca.public_bytes(pem))
    (folder / "server.pem").write_bytes(own + signed.public_bytes(pem))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "server.pem")
    return str(folder / "ca.pem"), context
