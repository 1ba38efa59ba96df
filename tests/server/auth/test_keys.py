"""Signing in with an API key."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from typing import Any

import pytest

from tenure.core import commands as c
from tenure.core import queries as q
from tenure.core.errors import InvalidInput, NotAllowed, NotSignedIn, RateLimited, StoreUnavailable
from tenure.engine.reads.query_table import read_query
from tenure.server.auth import row_cache
from tenure.server.auth.authenticator import Authenticator
from tenure.server.auth.policy import Policy
from tests.server.auth.conftest import Door, scope


def revoke(door: Door, key: str) -> None:
    door.engine.do(c.RevokeKey(key=key.split("_")[2]))


def test_a_key_says_who_it_is(door: Door) -> None:
    who = door.admit(door.key("ci", role="member", user="mia", projects=("p",)))
    assert (who.role, who.user, who.projects, who.agent, who.is_proven) == ("member", "mia", ("p",), None, False)
    assert who.address == "127.0.0.1"


def test_an_agents_key_names_its_agent_whatever_the_headers_say(door: Door) -> None:
    who = door.admit(door.key("bot", agent="bo"), tenure_agent="ann", tenure_session="s-1", tenure_user="ceo")
    assert (who.role, who.agent, who.session, who.is_proven, who.user) == ("agent", "bo", "s-1", True, "bot")


def test_below_a_persons_key_the_headers_name_agent_and_session(door: Door) -> None:
    who = door.admit(door.key("mia", role="admin"), tenure_role="agent", tenure_agent="ann", tenure_session="s-1")
    assert (who.role, who.agent, who.session, who.is_proven, who.user) == ("agent", "ann", "s-1", False, "mia")


@pytest.mark.parametrize("role", ["viewer", "agent", "member", "admin", "owner"])
def test_a_header_only_lowers_the_role(door: Door, role: str) -> None:
    order = ["viewer", "agent", "member", "admin", "owner"]
    key = door.key(role="member")
    assert door.admit(key, tenure_role=role).role == min(role, "member", key=order.index)


@pytest.mark.parametrize("headers", [{"tenure_role": "root"}, {"tenure_agent": "a b"}, {"tenure_session": "a/b"}])
def test_headers_that_name_nothing_are_refused(door: Door, headers: dict[str, str]) -> None:
    with pytest.raises(InvalidInput):
        door.admit(door.key(), **headers)


@pytest.mark.parametrize(
    "sent",
    ["", "Bearer", "Bearer ", "Basic dXNlcjpwYXNz", "Bearer tnr_", "Bearer tnr_0000000000000_" + "0" * 52,
     "Bearer x.y.z", "tnr_0000000000000_" + "0" * 52],
)  # fmt: skip
def test_what_is_no_key_signs_nobody_in(door: Door, sent: str) -> None:
    with pytest.raises(NotSignedIn):
        door.admit(authorization=sent)


def test_nothing_at_all_signs_nobody_in(door: Door) -> None:
    with pytest.raises(NotSignedIn, match="not signed in"):
        door.admit()


def test_a_wrong_secret_of_a_real_key_is_refused(door: Door) -> None:
    key = door.key()
    door.admit(key)
    with pytest.raises(NotSignedIn, match="not accepted"):
        door.admit(key[:-1] + ("0" if key[-1] != "0" else "1"))


def test_a_key_is_read_once_in_a_while(door: Door) -> None:
    key = door.key()
    for _ in range(5):
        door.admit(key)
    assert door.lookups == 1
    door.pass_time(row_cache.KEPT)
    door.admit(key)
    assert door.lookups == 2


def test_a_key_that_was_revoked_elsewhere_soon_opens_nothing(door: Door) -> None:
    key = door.key()
    door.admit(key)
    revoke(door, key)
    door.pass_time(row_cache.KEPT)
    with pytest.raises(NotSignedIn, match="not accepted"):
        door.admit(key)


def test_a_key_that_the_feed_tells_of_opens_nothing_at_once(door: Door) -> None:
    key = door.key()
    door.admit(key)
    revoke(door, key)
    with door.engine.store.begin("local", write=False) as tx:
        door.authenticator.hear("local", tx.events({}, limit=100))
    with pytest.raises(NotSignedIn, match="not accepted"):
        door.admit(key)


def test_a_look_that_was_under_way_when_a_key_changed_is_not_kept(door: Door) -> None:
    key = door.key()
    id = key.split("_")[2]
    with pytest.raises(row_cache.NeedsLookup) as asked:
        door.authenticator._home.keys.find(id)
    reading, changed = threading.Event(), threading.Event()
    before = door.engine.read_settled

    def slow(*arguments: Any) -> Any:
        found = before(*arguments)  # as it was
        reading.set()
        changed.wait(10)
        return found

    door.engine.read_settled = slow  # type: ignore[method-assign]
    thread = threading.Thread(target=asked.value.run)
    thread.start()
    assert reading.wait(10)
    door.authenticator._home.keys.forget(id)
    changed.set()
    thread.join(10)
    with pytest.raises(row_cache.NeedsLookup):
        door.authenticator._home.keys.find(id)


def test_an_expired_key_ends_by_the_stores_clock(door: Door) -> None:
    key = door.key(expires_in=3600)
    door.admit(key)
    door.pass_time(3599.5)
    door.admit(key)
    door.pass_time(0.5)
    with pytest.raises(NotSignedIn, match="not accepted"):
        door.admit(key)


def test_a_rotated_key_takes_both_secrets_for_a_while(door: Door) -> None:
    key = door.key()
    new = door.engine.do(c.RotateKey(key=key.split("_")[2], grace=60)).secret
    assert door.admit(key).key == door.admit(new).key
    door.pass_time(60)
    door.admit(new)
    with pytest.raises(NotSignedIn):
        door.admit(key)


# --- guessing ---------------------------------------------------------------------------------------------------


def guess(number: int) -> str:
    return f"tnr_{number:013d}_" + "0" * 52


def test_an_unknown_key_costs_one_look(door: Door) -> None:
    for _ in range(5):
        with pytest.raises(NotSignedIn, match="not accepted"):
            door.admit(guess(1))
    assert door.lookups == 1


def test_a_guesser_is_told_to_wait_and_good_keys_at_its_address_are_not(door: Door) -> None:
    good, idle = door.key("good"), door.key("idle")
    for _ in range(10):
        with pytest.raises(NotSignedIn):
            door.admit(good[:-2] + "00")
    with pytest.raises(RateLimited) as told:
        door.admit(good[:-2] + "00")
    assert 0 < told.value.retry_after <= 6
    with pytest.raises(NotSignedIn):
        door.admit(idle[:-2] + "00")  # another credential is counted by itself
    door.admit(good)
    door.admit(idle)  # nobody has shown it to this server before


@pytest.mark.parametrize("sent", ["", "Bearer tnr_x", "Bearer not.a.token"])
def test_a_flood_of_bad_sign_ins_blocks_no_good_key_after_a_restart(door: Door, sent: str) -> None:
    key = door.key()
    fresh = Authenticator(door.engine, door.policy, monotonic=lambda: door.seconds)

    async def visits() -> None:
        for number in range(1500):
            for bad in (sent or "Basic x", f"Bearer {guess(number)}"):
                with contextlib.suppress(NotSignedIn, RateLimited):
                    await fresh.authenticate(scope(authorization=bad))
        await fresh.authenticate(scope(authorization=f"Bearer {key}"))

    asyncio.run(visits())


def test_guesses_that_come_at_once_share_a_look(door: Door) -> None:
    async def crowd() -> None:
        visits = (door.authenticator.authenticate(scope(authorization=f"Bearer {guess(n)}")) for n in range(1000))
        answers = await asyncio.gather(*visits, return_exceptions=True)
        assert all(isinstance(answer, NotSignedIn) for answer in answers)

    asyncio.run(crowd())
    assert door.lookups <= 2


def test_no_text_tells_an_unknown_key_from_one_that_ended_or_is_wrong(door: Door) -> None:
    live, revoked, expired = door.key("live"), door.key("revoked"), door.key("expired", expires_in=1)
    revoke(door, revoked)
    door.pass_time(2)
    told = set()
    for key in (live[:-2] + "00", revoked, expired, guess(1)):
        with pytest.raises(NotSignedIn) as error:
            door.admit(key)
        told.add((error.value.message, error.value.hint))
    assert len(told) == 1


def test_a_keys_last_use_is_noted_to_the_minute(door: Door) -> None:
    key = door.key()

    async def visit() -> None:
        await door.authenticator.authenticate(scope(authorization=f"Bearer {key}"))
        await asyncio.gather(*door.authenticator._use_writes)

    def used_at() -> int | None:
        (one,) = read_query(door.engine, q.Keys())
        return one["used_at"]

    assert used_at() is None
    asyncio.run(visit())
    first = used_at()
    assert first is not None
    door.pass_time(59)
    asyncio.run(visit())
    assert used_at() == first
    door.pass_time(1)
    asyncio.run(visit())
    assert used_at() == first + 60_000_000


def test_what_is_remembered_is_bounded(door: Door, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_cache, "MOST", 3)
    good = door.key()
    door.admit(good)
    for number in range(8):
        with pytest.raises(NotSignedIn):
            door.admit(guess(number))
    ring = door.authenticator._home.keys
    assert (len(ring._known), len(ring._unknown)) == (1, 3)


def test_many_visits_with_one_new_key_share_a_look(door: Door) -> None:
    key = door.key()

    async def crowd() -> None:
        await asyncio.gather(*(gate.authenticate(scope(authorization=f"Bearer {key}")) for _ in range(2000)))

    lookups: list[object] = []

    async def read_in_thread(lookup: object) -> None:
        lookups.append(lookup)
        await asyncio.to_thread(lookup)  # type: ignore[arg-type]

    policy = Policy(auth="required", rate=0)
    gate = Authenticator(door.engine, policy, read_in_thread=read_in_thread, monotonic=lambda: door.seconds)
    asyncio.run(crowd())
    assert len(lookups) == 1


def test_a_store_that_is_away_is_told_and_asked_again(door: Door, monkeypatch: pytest.MonkeyPatch) -> None:
    key = door.key()
    before = door.engine.read_settled

    def away(*arguments: Any) -> None:
        raise StoreUnavailable("gone for lunch")

    monkeypatch.setattr(door.engine, "read_settled", away)
    for _ in range(3):
        with pytest.raises(StoreUnavailable):
            door.admit(key)
    monkeypatch.setattr(door.engine, "read_settled", before)
    door.admit(key)


# --- rates, secrecy ---------------------------------------------------------------------------------------------


def test_each_key_has_its_own_rate() -> None:
    door = Door(Policy(auth="required", rate=2.0))
    one, other = door.key("one"), door.key("other")
    for _ in range(4):
        door.admit(one)
    with pytest.raises(RateLimited) as told:
        door.admit(one)
    assert told.value.retry_after == pytest.approx(0.5)
    door.admit(other)
    door.pass_time(0.5)
    door.admit(one)


def test_a_key_over_plain_http_is_refused_off_loopback(door: Door) -> None:
    key = door.key()
    with pytest.raises(NotAllowed, match="plain HTTP"):
        door.admit(key, peer="10.0.0.9", host="tenure.example")
    door.admit(key, peer="10.0.0.9", host="tenure.example", scheme="https")
    assert door.lookups == 1


def test_a_long_answer_learns_that_its_key_is_revoked(door: Door) -> None:
    key = door.key()
    who = door.admit(key)
    assert asyncio.run(door.authenticator.is_still_valid(who))
    revoke(door, key)
    door.pass_time(row_cache.KEPT)
    assert not asyncio.run(door.authenticator.is_still_valid(who))


def test_a_long_answer_ends_when_the_secret_it_was_begun_with_does(door: Door) -> None:
    key = door.key()
    who = door.admit(key)
    door.engine.do(c.RotateKey(key=key.split("_")[2], grace=60))
    door.pass_time(row_cache.KEPT)
    assert asyncio.run(door.authenticator.is_still_valid(who))
    door.pass_time(60)
    assert not asyncio.run(door.authenticator.is_still_valid(who))


def test_a_key_says_what_it_may_beyond_its_role(door: Door) -> None:
    assert door.admit(door.key("ci", capabilities=("checker",))).capabilities == ("checker",)
    with pytest.raises(InvalidInput, match="checker"):
        door.key("cj", capabilities=("chequer",))


def test_a_header_that_decides_something_stands_there_once(door: Door) -> None:
    said = scope(authorization=f"Bearer {door.key()}")
    said["headers"].append((b"authorization", b"Bearer x"))
    with pytest.raises(InvalidInput, match="twice"):
        asyncio.run(door.authenticator.authenticate(said))
