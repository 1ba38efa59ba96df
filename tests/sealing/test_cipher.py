"""Secrets at rest: what is sealed opens in its place with its key, and in no other way."""

from __future__ import annotations

import hashlib
import hmac
import itertools
import json
from base64 import b64decode, b64encode
from collections.abc import Callable

import msgspec
import pytest
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from hypothesis import given
from hypothesis import strategies as st

from tenure.core import limits
from tenure.core.errors import InvalidInput, SecretsOff, SecretUnreadable, TooLarge
from tenure.core.messaging_records import DataKey
from tenure.core.sealed import (
    DIGEST_KEY,
    ProjectSeals,
    Sealed,
    as_bytes,
    as_value,
    current_key,
    from_bytes,
    from_value,
    is_sealed,
    refuse_sealed,
)
from tenure.sealing.cipher import Cipher
from tenure.sealing.master_key import VALUE, KeySource

OLD, NEW = b64encode(bytes(range(32))).decode(), b64encode(bytes(range(32, 64))).decode()


def cipher(*keys: str) -> Cipher:
    return Cipher(KeySource({VALUE: " ".join(keys or (OLD,))}))


def tokens() -> Callable[[int], bytes]:
    """Random bytes that are the same in every run, and never repeat."""
    numbers = itertools.count()
    return lambda size: hashlib.sha512(next(numbers).to_bytes(8, "big")).digest()[:size]


class Desk:
    """The rows of one project, across transactions."""

    def __init__(self, tenant: str = "acme", project: str = "web") -> None:
        self.tenant, self.project = tenant, project
        self.rows: dict[str, DataKey] = {}
        self.token = tokens()
        self.now = 0

    def seals(self, by: Cipher | None = None, *, tenant: str | None = None) -> ProjectSeals:
        self.now += 1
        return ProjectSeals(
            by or cipher(), tenant or self.tenant, self.project, self.rows.values(), self.token, self.now
        )

    def save(self, seals: ProjectSeals) -> None:
        self.rows |= {row.id: row for row in seals.made}

    def sealed(self, value: bytes, owner: str = "webhook:ci", path: str = "secret", by: Cipher | None = None) -> Sealed:
        seals = self.seals(by)
        sealed = seals.seal(owner, path, value)
        self.save(seals)
        return sealed

    def opened(
        self, sealed: Sealed, owner: str = "webhook:ci", path: str = "secret", by: Cipher | None = None
    ) -> bytes:
        return self.seals(by).open(owner, path, sealed)


# --- a round ------------------------------------------------------------------------------------------------


@given(st.binary(max_size=300), st.text(max_size=20), st.text(max_size=20))
def test_what_is_sealed_opens_in_its_place(value: bytes, owner: str, path: str) -> None:
    desk = Desk()
    sealed = desk.sealed(value, owner, path)
    assert desk.opened(sealed, owner, path) == value
    assert from_bytes(as_bytes(sealed)) == sealed == from_value(json.loads(json.dumps(as_value(sealed))))
    if len(value) > 3:
        assert value not in sealed.text
        assert b64encode(value) not in as_bytes(sealed)


def test_the_first_secret_of_a_project_makes_its_keys_and_later_ones_use_them() -> None:
    desk = Desk()
    first = desk.sealed(b"one")
    keys = dict(desk.rows)
    second = desk.sealed(b"one")
    assert desk.rows == keys
    assert set(keys) == {DIGEST_KEY, first.key}
    assert (first.key, first.digest) == (second.key, second.digest)
    assert first.nonce != second.nonce
    assert first.text != second.text


def test_a_secret_is_compared_by_its_digest_and_not_opened() -> None:
    desk = Desk()
    sealed = desk.sealed(b"one")
    blind = msgspec.structs.replace(sealed, text=bytes(len(sealed.text)))
    assert desk.seals().is_same(blind, b"one")
    assert not desk.seals().is_same(blind, b"two")
    assert not desk.seals().is_same(None, b"one")


def test_a_digest_cannot_be_computed_without_the_digest_key() -> None:
    sealed, other = Desk().sealed(b"one"), Desk("other").sealed(b"one")
    assert hashlib.sha256(b"one").digest() != sealed.digest
    assert sealed.digest == other.digest  # the same random bytes, and only those
    desk = Desk()
    desk.token(1)
    assert desk.sealed(b"one").digest != sealed.digest


def test_a_secret_over_the_limit_is_refused() -> None:
    with pytest.raises(TooLarge, match="65536 bytes"):
        Desk().sealed(bytes(limits.SECRET_BYTES + 1))
    assert Desk().sealed(bytes(limits.SECRET_BYTES))


# --- every other way ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("owner", "path"), [("webhook:cd", "secret"), ("webhook:ci", "previous"), ("webhook:cis", "ecret"), ("", "")]
)
def test_a_sealed_value_does_not_open_in_another_place(owner: str, path: str) -> None:
    desk = Desk()
    sealed = desk.sealed(b"one")
    with pytest.raises(SecretUnreadable, match="moved here"):
        desk.opened(sealed, owner, path)


def test_a_sealed_value_does_not_open_in_another_project_or_tenant_even_with_its_keys() -> None:
    desk = Desk()
    sealed = desk.sealed(b"one")
    with pytest.raises(SecretUnreadable):
        desk.seals(tenant="other").open("webhook:ci", "secret", sealed)
    thief = Desk(project="other")
    thief.rows = {row.id: msgspec.structs.replace(row, project="other") for row in desk.rows.values()}
    with pytest.raises(SecretUnreadable, match="belongs to another project"):
        thief.opened(sealed)
    thief.rows = dict(desk.rows)  # the rows as they are, the place another
    with pytest.raises(SecretUnreadable, match="moved here"):
        thief.opened(sealed)


@given(st.data())
def test_a_changed_bit_anywhere_is_found(data: st.DataObject) -> None:
    desk = Desk()
    sealed = desk.sealed(b"the secret")
    field = data.draw(st.sampled_from(["nonce", "text", "digest"]))
    content = bytearray(getattr(sealed, field))
    bit = data.draw(st.integers(0, len(content) * 8 - 1))
    content[bit // 8] ^= 1 << bit % 8
    with pytest.raises(SecretUnreadable):
        desk.opened(msgspec.structs.replace(sealed, **{field: bytes(content)}))
    assert desk.opened(sealed) == b"the secret"


@given(st.data())
def test_a_changed_bit_in_a_wrapped_key_is_found(data: st.DataObject) -> None:
    desk = Desk()
    sealed = desk.sealed(b"the secret")
    id = data.draw(st.sampled_from(sorted(desk.rows)))
    wrapped = bytearray(desk.rows[id].wrapped)
    bit = data.draw(st.integers(0, len(wrapped) * 8 - 1))
    wrapped[bit // 8] ^= 1 << bit % 8
    desk.rows[id] = msgspec.structs.replace(desk.rows[id], wrapped=bytes(wrapped))
    with pytest.raises(SecretUnreadable):
        desk.opened(sealed)


def test_keys_of_two_projects_cannot_be_exchanged() -> None:
    desk = Desk()
    sealed = desk.sealed(b"one")
    desk.rows[DIGEST_KEY], desk.rows[sealed.key] = (
        msgspec.structs.replace(desk.rows[DIGEST_KEY], wrapped=desk.rows[sealed.key].wrapped),
        msgspec.structs.replace(desk.rows[sealed.key], wrapped=desk.rows[DIGEST_KEY].wrapped),
    )
    with pytest.raises(SecretUnreadable, match="damaged, or belongs"):
        desk.opened(sealed)


@pytest.mark.parametrize("size", [0, 1, 68, 70, 200])
def test_a_wrapped_key_of_another_length_is_damaged(size: int) -> None:
    desk = Desk()
    sealed = desk.sealed(b"one")
    desk.rows[sealed.key] = msgspec.structs.replace(desk.rows[sealed.key], wrapped=b"\1" * size)
    with pytest.raises(SecretUnreadable, match="is damaged"):
        desk.opened(sealed)


def test_another_master_key_opens_nothing_and_the_error_names_both() -> None:
    desk = Desk()
    sealed = desk.sealed(b"one")
    with pytest.raises(SecretUnreadable, match=r"under the master key [0-9a-f]{16}; TENURE_MASTER_KEY has") as found:
        desk.opened(sealed, by=cipher(NEW))
    assert found.value.code == "SECRET_UNREADABLE"
    assert OLD not in str(found.value) + str(found.value.hint)
    with pytest.raises(SecretUnreadable):
        desk.seals(cipher(NEW)).seal("webhook:ci", "secret", b"two")


def test_without_a_master_key_nothing_is_sealed_and_nothing_opened() -> None:
    desk, off = Desk(), Cipher(KeySource({}))
    with pytest.raises(SecretsOff, match="no master key") as found:
        desk.seals(off).seal("webhook:ci", "secret", b"one")
    assert found.value.code == "SECRETS_OFF"
    assert "TENURE_MASTER_KEY" in (found.value.hint or "")
    sealed = desk.sealed(b"one")
    with pytest.raises(SecretsOff):
        desk.opened(sealed, by=off)


def test_a_value_whose_key_is_gone_is_unreadable() -> None:
    desk = Desk()
    sealed = desk.sealed(b"one")
    del desk.rows[sealed.key]
    with pytest.raises(SecretUnreadable, match="does not have"):
        desk.opened(sealed)


# --- rotation -----------------------------------------------------------------------------------------------


def test_a_new_data_key_seals_and_the_old_one_still_opens() -> None:
    desk = Desk()
    before = desk.sealed(b"one")
    seals = desk.seals()
    seals.rotate()
    desk.save(seals)
    after = desk.sealed(b"one")
    assert before.key != after.key
    assert before.digest == after.digest
    assert desk.opened(before) == desk.opened(after) == b"one"
    assert desk.rows[before.key].retired_at is not None
    newest = current_key(desk.rows.values())
    assert newest is not None
    assert newest.id == after.key


def test_a_new_master_key_wraps_the_data_keys_again_and_touches_no_sealed_value() -> None:
    desk = Desk()
    sealed = desk.sealed(b"one")
    both = cipher(NEW, OLD)
    assert desk.opened(sealed, by=both) == b"one"
    seals = desk.seals(both)
    assert seals.rewrap() == 2
    desk.save(seals)
    assert desk.opened(sealed, by=cipher(NEW)) == b"one"
    assert desk.seals(cipher(NEW)).is_same(sealed, b"one")
    with pytest.raises(SecretUnreadable):
        desk.opened(sealed)
    assert desk.seals(cipher(NEW)).rewrap() == 0


def test_a_wrong_master_key_rotates_nothing_and_all_keys_of_a_lost_one_are_known() -> None:
    desk = Desk()
    desk.sealed(b"one")
    seals = desk.seals(cipher(NEW))
    with pytest.raises(SecretUnreadable, match="secret rotate --lost"):
        seals.rotate()
    assert seals.made == []
    assert [row.id for row in seals.lost()] == [row.id for row in seals.rows]
    assert desk.seals(cipher(OLD)).lost() == []


# --- the form -----------------------------------------------------------------------------------------------

VECTOR = {
    "$sealed": {
        "key": "key_1b7409ccf0d5a34d3a77",
        "nonce": "VoqtoZMm1GdwdIwZ",
        "text": "qLwD1KbpY1Hd4l6Zch3QBp2zdMm06vhOIXA=",
        "digest": "m7ATN54cYWshanX/u9NIXpaFKs/CyECwqTsuq1dmo1A=",
    }
}
VECTOR_KEYS = {
    "key_1b7409ccf0d5a34d3a77": (
        "01e03a6f73fe64ac36dfa8db1c35931931a6007f85e796433e2234e92583db8405a8f507b7d92679149bf8d47145f9495d66"
        "c4965d84c522cde7ff2fa88dec4d56c4937b13"
    ),
    "digest": (
        "01e03a6f73fe64ac36291c7432d6e67f56220480337d79a197062be94063783525ba2e020eef7cf62562638df1a338646ee9"
        "9c767f544add6b402143e28df9c45f553c18fc"
    ),
}


def test_a_stored_value_of_this_version_opens_in_every_later_one() -> None:
    """Test vectors: rows as they were written, with the master key 00 01 … 1f."""
    desk = Desk()
    desk.rows = {
        id: DataKey(project="web", id=id, wrapped=bytes.fromhex(wrapped), created_at=1)
        for id, wrapped in VECTOR_KEYS.items()
    }
    assert desk.opened(from_value(VECTOR)) == b"whsec_test"


def test_the_form_is_plain_aes_gcm_as_documented() -> None:
    """The same by hand: nothing here comes from the cipher's module."""
    desk = Desk()
    sealed = desk.sealed(b"one")
    master = b64decode(OLD)

    def key(id: str) -> bytes:
        wrapped = desk.rows[id].wrapped
        assert wrapped[:1] == b"\1"
        assert wrapped[1:9] == hashlib.sha256(b"tenure master key\0" + master).digest()[:8]
        about = json.dumps(["tenure data key", "acme", "web", id], separators=(",", ":")).encode()
        return AESGCM(master).decrypt(wrapped[9:21], wrapped[21:], about)

    about = b'["tenure sealed","acme","web","webhook:ci","secret"]'
    assert AESGCM(key(sealed.key)).decrypt(sealed.nonce, sealed.text, about) == b"one"
    assert hmac.digest(key(DIGEST_KEY), b"one", "sha256") == sealed.digest


@pytest.mark.parametrize(
    "damaged",
    [
        {},
        {"$sealed": None},
        {"$sealed": {"key": "k"}},
        VECTOR | {"more": 1},
        {"$sealed": VECTOR["$sealed"] | {"nonce": "AAAA"}},
        {"$sealed": VECTOR["$sealed"] | {"nonce": 7}},
        {"$sealed": VECTOR["$sealed"] | {"text": "no base64!"}},
        {"$sealed": VECTOR["$sealed"] | {"digest": ""}},
        {"$sealed": VECTOR["$sealed"] | {"key": 7}},
        [],
        None,
    ],
)
def test_what_does_not_have_the_form_is_unreadable(damaged: object) -> None:
    with pytest.raises(SecretUnreadable, match="damaged"):
        from_value(damaged)
    with pytest.raises(SecretUnreadable, match="damaged"):
        from_bytes(json.dumps(damaged).encode())


def test_bytes_that_are_not_json_are_unreadable() -> None:
    for stored in (b"", b"{", b"\xff\xfe"):
        with pytest.raises(SecretUnreadable, match="not JSON"):
            from_bytes(stored)


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=10,
)


@given(_JSON, st.lists(st.sampled_from(["list", "a", "b"]), max_size=4))
def test_a_sealed_value_in_input_is_refused_wherever_it_stands(value: object, path: list[str]) -> None:
    refuse_sealed(value, "spec.context")
    assert not is_sealed(value)
    hidden: object = {"$sealed": {}, "beside": value}
    for step in path:
        hidden = [value, hidden] if step == "list" else {step: hidden, "other": value}
    with pytest.raises(InvalidInput, match=r"^spec\.context.* has '\$sealed'"):
        refuse_sealed(hidden, "spec.context")
