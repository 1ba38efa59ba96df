"""The gate: a visit becomes a Principal, or is sent away. Nothing of a request is read before it has passed."""

from __future__ import annotations

import asyncio
import hmac
import os
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, NamedTuple, TypeVar
from urllib.parse import unquote

from tenure.client.ways.local_token import is_local_token
from tenure.core import ids, inputs, keys, limits, roles
from tenure.core.commands import Principal
from tenure.core.errors import NotAllowed, NotSignedIn, Overloaded, TenureError
from tenure.core.events import Event
from tenure.core.records import ApiKey
from tenure.core.web_sessions import TOKEN_BYTES, is_good, session_id
from tenure.engine import Engine
from tenure.engine.verbs import web_sessions
from tenure.server.auth import cookies
from tenure.server.auth.key_sets import Fetch
from tenure.server.auth.looks import MustLook
from tenure.server.auth.origins import check_host, check_origin
from tenure.server.auth.policy import Policy
from tenure.server.auth.rings import key_ring, session_ring
from tenure.server.auth.tokens import LEEWAY, Tokens
from tenure.server.auth.visits import Visit, is_loopback_name, name_in, visit, visit_of
from tenure.server.limits import MOST_CALLERS, Buckets, caller_at, limited

FAILURES = limits.SIGN_IN_TRIES
FAILURES_A_SECOND = 1 / 6
TRIES = 5  # of a look whose answer was out of date when it came
_BY_JWT = "jwt:"
_SIGN_IN = "send a key with `Authorization: Bearer KEY`; `tenure key create` makes one"
_HERE = (
    "on this machine the token of the server's start is needed: the commands of the user who started it send it by "
    "themselves; others send a key"
)
USE_NOTED = 60.0  # seconds between two notes of a key's use
SHOWN = 16  # characters of a secret's digest that name it

T = TypeVar("T")
Aside = Callable[[Callable[[], object]], Awaitable[Any]]


class SignedIn(NamedTuple):
    """Somebody who has shown a key to the dashboard, and the header that makes the browser remember it."""

    principal: Principal
    set_cookie: str


class Gate:
    """One for a server process; lives in its event loop. `aside` runs a look in a thread, `write` what writes.

    `token` is that of this start, on loopback: see `local_token`.
    """

    def __init__(
        self,
        engine: Engine,
        policy: Policy,
        *,
        aside: Aside = asyncio.to_thread,
        write: Aside = asyncio.to_thread,
        fetch: Fetch | None = None,
        monotonic: Callable[[], float] = time.monotonic,
        token: str | None = None,
    ) -> None:
        self.policy = policy
        self.ring = key_ring(engine, monotonic)
        self.sessions = session_ring(engine, monotonic)
        self._engine, self._token, self._monotonic = engine, token, monotonic
        self._here: dict[str, float] = {}  # sessions of the token's owner: digest of the cookie → when it ends
        self._tokens = Tokens(policy.jwt, fetch=fetch, monotonic=monotonic) if policy.jwt is not None else None
        self._aside, self._write = aside, write
        self._looks: dict[str, asyncio.Future[Any]] = {}
        self._requests = Buckets(policy.rate, 2 * policy.rate, monotonic=monotonic)
        self._failures = Buckets(FAILURES_A_SECOND, FAILURES, monotonic=monotonic)
        self._used: OrderedDict[str, float] = OrderedDict()  # keys whose last use is noted: when that was
        self._noting: set[asyncio.Future[Any]] = set()

    # --- the ways in ---

    async def admit(self, scope: Mapping[str, Any]) -> Principal:
        """Who sends the request of this ASGI scope."""
        who = visit_of(scope, self.policy.proxies)
        principal = await self._told(lambda: self._passed(who))
        if principal.key is not None and not principal.key.startswith(_BY_JWT):
            self._note_use(principal.key)
        return principal

    def authenticate(
        self, headers: Iterable[tuple[bytes, bytes]], peer: str | None, scheme: str, method: str = "GET"
    ) -> Principal:
        """The same for whoever has no event loop; may wait for the store or the issuer."""
        who = visit(headers, peer, scheme, method, self.policy.proxies)
        for _ in range(TRIES):
            try:
                return self._passed(who)
            except MustLook as look:
                look.run()
        raise _restless()

    async def sign_in(self, scope: Mapping[str, Any], text: str) -> SignedIn:
        """Take a key, or the token of this start, for the dashboard's cookie."""
        who = visit_of(scope, self.policy.proxies)
        check_host(who, self.policy)
        check_origin(who, is_by_cookie=True)
        text, token = text.strip(), os.urandom(TOKEN_BYTES).hex()
        if is_local_token(text):
            principal = self._by_local_token(who, text)
            self._begin_here(token)
            return SignedIn(principal, cookies.cookie_of(token, who.scheme))
        key, _ = await self._told(lambda: self._by_key(who, text))
        given = keys.parse_key(text)
        assert given is not None
        await self._write(partial(web_sessions.begin, self._engine, token, key.id, given.secret))
        return SignedIn(_principal_of(key, who, ""), cookies.cookie_of(token, who.scheme))

    async def sign_out(self, scope: Mapping[str, Any]) -> str:
        """End the session, here and on every server; the value of Set-Cookie that makes the browser forget it."""
        who = visit_of(scope, self.policy.proxies)
        check_host(who, self.policy)
        check_origin(who, is_by_cookie=True)
        id = _session_in(who)
        if id is not None and self._here.pop(id, None) is None:
            await self._write(partial(web_sessions.end, self._engine, id))
            self.sessions.forget(id)
        return cookies.cleared(who.scheme)

    def hear(self, events: Sequence[Event]) -> None:
        """A listener of the feed: keys that were changed anywhere are read again."""
        for event in events:
            if event.kind.startswith("key."):
                self.ring.forget(event.details["key"])

    async def is_still_good(self, principal: Principal) -> bool:
        """Whether what a long answer was begun with would still be let in."""
        try:
            return await self._told(lambda: self._is_good(principal))
        except NotSignedIn:
            return False

    def _is_good(self, principal: Principal) -> bool:
        kind, _, shown = principal.credential.partition(":")
        if kind == "jwt":
            return time.time() < float(shown) + LEEWAY
        if kind == "here":
            return self._is_here(shown)
        if kind == "web":
            return self._is_session(shown) is not None
        if kind == "secret" and principal.key is not None:
            key, now = self.ring.find(principal.key)
            return any(digest.hex().startswith(shown) for digest in keys.digests_at(key, now))
        return True

    async def _told(self, ask: Callable[[], T]) -> T:
        """What `ask` says, once all that it has to look at is known. A look that many wait for is run once."""
        for _ in range(TRIES):
            try:
                return ask()
            except MustLook as look:
                running = self._looks.get(look.name)
                if running is None:
                    running = self._looks[look.name] = asyncio.ensure_future(self._aside(look.run))
                    running.add_done_callback(lambda _, name=look.name: self._looks.pop(name, None))  # type: ignore[misc]
                await asyncio.shield(running)
        raise _restless()

    def _note_use(self, id: str) -> None:
        """At most once a minute for each key; who asked does not wait for it."""
        now = self._monotonic()
        if now - self._used.get(id, -USE_NOTED) < USE_NOTED:
            return
        self._used[id] = now
        self._used.move_to_end(id)
        if len(self._used) > MOST_CALLERS:
            self._used.popitem(last=False)

        async def note() -> None:
            with suppress(TenureError):  # away, full, or closing: the next use is noted
                await self._write(partial(web_sessions.note_use, self._engine, id))

        noting = asyncio.ensure_future(note())
        self._noting.add(noting)
        noting.add_done_callback(self._noting.discard)

    # --- who it is ---

    def _passed(self, who: Visit) -> Principal:
        check_host(who, self.policy)
        text = who.header(b"authorization")
        if text is not None:
            check_origin(who)
            principal = self._by_header(who, text)
        elif self._is_local(who) and self._token is None:
            check_origin(who)
            return _local(who, "")
        else:
            principal = self._by_cookie(who)
        self._requests.take(principal.key or "")
        return principal

    def _is_local(self, who: Visit) -> bool:
        return self.policy.is_open and who.is_here and is_loopback_name(name_in(who.host))

    def _by_header(self, who: Visit, text: str) -> Principal:
        scheme, _, credential = text.partition(" ")
        credential = credential.strip()
        if scheme.lower() != "bearer" or not credential:
            raise NotSignedIn("Authorization must be `Bearer` and a key or token", _SIGN_IN)
        if is_local_token(credential):
            return self._by_local_token(who, credential)
        if credential.startswith("tnr_"):
            key, _ = self._by_key(who, credential)
            given = keys.parse_key(credential)
            assert given is not None
            return _principal_of(key, who, f"secret:{keys.digest_of(given.secret).hex()[:SHOWN]}")
        return self._by_token(who, credential)

    def _by_local_token(self, who: Visit, text: str) -> Principal:
        with self._failing(who, "the token of this start"):
            is_ours = self._token is not None and hmac.compare_digest(text, self._token)
            if not is_ours or not self._is_local(who):
                raise NotSignedIn("the token is not that of this start of the server", _HERE)
        return _local(who, "")

    def _by_key(self, who: Visit, text: str) -> tuple[ApiKey, int]:
        _check_private(who)
        given = keys.parse_key(text)
        with self._failing(who, given.id if given is not None else "no key"):
            if given is None:
                raise NotSignedIn("this is not spelled like a key", _SIGN_IN)
            try:
                key, now = self.ring.find(given.id)
            except NotSignedIn:
                raise _not_accepted() from None
            if not keys.opens(key, given.secret, now):
                raise _not_accepted()
        return key, now

    def _by_token(self, who: Visit, token: str) -> Principal:
        if self._tokens is None:
            raise NotSignedIn("this is not spelled like a key, and tokens are not set up here", _SIGN_IN)
        _check_private(who)
        with self._failing(who, "jwt"):
            claims = self._tokens.read(token)
        return _principal(
            who, claims.role, user=claims.subject, agent=claims.agent, projects=claims.projects,
            key=_BY_JWT + claims.subject, capabilities=claims.capabilities, credential=f"jwt:{claims.expires}",
        )  # fmt: skip

    def _by_cookie(self, who: Visit) -> Principal:
        id = _session_in(who)
        if id is None:
            check_origin(who)
            raise NotSignedIn("nobody is signed in", _HERE if self._is_local(who) else _SIGN_IN)
        _check_private(who)
        check_origin(who, is_by_cookie=True)
        if self._is_here(id) and self._is_local(who):
            return _local(who, f"here:{id}")
        with self._failing(who, "cookie"):
            key = self._is_session(id)
            if key is None:
                raise NotSignedIn("the session is over", "sign in again")
        return _principal_of(key, who, f"web:{id}")

    def _is_session(self, id: str) -> ApiKey | None:
        """The key of a web session that is good now."""
        try:
            session, now = self.sessions.find(id)
            key, _ = self.ring.find(session.key)
        except NotSignedIn:
            return None
        return key if is_good(session, key, now) else None

    # Sessions of the token's owner live in this process: they end with the token, which ends with it.

    def _begin_here(self, token: str) -> None:
        now = self._monotonic()
        self._here = {id: until for id, until in self._here.items() if until > now}
        id = session_id(token)
        assert id is not None
        self._here[id] = now + cookies.SECONDS

    def _is_here(self, id: str) -> bool:
        return self._monotonic() < self._here.get(id, 0.0)

    def _failing(self, who: Visit, credential: str) -> _Failing:
        return _Failing(self._failures, f"{caller_at(who.address)} {credential}")


class _Failing:
    """Counts failures by address and credential, after they were judged: what is good is never refused for others."""

    def __init__(self, failures: Buckets, name: str) -> None:
        self._failures, self._name = failures, name

    def __enter__(self) -> None: ...

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        if not isinstance(error, NotSignedIn):
            return
        if (wait := self._failures.wait_of(self._name)) > 0:
            raise limited(wait) from None
        self._failures.take(self._name)


def _restless() -> Overloaded:
    """Each answer was out of date when it came."""
    return Overloaded("keys are changed faster than they can be read", "nothing was done: send it again in a moment")


def _check_private(who: Visit) -> None:
    if not who.is_private:
        raise NotAllowed(
            "keys and tokens are not taken over plain HTTP: whoever listened has it now",
            "use https and rotate the key; a proxy that does TLS is named with serve.trusted_proxy",
        )


def _not_accepted() -> NotSignedIn:
    """The same for unknown, revoked, expired and wrong: a guesser learns nothing of a key's state."""
    return NotSignedIn("the key is not accepted", _SIGN_IN)


def _session_in(who: Visit) -> str | None:
    token = cookies.found_in(who.header(b"cookie"), who.scheme)
    return None if token is None else session_id(token) or ""


def _local(who: Visit, credential: str) -> Principal:
    return _principal(
        who, "owner", user=_named(who, b"tenure-user"), agent=None, projects=(), key=None, credential=credential
    )


def _principal_of(key: ApiKey, who: Visit, credential: str) -> Principal:
    return _principal(
        who, key.role, user=key.user, agent=key.agent, projects=key.projects, key=key.id,
        capabilities=key.capabilities, credential=credential,
    )  # fmt: skip


def _principal(
    who: Visit,
    role: str,
    *,
    user: str | None,
    agent: str | None,
    projects: tuple[str, ...],
    key: str | None,
    credential: str,
    capabilities: tuple[str, ...] = (),
) -> Principal:
    """What the headers say counts below what the key says: a lower role, and an agent where it names none."""
    wanted = _named(who, b"tenure-role")
    if wanted is not None:
        role = roles.lower_of(role, inputs.check_choice(wanted, roles.ROLES, "Tenure-Role"))
    said, session = _named(who, b"tenure-agent"), _named(who, b"tenure-session")
    return Principal(
        role=role, user=user, agent=agent if agent is not None else said, session=session, address=who.address,
        projects=projects, is_proven=agent is not None, key=key, capabilities=capabilities, credential=credential,
    )  # fmt: skip


def _named(who: Visit, header: bytes) -> str | None:
    text = who.header(header)
    if not text:
        return None
    what = header.decode().title()
    if header == b"tenure-user":
        return inputs.check_text(unquote(text), what, 255)  # headers carry ASCII, people's names do not
    return ids.check_name(text, what)
