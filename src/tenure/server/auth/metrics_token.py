"""The token of the setting `serve.metrics_token`: its bearer may read the metrics, also without the store."""

from __future__ import annotations

import hashlib
import hmac
from typing import TYPE_CHECKING

from tenure.config import BadConfig
from tenure.core import limits
from tenure.core.commands import Principal
from tenure.core.safe_text import shell_word
from tenure.server.auth.request_source import RequestSource, check_host, check_private

if TYPE_CHECKING:
    from tenure.server.auth.policy import Policy

NAME = "serve.metrics_token"
_LEAST = limits.METRICS_TOKEN


class MetricsToken:
    """The token in a file, which is read at each use: a new token needs no new start."""

    def __init__(self, path: str) -> None:
        self._path = path

    def opens(self, text: str) -> bool:
        """Whether the text is the token. A file that cannot be read now opens nothing."""
        try:
            token = self._read()
        except (OSError, BadConfig):
            return False
        return hmac.compare_digest(_digest(text), _digest(token))

    def check(self) -> None:
        """BadConfig where the file has no token."""
        try:
            self._read()
        except OSError as error:
            raise BadConfig(
                f"{NAME}: cannot read {self._path}: {error.strerror or error}", f"make it: {_made(self._path)}"
            ) from None

    def _read(self) -> str:
        with open(self._path, "rb") as file:  # noqa: PTH123 - a setting is a text
            token = file.read(limits.METRICS_TOKEN_FILE).decode("utf-8", "replace").strip()
        if len(token) < _LEAST or len(token.split()) != 1:
            raise BadConfig(
                f"{NAME}: {self._path} must have one word of at least {_LEAST} characters (it has {len(token)})",
                f"make another: {_made(self._path)}",
            )
        return token


def reader_of(policy: Policy, source: RequestSource) -> Principal | None:
    """Who has sent the token of the policy: it may read, and nothing else. None: it was not sent."""
    scheme, _, given = (source.header(b"authorization") or "").partition(" ")
    token = policy.metrics_token
    if token is None or scheme.lower() != "bearer" or not token.opens(given.strip()):
        return None
    check_host(source, policy)
    check_private(source)
    return Principal(role="viewer", user="metrics token", address=source.address, credential="metrics")


def _digest(text: str) -> bytes:
    """Of one length, so that a comparison reveals nothing about the token's."""
    return hashlib.sha256(text.encode()).digest()


def _made(path: str) -> str:
    return f"`openssl rand -hex 32 > {shell_word(path)}`"
