"""The linearizability checker itself: it must refuse what cannot be, and must not refuse what can."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from tests.reliability.checker import Operation, explanation, told
from tests.reliability.one_task import OneTask, step

SECOND = 1_000_000
FIRST, SECOND_ONE = "A-001@1:AAAA", "A-001@2:BBBB"

Line = tuple[int, int, str, dict[str, Any], dict[str, Any]]  # asked, answered, verb, given, answer


def history(*lines: Line) -> list[Operation]:
    return [
        Operation(player, verb, given, answer, asked, answered)
        for player, (asked, answered, verb, given, answer) in enumerate(lines)
    ]


def is_explained(*lines: Line) -> bool:
    return explanation(history(*lines), OneTask(), step) is not None


def claim(asked: int, answered: int, session: str, **answer: Any) -> Line:
    return asked, answered, "claim", {"agent": "a", "session": session, "lease": SECOND}, answer


def granted(asked: int, answered: int, receipt: str, *, session: str = "s", **changes: Any) -> Line:
    generation = int(receipt[6])
    answer = {"outcome": "GRANTED", "generation": generation, "attempt": generation, "lease_until": SECOND}
    return claim(asked, answered, session, **answer, receipt=receipt, **changes)


def advance(asked: int, answered: int, by: int = SECOND) -> Line:
    return asked, answered, "advance", {"by": by}, {}


def submitted(asked: int, answered: int, receipt: str, outcome: str, *, data: str = "this", **more: Any) -> Line:
    generation = int(receipt[6])
    told = {"generation": generation, "work_lost": False, "again": False} if outcome == "ACCEPTED" else {}
    return asked, answered, "submit", {"receipt": receipt, "data": data}, {"outcome": outcome, **told, **more}


def second_grant(asked: int, answered: int) -> Line:
    line = granted(asked, answered, SECOND_ONE, session="t")
    line[4]["lease_until"] = 2 * SECOND
    return line


REFUSED = {"current_generation": 2, "work_lost": True}
DENIED = {"outcome": "DENIED_ACTIVE_CLAIM", "generation": 1, "lease_until": SECOND, "yours": False}


# --- what can be --------------------------------------------------------------------------------------------


def test_one_after_the_other_is_explained() -> None:
    assert is_explained(granted(0, 1, FIRST), submitted(2, 3, FIRST, "ACCEPTED"))


def test_a_denial_that_was_asked_first_is_explained_by_a_grant_that_overlaps_it() -> None:
    assert is_explained(claim(0, 10, "t", **DENIED), granted(1, 9, FIRST))


def test_a_take_over_and_the_refusal_of_the_first_holder_are_explained() -> None:
    assert is_explained(
        granted(0, 1, FIRST),
        advance(2, 3),
        second_grant(4, 5),
        submitted(6, 7, FIRST, "STALE_GENERATION", **REFUSED),
        submitted(8, 9, SECOND_ONE, "ACCEPTED"),
    )


def test_a_late_result_is_explained_while_nobody_has_claimed_since() -> None:
    assert is_explained(granted(0, 1, FIRST), advance(2, 3), submitted(4, 5, FIRST, "ACCEPTED"))


def test_a_late_result_and_a_take_over_at_the_same_time_are_explained_one_way_round() -> None:
    taken = claim(4, 9, "t", outcome="DENIED_COMPLETED")
    assert is_explained(granted(0, 1, FIRST), advance(2, 3), taken, submitted(5, 8, FIRST, "ACCEPTED"))


def test_the_order_that_is_found_respects_real_time() -> None:
    lines = history(claim(0, 10, "t", **DENIED), granted(1, 9, FIRST), submitted(11, 12, FIRST, "ACCEPTED"))
    order = explanation(lines, OneTask(), step)
    assert order is not None
    assert [operation.player for operation in order] == [1, 0, 2]


def test_a_call_of_the_fast_path_may_bring_the_time_from_before_it_was_done() -> None:
    def may_be(asked: int, moved: int, *, has_fast_path: bool) -> bool:
        answer = {"outcome": "RENEWED", "generation": 1, "lease_until": 2 * SECOND}
        lines = history(
            granted(0, 1, FIRST), (asked, 10, "renew", {"receipt": FIRST, "lease": 2 * SECOND}, answer),
            advance(moved, moved, SECOND // 2), claim(8, 9, "t", **DENIED),
        )  # fmt: skip
        return explanation(lines, OneTask(), partial(step, has_fast_path=has_fast_path)) is not None

    assert may_be(2, 4, has_fast_path=True)
    assert not may_be(2, 4, has_fast_path=False)
    assert not may_be(5, 4, has_fast_path=True)  # the time was over when it was asked


# --- what cannot --------------------------------------------------------------------------------------------


def test_a_double_grant_is_refused() -> None:
    assert not is_explained(granted(0, 10, FIRST), granted(1, 9, "A-001@1:BBBB", session="t"))


def test_a_second_grant_within_the_lease_is_refused() -> None:
    assert not is_explained(granted(0, 10, FIRST), advance(1, 2, SECOND - 1), second_grant(3, 9))


def test_a_stale_result_that_was_accepted_is_refused() -> None:
    assert not is_explained(granted(0, 1, FIRST), advance(2, 3), second_grant(4, 5), submitted(6, 7, FIRST, "ACCEPTED"))


def test_a_result_that_was_accepted_twice_is_refused() -> None:
    one = submitted(2, 9, FIRST, "ACCEPTED", data="this")
    other = submitted(3, 8, FIRST, "ACCEPTED", data="that")
    assert not is_explained(granted(0, 1, FIRST), one, other)


def test_a_lost_grant_is_refused() -> None:
    """The first was acknowledged, and then the second is told that it is the first."""
    assert not is_explained(granted(0, 1, FIRST), granted(2, 3, "A-001@1:BBBB", session="t"))


def test_a_lost_result_is_refused() -> None:
    denial = claim(4, 5, "t", **DENIED)
    assert not is_explained(granted(0, 1, FIRST), submitted(2, 3, FIRST, "ACCEPTED"), denial)


def test_a_lost_renewal_is_refused() -> None:
    given, answer = {"receipt": FIRST, "lease": 2 * SECOND}, {"outcome": "RENEWED", "generation": 1}
    renewed = (2, 3, "renew", given, answer | {"lease_until": 2 * SECOND})
    assert not is_explained(granted(0, 1, FIRST), renewed, advance(4, 5), second_grant(6, 7))


def test_a_false_refusal_is_refused() -> None:
    assert not is_explained(granted(0, 1, FIRST), submitted(2, 3, FIRST, "STALE_GENERATION", **REFUSED))


def test_the_same_receipt_given_out_twice_is_refused() -> None:
    again = second_grant(4, 5)
    again[4]["receipt"] = FIRST
    assert not is_explained(granted(0, 1, FIRST), advance(2, 3), again)


def test_an_order_against_real_time_is_refused() -> None:
    """A denial that was answered before the grant was even asked for."""
    assert not is_explained(claim(0, 1, "t", **DENIED), granted(2, 3, FIRST))


def test_a_read_of_the_past_is_refused() -> None:
    look = (2, 3, "look", {}, {"state": "ready", "generation": 0})
    assert not is_explained(granted(0, 1, FIRST), look)


@pytest.mark.parametrize("error", ["STORE_UNAVAILABLE", "CONFLICT", "BUG"])
def test_an_error_is_never_an_explanation(error: str) -> None:
    assert not is_explained(granted(0, 1, FIRST), submitted(2, 3, FIRST, error))


def test_many_operations_at_once_are_still_decided() -> None:
    """Every order meets in few states: the memo is what makes this end."""
    denials = [claim(0, 100, f"t{n}", **DENIED) for n in range(12)]
    assert is_explained(granted(0, 100, FIRST), *denials)
    assert not is_explained(granted(0, 100, FIRST), *denials, claim(0, 100, "u", outcome="DENIED_CANCELLED"))


def test_a_history_is_told_in_the_order_of_asking() -> None:
    lines = told(history(granted(5000, 6000, FIRST), advance(1000, 2000))).splitlines()
    assert "advance" in lines[0]
    assert "outcome=GRANTED" in lines[1]
