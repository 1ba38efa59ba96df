"""The token of a start: on loopback the user who started the server is known by it, and nobody else is let in."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tenure.core.errors import NotSignedIn, RateLimited
from tenure.server.auth import request_source
from tenure.server.auth.policy import Policy
from tests.server.auth.conftest import Door, scope

HERE: dict[str, Any] = {"origin": "http://localhost:7420"}


@pytest.fixture
def here() -> Door:
    """Loopback, and nothing set up."""
    return Door(Policy())


def test_with_the_token_one_is_the_owner(here: Door) -> None:
    assert here.admit(here.token).role == "owner"
    assert here.admit(here.token, tenure_role="agent", tenure_agent="ann").agent == "ann"


@pytest.mark.parametrize("said", [{}, {"authorization": "Bearer tnl_" + "0e" * 32}, {"tenure_role": "viewer"}])
def test_without_it_nobody_is_let_in_on_loopback(here: Door, said: dict[str, str]) -> None:
    with pytest.raises(NotSignedIn, match=r"token|not signed in"):
        here.admit(**said)


def test_the_token_is_good_on_this_host_alone(here: Door) -> None:
    for said in ({"peer": "10.0.0.9", "scheme": "https"}, {"x_forwarded_for": "10.0.0.9"}):
        with pytest.raises(NotSignedIn):
            here.admit(here.token, **said)


def test_a_key_is_taken_too(here: Door) -> None:
    assert here.admit(here.key(role="member")).role == "member"


def test_a_server_for_keys_knows_no_token(door: Door) -> None:
    assert door.token is None
    with pytest.raises(NotSignedIn):
        door.admit("tnl_" + "0f" * 32)


def test_wrong_tokens_do_not_keep_the_right_one_out(here: Door) -> None:
    for number in range(30):
        with pytest.raises((NotSignedIn, RateLimited)):
            here.admit(f"tnl_{number:064x}")
    here.admit(here.token)


def test_the_link_signs_in_to_the_dashboard_until_it_is_left_or_old(here: Door) -> None:
    def signed_in() -> str:
        said = asyncio.run(here.authenticator.sign_in(scope(method="POST", **HERE), str(here.token)))
        assert said.principal.role == "owner"
        return said.set_cookie.partition(";")[0]

    one, other = signed_in(), signed_in()
    who = here.admit(cookie=one, method="POST", **HERE)
    assert who.role == "owner"
    asyncio.run(here.authenticator.sign_out(scope(method="POST", cookie=one, **HERE)))
    assert not asyncio.run(here.authenticator.is_still_valid(who))
    with pytest.raises(NotSignedIn):
        here.admit(cookie=one, **HERE)
    here.admit(cookie=other, **HERE)
    here.pass_time(request_source.COOKIE_SECONDS)
    with pytest.raises(NotSignedIn):
        here.admit(cookie=other, **HERE)
    with pytest.raises(NotSignedIn):
        Door(Policy()).admit(cookie=other, **HERE)  # another start


def test_where_it_is_said_every_user_of_the_machine_is_let_in(open_door: Door) -> None:
    assert open_door.token is None
    assert open_door.admit().role == "owner"
