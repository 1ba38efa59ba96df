"""Who may read the metrics while the store is unavailable."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import jwt
import pytest

from tenure.config import BadConfig, read_settings
from tenure.core import commands as c
from tenure.core import limits
from tenure.core.commands import Principal
from tenure.core.errors import NotAllowed, NotSignedIn, StoreUnavailable
from tenure.server.auth.metrics_token import MetricsToken
from tenure.server.auth.policy import Jwt, Policy, policy_of
from tenure.server.workers.peers import Peers
from tenure.server.workers.recalled import answer_others, recalled_by_others
from tests.server.auth.conftest import Door, scope

TOKEN = "5f" * 32


class Watched(Door):
    """Its store goes away, and comes back, when a test says so."""

    is_away = False
    hangs: asyncio.Event | None = None

    async def _read_in_thread(self, lookup: Callable[[], object]) -> object:
        if self.hangs is not None:
            await self.hangs.wait()
        if self.is_away:
            raise StoreUnavailable("postgresql://ops@db.internal:5432/work: connection refused")
        return await super()._read_in_thread(lookup)

    def watch(self, key: str | None = None, **said: Any) -> Principal:
        return asyncio.run(self.watched(key, **said))

    async def watched(self, key: str | None = None, **said: Any) -> Principal:
        if key is not None:
            said["authorization"] = f"Bearer {key}"
        try:
            return await self.authenticator.authenticate_watcher(scope(**said))
        finally:
            while self.hangs is None and self.authenticator._lookups.running:  # the look whether the store is back
                await asyncio.wait(list(self.authenticator._lookups.running.values()))


def put(folder: Path, token: str) -> MetricsToken:
    (folder / "token").write_text(token + "\n")
    return MetricsToken(str(folder / "token"))


# --- a key that this process has checked ---


def test_a_key_that_was_checked_is_good_for_ten_minutes_without_the_store() -> None:
    door = Watched()
    key = door.key("prometheus", role="viewer")
    assert door.watch(key).role == "viewer"
    door.is_away = True
    door.pass_time(limits.KEY_REMEMBERED - 1)
    assert (door.watch(key).role, door.watch(key).user) == ("viewer", "prometheus")
    door.pass_time(1)
    with pytest.raises(StoreUnavailable, match="has not checked these credentials in the last ten minutes"):
        door.watch(key)


def test_only_what_is_watched_remembers() -> None:
    door = Watched()
    key = door.key("prometheus", role="viewer")
    door.watch(key)
    door.is_away = True
    door.pass_time(3)
    assert door.watch(key).role == "viewer"
    with pytest.raises(StoreUnavailable, match="connection refused"):
        door.admit(key)


@pytest.mark.parametrize("ended", ["revoked", "rotated"])
def test_a_key_that_this_process_saw_end_is_forgotten_at_once(ended: str) -> None:
    door = Watched()
    key = door.key("prometheus", role="viewer")
    id = door.watch(key).key or ""
    command = c.RevokeKey(key=id) if ended == "revoked" else c.RotateKey(key=id, grace=0)
    door.authenticator.observe(command, Principal(), door.engine.do(command), 0.0)
    door.is_away = True
    with pytest.raises(StoreUnavailable, match="has not checked"):
        door.watch(key)


def test_a_remembered_key_still_expires() -> None:
    door = Watched()
    key = door.key("prometheus", role="viewer", expires_in=60.0)
    door.watch(key)
    door.is_away = True
    door.pass_time(61)
    with pytest.raises(NotSignedIn, match="not accepted"):
        door.watch(key)


def test_who_is_unknown_learns_nothing_about_the_store_or_a_key() -> None:
    door = Watched()
    key = door.key("prometheus", role="viewer")
    other = door.key("other", role="viewer")
    door.is_away = True
    said = set()
    for sent in (key, other, key[:-1] + "0"):
        with pytest.raises(StoreUnavailable) as refused:
            door.watch(sent)
        said.add(str(refused.value))
    assert len(said) == 1
    assert "db.internal" not in said.pop()
    with pytest.raises(NotSignedIn):
        door.watch()


def test_while_a_lookup_hangs_the_next_is_answered_at_once_and_the_store_is_asked_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def ask() -> None:
        await door.watched(known)
        door.pass_time(3)
        door.hangs = asyncio.Event()
        assert (await door.watched(known)).role == "viewer"  # after a moment
        monkeypatch.setattr(limits, "WATCH_WAIT", 1000.0)
        async with asyncio.timeout(20):
            for _ in range(20):
                with pytest.raises(StoreUnavailable, match="has not checked"):
                    await door.watched(unknown)
            assert (await door.watched(known)).role == "viewer"
        assert len(door.authenticator._lookups.running) == 2  # of the known key, and whether the store answers
        assert list(door.authenticator._home.keys._awaited) == [known.split("_")[2]]  # the others wait for nothing
        door.hangs.set()
        door.hangs = None
        while door.authenticator._lookups.running:
            await asyncio.wait(list(door.authenticator._lookups.running.values()))
        assert (await door.watched(unknown)).user == "other"

    monkeypatch.setattr(limits, "WATCH_WAIT", 0.01)
    door = Watched()
    known, unknown = door.key("prometheus", role="viewer"), door.key("other", role="viewer")
    asyncio.run(ask())


def test_when_the_store_is_back_a_key_is_looked_up_again() -> None:
    door = Watched()
    key = door.key("prometheus", role="viewer")
    door.is_away = True
    with pytest.raises(StoreUnavailable):
        door.watch(key)
    door.is_away = False
    with pytest.raises(StoreUnavailable):
        door.watch(key)  # which finds that it is back
    assert door.watch(key).role == "viewer"


def test_what_one_worker_remembers_counts_at_all_of_them(tmp_path: Path) -> None:
    async def ask() -> None:
        for number, door in enumerate((one, other)):
            peers = Peers(str(tmp_path), number, 2)
            answer_others(peers, door.authenticator.recall)
            door.authenticator.ask_others = partial(recalled_by_others, peers)
            await peers.listen()
            listening.append(peers)
        assert (await other.watched(known)) == await one.watched(known)
        with pytest.raises(StoreUnavailable, match="has not checked"):
            await other.watched(unknown)
        for peers in listening:
            peers.close()

    listening: list[Peers] = []
    one, other = Watched(), Watched()
    known, unknown = one.key("prometheus", role="viewer"), one.key("other", role="viewer")
    one.watch(known)
    one.is_away = other.is_away = True
    asyncio.run(ask())


# --- a JWT ---


def test_a_jwt_is_verified_here_and_its_membership_remembered() -> None:
    secret = "s" * 32
    door = Watched(Policy(jwt=Jwt("https://id.example", "tenure", secret=secret)))

    def token(subject: str, signed: str = secret) -> str:
        import time

        named = {"iss": "https://id.example", "aud": "tenure", "sub": subject, "role": "viewer"}
        return jwt.encode({**named, "exp": time.time() + 3600}, signed, "HS256")

    assert door.watch(token("mia")).role == "viewer"
    door.is_away = True
    door.pass_time(70)
    assert door.watch(token("mia")).user == "mia"
    with pytest.raises(NotSignedIn):
        door.watch(token("mia", "t" * 32))
    with pytest.raises(StoreUnavailable, match="has not checked"):
        door.watch(token("bo"))


# --- the token of the setting ---


def test_the_metrics_token_needs_no_store_and_only_reads(tmp_path: Path) -> None:
    door = Watched(Policy(auth="required", metrics_token=put(tmp_path, TOKEN)))
    door.is_away = True
    who = door.watch(TOKEN)
    assert (who.role, who.projects, who.tenant, door.lookups) == ("viewer", (), None, 0)
    for wrong in (TOKEN[:-1], TOKEN + "5", "", "x"):
        with pytest.raises(NotSignedIn):
            door.watch(wrong)
    with pytest.raises(NotSignedIn):
        door.admit(TOKEN)  # nowhere else


def test_the_metrics_token_is_refused_over_plain_http(tmp_path: Path) -> None:
    door = Watched(Policy(auth="required", host="10.0.0.1", metrics_token=put(tmp_path, TOKEN)))
    with pytest.raises(NotAllowed, match="plain HTTP"):
        door.watch(TOKEN, peer="10.9.9.9", host="10.0.0.1:7420")


def test_a_new_metrics_token_counts_at_once_and_none_after_its_file_is_gone(tmp_path: Path) -> None:
    token = put(tmp_path, TOKEN)
    put(tmp_path, "6e" * 32)
    assert (token.opens(TOKEN), token.opens("6e" * 32)) == (False, True)
    put(tmp_path, "")
    assert not token.opens("")
    (tmp_path / "token").unlink()
    assert not token.opens("6e" * 32)


@pytest.mark.parametrize("text", ["", "short", "two words that are longer than the least length"])
def test_a_file_without_a_good_token_ends_the_start(tmp_path: Path, text: str) -> None:
    (tmp_path / "token").write_text(text)
    with pytest.raises(BadConfig, match="must have one word of at least 32 characters"):
        policy_of(read_settings(str(tmp_path), {"TENURE_SERVE_METRICS_TOKEN": str(tmp_path / "token")}))
    with pytest.raises(BadConfig, match="cannot read"):
        policy_of(read_settings(str(tmp_path), {"TENURE_SERVE_METRICS_TOKEN": str(tmp_path / "none")}))
