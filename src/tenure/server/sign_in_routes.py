"""`/login`, `/logout` and `/api/v1/me`: a key for the dashboard's cookie, and who one is here."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import parse_qs

import msgspec

from tenure.client.routes import PREFIX
from tenure.core import limits
from tenure.core.commands import Principal
from tenure.core.decoders import check_json
from tenure.core.errors import InvalidInput
from tenure.server import answers
from tenure.server.answers import Answer
from tenure.server.app import Place
from tenure.server.auth.gate import Gate
from tenure.server.requests import Request

LARGEST = limits.SIGN_IN_BYTES


class Login(msgspec.Struct, forbid_unknown_fields=True):
    key: str


def routes(gate: Gate) -> Iterator[Place]:
    desk = _Desk(gate)
    yield Place("POST", "/login", desk.login, is_open=True)
    yield Place("POST", "/logout", desk.logout, is_open=True)
    yield Place("GET", f"{PREFIX}/me", desk.me)


class _Desk:
    def __init__(self, gate: Gate) -> None:
        self._gate = gate

    async def login(self, request: Request) -> Answer:
        given = _key_in(request, await request.body(LARGEST))
        signed_in = await self._gate.sign_in(request.scope, given)
        return answers.of_value(_seen(signed_in.principal), (b"set-cookie", signed_in.set_cookie.encode()))

    async def logout(self, request: Request) -> Answer:
        return answers.of_value({}, (b"set-cookie", (await self._gate.sign_out(request.scope)).encode()))

    async def me(self, request: Request) -> Answer:
        return answers.of_value(_seen(request.principal))


def _key_in(request: Request, body: bytes) -> str:
    """From JSON, or from a form: the page works without a script that far."""
    if (request.header(b"content-type") or "").startswith("application/x-www-form-urlencoded"):
        return parse_qs(body.decode("latin-1")).get("key", [""])[0]
    check_json(body, "the body")
    try:
        return msgspec.json.decode(body, type=Login).key
    except (msgspec.MsgspecError, RecursionError) as error:
        raise InvalidInput(f"the body: {error}") from None


def _seen(principal: Principal) -> dict[str, object]:
    return {
        "role": principal.role, "user": principal.user, "agent": principal.agent, "projects": principal.projects,
        "key": principal.key,
    }  # fmt: skip
