"""`/login`, `/logout` and `/api/v1/me`: exchange a key for the dashboard's cookie, and show the current principal."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import parse_qs

from tenure.client.routes import PREFIX
from tenure.core import limits, tenants
from tenure.core.commands import Principal
from tenure.core.tenant_records import HOME
from tenure.core.views.team_views import PrincipalView
from tenure.server import responses
from tenure.server.app import Endpoint
from tenure.server.auth.authenticator import Authenticator
from tenure.server.requests import Request, decode_login
from tenure.server.responses import Response


def routes(authenticator: Authenticator) -> Iterator[Endpoint]:
    endpoints = _SignInEndpoints(authenticator)
    yield Endpoint("POST", "/login", endpoints.login, is_open=True)
    yield Endpoint("POST", "/logout", endpoints.logout, is_open=True)
    yield Endpoint("GET", f"{PREFIX}/me", endpoints.me)


class _SignInEndpoints:
    def __init__(self, authenticator: Authenticator) -> None:
        self._authenticator = authenticator

    async def login(self, request: Request) -> Response:
        given = _key_in(request, await request.body(limits.SIGN_IN_BYTES))
        signed_in = await self._authenticator.sign_in(request.scope, given)
        return responses.of_value(
            await self._view_of(request, signed_in.principal), (b"set-cookie", signed_in.set_cookie.encode())
        )

    async def logout(self, request: Request) -> Response:
        return responses.of_value({}, (b"set-cookie", (await self._authenticator.sign_out(request.scope)).encode()))

    async def me(self, request: Request) -> Response:
        return responses.of_value(await self._view_of(request, request.principal))

    async def _view_of(self, request: Request, principal: Principal) -> PrincipalView:
        tenant = principal.tenant or HOME
        return {
            "tenant": tenant,
            "role": principal.role,
            "user": principal.user,
            "agent": principal.agent,
            "projects": principal.projects,
            "key": principal.key,
            "tenants": await self._authenticator.tenants_of(request.scope, principal),
            "manages_tenants": self._authenticator.keeps_tenants
            and tenants.manages(tenant, principal.role, principal.projects),
            "grants": tenants.granted_by(principal.role, principal.projects),
        }


def _key_in(request: Request, body: bytes) -> str:
    """From JSON, or from a form: sign-in also works without JavaScript."""
    if (request.header(b"content-type") or "").startswith("application/x-www-form-urlencoded"):
        return parse_qs(body.decode("latin-1")).get("key", [""])[0]
    return decode_login(body).key
