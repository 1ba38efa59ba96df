"""Receipts: they come back as they were, and nothing that differs in one character does."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenure.core import claims
from tenure.core.errors import InvalidInput
from tenure.core.ids import CROCKFORD, Receipt, encode_base32, is_genuine, parse_receipt, receipt_of
from tenure.core.records import Claim, Task, replace
from tenure.testing.samples import row_of

EPOCH = "0a1b2c3d"
NONCE = bytes(range(16))


def held() -> tuple[Task, Claim]:
    task = row_of(Task, project="p", id="task_1", key="B-003-x", ref="B-003", state="ready", created_at=0, updated_at=0)
    return claims.granted(
        task, None, agent="ann", session="s", user=None, lease=60, now=0, nonce=NONCE, epoch=EPOCH,
    )  # fmt: skip


names = st.from_regex(r"[A-Z]{1,3}-[0-9]{3,5}(::[0-9]{1,3}){0,2}", fullmatch=True)
receipts = st.builds(
    Receipt,
    names,
    st.integers(0, 10**18 - 1),
    st.binary(min_size=4, max_size=4).map(bytes.hex),
    st.binary(min_size=16, max_size=16),
)


@given(receipts)
def test_a_receipt_comes_back_as_it_was(receipt: Receipt) -> None:
    assert parse_receipt(str(receipt)) == receipt


def test_a_receipt_shows_the_task_and_the_generation() -> None:
    text = receipt_of(*held())
    assert text.startswith("B-003@1:")
    assert text == f"B-003@1:{EPOCH}{NONCE.hex()}"


def test_a_receipt_of_an_earlier_version_is_the_same_receipt() -> None:
    of_before = f"B-003@1:{encode_base32(bytes.fromhex(EPOCH) + NONCE)}"
    assert len(of_before) == len("B-003@1:") + 32
    assert parse_receipt(of_before) == parse_receipt(receipt_of(*held())) == Receipt("B-003", 1, EPOCH, NONCE)


@given(st.data())
def test_a_receipt_with_another_character_anywhere_is_refused(data: st.DataObject) -> None:
    task, claim = held()
    text = receipt_of(task, claim)
    at = data.draw(st.integers(0, len(text) - 1))
    other = data.draw(st.characters(codec="utf-8") | st.sampled_from(CROCKFORD + CROCKFORD.lower() + "@:-"))
    if other.upper() == text[at].upper():
        return  # the same token, spelled in small letters
    try:
        receipt = parse_receipt(text[:at] + other + text[at + 1 :])
    except InvalidInput:
        return
    names_this_task = receipt.name == task.ref
    assert not names_this_task or claims.judge(receipt, task, claim, EPOCH).code is not None


@given(st.data())
def test_a_receipt_that_lost_or_gained_a_character_is_refused(data: st.DataObject) -> None:
    task, claim = held()
    text = receipt_of(task, claim)
    at = data.draw(st.integers(0, len(text)))
    extra = data.draw(st.sampled_from(["", *CROCKFORD, "@", ":", "-", " "]))
    changed = text[:at] + extra + (text[at:] if extra else text[at + 1 :])
    if changed == text:
        return
    try:
        receipt = parse_receipt(changed)
    except InvalidInput:
        return
    assert receipt.name != task.ref or claims.judge(receipt, task, claim, EPOCH).code is not None


@given(
    st.text(max_size=60)
    | st.from_regex(r"[A-Z]-[0-9]{3}@[0-9]+:[0-9A-Z]{30,34}", fullmatch=True)
    | st.from_regex(r"[A-Z]-[0-9]{3}@[0-9]+:[0-9a-fA-F]{38,42}", fullmatch=True)
)
def test_any_text_is_a_receipt_or_an_error(text: str) -> None:
    with suppress(InvalidInput):
        receipt = parse_receipt(text)
        token = encode_base32(bytes.fromhex(receipt.epoch) + receipt.nonce)
        of_before = f"{receipt.name}@{receipt.generation}:{token}"
        assert text.upper() in (str(receipt).upper(), of_before.upper())


@pytest.mark.parametrize(
    "text",
    [
        "", "B-004@7", "B-003@-1:" + "0" * 32, "B-003@1:" + "0" * 31, "B-003@1:" + "O" * 32, "B-003@1:" + "0" * 39,
        "B-003@1:" + "g" * 40,
    ],
)  # fmt: skip
def test_what_has_another_shape_is_refused_and_not_repeated(text: str) -> None:
    with pytest.raises(InvalidInput, match="B-003@7:TOKEN") as refused:
        parse_receipt(text)
    assert not text or text not in refused.value.message  # it may be nearly a secret


def test_a_receipt_is_genuine_by_epoch_and_nonce() -> None:
    _, claim = held()
    receipt = Receipt("B-003", 1, EPOCH, NONCE)
    assert is_genuine(receipt, claim)
    assert not is_genuine(receipt, None)
    assert not is_genuine(replace(receipt, epoch="00000000"), claim)
    assert not is_genuine(replace(receipt, nonce=bytes(16)), claim)
