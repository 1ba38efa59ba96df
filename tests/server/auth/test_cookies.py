"""The dashboard's session: signed in once with a key, good on every server of the store, gone with the key."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
from typing import Any

import pytest

from tenure.core import commands as c
from tenure.core.errors import NotAllowed, NotSignedIn, RateLimited
from tenure.core.records import ApiKey, WebSession
from tenure.server.auth import request_source
from tenure.server.auth.authenticator import Authenticator
from tenure.testing.factories import reading
from tests.server.auth.conftest import Door, scope

PAGE: dict[str, Any] = {
    "peer": "10.0.0.9", "scheme": "https", "host": "tenure.example", "origin": "https://tenure.example",
}  # fmt: skip


def sign_in(door: Door, key: str, **said: Any) -> str:
    """What the browser sends from now on."""
    signed_in = asyncio.run(door.authenticator.sign_in(scope(method="POST", **PAGE | said), key))
    return signed_in.set_cookie.partition(";")[0]


def test_a_key_is_exchanged_for_a_cookie(door: Door) -> None:
    key = door.key("mia", role="member")
    signed_in = asyncio.run(door.authenticator.sign_in(scope(method="POST", **PAGE), f" {key}\n"))
    assert signed_in.principal.role == "member"
    value, *flags = signed_in.set_cookie.split("; ")
    assert set(flags) == {"Path=/", "Max-Age=43200", "HttpOnly", "SameSite=Strict", "Secure"}
    assert value.startswith("__Host-tenure=")
    assert key.split("_")[3] not in signed_in.set_cookie
    who = door.admit(cookie=value, method="POST", **PAGE)
    assert (who.role, who.user, who.key) == ("member", "mia", key.split("_")[2])


def test_other_cookies_beside_ours_do_no_harm(door: Door) -> None:
    cookie = sign_in(door, door.key())
    door.admit(cookie=f'theme={{"dark":true}}; {cookie}; ,;=x', **PAGE)


def test_without_tls_on_loopback_the_cookie_has_another_name(door: Door) -> None:
    here = {"peer": "127.0.0.1", "scheme": "http", "host": "localhost:7420", "origin": "http://localhost:7420"}
    cookie = sign_in(door, door.key(), **here)
    assert cookie.startswith("tenure=")
    door.admit(cookie=cookie, **here)


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
def test_a_write_by_cookie_says_whose_page_it_is(door: Door, method: str) -> None:
    cookie = sign_in(door, door.key())
    said = PAGE | {"cookie": cookie, "method": method}
    door.admit(**said)
    door.admit(**said | {"origin": None, "sec_fetch_site": "same-origin"})
    for refused in ({"origin": None}, {"origin": "https://evil.example"}, {"sec_fetch_site": "cross-site"}):
        with pytest.raises(NotAllowed):
            door.admit(**said | refused)


def test_a_page_is_opened_by_cookie_without_an_origin(door: Door) -> None:
    door.admit(**PAGE | {"cookie": sign_in(door, door.key()), "origin": None})


@pytest.mark.parametrize("ending", ["revoked", "rotated", "expired", "old"])
def test_a_cookie_ends_with_its_key_or_its_time(door: Door, ending: str) -> None:
    key = door.key(expires_in=3600 if ending == "expired" else None)
    cookie = sign_in(door, key)
    id = key.split("_")[2]
    if ending == "revoked":
        door.engine.do(c.RevokeKey(key=id))
        door.pass_time(2)
    elif ending == "rotated":
        door.engine.do(c.RotateKey(key=id, grace=60))
        door.pass_time(2)  # in its grace, which is for programs that are told the new secret meanwhile
    else:
        door.pass_time(3600 if ending == "expired" else request_source.COOKIE_SECONDS)
    with pytest.raises(NotSignedIn):
        door.admit(cookie=cookie, **PAGE)


def test_a_cookie_is_good_on_every_server_of_the_store(door: Door) -> None:
    cookie = sign_in(door, door.key())
    other = Authenticator(door.engine, door.policy)
    asyncio.run(other.authenticate(scope(cookie=cookie, **PAGE)))


def test_reading_the_store_gives_nobody_a_session(door: Door) -> None:
    """What a cookie of an earlier version was signed with, and what the rows keep, opens nothing."""
    key = door.key("owner", role="owner")
    sign_in(door, key)
    with reading(door.engine) as work:
        (row,) = work.find(WebSession, {})
        stored = work.get(ApiKey, "", row.key)
    assert stored is not None
    until = str(row.expires_at // 1_000_000)
    purpose = b"tenure: signed in until\0" + f"{stored.id}.{until}".encode()
    signed = hmac.new(stored.digest, purpose, hashlib.sha256).hexdigest()
    for forged in (f"{stored.id}.{until}.{signed}", row.id, stored.digest.hex(), row.key_digest.hex()):
        with pytest.raises(NotSignedIn):
            door.admit(cookie=f"__Host-tenure={forged}", **PAGE)


def test_a_session_is_random_and_lasts_twelve_hours_at_most(door: Door) -> None:
    key = door.key()
    cookies_ = {sign_in(door, key) for _ in range(3)}
    assert len(cookies_) == 3
    with reading(door.engine) as work:
        rows = work.find(WebSession, {})
    assert {row.expires_at - row.created_at for row in rows} == {12 * 3600 * 1_000_000}
    assert not {cookie.partition("=")[2] for cookie in cookies_} & {row.id for row in rows}


def test_a_key_has_a_bounded_number_of_sessions_and_old_ones_are_cleared(door: Door) -> None:
    key = door.key()
    first = sign_in(door, key)
    door.pass_time(1)
    for _ in range(100):
        sign_in(door, key)
    door.pass_time(2)
    with pytest.raises(NotSignedIn):
        door.admit(cookie=first, **PAGE)
    door.pass_time(request_source.COOKIE_SECONDS)
    sign_in(door, key)
    with reading(door.engine) as work:
        assert len(work.find(WebSession, {})) == 1


def test_logging_out_ends_the_session_on_every_server(door: Door) -> None:
    key = door.key()
    cookie, other = sign_in(door, key), sign_in(door, key)
    elsewhere = Authenticator(door.engine, door.policy, monotonic=lambda: door.seconds)
    asyncio.run(elsewhere.authenticate(scope(cookie=cookie, **PAGE)))
    who = door.admit(cookie=cookie, **PAGE)
    asyncio.run(door.authenticator.sign_out(scope(method="POST", cookie=cookie, **PAGE)))
    with pytest.raises(NotSignedIn, match="session has expired"):
        door.admit(cookie=cookie, **PAGE)
    assert not asyncio.run(door.authenticator.is_still_valid(who))
    door.pass_time(2)
    with pytest.raises(NotSignedIn):
        asyncio.run(elsewhere.authenticate(scope(cookie=cookie, **PAGE)))
    door.admit(cookie=other, **PAGE)


@pytest.mark.parametrize("value", ["x", "..", "x.y.z", "x.1e9.z", "x.٣.z", "x." + "9" * 400 + ".z", "a" * 5000])
def test_nonsense_is_no_cookie(door: Door, value: str) -> None:
    with pytest.raises(NotSignedIn):
        door.admit(cookie=f"__Host-tenure={value}", **PAGE)


def test_signing_in_is_for_our_own_page_and_not_for_guessers(door: Door) -> None:
    key = door.key()
    for said in ({"origin": "https://evil.example"}, {"origin": None}, {"peer": "10.0.0.9", "scheme": "http"}):
        with pytest.raises(NotAllowed):
            sign_in(door, key, **said)
    for _ in range(10):
        with pytest.raises(NotSignedIn):
            sign_in(door, key[:-2])
    with pytest.raises(RateLimited):
        sign_in(door, key[:-2])


def test_signing_out_makes_the_browser_forget(door: Door) -> None:
    cleared = asyncio.run(door.authenticator.sign_out(scope(method="POST", **PAGE)))
    assert cleared.startswith("__Host-tenure=; Path=/; Max-Age=0")
    with pytest.raises(NotAllowed):
        asyncio.run(door.authenticator.sign_out(scope(method="POST", **PAGE | {"origin": "https://evil.example"})))
