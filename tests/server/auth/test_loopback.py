"""Loopback without signing in: for programs of this host, never for web pages of strangers."""

from __future__ import annotations

from typing import Any

import pytest

from tenure.core.errors import InvalidInput, NotAllowed, NotSignedIn
from tenure.server.auth.policy import Jwt, Policy, policy_of
from tenure.server.auth.request_source import is_loopback_name
from tests.server.auth.conftest import Door


def test_on_loopback_nobody_has_to_sign_in(open_door: Door) -> None:
    who = open_door.admit()
    assert (who.role, who.key, who.is_proven, who.address) == ("owner", None, False, "127.0.0.1")


def test_a_local_program_says_who_it_is_and_what_it_may_at_most(open_door: Door) -> None:
    who = open_door.admit(tenure_user="mia", tenure_agent="ann", tenure_session="s", tenure_role="agent")
    assert (who.role, who.user, who.agent, who.session, who.is_proven) == ("agent", "mia", "ann", "s", False)


@pytest.mark.parametrize(
    "host", ["localhost", "localhost:7420", "LOCALHOST:7420", "127.0.0.1:7420", "127.1.2.3", "[::1]:7420", "[::1]",
             "localhost.", "tenure.localhost:80"],
)  # fmt: skip
@pytest.mark.parametrize("peer", ["127.0.0.1", "::1", "::ffff:127.0.0.1"])
def test_loopback_has_several_names(open_door: Door, host: str, peer: str) -> None:
    assert open_door.admit(host=host, peer=peer).role == "owner"


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:7420", "localhost.evil.example", "127.0.0.1.evil.example", "192.168.0.7",
             "[::1", "localhost@evil.example", "evil.example#localhost", "evil@localhost"],
)  # fmt: skip
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_a_name_that_was_bent_to_loopback_gets_nowhere(open_door: Door, host: str, method: str) -> None:
    with pytest.raises(NotAllowed, match="not a name of this server"):
        open_door.admit(host=host, method=method)


def test_without_a_host_nobody_is_let_in(open_door: Door) -> None:
    for host in (None, ""):
        with pytest.raises(InvalidInput, match="Host is missing"):
            open_door.admit(host=host)


@pytest.mark.parametrize("origin", ["http://localhost:7420", "http://LOCALHOST:7420"])
def test_our_own_pages_may_write(open_door: Door, origin: str) -> None:
    open_door.admit(method="POST", origin=origin, sec_fetch_site="same-origin")


@pytest.mark.parametrize(
    "origin",
    ["http://evil.example", "http://localhost:3000", "http://localhost", "https://localhost:7420", "null", "",
     "http://127.0.0.1:7420", "http://localhost:7420.evil.example", "http://localhost:x", "file://"],
)  # fmt: skip
@pytest.mark.parametrize("method", ["GET", "POST", "DELETE"])
def test_a_page_of_another_origin_gets_nowhere(open_door: Door, origin: str, method: str) -> None:
    with pytest.raises(NotAllowed, match="Origin"):
        open_door.admit(origin=origin, method=method)


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_a_page_of_another_site_gets_nowhere_without_an_origin_too(open_door: Door, site: str) -> None:
    for method in ("GET", "POST"):
        with pytest.raises(NotAllowed, match="another site"):
            open_door.admit(method=method, sec_fetch_site=site)
    with pytest.raises(NotAllowed):
        open_door.admit(method="POST", sec_fetch_site=site, sec_fetch_mode="navigate")  # a form


def test_a_link_to_us_may_be_followed(open_door: Door) -> None:
    open_door.admit(sec_fetch_site="cross-site", sec_fetch_mode="navigate")
    open_door.admit(sec_fetch_site="none", sec_fetch_mode="navigate")


@pytest.mark.parametrize(
    "header", ["x_forwarded_for", "x_forwarded_host", "x_forwarded_proto", "x_real_ip", "forwarded", "via"]
)
def test_what_a_proxy_passed_on_is_not_local(open_door: Door, header: str) -> None:
    with pytest.raises(NotSignedIn):
        open_door.admit(**{header: "127.0.0.1"})


def test_a_visitor_from_elsewhere_is_not_local(open_door: Door) -> None:
    for peer in ("10.0.0.9", None, "2001:db8::1"):
        with pytest.raises(NotSignedIn):
            open_door.admit(peer=peer)


def test_a_key_counts_on_loopback_too(open_door: Door) -> None:
    assert open_door.admit(open_door.key(role="viewer")).role == "viewer"
    with pytest.raises(NotSignedIn):
        open_door.admit("tnr_nonsense")


def test_by_a_further_name_one_has_to_sign_in() -> None:
    door = Door(Policy(auth="open", hosts=frozenset({"host.docker.internal"})))
    assert door.admit().role == "owner"
    with pytest.raises(NotSignedIn):
        door.admit(host="host.docker.internal:7420")
    door.admit(door.key(), host="host.docker.internal:7420")


@pytest.mark.parametrize(
    "policy",
    [Policy(auth="required"), Policy(jwt=Jwt("i", "a", secret="s" * 32)), Policy(host="0.0.0.0"),
     Policy(host="::"), Policy(host="192.168.0.7")],
    ids=str,
)  # fmt: skip
def test_where_signing_in_is_set_up_it_is_asked_for(policy: Policy) -> None:
    with pytest.raises(NotSignedIn):
        Door(policy).admit()


def test_where_all_sign_in_any_name_will_do_unless_names_are_listed(door: Door) -> None:
    key = door.key()
    door.admit(key, host="tenure.example", peer="10.0.0.9", scheme="https")
    listed = Door(Policy(host="0.0.0.0", hosts=frozenset({"tenure.example"})))
    there: dict[str, Any] = {"peer": "10.0.0.9", "scheme": "https"}
    key = listed.key()
    listed.admit(key, host="tenure.example:443", **there)
    for inside in ("10.0.0.1:7420", "serve-1:7420", "[2001:db8::1]:7420"):
        listed.admit(key, host=inside, **there)
    with pytest.raises(NotAllowed, match="not a name"):
        listed.admit(key, host="evil.example", **there)


@pytest.mark.parametrize("name", ["localhost", "a.localhost", "127.0.0.1", "::1"])
def test_names_of_loopback(name: str) -> None:
    assert is_loopback_name(name)


@pytest.mark.parametrize("name", ["", "0.0.0.0", "::", "notlocalhost", "localhost.example", "10.0.0.1", "127.0.0.1.x"])
def test_names_that_are_not_loopbacks(name: str) -> None:
    assert not is_loopback_name(name)


def test_the_settings_as_they_come_are_open_on_loopback() -> None:
    from tenure.config import read_settings

    policy = policy_of(read_settings("/", {}))
    assert (policy.is_open, policy.rate) == (True, 1000.0)
