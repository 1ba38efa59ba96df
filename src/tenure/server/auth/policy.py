"""The settings of authentication as one value; unsafe ones are refused before the server listens."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from ipaddress import ip_network
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from tenure.config import BadConfig, Settings
from tenure.core import limits
from tenure.server.auth.metrics_token import MetricsToken
from tenure.server.auth.request_source import Network, is_loopback_name

# A repository's shared file may suggest a port, but not who may sign in.
_OURS_ALONE = (
    "serve.auth", "serve.hosts", "serve.trusted_proxy", "serve.jwt_issuer", "serve.jwt_audience", "serve.jwt_jwks",
    "serve.jwt_secret", "serve.jwt_prefix", "serve.jwt_longest", "serve.jwt_tenant", "serve.metrics_token",
)  # fmt: skip


class Jwt(NamedTuple):
    """Which tokens are valid: signed with a key at `jwks`, or with the shared `secret`."""

    issuer: str
    audience: str
    jwks: str | None = None
    secret: str | None = None
    prefix: str = ""
    longest: float = 86400.0  # seconds from iat to exp
    tenant: str | None = None  # the claim that names tenants


@dataclass(frozen=True)
class Policy:
    host: str = "127.0.0.1"
    auth: str = "auto"
    hosts: frozenset[str] = frozenset()
    proxies: tuple[Network, ...] = ()
    has_tls: bool = False
    jwt: Jwt | None = None
    rate: float = 1000.0
    metrics_token: MetricsToken | None = None

    @cached_property
    def is_open(self) -> bool:
        """Whether the user who started the server needs no key on this host."""
        return self.auth != "required" and is_loopback_name(self.host) and not self.proxies and self.jwt is None

    @property
    def needs_token(self) -> bool:
        """Whether the token of the start is needed on this host: all its users can reach loopback."""
        return self.is_open and self.auth == "auto"


def policy_of(settings: Settings) -> Policy:
    """The policy of the settings; BadConfig if they contradict each other."""
    for key in _OURS_ALONE:
        if settings.is_shared(key):
            raise BadConfig(
                f"{settings.seen(key).origin}: {key} decides who may sign in, so a shared file may not set it",
                f"set it in {settings.own_file} or the environment",
            )

    def value(name: str) -> Any:
        return settings[f"serve.{name}"].value

    if (value("tls_cert") is None) != (value("tls_key") is None):
        raise BadConfig("serve.tls_cert and serve.tls_key must be set together: one is missing")
    if not value("rate") >= 0:
        raise BadConfig(f"serve.rate is {value('rate')}; it must be 0 or more")
    metrics = None if value("metrics_token") is None else MetricsToken(value("metrics_token"))
    if metrics is not None:
        metrics.check()
    return Policy(
        metrics_token=metrics,
        host=value("host"),
        auth=value("auth"),
        rate=value("rate"),
        has_tls=value("tls_cert") is not None,
        hosts=frozenset(name.lower().rstrip(".") for name in _listed(value("hosts"))),
        proxies=tuple(_network(text) for text in _listed(value("trusted_proxy"))),
        jwt=_jwt(value),
    )


def _listed(text: str | None) -> list[str]:
    return [part.strip() for part in (text or "").split(",") if part.strip()]


def _network(text: str) -> Network:
    try:
        return ip_network(text, strict=False)
    except ValueError:
        raise BadConfig(
            f"serve.trusted_proxy: {text!r} is not a valid address or network", "use the form 10.0.0.7 or 10.0.0.0/24"
        ) from None


def _jwt(value: Any) -> Jwt | None:
    jwks, secret = value("jwt_jwks"), value("jwt_secret")
    if jwks is None and secret is None:
        if value("jwt_issuer") or value("jwt_audience"):
            raise BadConfig("JWTs: serve.jwt_jwks or serve.jwt_secret is missing")
        return None
    if jwks is not None and secret is not None:
        raise BadConfig("JWTs: either serve.jwt_jwks or serve.jwt_secret, not both")
    for name in ("jwt_issuer", "jwt_audience"):
        if not value(name):
            raise BadConfig(
                f"JWTs: serve.{name} is missing", "without it, tokens for other services would be valid here"
            )
    if secret is not None and len(secret) < limits.JWT_SECRET_MIN:
        raise BadConfig(f"serve.jwt_secret has {len(secret)} characters; it needs at least {limits.JWT_SECRET_MIN}")
    if jwks is not None:
        parts = urlsplit(jwks)
        if parts.scheme != "https" and not (parts.scheme == "http" and is_loopback_name(parts.hostname or "")):
            raise BadConfig(f"serve.jwt_jwks is {jwks!r}; it must be an https URL")
    if not value("jwt_longest") > 0:
        raise BadConfig(f"serve.jwt_longest is {value('jwt_longest')}; it must be more than 0 seconds")
    more = (value("jwt_prefix"), value("jwt_longest"), value("jwt_tenant"))
    return Jwt(value("jwt_issuer"), value("jwt_audience"), jwks, secret, *more)


def check_bind(policy: Policy, *, has_keys: bool) -> None:
    """Refuse to listen if anybody, or nobody, could sign in."""
    if policy.is_open:
        return
    if policy.auth == "open":
        raise BadConfig("serve.auth = open is only allowed on loopback, without a proxy or JWT", "remove the setting")
    if not has_keys and policy.jwt is None:
        where = f"{policy.host} is not loopback" if not is_loopback_name(policy.host) else "everybody must sign in"
        raise BadConfig(
            f"{where}, but nobody could sign in: there is no API key and JWT is not configured",
            "create a key with `tenure key create NAME --role member`, or listen on 127.0.0.1",
        )
    if not is_loopback_name(policy.host) and not policy.has_tls and not policy.proxies:
        raise BadConfig(
            f"{policy.host} is not loopback, and keys are not accepted over plain HTTP",
            "set --tls-cert and --tls-key, or set serve.trusted_proxy to the proxy that terminates TLS",
        )
