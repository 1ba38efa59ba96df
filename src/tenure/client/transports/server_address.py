"""A server's address: its URL, the credentials for it, and why it cannot be reached."""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping
from typing import NamedTuple
from urllib.parse import urlsplit

from tenure.client.local_token import find_token
from tenure.client.transports.http_messages import Trouble
from tenure.core import limits
from tenure.core.error_texts import described
from tenure.core.errors import InvalidInput, StoreUnavailable
from tenure.core.ids import check_tenant
from tenure.core.loopback import is_loopback

# What http.client raises beside its own errors, as for a Content-Length of 10^18.
STRANGE = (ValueError, ArithmeticError, MemoryError)


class Address(NamedTuple):
    host: str
    port: int
    is_secure: bool
    path: str  # before the API's own, without a slash at its end
    url: str  # as it may be printed

    @property
    def is_loopback(self) -> bool:
        return is_loopback(self.host)


def address_of(url: str, key: str | None) -> Address:
    """InvalidInput where it is not a server's URL, or where the key would cross a network unencrypted."""
    try:
        parts = urlsplit(url)
        port = parts.port
        (parts.hostname or "").encode("idna")
    except ValueError:  # of a port, of brackets, of a host's name
        raise _no_address(url) from None
    is_spelled = parts.path.isascii() and " " not in url and url.isprintable()
    if not is_spelled or not parts.hostname or parts.query or parts.fragment:
        raise _no_address(url)
    if parts.username is not None:
        raise InvalidInput("a server's URL has no user or password in it", "pass the key as `key`, or in TENURE_KEY")
    is_secure = parts.scheme == "https"
    path = parts.path.rstrip("/")
    address = Address(parts.hostname, port or (443 if is_secure else 80), is_secure, path, url.rstrip("/"))
    if key is not None and not is_secure and not address.is_loopback:
        raise InvalidInput(
            f"{url[:200]}: a key is not sent over plain HTTP to another host: anybody on the network could read it",
            "use https://, or a tunnel to this host's loopback",
        )
    if key is not None and not (key.isascii() and key.isprintable()):
        raise InvalidInput("the key has characters that are not printable ASCII", "copy it exactly as it was shown")
    return address


def _no_address(url: str) -> InvalidInput:
    return InvalidInput(f"{url[:200]!r} is not a server's URL", "it looks like https://tenure.example.com")


class Credentials:
    """What a client sends to sign in: its key, or the token of the server's start on this machine; and the tenant.

    A restarted server has a new token, so the file is read again when the token is refused.
    """

    def __init__(self, address: Address, key: str | None, tenant: str | None = None) -> None:
        self._address = address if key is None and address.is_loopback else None
        self._tenant = {"Tenure-Tenant": check_tenant(tenant)} if tenant else {}
        self.headers = self._showing(key or self._token())

    def _showing(self, shown: str | None) -> dict[str, str]:
        return ({"Authorization": f"Bearer {shown}"} if shown else {}) | self._tenant

    def _token(self) -> str | None:
        return find_token(os.environ, self._address.host, self._address.port) if self._address is not None else None

    def is_renewed(self, refused: Mapping[str, str]) -> bool:
        """Whether there is another token now than in the headers of the refused request; it is sent from now on.

        Threads share this: another one may have read the new token since that request was sent.
        """
        token = self._token()
        if token is not None:
            self.headers = self._showing(token)
        return self.headers.get("Authorization") != refused.get("Authorization")


def unreachable(url: str, error: Exception) -> Trouble:
    why = str(error) or type(error).__name__
    hint = "check that the server runs, and its URL"
    return Trouble(StoreUnavailable(f"{url} cannot be reached: {why}", hint), False)


def lost(url: str, error: Exception) -> Trouble:
    return Trouble(StoreUnavailable(f"{url}: the connection was lost: {str(error) or type(error).__name__}"), True)


def strange(url: str, error: BaseException) -> Trouble:
    """Of a reply that no HTTP server sends, or a library that failed by it."""
    why = described(error, limits.WORKER_ERROR)
    return Trouble(StoreUnavailable(f"{url}: the reply cannot be read: {why}", "check the URL, and any proxy"), True)


def may_pass(error: BaseException) -> bool:
    """Whether another try may succeed: not for an unknown host name, an untrusted certificate or a missing file."""
    if isinstance(error, socket.gaierror):
        return error.errno == socket.EAI_AGAIN
    if not isinstance(error, OSError) or isinstance(error, (FileNotFoundError, PermissionError, IsADirectoryError)):
        return False
    return type(error).__name__ != "SSLCertVerificationError"


class Failed(Exception):
    """No reply came. `may_pass`: another try may succeed."""

    def __init__(self, trouble: Trouble, *, may_pass: bool = True, is_stale: bool = False) -> None:
        super().__init__(trouble.error.message)
        self.trouble, self.may_pass, self.is_stale = trouble, may_pass, is_stale

    @classmethod
    def to_connect(cls, url: str, error: Exception) -> Failed:
        return cls(unreachable(url, error), may_pass=may_pass(error))


class Unwanted(Exception):
    """The caller no longer wants the reply; the server sees the connection close."""
