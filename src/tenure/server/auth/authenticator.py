"""Authenticates a request: it becomes a Principal or is refused. The body is read only after that."""

from __future__ import annotations

import asyncio
import hmac
import os
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any, NamedTuple, TypeVar
from urllib.parse import unquote

from tenure.client.local_token import is_local_token
from tenure.core import ids, inputs, keys, limits, roles, tenants
from tenure.core.commands import ChangeMember, Command, InviteMember, Principal, RemoveMember, RevokeKey, RotateKey
from tenure.core.errors import NotAllowed, NotFound, NotSignedIn, Overloaded, TenureError
from tenure.core.events import Event
from tenure.core.keys import TOKEN_BYTES, is_good_session, session_id
from tenure.core.records import ApiKey, Member
from tenure.core.tenant_records import HOME
from tenure.engine import Context, Engine
from tenure.engine.verbs import web_sessions
from tenure.server.auth.policy import Policy
from tenure.server.auth.request_source import (
    COOKIE_SECONDS,
    NAMED_TENANT,
    RequestSource,
    check_host,
    check_origin,
    cleared,
    cookie_of,
    found_in,
    is_loopback_name,
    name_in,
    source_of,
    tenant_named,
)
from tenure.server.auth.row_cache import NeedsLookup, key_cache, member_cache, session_cache, tenant_cache
from tenure.server.auth.tokens import LEEWAY, Fetch, Tokens
from tenure.server.process_memory import Memory, OwnMemory
from tenure.server.rate_limits import MOST_CALLERS, caller_at, limited

FAILURES = limits.SIGN_IN_TRIES
FAILURES_A_SECOND = 1 / 6
TRIES = 5  # lookups in a row whose result was outdated on arrival
_BY_JWT = "jwt:"
_HOW_TO_SIGN_IN = "send a key with `Authorization: Bearer KEY`; create one with `tenure key create`"
_HOW_HERE = (
    "on this machine the token of the server's start is needed: commands of the user who started it send it "
    "automatically; others send a key"
)
USE_WRITTEN = 60.0  # seconds between two writes of a key's last use
SHOWN = 16  # characters of a secret's digest that name it

T = TypeVar("T")
InThread = Callable[[Callable[[], object]], Awaitable[Any]]


class SignedIn(NamedTuple):
    """The principal of a dashboard session, and the header that sets its cookie."""

    principal: Principal
    set_cookie: str


class Authenticator:
    """One for a server process and its tenant, in its event loop.

    A credential decides the tenant: a key names it, a session is one of its rows, a token names it or is a member's. A
    tenant that is not the caller's is answered like one that does not exist, whether it does or not: nothing is looked
    up in it.

    `read_in_thread` runs lookups, `write_in_thread` writes. `token` is the token of this start, on loopback: see
    `local_token`.
    """

    def __init__(
        self,
        engine: Engine,
        policy: Policy,
        *,
        read_in_thread: InThread = asyncio.to_thread,
        write_in_thread: InThread = asyncio.to_thread,
        fetch: Fetch | None = None,
        monotonic: Callable[[], float] = time.monotonic,
        token: str | None = None,
        memory: Memory | None = None,
    ) -> None:
        memory = memory or OwnMemory()
        self.policy = policy
        self.key_cache = key_cache(engine, monotonic)
        self.session_cache = session_cache(engine, monotonic)
        self.member_cache = member_cache(engine, monotonic)
        self.tenant = engine.tenant
        home = Engine(engine.store, engine.random, Context()) if self.tenant != HOME else None
        self._tenant_cache = tenant_cache(home, monotonic) if home is not None else None
        self._engine, self._token, self._monotonic = engine, token, monotonic
        self._local_sessions = memory.sessions(monotonic)
        self._tokens = Tokens(policy.jwt, fetch=fetch, monotonic=monotonic) if policy.jwt is not None else None
        self._read_in_thread, self._write_in_thread = read_in_thread, write_in_thread
        self._lookups: dict[str, asyncio.Future[Any]] = {}
        self._requests = memory.buckets("requests", policy.rate, 2 * policy.rate, monotonic)
        self._failures = memory.buckets("sign-ins", FAILURES_A_SECOND, FAILURES, monotonic)
        self._used: OrderedDict[str, float] = OrderedDict()  # keys and members → when their use was last written
        self._use_writes: set[asyncio.Future[Any]] = set()

    # --- entry points ---

    async def authenticate(self, scope: Mapping[str, Any]) -> Principal:
        """The principal of this ASGI scope's request."""
        source, named = source_of(scope, self.policy.proxies), scope.get(NAMED_TENANT)
        principal = await self._resolved(lambda: self._authenticated(source, named))
        if principal.key is not None and not principal.key.startswith(_BY_JWT):
            self._write_later(principal.key, partial(web_sessions.note_use, self._engine, principal.key))
        return principal

    async def sign_in(self, scope: Mapping[str, Any], text: str) -> SignedIn:
        """Exchange a key, or the token of this start, for the dashboard's cookie."""
        source = source_of(scope, self.policy.proxies)
        check_host(source, self.policy)
        check_origin(source, is_by_cookie=True)
        text, token = text.strip(), os.urandom(TOKEN_BYTES).hex()
        named = scope.get(NAMED_TENANT)
        if is_local_token(text):
            principal = self._by_local_token(source, text)
            await self._resolved(lambda: self._check_tenant(source, named))
            id = session_id(token)
            assert id is not None
            self._local_sessions.begin(id, COOKIE_SECONDS)
            return SignedIn(principal, cookie_of(token, source.scheme))
        key, _ = await self._resolved(lambda: self._by_key(source, text))
        await self._resolved(lambda: self._check_tenant(source, named))
        given = keys.parse_key(text)
        assert given is not None
        await self._write_in_thread(partial(web_sessions.begin, self._engine, token, key.id, given.secret))
        return SignedIn(_principal_of(key, source, ""), cookie_of(token, source.scheme))

    async def sign_out(self, scope: Mapping[str, Any]) -> str:
        """End the session on every server; returns the value of Set-Cookie that removes the cookie."""
        source = source_of(scope, self.policy.proxies)
        check_host(source, self.policy)
        check_origin(source, is_by_cookie=True)
        id = _session_in(source)
        if id is not None and not self._local_sessions.end(id):
            await self._write_in_thread(partial(web_sessions.end, self._engine, id))
            self.session_cache.forget(id)
        return cleared(source.scheme)

    def observe(self, command: Command, principal: Principal, answer: object, seconds: float) -> None:
        """An observer of the service: a key that changed here is read again at once; other servers hear of it."""
        if isinstance(command, (RotateKey, RevokeKey)):
            self.key_cache.forget(command.key)
        elif isinstance(command, (InviteMember, ChangeMember, RemoveMember)):
            self.member_cache.forget(command.user)

    def hear(self, events: Sequence[Event]) -> None:
        """A listener of the feed: keys and members that changed are read again."""
        for event in events:
            if event.kind.startswith("key."):
                self.key_cache.forget(event.details["key"])
            elif event.kind.startswith("member."):
                self.member_cache.forget(event.details["member"])

    async def is_still_valid(self, principal: Principal) -> bool:
        """Whether the principal of a long response would still be authenticated."""
        try:
            return await self._resolved(lambda: self._is_valid(principal))
        except (NotSignedIn, NotFound):
            return False

    def _is_valid(self, principal: Principal) -> bool:
        self._check_open()
        kind, _, shown = principal.credential.partition(":")
        if kind in ("jwt", "member"):
            member = self._member(principal.user or "")
            is_lost = (
                kind == "member" if member is None else not tenants.covers(member, principal.role, principal.projects)
            )
            return not is_lost and time.time() < float(shown) + LEEWAY
        if kind == "here":
            return self._local_sessions.is_open(shown)
        if kind == "web":
            return self._is_session(shown) is not None
        if kind == "secret" and principal.key is not None:
            key, now = self.key_cache.find(principal.key)
            return any(digest.hex().startswith(shown) for digest in keys.digests_at(key, now))
        return True

    async def _resolved(self, ask: Callable[[], T]) -> T:
        """The result of `ask`, after the lookups that it needs. A lookup that many wait for runs once."""
        for _ in range(TRIES):
            try:
                return ask()
            except NeedsLookup as lookup:
                running = self._lookups.get(lookup.name)
                if running is None:
                    running = self._lookups[lookup.name] = asyncio.ensure_future(self._read_in_thread(lookup.run))
                    running.add_done_callback(lambda _, name=lookup.name: self._lookups.pop(name, None))  # type: ignore[misc]
                await asyncio.shield(running)
        # Each lookup was outdated on arrival.
        raise Overloaded("keys change faster than they can be read", "nothing was done; send it again in a moment")

    def _write_later(self, name: str, write: Callable[[], object]) -> None:
        """Write the use of a key or a member's first sign-in, at most once a minute; the request does not wait."""
        now = self._monotonic()
        if now - self._used.get(name, -USE_WRITTEN) < USE_WRITTEN:
            return
        self._used[name] = now
        self._used.move_to_end(name)
        if len(self._used) > MOST_CALLERS:
            self._used.popitem(last=False)

        async def note() -> None:
            with suppress(TenureError):  # unavailable, overloaded or closing: the next use is written
                await self._write_in_thread(write)

        written = asyncio.ensure_future(note())
        self._use_writes.add(written)
        written.add_done_callback(self._use_writes.discard)

    # --- credentials ---

    def _authenticated(self, source: RequestSource, named: str | None) -> Principal:
        check_host(source, self.policy)
        text = source.header(b"authorization")
        if text is not None:
            check_origin(source)
            principal = self._by_header(source, text, named)
        elif self._is_local(source) and self._token is None:
            check_origin(source)
            self._check_tenant(source, named)
            return _local(source, "")
        else:
            principal = self._by_cookie(source)
        self._requests.take(principal.key or "")
        self._check_tenant(source, named)
        return principal

    def _check_tenant(self, source: RequestSource, named: str | None) -> None:
        """Refuse a caller who is known here and asks for another tenant: there is none for them."""
        wanted = tenant_named(source, named)
        if wanted not in (None, self.tenant):
            raise tenants.unknown(wanted or "")
        self._check_open()

    def _check_open(self) -> None:
        """A closed tenant is unknown, also to its own."""
        if self._tenant_cache is None:
            return
        try:
            row, _ = self._tenant_cache.find(self.tenant)
        except NotSignedIn:
            raise tenants.unknown(self.tenant) from None
        if not tenants.is_open(row):
            raise tenants.unknown(self.tenant)

    def _is_local(self, source: RequestSource) -> bool:
        return self.policy.is_open and source.is_local and is_loopback_name(name_in(source.host))

    def _by_header(self, source: RequestSource, text: str, named: str | None) -> Principal:
        scheme, _, credential = text.partition(" ")
        credential = credential.strip()
        if scheme.lower() != "bearer" or not credential:
            raise NotSignedIn("the header Authorization must be `Bearer` and a key or token", _HOW_TO_SIGN_IN)
        if is_local_token(credential):
            return self._by_local_token(source, credential)
        if credential.startswith("tnr_"):
            key, _ = self._by_key(source, credential)
            given = keys.parse_key(credential)
            assert given is not None
            return _principal_of(key, source, f"secret:{keys.digest_of(given.secret).hex()[:SHOWN]}")
        return self._by_token(source, credential, named)

    def _by_local_token(self, source: RequestSource, text: str) -> Principal:
        with self._counted(source, "the token of this start"):
            is_ours = self._token is not None and hmac.compare_digest(text, self._token)
            if not is_ours or not self._is_local(source):
                raise NotSignedIn("the token is not the token of this server's start", _HOW_HERE)
        return _local(source, "")

    def _by_key(self, source: RequestSource, text: str) -> tuple[ApiKey, int]:
        _check_private(source)
        given = keys.parse_key(text)
        with self._counted(source, given.id if given is not None else "no key"):
            if given is None:
                raise NotSignedIn("malformed API key", _HOW_TO_SIGN_IN)
            if given.tenant != self.tenant:
                raise _not_accepted()
            try:
                key, now = self.key_cache.find(given.id)
            except NotSignedIn:
                raise _not_accepted() from None
            if not keys.opens(key, given.secret, now):
                raise _not_accepted()
        return key, now

    def _by_token(self, source: RequestSource, token: str, named: str | None) -> Principal:
        if self._tokens is None:
            raise NotSignedIn("malformed API key, and JWTs are not configured on this server", _HOW_TO_SIGN_IN)
        _check_private(source)
        with self._counted(source, "jwt"):
            claims = self._tokens.read(token)
        self._check_tenant(source, named)
        member = self._member(claims.subject)
        reach = tenants.reach_of_token(self.tenant, claims.tenants, claims.role, claims.projects, member)
        if reach.role is None:
            raise self._tokens.no_role()
        if member is not None and member.joined_at is None:
            self._write_later(f"member {member.id}", partial(web_sessions.note_join, self._engine, member.id))
        credential = f"{'member' if reach.is_by_membership else 'jwt'}:{claims.expires}"
        who = (reach.role, claims.subject, claims.agent, reach.projects, _BY_JWT + claims.subject, claims.capabilities)
        return _principal(source, credential, *who)

    def _member(self, user: str) -> Member | None:
        try:
            return self.member_cache.find(user)[0]
        except NotSignedIn:
            return None

    def _by_cookie(self, source: RequestSource) -> Principal:
        id = _session_in(source)
        if id is None:
            check_origin(source)
            raise NotSignedIn("not signed in", _HOW_HERE if self._is_local(source) else _HOW_TO_SIGN_IN)
        _check_private(source)
        check_origin(source, is_by_cookie=True)
        if self._local_sessions.is_open(id) and self._is_local(source):
            return _local(source, f"here:{id}")
        with self._counted(source, "cookie"):
            key = self._is_session(id)
            if key is None:
                raise NotSignedIn("the session has expired", "sign in again")
        return _principal_of(key, source, f"web:{id}")

    def _is_session(self, id: str) -> ApiKey | None:
        """The key of a web session that is valid now."""
        try:
            session, now = self.session_cache.find(id)
            key, _ = self.key_cache.find(session.key)
        except NotSignedIn:
            return None
        return key if is_good_session(session, key, now) else None

    @contextmanager
    def _counted(self, source: RequestSource, credential: str) -> Iterator[None]:
        """Count failures by address and credential, after the check: a valid credential is never refused for others."""
        try:
            yield
        except NotSignedIn:
            name = f"{caller_at(source.address)} {credential}"
            if (wait := self._failures.wait_of(name)) > 0:
                raise limited(wait) from None
            self._failures.take(name)
            raise


def _check_private(source: RequestSource) -> None:
    if not source.is_private:
        raise NotAllowed(
            "keys and tokens are not accepted over plain HTTP: others may have read this one",
            "use https and rotate the key; set serve.trusted_proxy to a proxy that terminates TLS",
        )


def _not_accepted() -> NotSignedIn:
    """One error for unknown, revoked, expired and wrong keys: a guesser learns nothing about a key."""
    return NotSignedIn("the key is not accepted", _HOW_TO_SIGN_IN)


def _session_in(source: RequestSource) -> str | None:
    token = found_in(source.header(b"cookie"), source.scheme)
    return None if token is None else session_id(token) or ""


def _local(source: RequestSource, credential: str) -> Principal:
    return _principal(source, credential, "owner", _named(source, b"tenure-user"))


def _principal_of(key: ApiKey, source: RequestSource, credential: str) -> Principal:
    return _principal(source, credential, key.role, key.user, key.agent, key.projects, key.id, key.capabilities)


def _principal(
    source: RequestSource,
    credential: str,
    role: str,
    user: str | None,
    agent: str | None = None,
    projects: tuple[str, ...] = (),
    key: str | None = None,
    capabilities: tuple[str, ...] = (),
) -> Principal:
    """Headers may lower the role, and name an agent if the key names none."""
    wanted = _named(source, b"tenure-role")
    if wanted is not None:
        role = roles.lower_of(role, inputs.check_choice(wanted, roles.ROLES, "Tenure-Role"))
    named, session = _named(source, b"tenure-agent"), _named(source, b"tenure-session")
    return Principal(
        role=role,
        user=user,
        agent=agent if agent is not None else named,
        session=session,
        address=source.address,
        projects=projects,
        is_proven=agent is not None,
        key=key,
        capabilities=capabilities,
        credential=credential,
    )


def _named(source: RequestSource, header: bytes) -> str | None:
    text = source.header(header)
    if not text:
        return None
    what = header.decode().title()
    if header == b"tenure-user":
        return inputs.check_text(unquote(text), what, 255)  # headers are ASCII, names of people are not
    return ids.check_name(text, what)
