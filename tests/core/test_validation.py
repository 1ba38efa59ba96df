"""The rules of validation: contracts, takers, and what follows from a verdict."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenure.core import validation as v
from tenure.core.errors import InvalidInput
from tenure.core.ids import Receipt, parse_receipt
from tenure.core.lifecycle import ALLOWED, STATES
from tenure.core.records import Claim, RetryPolicy, Task, Validation, replace
from tenure.core.settle import is_plain

TASK = "task_01HF7YAT00000000G000000001"


def a_task(**fields: Any) -> Task:
    given: dict[str, Any] = {
        "project": "p", "id": TASK, "key": "A-001-x", "ref": "A-001", "track": "A", "sequence": 1, "dag": "d",
        "state": "validating", "generation": 3, "attempts": 1, "created_at": 0, "updated_at": 0, "checked": True,
    }  # fmt: skip
    return Task(**{**given, **fields})


def a_claim(**fields: Any) -> Claim:
    return Claim(
        project="p", id=f"{TASK}@3", task=TASK, generation=3, run=1, attempt=1, nonce=b"n" * 16, epoch="e", agent="ann",
        session="s", acquired_at=0, lease=1, state="released", reason="SUBMITTED", **fields,
    )  # fmt: skip


def a_row(**fields: Any) -> Validation:
    return Validation(
        project="p", id=f"{TASK}@3", task=TASK, claimed=3, run=1, result="r", validator="test-pass", created_at=0,
        **fields,
    )  # fmt: skip


def take(row: Validation, now: int = 0, **fields: Any) -> Validation:
    given: dict[str, Any] = {
        "holder": "vera", "agent": None, "lease": 60, "now": now, "nonce": b"v" * 16, "epoch": "0badcafe",
        "request_id": None,
    }  # fmt: skip
    return v.taken(row, **{**given, **fields})


def receipt_of(row: Validation) -> Receipt:
    return Receipt(v.receipt_name(row), row.generation, row.epoch, row.nonce)


@pytest.mark.parametrize(
    ("output", "word"),
    [
        ({"validation": "Regex"}, "validation"),
        ({"validation": "a b"}, "validation"),
        ({"validation": "x" * 65}, "validation"),
        ({"settings": {"pattern": "x"}}, "settings"),
        ({"validation": "review", "settings": {"by": "bo"}}, "settings"),
    ],
)
def test_a_contract_of_no_shape_is_refused(output: dict[str, Any], word: str) -> None:
    with pytest.raises(InvalidInput, match=word):
        v.check_contract(output)


def test_no_contract_and_a_plug_in_s_are_taken() -> None:
    for output in ({}, {"type": "json"}, {"validation": "none"}, {"validation": "acme.lint", "settings": {"a": 1}}):
        v.check_contract(output)


def test_what_is_checked_is_never_plain() -> None:
    plain = a_task(state="running", checked=False)
    assert is_plain(plain)
    assert not is_plain(replace(plain, checked=True))


@given(st.text("0123456789ABCDEFGHJKMNPQRSTVWXYZ", min_size=26, max_size=26), st.integers(1, 1 << 53))
def test_a_taker_s_receipt_names_its_row_and_nothing_else(id: str, claimed: int) -> None:
    row = a_row(generation=2, nonce=b"v" * 16, epoch="0badcafe")
    row = replace(row, task=f"task_{id}", claimed=claimed, id=f"task_{id}@{claimed}")
    assert v.row_of(parse_receipt(str(receipt_of(row)))) == row.id


@pytest.mark.parametrize("name", ["A-001", "task_01HF7YAT00000000G000000001", "A-001::2", "hold_x-3"])
def test_another_receipt_is_none(name: str) -> None:
    with pytest.raises(InvalidInput, match="a claim's"):
        v.row_of(Receipt(name, 1, "0badcafe", b"n" * 16))


@given(st.lists(st.integers(0, 100), min_size=1, max_size=6), st.data())
def test_of_all_takers_only_the_last_has_a_say_whatever_the_clock_says(pauses: list[int], data: st.DataObject) -> None:
    now, row, receipts = 0, a_row(), []
    for n, pause in enumerate(pauses):
        now += pause
        row = take(row, now, nonce=bytes([n]) * 16)
        receipts.append(receipt_of(row))
    codes = [v.judge(receipt, row, a_task(), "0badcafe") for receipt in receipts]
    assert codes == ["STALE_GENERATION"] * (len(receipts) - 1) + [None]
    other = replace(receipts[-1], nonce=data.draw(st.binary(min_size=16, max_size=16).filter(lambda b: b != row.nonce)))
    assert v.judge(other, row, a_task(), "0badcafe") == "SESSION_MISMATCH"
    assert v.judge(receipts[-1], row, a_task(), "00000000") == "STALE_EPOCH"
    assert row.tries == row.generation == len(pauses)


@given(st.sampled_from(STATES), st.sampled_from((v.OPEN, v.PASSED, v.REFUSED, v.WITHDRAWN)), st.integers(3, 4))
def test_a_verdict_counts_only_while_the_task_waits_for_it(state: str, row_state: str, generation: int) -> None:
    row = take(a_row(state=row_state))
    code = v.judge(receipt_of(row), row, a_task(state=state, generation=generation), "0badcafe")
    is_wanted = state == "validating" and row_state == v.OPEN and generation == 3
    assert (code is None) == is_wanted


@given(st.integers(1, 3), st.integers(1, 5), st.booleans(), st.floats(0, 1, exclude_max=True))
def test_a_refused_output_goes_where_a_failed_attempt_goes(attempts: int, most: int, paused: bool, roll: float) -> None:
    task = a_task(attempts=min(attempts, most), max_attempts=most)
    row = take(a_row(held_back="a person said so" if paused else None))
    free, over = v.refused(task, a_claim(), row, "no", RetryPolicy(), 1000, roll)
    assert ("validating", free.state) in ALLOWED
    wanted = "dead_lettered" if task.attempts >= most else "paused" if paused else "retrying"
    assert free.state == wanted
    assert free.attempts == task.attempts, "it was counted with the claim"
    assert free.last_error is not None
    assert (free.last_error.error_class, over.error_class, over.result_accepted) == (
        "invalid_output", "invalid_output", False,
    )  # fmt: skip
    assert free.state != "paused" or (free.reason and free.state_before == "retrying")


@given(st.integers(0, 12), st.booleans(), st.sampled_from(("validating", "paused")))
def test_what_is_withdrawn_never_counts(back: int, counted: bool, state: str) -> None:
    task = a_task(state=state, state_before="validating" if state == "paused" else None, given_back=min(back, 10))
    free, over = v.withdrawn(task, a_claim(counted=counted), 5)
    assert (task.attempts - free.attempts, free.given_back) == (counted, task.given_back)
    assert over.counted is False
    assert (free.state, free.state_before) == (("paused", "ready") if state == "paused" else ("ready", None))


@given(st.integers(1, 40))
def test_the_pauses_between_tries_grow_to_an_end(tries: int) -> None:
    row = v.undecided(take(a_row(tries=tries - 1)), "away", None, 100)
    assert row.retry_at is not None
    assert v.FIRST_WAIT <= row.retry_at - 100 <= v.LONGEST_WAIT
    assert not v.is_running(row, "0badcafe", 100)
    assert not v.is_waiting(row, "0badcafe", 100)
    assert v.is_waiting(row, "0badcafe", row.retry_at)
    assert v.is_given_up(row) == (tries >= v.MOST_TRIES)
    assert v.gone_on(row).tries == 0
