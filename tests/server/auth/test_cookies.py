"""The dashboard's cookie: signed in once with a key, good on every server of the store, gone with the key."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tenure.core import commands as c
from tenure.core.errors import NotAllowed, NotSignedIn, RateLimited
from tenure.server.auth import cookies
from tenure.server.auth.gate import Gate
from tests.server.auth.conftest import Door, scope

PAGE: dict[str, Any] = {
    "peer": "10.0.0.9", "scheme": "https", "host": "tenure.example", "origin": "https://tenure.example",
}  # fmt: skip


def sign_in(door: Door, key: str, **said: Any) -> str:
    """What the browser sends from now on."""
    signed_in = asyncio.run(door.gate.sign_in(scope(method="POST", **PAGE | said), key))
    return signed_in.set_cookie.partition(";")[0]


def test_a_key_is_exchanged_for_a_cookie(door: Door) -> None:
    key = door.key("mia", role="member")
    signed_in = asyncio.run(door.gate.sign_in(scope(method="POST", **PAGE), f" {key}\n"))
    assert signed_in.principal.role == "member"
    value, *flags = signed_in.set_cookie.split("; ")
    assert set(flags) == {"Path=/", "Max-Age=43200", "HttpOnly", "SameSite=Strict", "Secure"}
    assert value.startswith("__Host-tenure=")
    assert key.split("_")[2] not in signed_in.set_cookie
    who = door.admit(cookie=value, method="POST", **PAGE)
    assert (who.role, who.user, who.key) == ("member", "mia", key.split("_")[1])


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
    id = key.split("_")[1]
    if ending == "revoked":
        door.engine.do(c.RevokeKey(key=id))
        door.pass_time(2)
    elif ending == "rotated":
        door.engine.do(c.RotateKey(key=id, grace=60))
        door.pass_time(2)
        door.admit(cookie=cookie, **PAGE)  # in its grace
        door.pass_time(60)
    else:
        door.pass_time(3600 if ending == "expired" else cookies.LIFETIME)
    with pytest.raises(NotSignedIn):
        door.admit(cookie=cookie, **PAGE)


def test_a_cookie_is_good_on_every_server_of_the_store(door: Door) -> None:
    cookie = sign_in(door, door.key())
    other = Gate(door.engine, door.policy)
    asyncio.run(other.admit(scope(cookie=cookie, **PAGE)))


@pytest.mark.parametrize("part", [0, 1, 2])
def test_no_part_of_a_cookie_can_be_changed(door: Door, part: int) -> None:
    name, _, value = sign_in(door, door.key("one", role="viewer")).partition("=")
    theirs = door.key("other", role="owner").split("_")[1]
    parts = value.split(".")
    parts[part] = [theirs, str(int(parts[1]) + 1), "0" * 64][part]
    with pytest.raises(NotSignedIn):
        door.admit(cookie=f"{name}={'.'.join(parts)}", **PAGE)


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
    cleared = door.gate.sign_out(scope(method="POST", **PAGE))
    assert cleared.startswith("__Host-tenure=; Path=/; Max-Age=0")
    with pytest.raises(NotAllowed):
        door.gate.sign_out(scope(method="POST", **PAGE | {"origin": "https://evil.example"}))
