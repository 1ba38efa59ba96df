"""The gate: a visit becomes a Principal, or is sent away. Nothing of a request is read before it has passed."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar
from urllib.parse import unquote

from tenure.core import ids, inputs, keys, roles
from tenure.core.commands import Principal
from tenure.core.errors import NotAllowed, NotSignedIn, Overloaded
from tenure.core.events import Event
from tenure.core.records import ApiKey
from tenure.engine import Engine
from tenure.server.auth import cookies
from tenure.server.auth.key_ring import KeyRing
from tenure.server.auth.key_sets import Fetch
from tenure.server.auth.looks import MustLook
from tenure.server.auth.origins import check_host, check_origin
from tenure.server.auth.policy import Policy
from tenure.server.auth.tokens import Tokens
from tenure.server.auth.visits import Visit, is_loopback_name, name_in, visit, visit_of
from tenure.server.limits import Buckets, caller_at, limited

FAILURES = 10.0  # to sign in, from one address at once; then one in six seconds
FAILURES_A_SECOND = 1 / 6
TRIES = 5  # of a look whose answer was out of date when it came
_BY_JWT = "jwt:"
_SIGN_IN = "send a key with `Authorization: Bearer KEY`; `tenure key create` makes one"

T = TypeVar("T")
Aside = Callable[[Callable[[], None]], Awaitable[Any]]


class SignedIn(NamedTuple):
    """Somebody who has shown a key to the dashboard, and the header that makes the browser remember it."""

    principal: Principal
    set_cookie: str


class Gate:
    """One for a server process; lives in its event loop. `aside` runs a look in a thread."""

    def __init__(
        self,
        engine: Engine,
        policy: Policy,
        *,
        aside: Aside = asyncio.to_thread,
        fetch: Fetch | None = None,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self.policy = policy
        self.ring = KeyRing(engine, monotonic=monotonic)
        self._tokens = Tokens(policy.jwt, fetch=fetch, monotonic=monotonic) if policy.jwt is not None else None
        self._aside = aside
        self._looks: dict[str, asyncio.Future[Any]] = {}
        self._requests = Buckets(policy.rate, 2 * policy.rate, monotonic=monotonic)
        self._failures = Buckets(FAILURES_A_SECOND, FAILURES, monotonic=monotonic)

    # --- the ways in ---

    async def admit(self, scope: Mapping[str, Any]) -> Principal:
        """Who sends the request of this ASGI scope."""
        who = visit_of(scope, self.policy.proxies)
        return await self._told(lambda: self._passed(who))

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
        """Take a key for the dashboard's cookie."""
        who = visit_of(scope, self.policy.proxies)
        check_host(who, self.policy)
        check_origin(who, is_by_cookie=True)

        def signed_in() -> SignedIn:
            key, now = self._by_key(who, text.strip())
            return SignedIn(_principal_of(key, who), cookies.cookie_of(key, now, who.scheme))

        return await self._told(signed_in)

    def sign_out(self, scope: Mapping[str, Any]) -> str:
        """The value of Set-Cookie that makes the browser forget it."""
        who = visit_of(scope, self.policy.proxies)
        check_host(who, self.policy)
        check_origin(who, is_by_cookie=True)
        return cookies.cleared(who.scheme)

    def hear(self, events: Sequence[Event]) -> None:
        """A listener of the feed: keys that were changed anywhere are read anew."""
        for event in events:
            if event.kind.startswith("key."):
                self.ring.forget(event.details["key"])

    async def is_still_good(self, principal: Principal) -> bool:
        """Whether the key that a long answer was begun for opens yet."""
        if principal.key is None or principal.key.startswith(_BY_JWT):
            return True
        id = principal.key
        try:
            key, now = await self._told(lambda: self.ring.find(id))
        except NotSignedIn:
            return False
        return keys.is_live(key, now)

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

    # --- who it is ---

    def _passed(self, who: Visit) -> Principal:
        check_host(who, self.policy)
        text = who.header(b"authorization")
        if text is not None:
            check_origin(who)
            principal = self._by_header(who, text)
        elif self._is_local(who):
            check_origin(who)
            return _local(who)
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
        if credential.startswith("tnr_"):
            key, _ = self._by_key(who, credential)
            return _principal_of(key, who)
        return self._by_token(who, credential)

    def _by_key(self, who: Visit, text: str) -> tuple[ApiKey, int]:
        _check_private(who)
        given = keys.parse_key(text)
        with self._failing(who, is_known=given is not None and self.ring.is_in_use(given.id)):
            if given is None:
                raise NotSignedIn("this is not spelled like a key", _SIGN_IN)
            key, now = self.ring.find(given.id)
            if not keys.opens(key, given.secret, now):
                raise NotSignedIn(f"key {given.id} is {_fault(key, now)}", _SIGN_IN)
        return key, now

    def _by_token(self, who: Visit, token: str) -> Principal:
        if self._tokens is None:
            raise NotSignedIn("this is not spelled like a key, and tokens are not set up here", _SIGN_IN)
        _check_private(who)
        with self._failing(who, is_known=self._tokens.is_verified(token)):
            claims = self._tokens.read(token)
        return _principal(
            who, claims.role, user=claims.subject, agent=claims.agent, projects=claims.projects,
            key=_BY_JWT + claims.subject,
        )  # fmt: skip

    def _by_cookie(self, who: Visit) -> Principal:
        sent = who.header(b"cookie")
        value = cookies.found_in(sent, who.scheme) if sent else None
        if value is None:
            check_origin(who)
            raise NotSignedIn("nobody is signed in", _SIGN_IN)
        _check_private(who)
        check_origin(who, is_by_cookie=True)
        id = cookies.key_id_in(value)
        with self._failing(who, is_known=id is not None and self.ring.is_in_use(id)):
            if id is None:
                raise NotSignedIn("the session is over", "sign in again")
            key, now = self.ring.find(id)
            if not cookies.is_good(value, key, now):
                raise NotSignedIn("the session is over", "sign in again")
        return _principal_of(key, who)

    def _failing(self, who: Visit, *, is_known: bool) -> _Failing:
        return _Failing(self._failures, caller_at(who.address), is_known=is_known)


class _Failing:
    """Counts failures to sign in by address. Once there were too many, only what was good before is looked at.

    So a guesser is stopped, and others behind the same address, whose keys are in use, are not.
    """

    def __init__(self, failures: Buckets, caller: str, *, is_known: bool) -> None:
        self._failures, self._caller, self._is_known = failures, caller, is_known

    def __enter__(self) -> None:
        if not self._is_known and (wait := self._failures.wait_of(self._caller)) > 0:
            raise limited(wait)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        if not isinstance(error, NotSignedIn):
            return
        if (wait := self._failures.wait_of(self._caller)) > 0:
            raise limited(wait) from None
        self._failures.take(self._caller)


def _restless() -> Overloaded:
    """Each answer was out of date when it came."""
    return Overloaded("keys are changed faster than they can be read", "nothing was done: send it again in a moment")


def _check_private(who: Visit) -> None:
    if not who.is_private:
        raise NotAllowed(
            "keys and tokens are not taken over plain HTTP: whoever listened has it now",
            "use https and rotate the key; a proxy that does TLS is named with serve.trusted_proxy",
        )


def _fault(key: ApiKey, now: int) -> str:
    status = keys.status(key, now)
    return "not this one" if status == "live" else status


def _local(who: Visit) -> Principal:
    return _principal(who, "owner", user=_named(who, b"tenure-user"), agent=None, projects=(), key=None)


def _principal_of(key: ApiKey, who: Visit) -> Principal:
    return _principal(who, key.role, user=key.user, agent=key.agent, projects=key.projects, key=key.id)


def _principal(
    who: Visit, role: str, *, user: str | None, agent: str | None, projects: tuple[str, ...], key: str | None
) -> Principal:
    """What the headers say counts below what the key says: a lower role, and an agent where it names none."""
    wanted = _named(who, b"tenure-role")
    if wanted is not None:
        role = roles.lower_of(role, inputs.check_choice(wanted, roles.ROLES, "Tenure-Role"))
    said, session = _named(who, b"tenure-agent"), _named(who, b"tenure-session")
    return Principal(
        role=role, user=user, agent=agent if agent is not None else said, session=session, address=who.address,
        projects=projects, is_proven=agent is not None, key=key,
    )  # fmt: skip


def _named(who: Visit, header: bytes) -> str | None:
    text = who.header(header)
    if not text:
        return None
    what = header.decode().title()
    if header == b"tenure-user":
        return inputs.check_text(unquote(text), what, 255)  # headers carry ASCII, people's names do not
    return ids.check_name(text, what)
