"""Signing in with a JWT."""

from __future__ import annotations

import asyncio
import base64
import hmac
import http.server
import json
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from tenure.core.errors import AuthUnavailable, InvalidInput, NotAllowed, NotFound, NotSignedIn, RateLimited
from tenure.core.safe_text import storable
from tenure.server.auth import tokens
from tenure.server.auth.policy import Jwt, Policy
from tenure.server.auth.tokens import AGAIN, FRESH, LARGEST_SET, OLDEST, fetched
from tests.server.auth.conftest import Door

SECRET = "a secret that is shared by two only"
SHARED = Jwt("https://issuer.example", "tenure", secret=SECRET)
URL = "https://issuer.example/keys"
RSA = rsa.generate_private_key(65537, 2048)
EC = ec.generate_private_key(ec.SECP256R1())


def content(**changes: Any) -> dict[str, Any]:
    now = int(time.time())
    whole = {
        "iss": "https://issuer.example", "aud": "tenure", "sub": "mia", "role": "member", "exp": now + 600, **changes,
    }  # fmt: skip
    return {name: value for name, value in whole.items() if value is not None}


def shared_token(key: str = SECRET, algorithm: str = "HS256", **changes: Any) -> str:
    return jwt.encode(content(**changes), key, algorithm)


def public(key: Any, id: str, **more: str) -> dict[str, Any]:
    kind = jwt.algorithms.RSAAlgorithm if isinstance(key, rsa.RSAPrivateKey) else jwt.algorithms.ECAlgorithm
    return {**kind.to_jwk(key.public_key(), as_dict=True), "kid": id, **more}


def signed(key: Any = RSA, id: str | None = "one", algorithm: str = "RS256", **changes: Any) -> str:
    return jwt.encode(content(**changes), key, algorithm, headers={} if id is None else {"kid": id})


class Issuer:
    """The keys that are at the URL, and how often somebody asked."""

    def __init__(self, *keys: dict[str, Any]) -> None:
        self.keys = list(keys)
        self.is_away = False
        self.asked = 0

    def __call__(self, url: str) -> Any:
        assert url == URL
        self.asked += 1
        if self.is_away:
            raise OSError("no route to host")
        return {"keys": self.keys}


@pytest.fixture
def shared() -> Door:
    return Door(Policy(jwt=SHARED))


@pytest.fixture
def issuer() -> Issuer:
    return Issuer(public(RSA, "one"))


@pytest.fixture
def public_door(issuer: Issuer) -> Door:
    return Door(Policy(jwt=Jwt("https://issuer.example", "tenure", jwks=URL)), fetch=issuer)


# --- what it says -----------------------------------------------------------------------------------------------


def test_a_token_says_who_it_is(shared: Door) -> None:
    who = shared.admit(shared_token(projects=["p", "q"]))
    assert (who.user, who.role, who.projects, who.is_proven, who.key) == ("mia", "member", ("p", "q"), False, "jwt:mia")
    who = shared.admit(shared_token(role="agent", agent="bo"), tenure_agent="ann")
    assert (who.role, who.agent, who.is_proven) == ("agent", "bo", True)


def test_claims_may_have_a_prefix() -> None:
    door = Door(Policy(jwt=SHARED._replace(prefix="https://issuer.example/")))
    with pytest.raises(NotSignedIn, match="role"):
        door.admit(shared_token())
    assert door.admit(shared_token(role=None, **{"https://issuer.example/role": "viewer"})).role == "viewer"


@pytest.mark.parametrize(
    "changes",
    [
        {"exp": 1}, {"exp": None}, {"iss": "https://evil.example"}, {"iss": None}, {"aud": "others"}, {"aud": None},
        {"sub": None}, {"sub": ""}, {"sub": "x" * 300}, {"sub": 7}, {"nbf": 2**33}, {"role": None}, {"role": "root"},
        {"role": ["owner"]}, {"agent": 7}, {"agent": "a b"}, {"projects": []}, {"projects": "p"}, {"projects": [7]},
        {"projects": ["a b"]}, {"projects": {}},
    ],
    ids=str,
)  # fmt: skip
def test_a_token_that_does_not_say_it_right_is_refused(shared: Door, changes: dict[str, Any]) -> None:
    if changes == {"sub": 7}:
        token = jwt.api_jws.encode(json.dumps(content(sub=7)).encode(), SECRET, "HS256", headers={"typ": "JWT"})
    else:
        token = shared_token(**changes)
    with pytest.raises(NotSignedIn):
        shared.admit(token)


# What JSON can hold, and what its readers make of it.
ODD = st.recursive(
    st.one_of(
        st.none(), st.booleans(), st.integers(-(2**70), 2**70), st.floats(), st.text(max_size=8),
        st.integers(0, 2**40).map(str), st.sampled_from(["1e400", "-1e400", "9" * 400, "\0", "\ud800", "tenure"]),
    ),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
    max_leaves=4,
)  # fmt: skip
CLAIMS = ("exp", "nbf", "iat", "aud", "iss", "sub", "jti", "role", "agent", "projects", "capabilities", "org")


@pytest.fixture(scope="module")
def lasting() -> Door:
    return Door(Policy(jwt=SHARED._replace(tenant="org")))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(
    claims=st.dictionaries(st.sampled_from(CLAIMS), ODD, min_size=1, max_size=3),
    header=st.dictionaries(st.sampled_from(["kid", "typ", "crit", "b64", "cty"]), ODD, max_size=2),
)
@example(claims={"exp": str(2**33)}, header={})
@example(claims={"exp": float("inf")}, header={})
@example(claims={"iat": "0"}, header={})
@example(claims={"nbf": [1]}, header={})
@example(claims={"sub": "\ud800"}, header={})
@example(claims={"sub": "a\0b"}, header={})
@example(claims={}, header={"kid": {}})
def test_a_signed_token_of_any_form_is_accepted_or_refused_and_breaks_nothing(
    lasting: Door, claims: dict[str, Any], header: dict[str, Any]
) -> None:
    def part(value: Any) -> str:
        return base64.urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=").decode()

    signing = f"{part({'alg': 'HS256', **header})}.{part({**content(org='local'), **claims})}"
    signature = hmac.digest(SECRET.encode(), signing.encode(), "sha256")
    token = f"{signing}.{base64.urlsafe_b64encode(signature).rstrip(b'=').decode()}"
    lasting.pass_time(10)  # failures are counted
    with suppress(NotSignedIn, NotFound, InvalidInput):  # the last two: of a tenant that it names
        who = lasting.admit(token)
        assert storable(who.user or "", 1000) == who.user


@pytest.mark.parametrize("part", range(3))
@pytest.mark.parametrize("text", ["", "e30", "!", "W10", "bnVsbA", "[" * 3000, "W1tb" * 900])
def test_parts_of_a_token_that_are_no_json_are_refused_with_one_text(shared: Door, part: int, text: str) -> None:
    parts = shared_token().split(".")
    parts[part] = text
    with pytest.raises(NotSignedIn) as refused:
        shared.admit(".".join(parts))
    assert refused.value.message == "the token's signature, issuer, audience or time is not accepted"


@pytest.mark.parametrize("changes", [{"exp": str(2**33)}, {"iat": "1"}, {"exp": 2.0**60}, {"iat": -(2.0**60)}])
def test_a_time_that_is_no_number_of_seconds_is_refused(shared: Door, changes: dict[str, Any]) -> None:
    with pytest.raises(NotSignedIn, match="time is not accepted"):
        shared.admit(shared_token(**changes))


def test_only_the_algorithm_that_is_set_up_is_good(shared: Door, public_door: Door) -> None:
    with pytest.raises(NotSignedIn):
        shared.admit(shared_token(key=SECRET * 2, algorithm="HS512"))
    for door in (shared, public_door):
        with pytest.raises(NotSignedIn):
            door.admit(jwt.encode(content(), None, "none"))
    with pytest.raises(NotSignedIn):
        shared.admit(signed())


def test_a_public_key_is_no_secret(public_door: Door) -> None:
    """The classic: an HS256 token whose secret is the issuer's public key."""
    key = public(RSA, "one")["n"]
    forged = jwt.encode(content(role="owner"), key, "HS256", headers={"kid": "one"})
    with pytest.raises(NotSignedIn):
        public_door.admit(forged)


def test_another_secret_is_refused(shared: Door) -> None:
    with pytest.raises(NotSignedIn):
        shared.admit(shared_token(key=SECRET[::-1]))


def test_a_token_of_any_length_is_not_read(shared: Door) -> None:
    with pytest.raises(NotSignedIn, match="at most"):
        shared.admit("x" * 9000)


def test_a_token_over_plain_http_is_refused_off_loopback(shared: Door) -> None:
    with pytest.raises(NotAllowed, match="plain HTTP"):
        shared.admit(shared_token(), peer="10.0.0.9")


def test_a_verified_token_is_good_for_a_minute_but_not_beyond_its_own_time(
    shared: Door, monkeypatch: pytest.MonkeyPatch
) -> None:
    token, ending = shared_token(), shared_token(exp=int(time.time()) + 5)
    shared.admit(token)
    shared.admit(ending)
    calls = []
    decode = jwt.decode
    monkeypatch.setattr(jwt, "decode", lambda *a, **k: calls.append(1) or decode(*a, **k))
    shared.admit(token)
    assert calls == []
    shared.pass_time(tokens.KEPT)
    shared.admit(token)
    assert calls == [1]
    shared.admit(ending)
    assert calls == [1, 1]
    later = time.time() + 5 + tokens.LEEWAY
    monkeypatch.setattr(tokens.time, "time", lambda: later)
    shared.admit(ending)
    assert calls == [1, 1, 1]


def test_a_guesser_of_tokens_is_stopped(shared: Door) -> None:
    for number in range(10):
        with pytest.raises(NotSignedIn):
            shared.admit(f"x.y.{number}")
    with pytest.raises(RateLimited):
        shared.admit("x.y.z")


# --- keys of the issuer -----------------------------------------------------------------------------------------


def test_the_issuers_keys_are_fetched_once(public_door: Door, issuer: Issuer) -> None:
    for subject in ("mia", "mo", "max"):
        assert public_door.admit(signed(sub=subject)).user == subject
    assert issuer.asked == 1


def test_a_new_key_of_the_issuer_is_found_at_most_twice_a_minute(public_door: Door, issuer: Issuer) -> None:
    public_door.admit(signed())
    issuer.keys.append(public(EC, "two"))
    for _ in range(3):
        with pytest.raises(NotSignedIn, match="issuer does not publish"):
            public_door.admit(signed(EC, "two", "ES256"))
    assert issuer.asked == 1
    public_door.pass_time(AGAIN)
    assert public_door.admit(signed(EC, "two", "ES256")).user == "mia"
    assert issuer.asked == 2


def test_a_key_that_the_issuer_took_back_ends(public_door: Door, issuer: Issuer) -> None:
    token = signed()
    public_door.admit(token)
    issuer.keys[:] = [public(EC, "two")]
    public_door.pass_time(FRESH)
    with pytest.raises(NotSignedIn):
        public_door.admit(token)


def test_while_the_issuer_is_away_its_keys_are_good_for_a_day(public_door: Door, issuer: Issuer) -> None:
    public_door.admit(signed())
    issuer.is_away = True
    public_door.pass_time(FRESH)
    public_door.admit(signed(sub="mo"))
    asked = issuer.asked
    public_door.admit(signed(sub="max"))
    assert issuer.asked == asked  # not with every request
    public_door.pass_time(OLDEST)
    with pytest.raises(AuthUnavailable, match="no route to host"):
        public_door.admit(signed(sub="moritz"))


def test_an_issuer_that_was_never_there_is_told(public_door: Door, issuer: Issuer) -> None:
    issuer.is_away = True
    with pytest.raises(AuthUnavailable):
        public_door.admit(signed())
    issuer.is_away = False
    public_door.pass_time(AGAIN)
    public_door.admit(signed())


def test_of_one_key_the_id_may_be_left_out(public_door: Door, issuer: Issuer) -> None:
    public_door.admit(signed(id=None))
    issuer.keys.append(public(EC, "two"))
    public_door.pass_time(FRESH)
    with pytest.raises(NotSignedIn):
        public_door.admit(signed(id=None, sub="mo"))


def test_keys_for_other_uses_sign_nothing(public_door: Door, issuer: Issuer) -> None:
    issuer.keys[:] = [public(RSA, "one", use="enc"), {"kty": "oct", "k": "c2VjcmV0c2VjcmV0", "kid": "three"}]
    with pytest.raises(NotSignedIn):
        public_door.admit(signed())
    with pytest.raises(NotSignedIn):
        public_door.admit(jwt.encode(content(), "secretsecret" * 3, "HS256", headers={"kid": "three"}))


# --- fetching ---------------------------------------------------------------------------------------------------


@pytest.fixture
def web() -> Iterator[tuple[str, dict[str, tuple[int, bytes, str]]]]:
    """A web server with pages that a test puts there: path → status, body, location."""
    pages: dict[str, tuple[int, bytes, str]] = {}

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            status, body, location = pages[self.path]
            self.send_response(status)
            self.send_header("content-length", str(len(body)))
            if location:
                self.send_header("location", location)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *arguments: object) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}", pages
        server.shutdown()
        thread.join()


def test_keys_come_over_the_wire(web: tuple[str, dict[str, tuple[int, bytes, str]]]) -> None:
    url, pages = web
    pages["/keys"] = (200, json.dumps({"keys": [public(RSA, "one")]}).encode(), "")
    door = Door(Policy(jwt=Jwt("https://issuer.example", "tenure", jwks=f"{url}/keys")))
    assert door.admit(signed()).user == "mia"


def test_what_is_fetched_is_bounded_and_led_nowhere_else(web: tuple[str, dict[str, tuple[int, bytes, str]]]) -> None:
    url, pages = web
    pages["/large"] = (200, b" " * (LARGEST_SET + 1), "")
    pages["/moved"] = (302, b"", f"{url}/keys")
    pages["/keys"] = (200, b'{"keys": []}', "")
    with pytest.raises(ValueError, match="more than"):
        fetched(f"{url}/large")
    with pytest.raises(Exception, match="302"):
        fetched(f"{url}/moved")
    assert fetched(f"{url}/keys") == {"keys": []}


# --- ends and bounds ---


def test_a_long_answer_ends_with_the_token(shared: Door, monkeypatch: pytest.MonkeyPatch) -> None:
    who = shared.admit(shared_token())
    assert asyncio.run(shared.authenticator.is_still_valid(who))
    later = time.time() + 600 + tokens.LEEWAY
    monkeypatch.setattr(time, "time", lambda: later)
    assert not asyncio.run(shared.authenticator.is_still_valid(who))


def test_a_token_that_lives_too_long_is_refused() -> None:
    door = Door(Policy(jwt=SHARED._replace(longest=3600.0)))
    now = int(time.time())
    door.admit(shared_token(iat=now - 1800, exp=now + 1800))
    for times in ({"iat": now, "exp": now + 3700}, {"exp": now + 3700}, {"iat": now - 3600, "exp": now + 1800}):
        with pytest.raises(NotSignedIn, match="valid for more than 3600 s"):
            door.admit(shared_token(**times))


def test_a_token_says_what_one_may_beyond_the_role(shared: Door) -> None:
    assert shared.admit(shared_token(role="agent", capabilities=["checker"])).capabilities == ("checker",)
    for wrong in ("checker", ["chequer"], [7]):
        with pytest.raises(NotSignedIn, match="capabilities"):
            shared.admit(shared_token(capabilities=wrong))


def test_no_text_tells_a_wrong_signature_from_another_fault(shared: Door) -> None:
    told = set()
    for token in (shared_token(key="x" * 40), shared_token(exp=1), shared_token(aud="others"), shared_token(iss="me")):
        with pytest.raises(NotSignedIn) as error:
            shared.admit(token)
        told.add(error.value.message)
    assert len(told) == 1
