"""Authenticates a request: it becomes a Principal or is refused. The body is read only after that."""

from __future__ import annotations

import asyncio
import hmac
import os
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterator, Mapping, MutableMapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any, NamedTuple

from tenure.client.local_token import is_local_token
from tenure.core import ids, keys, limits, tenant_limits, tenants
from tenure.core.commands import (
    AddTenant,
    ChangeMember,
    ChangeTenant,
    CloseTenant,
    Command,
    InviteMember,
    Principal,
    RemoveMember,
    ReopenTenant,
    RevokeKey,
    RotateKey,
)
from tenure.core.errors import NotFound, NotSignedIn, Overloaded, StoreError, StoreUnavailable, TenureError
from tenure.core.events import Event
from tenure.core.keys import TOKEN_BYTES, is_good_session, is_of_token, of_token, session_id
from tenure.core.records import ApiKey, Tenant
from tenure.core.roles import owns_deployment
from tenure.core.tenant_records import HOME
from tenure.engine import Engine
from tenure.engine.runtime.tenancy import TenantEngines
from tenure.engine.verbs import web_sessions
from tenure.server.auth import metrics_token
from tenure.server.auth.lookups import AWAY, InThread, Lookups
from tenure.server.auth.policy import Policy
from tenure.server.auth.principals import local_owner, of_key, principal_of
from tenure.server.auth.request_source import (
    COOKIE_SECONDS,
    MOST_SESSIONS,
    NAMED_TENANT,
    RequestSource,
    Session,
    caller_in,
    check_host,
    check_origin,
    check_private,
    cleared,
    cookie_of,
    is_loopback_name,
    name_in,
    sessions_in,
    source_of,
    tenant_named,
)
from tenure.server.auth.row_cache import NeedsLookup, Recall, RowCache, TenantRows, tenant_cache
from tenure.server.auth.tokens import LEEWAY, Claims, Fetch, Tokens
from tenure.server.process_memory import Memory, OwnMemory
from tenure.server.rate_limits import MOST_CALLERS, caller_at, limited

FAILURES = limits.SIGN_IN_TRIES
FAILURES_A_SECOND = 1 / 6
HOW_TO_SIGN_IN = "send a key with `Authorization: Bearer KEY`; create one with `tenure key create`"
_HOW_HERE = (
    "on this machine the token of the server's start is needed: commands of the user who started it send it "
    "automatically; others send a key"
)
BURST = 2.0  # seconds of a tenant's rate that it may use at once
USE_WRITTEN = 60.0  # seconds between two writes of a key's last use
SHOWN = 16  # characters of a secret's digest that name it

AskOthers = Callable[[Mapping[str, Any]], Awaitable[Principal | None]]


class SignedIn(NamedTuple):
    """The principal of a dashboard session, and the header that sets its cookie."""

    principal: Principal
    set_cookie: str


class Authenticator:
    """One for a server process and its store, in its event loop.

    A credential decides the tenant: a key names it, a session is one of its rows, a token names it or is a member's;
    the deployment's owner on this machine may name any. A tenant that is not the caller's is answered like one that
    does not exist, whether it does or not: nothing is looked up in it. While a tenant's own store is unavailable, only
    who was known in it before may learn so; to everybody else it does not exist.

    `read_in_thread` runs lookups in the home tenant's store, `write_in_thread` writes; `apart` runs both elsewhere, so
    that a store of one tenant that hangs delays no other. `token` is the token of this start, on loopback: see
    `local_token`; `user` is the one who has it.
    """

    def __init__(
        self,
        engine: Engine,
        policy: Policy,
        *,
        engines: TenantEngines | None = None,
        read_in_thread: InThread = asyncio.to_thread,
        write_in_thread: InThread = asyncio.to_thread,
        apart: InThread = asyncio.to_thread,
        fetch: Fetch | None = None,
        monotonic: Callable[[], float] = time.monotonic,
        token: str | None = None,
        user: str | None = None,
        memory: Memory | None = None,
    ) -> None:
        """`engine` is the home tenant's, `engines` has those of the others."""
        memory = memory or OwnMemory()
        self.policy = policy
        self._engines = engines or TenantEngines(engine, monotonic)
        self._recall = Recall()
        self._home = TenantRows(engine, monotonic, self._recall)
        self._tenants: OrderedDict[str, TenantRows] = OrderedDict()
        self._tenant_cache = tenant_cache(engine, monotonic, self._recall)
        self.ask_others: AskOthers = _nobody  # what other processes of the server remember
        self._token, self._user, self._monotonic = token, user, monotonic
        self._local_sessions = memory.sessions(monotonic)
        self._tokens = Tokens(policy.jwt, fetch=fetch, monotonic=monotonic) if policy.jwt is not None else None
        self._read_in_thread, self._write_in_thread, self._apart = read_in_thread, write_in_thread, apart
        self._lookups = Lookups(engine, self._recall, read_in_thread, apart, monotonic)
        self._resolved, self._recalled, self._outages = (
            self._lookups.resolved, self._lookups.recalled, self._lookups.outages,
        )  # fmt: skip
        self._requests = memory.buckets("requests", policy.rate, 2 * policy.rate, monotonic)
        # In seconds of a tenant's rate: a request takes its share of one.
        self._of_tenants = memory.buckets("tenants", 1.0, BURST, monotonic)
        self._failures = memory.buckets("sign-ins", FAILURES_A_SECOND, FAILURES, monotonic)
        self._used: OrderedDict[str, float] = OrderedDict()  # keys and members → when their use was last written
        self._use_writes: set[asyncio.Future[Any]] = set()

    # --- entry points ---

    async def authenticate(self, scope: MutableMapping[str, Any]) -> Principal:
        """The principal of this ASGI scope's request. One with a good credential that is refused is in the scope."""
        source = source_of(scope, self.policy.proxies)
        wanted = tenant_named(source, scope.get(NAMED_TENANT))
        with caller_in(scope) as note:
            principal = await self._resolved(lambda: self._authenticated(source, wanted, note))
        if principal.key is not None and not is_of_token(principal.key):
            rows = self._kept(principal.tenant or HOME)
            name = f"{principal.tenant} {principal.key}"
            if rows is not None:
                self._write_later(rows.engine, name, partial(web_sessions.note_use, rows.engine, principal.key))
        return principal

    async def authenticate_watcher(self, scope: MutableMapping[str, Any]) -> Principal:
        """As `authenticate`, for the routes that answer while the store is unavailable.

        The metrics token needs no store. Other credentials are checked as ever; where the store does not answer at
        once, what this process read in the last ten minutes counts, and who it has not seen is refused at once.
        """
        source = source_of(scope, self.policy.proxies)
        if (principal := metrics_token.reader_of(self.policy, source)) is not None:
            return principal
        if not self.is_away(HOME):
            try:
                async with asyncio.timeout(limits.WATCH_WAIT):
                    return await self.authenticate(scope)
            except (TimeoutError, Overloaded):
                self.note_away(HOME, StoreUnavailable("the store does not answer in time"))
            except StoreError:
                pass
        self._lookups.look_at_home()
        try:
            return await self.recall(scope)
        except StoreError:
            found = await self.ask_others(scope)
            if found is None:
                raise
            return found

    async def recall(self, scope: MutableMapping[str, Any]) -> Principal:
        """The principal of the request, as far as this process remembers the credentials."""
        source = source_of(scope, self.policy.proxies)
        wanted = tenant_named(source, scope.get(NAMED_TENANT))
        with caller_in(scope) as note:
            return await self._recalled(lambda: self._authenticated(source, wanted, note))

    def is_owner_here(self, scope: Mapping[str, Any]) -> bool:
        """Whether the deployment's owner asks, as far as this process knows without the store."""
        try:
            source = source_of(scope, self.policy.proxies)
            with self._recall.using():
                who = self._authenticated(source, tenant_named(source, scope.get(NAMED_TENANT)), lambda _: None)
        except (TenureError, NeedsLookup):
            return False
        return owns_deployment(who)

    async def open_store(self, name: str) -> None:
        """Open the tenant's own store, if it is not; StoreUnavailable where it cannot be reached."""
        await self._resolved(lambda: self._rows(name))

    def is_away(self, tenant: str) -> bool:
        return self._outages.of(tenant) is not None

    def note_away(self, tenant: str, error: TenureError) -> None:
        """The tenant's store could not be read: others need not try before it answers again."""
        self._outages.begin(tenant, error)

    async def open_tenant(self, name: str) -> Tenant | None:
        """The row of an open tenant, None for the home tenant; NotFound where there is none of that name."""
        return await self._resolved(lambda: self._open_row(name))

    @property
    def keeps_tenants(self) -> bool:
        """Whether the store can have others beside the home tenant."""
        return self._engines.keeps_tenants

    async def tenants_of(self, scope: Mapping[str, Any], principal: Principal) -> list[str]:
        """The tenants that the caller may name with the same credentials, by name; the home tenant first."""
        found = {principal.tenant or HOME}
        if principal.key is None:  # the deployment's owner, on this machine
            rows = await self._read_in_thread(self._engines.rows)
            found |= {HOME, *(row.id for row in rows[: limits.LISTED_TENANTS])}
        else:
            source = source_of(scope, self.policy.proxies)
            for one in sessions_in(source.header(b"cookie"), source.scheme):
                with suppress(TenureError):  # unknown, closed, unavailable: it cannot be opened now
                    if await self._resolved(partial(self._is_open_session, one)):
                        found.add(one.tenant)
        return sorted(found, key=lambda name: (name != HOME, name))

    def _is_open_session(self, one: Session) -> bool:
        self._open_row(one.tenant)
        return self._key_of_session(self._rows(one.tenant), session_id(one.token) or "") is not None

    async def sign_in(self, scope: Mapping[str, Any], text: str) -> SignedIn:
        """Exchange a key, or the token of this start, for the dashboard's cookie."""
        source = source_of(scope, self.policy.proxies)
        check_host(source, self.policy)
        check_origin(source, is_by_cookie=True)
        text, token = text.strip(), os.urandom(TOKEN_BYTES).hex()
        wanted = tenant_named(source, scope.get(NAMED_TENANT))
        if is_local_token(text):
            principal = self._by_local_token(source, text, wanted or HOME)
            await self._resolved(lambda: self._open_row(wanted or HOME))
            id = session_id(token)
            assert id is not None
            self._local_sessions.begin(id, COOKIE_SECONDS)
            return SignedIn(principal, self._cookie(source, HOME, token))
        tenant, key = await self._resolved(lambda: self._by_key(source, text))
        await self._resolved(lambda: self._check_wanted(tenant, wanted))
        given = keys.parse_key(text)
        assert given is not None
        engine = (await self._resolved(partial(self._rows, tenant))).engine
        await self._writing(engine)(partial(web_sessions.begin, engine, token, key.id, given.secret))
        return SignedIn(of_key(key, source, tenant, ""), self._cookie(source, tenant, token))

    @staticmethod
    def _cookie(source: RequestSource, tenant: str, token: str) -> str:
        """The cookie with one more session; that of the same tenant is replaced."""
        others = [one for one in sessions_in(source.header(b"cookie"), source.scheme) if one.tenant != tenant]
        return cookie_of([Session(tenant, token), *others[: MOST_SESSIONS - 1]], source.scheme)

    async def sign_out(self, scope: Mapping[str, Any]) -> str:
        """End all sessions of the cookie on every server; returns the value of Set-Cookie that removes it."""
        source = source_of(scope, self.policy.proxies)
        check_host(source, self.policy)
        check_origin(source, is_by_cookie=True)
        for tenant, token in sessions_in(source.header(b"cookie"), source.scheme):
            id = session_id(token) or ""
            if not self._local_sessions.end(id):
                await self._resolved(partial(self._check_home, self._home.sessions, id))
                with suppress(NotFound):
                    rows = await self._resolved(partial(self._rows_of_session, tenant, id))
                    await self._writing(rows.engine)(partial(web_sessions.end, rows.engine, id))
                    rows.sessions.forget(id)
        return cleared(source.scheme)

    def observe(self, command: Command, principal: Principal, answer: object, seconds: float) -> None:
        """An observer of the service: a key that changed here is read again at once; other servers hear of it."""
        rows = self._kept(principal.tenant or HOME)
        if rows is not None and isinstance(command, (RotateKey, RevokeKey)):
            rows.keys.forget(command.key)
        elif rows is not None and isinstance(command, (InviteMember, ChangeMember, RemoveMember)):
            rows.members.forget(command.user)
        elif isinstance(command, (ChangeTenant, CloseTenant, ReopenTenant, AddTenant)):
            self._tenant_cache.forget(command.tenant)

    def hear(self, tenant: str, events: Sequence[Event]) -> None:
        """A listener of the tenant's feed: keys and members that changed are read again."""
        rows = self._kept(tenant)
        for event in events:
            if rows is not None and event.kind.startswith("key."):
                rows.keys.forget(event.details["key"])
            elif rows is not None and event.kind.startswith("member."):
                rows.members.forget(event.details["member"])
            elif tenant == HOME and event.kind.startswith("tenant."):
                self._tenant_cache.forget(event.details["tenant"])

    async def is_still_valid(self, principal: Principal) -> bool:
        """Whether the principal of a long response would still be authenticated."""
        try:
            return await self._resolved(lambda: self._is_valid(principal))
        except (NotSignedIn, NotFound):
            return False

    def _is_valid(self, principal: Principal) -> bool:
        tenant = principal.tenant or HOME
        self._open_row(tenant)
        rows = self._rows(tenant)
        kind, _, shown = principal.credential.partition(":")
        if kind in ("jwt", "member"):
            member = rows.member(principal.user or "")
            is_lost = (
                kind == "member" if member is None else not tenants.covers(member, principal.role, principal.projects)
            )
            return not is_lost and time.time() < float(shown) + LEEWAY
        if kind == "here":
            return self._local_sessions.is_open(shown)
        if kind == "web":
            return self._key_of_session(rows, shown) is not None
        if kind == "secret" and principal.key is not None:
            key, now = rows.keys.find(principal.key)
            return any(digest.hex().startswith(shown) for digest in keys.digests_at(key, now))
        return True

    def _writing(self, engine: Engine) -> InThread:
        return self._write_in_thread if engine.store is self._home.engine.store else self._apart

    def _write_later(self, engine: Engine, name: str, write: Callable[[], object]) -> None:
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
                await self._writing(engine)(write)

        written = asyncio.ensure_future(note())
        self._use_writes.add(written)
        written.add_done_callback(self._use_writes.discard)

    # --- tenants ---

    def _row(self, name: str) -> Tenant | None:
        """The tenant's row, open or closed; None where there is none of that name, and for the home tenant."""
        if not ids.is_tenant(name):
            return None
        try:
            return self._tenant_cache.find(name)[0]
        except NotSignedIn:
            return None

    def _open_row(self, name: str) -> Tenant | None:
        """As `_row`, of an open tenant: a closed one is unknown, also to its own."""
        if name == HOME:
            return None
        row = self._row(name) if self._engines.keeps_tenants else None
        if row is None or not tenants.is_open(row):
            raise tenants.unknown(name)
        return row

    def _present_row(self, row: Tenant) -> Tenant:
        """As the home store has it: a tenant that has moved meanwhile has left the store of a row from before."""
        found = self._home.engine.read(lambda tx: tx.load(Tenant, [(row.project, row.id)]))
        return found[0] if found else row

    def _rows(self, tenant: str) -> TenantRows:
        """What the tenant keeps of its sign-ins.

        NotFound where no open tenant has that name, and one of `AWAY` at once while its own store cannot be read.
        """
        if tenant == HOME:
            return self._home
        row = self._open_row(tenant)
        assert row is not None  # only the home tenant has none
        if (away := self._outages.of(tenant)) is not None:
            self._lookups.look_again(tenant, lambda: self._engines.of(self._present_row(row)))
            if not self._recall.is_on:
                raise away
        if not self._engines.is_at_hand(row):
            raise NeedsLookup(f"{tenant} store", partial(self._engines.of, row), tenant=tenant)
        found = self._tenants.get(tenant)
        if found is None or found.engine is not self._engines.of(row):
            found = self._tenants[tenant] = TenantRows(self._engines.of(row), self._monotonic, self._recall)
            while len(self._tenants) > limits.TENANT_ENGINES:
                self._tenants.popitem(last=False)
        self._tenants.move_to_end(tenant)
        return found

    def _check_home(self, rows: RowCache[Any], id: str) -> None:
        """Before a refusal, whatever tenant was named: one of `AWAY` where the home store cannot be read.

        Some names are known without it for a moment; without this they would be refused while others cannot be found.
        """
        with suppress(NotSignedIn):
            rows.find(id)
        self._lookups.check_home()

    def _rows_of_session(self, tenant: str, id: str) -> TenantRows:
        """As `_rows`. While its store is unavailable, a tenant exists only for a session that was open here before."""
        try:
            return self._rows(tenant)
        except AWAY:
            kept = self._kept(tenant)
            if kept is None or kept.sessions.last(id) is None:
                raise tenants.unknown(tenant) from None
            raise

    def _rows_of_member(self, tenant: str, claims: Claims) -> TenantRows:
        """As `_rows_of_session`, for the bearer of a token that does not name the tenant."""
        try:
            return self._rows(tenant)
        except AWAY:
            kept = self._kept(tenant)
            if tenant in (claims.tenants or ()) or (kept is not None and kept.members.last(claims.subject) is not None):
                raise
            raise tenants.unknown(tenant) from None

    def _kept(self, tenant: str) -> TenantRows | None:
        """The cached rows of the tenant, without a lookup; None: there are none."""
        return self._home if tenant == HOME else self._tenants.get(tenant)

    def _check_wanted(self, tenant: str, wanted: str | None) -> None:
        """Refuse a caller who is known here and asks for another tenant: there is none for them."""
        if wanted not in (None, tenant):
            raise tenants.unknown(wanted or "")
        self._open_row(tenant)

    # --- credentials ---

    def _authenticated(self, source: RequestSource, wanted: str | None, note: Callable[[Principal], None]) -> Principal:
        """`note` hears whose credential it is, also where the caller is refused then."""
        check_host(source, self.policy)
        text = source.header(b"authorization")
        if text is not None:
            check_origin(source)
            principal = self._by_header(source, text, wanted, note)
        elif self._is_local(source) and self._token is None:
            check_origin(source)
            self._open_row(wanted or HOME)
            return local_owner(source, wanted or HOME, "")
        else:
            principal = self._by_cookie(source, wanted)
        note(principal)
        tenant = principal.tenant or HOME
        self._requests.take("" if principal.key is None else f"{tenant} {principal.key}")
        self._check_wanted(tenant, wanted)
        row = self._open_row(tenant)
        if row is not None:
            self._of_tenants.take(tenant, 1 / tenant_limits.of_tenant(row)[tenant_limits.RATE])
        return principal

    def _is_local(self, source: RequestSource) -> bool:
        return self.policy.is_open and source.is_local and is_loopback_name(name_in(source.host))

    def _by_header(
        self, source: RequestSource, text: str, wanted: str | None, note: Callable[[Principal], None]
    ) -> Principal:
        scheme, _, credential = text.partition(" ")
        credential = credential.strip()
        if scheme.lower() != "bearer" or not credential:
            raise NotSignedIn("the header Authorization must be `Bearer` and a key or token", HOW_TO_SIGN_IN)
        if is_local_token(credential):
            return self._by_local_token(source, credential, wanted or HOME)
        if credential.startswith("tnr_"):
            tenant, key = self._by_key(source, credential)
            given = keys.parse_key(credential)
            assert given is not None
            return of_key(key, source, tenant, f"secret:{keys.digest_of(given.secret).hex()[:SHOWN]}")
        return self._by_token(source, credential, wanted, note)

    def _by_local_token(self, source: RequestSource, text: str, tenant: str) -> Principal:
        with self._counted(source, "the token of this start"):
            is_ours = self._token is not None and hmac.compare_digest(text, self._token)
            if not is_ours or not self._is_local(source):
                raise NotSignedIn("the token is not the token of this server's start", _HOW_HERE)
        return local_owner(source, tenant, "", self._user)

    def _by_key(self, source: RequestSource, text: str) -> tuple[str, ApiKey]:
        """The tenant that the key names, and its row there."""
        check_private(source)
        given = keys.parse_key(text)
        with self._counted(source, f"{given.tenant} {given.id}" if given is not None else "no key"):
            if given is None:
                raise NotSignedIn("malformed API key", HOW_TO_SIGN_IN)
            try:
                rows = self._rows(given.tenant)
            except NotFound:
                rows = None
            except AWAY:
                if self._opened_before(given):
                    raise
                rows = None
            try:
                # Of a tenant that does not exist: the same read as of one that does, so that both take as long.
                key, now = (rows or self._home).keys.find(given.id)
            except NotSignedIn:
                key, now = None, 0
            if rows is None or key is None or not keys.opens(key, given.secret, 0):
                self._check_home(self._home.keys, given.id)
                raise _not_accepted()
            if not keys.opens(key, given.secret, now):  # expired, which its holder may learn
                raise _not_accepted()
        return given.tenant, key

    def _opened_before(self, given: keys.Given) -> bool:
        """Whether the key was good when its row was last read here."""
        kept = self._kept(given.tenant)
        row = None if kept is None else kept.keys.last(given.id)
        return row is not None and keys.opens(row, given.secret, 0)

    def _by_token(
        self, source: RequestSource, token: str, wanted: str | None, note: Callable[[Principal], None]
    ) -> Principal:
        if self._tokens is None:
            raise NotSignedIn("malformed API key, and JWTs are not configured on this server", HOW_TO_SIGN_IN)
        check_private(source)
        with self._counted(source, "jwt"):
            claims = self._tokens.read(token)
        note(Principal(role="", user=claims.subject, agent=claims.agent, key=of_token(claims.subject)))
        tenant = wanted if wanted is not None else tenants.meant(claims.tenants)
        try:
            rows = self._rows_of_member(tenant, claims)
            member = rows.member(claims.subject)
            reach = tenants.reach_of_token(tenant, claims.tenants, claims.role, claims.projects, member)
        except NotFound:
            self._check_home(self._home.members, claims.subject)
            raise
        if reach.role is None:
            raise self._tokens.no_role()
        if member is not None and member.joined_at is None:
            name = f"{tenant} member {member.id}"
            self._write_later(rows.engine, name, partial(web_sessions.note_join, rows.engine, member.id))
        credential = f"{'member' if reach.is_by_membership else 'jwt'}:{claims.expires}"
        who = (reach.role, claims.subject, claims.agent, reach.projects, of_token(claims.subject), claims.capabilities)
        return principal_of(source, tenant, credential, *who)

    def _by_cookie(self, source: RequestSource, wanted: str | None) -> Principal:
        """By the session of the tenant that the request names; else by the first, whose tenant it is then in."""
        sessions = sessions_in(source.header(b"cookie"), source.scheme)
        if not sessions:
            check_origin(source)
            raise NotSignedIn("not signed in", _HOW_HERE if self._is_local(source) else HOW_TO_SIGN_IN)
        check_private(source)
        check_origin(source, is_by_cookie=True)
        if self._is_local(source):
            for one in sessions:
                id = session_id(one.token) or ""
                if self._local_sessions.is_open(id):
                    return local_owner(source, wanted or HOME, f"here:{id}", self._user)
        tenant, token = next((one for one in sessions if one.tenant == wanted), sessions[0])
        id = session_id(token) or ""
        with self._counted(source, "cookie"):
            try:
                key = self._key_of_session(self._rows_of_session(tenant, id), id)
            except NotFound:
                key = None
            if key is None:
                self._check_home(self._home.sessions, id)
                raise NotSignedIn("the session has expired", "sign in again")
        return of_key(key, source, tenant, f"web:{id}")

    @staticmethod
    def _key_of_session(rows: TenantRows, id: str) -> ApiKey | None:
        """The key of a web session that is valid now."""
        try:
            session, now = rows.sessions.find(id)
            key, _ = rows.keys.find(session.key)
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


async def _nobody(_: Mapping[str, Any]) -> Principal | None:
    return None


def _not_accepted() -> NotSignedIn:
    """One error for unknown, revoked, expired and wrong keys: a guesser learns nothing about a key."""
    return NotSignedIn("the key is not accepted", HOW_TO_SIGN_IN)
