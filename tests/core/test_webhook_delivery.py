"""Outgoing webhooks: the schedule, the order within a task, endpoints that are down or disabled."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from email.utils import formatdate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenure.core import webhook_delivery as rule
from tenure.core.errors import InvalidInput, TooLarge
from tenure.core.events import Event
from tenure.core.messaging_records import Delivery, Webhook
from tenure.core.records import replace
from tenure.core.webhook_delivery import Tried

SECOND, MINUTE, HOUR = 1_000_000, 60_000_000, 3_600_000_000
START = 1_700_000_000 * SECOND
OK, BAD = Tried(200), Tried(500)


def webhook(**fields: object) -> Webhook:
    given = {"url": "https://example.org/", "kinds": ("task.*",), "filter": {}, "created_at": 0, "changed_at": 0}
    return Webhook(project="p", id="ci", **(given | fields))  # type: ignore[arg-type]


def event(sequence: int, kind: str = "task.completed", task: str | None = "t1", **fields: object) -> Event:
    given = {"project": "p", "previous_state": "in_progress", "new_state": "completed"} | fields
    return Event(sequence=sequence, id=f"e{sequence}", time=START, kind=kind, task=task, **given)  # type: ignore[arg-type]


def delivery(sequence: int, task: str | None = "t1", now: int = START) -> Delivery:
    return rule.new_delivery(webhook(), event(sequence, task=task), "task.completed", b"body", now)


class Endpoint:
    """A webhook over time: its rows, its receiver, and what the receiver has seen."""

    def __init__(self, answer: Callable[[Delivery, int], Tried]) -> None:
        self.answer = answer
        self.row = webhook()
        self.rows: dict[str, Delivery] = {}
        self.seen: list[tuple[int, int]] = []  # when, sequence
        self.rounds: list[rule.Round] = []

    def run(self, now: int, new: Sequence[Delivery] = ()) -> rule.Round:
        """One round as a relay makes it: each lane up to its first failure."""
        given = {one.id: one for one in new}
        lanes = rule.lanes(self.row, [*self.rows.values(), *new], now)
        tried: list[tuple[Delivery, Tried | None]] = []
        stopped = False
        for number, lane in enumerate(lanes):
            failed = stopped
            for one in lane:
                result = None if failed else self.answer(one, now)
                if result is not None:
                    self.seen.append((now, one.sequence))
                    failed = not result.is_delivered
                tried.append((one, result))
            stopped = stopped or (failed and number == 0 and rule.is_cautious(self.row))
        done = {one.id for one, _ in tried}
        tried += [(one, None) for one in given.values() if one.id not in done]
        after = rule.after_round(self.row, tried, now)
        self.row = after.webhook
        self.rows |= {one.id: one for one in after.deliveries}
        self.rows = {id: one for id, one in self.rows.items() if one.state == rule.PARKED}
        self.rounds.append(after)
        return after

    def run_until(self, start: int, end: int, step: int) -> int:
        for now in range(start, end, step):
            if rule.lanes(self.row, self.rows.values(), now):
                self.run(now)
            if not self.row.enabled:
                return now
        return end


# --- which events -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kinds", [("task.completed",), ("task.*",), ("*",), ("task.status_changed", "dag.*")])
def test_kinds_are_names_patterns_or_the_change_of_a_status(kinds: tuple[str, ...]) -> None:
    assert rule.check_kinds(kinds) == kinds


@pytest.mark.parametrize("kinds", [(), ("task.complete",), ("nothing.*",), ("a" * 200,)])
def test_a_kind_that_matches_nothing_is_refused(kinds: tuple[str, ...]) -> None:
    with pytest.raises(InvalidInput):
        rule.check_kinds(kinds)


def test_too_many_kinds_are_refused() -> None:
    with pytest.raises(TooLarge, match="at most 50"):
        rule.check_kinds(["task.*"] * 51)


def test_an_event_is_matched_by_kind_filter_project_and_place() -> None:
    assert rule.messages_for(webhook(), event(1), {}) == ("task.completed",)
    assert rule.messages_for(webhook(kinds=("dag.*",)), event(1), {}) == ()
    assert rule.messages_for(webhook(since=1), event(1), {}) == ()
    assert rule.messages_for(webhook(enabled=False), event(1), {}) == ()
    assert rule.messages_for(webhook(), event(1, project="other"), {}) == ()
    where = webhook(filter={"task.type": "code"})
    assert rule.messages_for(where, event(1), {"task": {"type": "code"}}) == ("task.completed",)
    assert rule.messages_for(where, event(1), {"task": {"type": "docs"}}) == ()


def test_a_change_of_status_is_a_message_of_its_own_with_its_own_id() -> None:
    both = webhook(kinds=("task.completed", "task.status_changed"))
    assert rule.messages_for(both, event(1), {}) == ("task.completed", "task.status_changed")
    assert rule.messages_for(both, event(1, "task.progress", previous_state=None, new_state=None), {}) == ()
    same = event(1, "task.edited", previous_state="ready", new_state="ready")
    assert rule.messages_for(both, same, {}) == ()
    ids = [rule.new_delivery(both, event(1), kind, b"", 0).id for kind in rule.messages_for(both, event(1), {})]
    assert ids == ["ci:e1", "ci:e1-status"]


# --- the schedule -------------------------------------------------------------------------------------------


def test_a_delivery_is_tried_after_5_s_30_s_2_min_10_min_1_h_then_every_6_h_for_3_days_then_disabled() -> None:
    endpoint = Endpoint(lambda *_: BAD)
    endpoint.run(START, [delivery(1)])
    ended = endpoint.run_until(START, START + 100 * HOUR, SECOND * 5)
    times = [now - START for now, _ in endpoint.seen]
    gaps = [(after - before) // SECOND for before, after in itertools.pairwise(times)]
    assert gaps == [5, 30, 120, 600, 3600] + [6 * 3600] * 12
    assert ended - START == rule.GIVES_UP == (5 + 30 + 120 + 600 + 3600) * SECOND + 72 * HOUR
    assert (endpoint.row.enabled, endpoint.row.disabled_for) == (False, rule.UNREACHABLE)
    assert [after.disabled for after in endpoint.rounds if after.disabled] == [rule.UNREACHABLE]
    assert endpoint.row.parked == 1
    assert rule.lanes(endpoint.row, endpoint.rows.values(), START + 1000 * HOUR) == []


def test_410_disables_at_once_and_keeps_the_delivery() -> None:
    endpoint = Endpoint(lambda *_: Tried(410))
    after = endpoint.run(START, [delivery(1)])
    assert (after.disabled, after.webhook.enabled, after.webhook.disabled_at) == (rule.GONE, False, START)
    assert after.webhook.parked == len(endpoint.rows) == 1


@pytest.mark.parametrize("status", [200, 201, 202, 204, 299])
def test_any_2xx_is_delivered(status: int) -> None:
    after = Endpoint(lambda *_: Tried(status)).run(START, [delivery(1)])
    (row,) = after.deliveries
    assert (row.state, row.status, row.tries, row.body, row.parked_at) == ("delivered", status, 1, b"", None)
    assert (after.webhook.delivered, after.webhook.parked, after.webhook.success_at) == (1, 0, START)


@pytest.mark.parametrize(
    ("result", "said"),
    [
        (Tried(301), "the receiver answered 301; redirects are not followed"),
        (Tried(400), "the receiver answered 400"),
        (Tried(500), "the receiver answered 500"),
        (Tried(error="https://example.org cannot be reached"), "https://example.org cannot be reached"),
    ],
)
def test_everything_else_is_tried_again_and_says_why(result: Tried, said: str) -> None:
    after = Endpoint(lambda *_: result).run(START, [delivery(1)])
    (row,) = after.deliveries
    assert (row.state, row.error, row.next_at, row.body) == ("parked", said, START + 5 * SECOND, b"body")
    assert (after.webhook.error, after.webhook.failing_since, after.webhook.parked) == (said, START, 1)


@pytest.mark.parametrize("status", [429, 503])
def test_retry_after_is_honoured_for_the_whole_endpoint_and_moves_no_schedule(status: int) -> None:
    answers = iter([Tried(status, retry_after=90 * SECOND), BAD])
    endpoint = Endpoint(lambda *_: next(answers))
    endpoint.run(START, [delivery(1)])
    other = delivery(2, "t2")
    assert rule.lanes(endpoint.row, [*endpoint.rows.values(), other], START + 89 * SECOND) == []
    assert rule.lanes(endpoint.row, [*endpoint.rows.values(), other], START + 90 * SECOND)
    after = endpoint.run(START + 90 * SECOND)
    assert after.deliveries[0].next_at == START + 155 * SECOND


def test_retry_after_of_another_status_does_not_count() -> None:
    after = Endpoint(lambda *_: Tried(500, retry_after=HOUR)).run(START, [delivery(1)])
    assert after.deliveries[0].next_at == START + 5 * SECOND
    assert after.webhook.wait_until is None


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        (None, None),
        ("120", 120 * SECOND),
        (" 7 ", 7 * SECOND),
        ("0", SECOND),
        ("999999999", 24 * HOUR),
        (formatdate(START / SECOND + 60, usegmt=True), MINUTE),
        (formatdate(START / SECOND - 60, usegmt=True), SECOND),
        ("soon", None),
        ("-5", None),
        ("1e3", None),
        ("٣", None),
        ("Mon, 99 Foo 2020", None),
        ("", None),
    ],
)
def test_a_retry_after_is_seconds_or_a_date(text: str | None, wanted: int | None) -> None:
    assert rule.retry_after(text, START) == wanted


# --- order --------------------------------------------------------------------------------------------------


def test_later_deliveries_of_a_task_wait_behind_the_parked_one_and_other_tasks_go_on() -> None:
    endpoint = Endpoint(lambda one, _: BAD if one.sequence == 1 else OK)
    endpoint.run(START, [delivery(1, "t1"), delivery(2, "t2"), delivery(3, "t1")])
    assert [sequence for _, sequence in endpoint.seen] == [1, 2]
    assert sorted(one.sequence for one in endpoint.rows.values()) == [1, 3]
    endpoint.run(START + SECOND, [delivery(4, "t1"), delivery(5, "t3")])
    assert [sequence for _, sequence in endpoint.seen] == [1, 2, 5]
    endpoint.answer = lambda *_: OK
    endpoint.run(START + 6 * SECOND)
    assert [sequence for _, sequence in endpoint.seen] == [1, 2, 5, 1, 3, 4]
    assert (endpoint.row.parked, endpoint.row.delivered, endpoint.rows) == (0, 5, {})


def test_deliveries_without_a_task_do_not_wait_for_each_other() -> None:
    found = rule.lanes(webhook(), [delivery(1, None), delivery(2, None)], START)
    assert [[one.sequence for one in lane] for lane in found] == [[1], [2]]


@given(st.data())
def test_whatever_the_receiver_does_each_task_is_delivered_in_order_and_nothing_is_lost(data: st.DataObject) -> None:
    results = st.sampled_from([OK, OK, BAD, Tried(503, retry_after=3 * SECOND), Tried(error="down")])
    endpoint = Endpoint(lambda *_: data.draw(results))
    now, sequence, sent = START, 0, set[int]()
    for _ in range(data.draw(st.integers(1, 12))):
        new = []
        for task in data.draw(st.lists(st.sampled_from(["a", "b", None]), max_size=4)):
            sequence += 1
            new.append(delivery(sequence, task, now))
            sent.add(sequence)
        endpoint.run(now, new)
        assert endpoint.row.parked == len(endpoint.rows)
        now += data.draw(st.sampled_from([SECOND, 6 * SECOND, MINUTE, HOUR]))
    endpoint.answer = lambda *_: OK
    now += 24 * HOUR
    for _ in range(3):
        endpoint.run(now)
        now += 24 * HOUR
    assert endpoint.rows == {}
    assert {number for _, number in endpoint.seen} == sent
    finals = {
        one.sequence: (number, one.task)
        for number, after in enumerate(endpoint.rounds)
        for one in after.deliveries
        if one.state == "delivered"
    }
    assert set(finals) == sent
    for task in ("a", "b"):
        rounds = [finals[number][0] for number in sorted(finals) if finals[number][1] == task]
        assert rounds == sorted(rounds)
    assert endpoint.row.delivered == len(sent)


def test_a_round_counts_on_the_rows_as_they_are_stored_now() -> None:
    """Its deliveries were parked, and one was delivered by another leader, while the round was under way."""
    first, second = delivery(1), delivery(2, "t2")
    parked = rule.after_round(webhook(), [(first, None), (second, None)], START)
    stored = {one.id: one for one in parked.deliveries}
    stored[second.id] = replace(stored[second.id], state="delivered")
    tried = rule.on_stored([(first, OK), (replace(second, parked_at=START), BAD)], stored)
    after = rule.after_round(replace(parked.webhook, parked=1, delivered=1), tried, START + SECOND)
    assert (after.webhook.parked, after.webhook.delivered) == (1, 2)
    assert [(one.state, one.parked_at) for one in after.deliveries] == [
        ("delivered", START),
        ("parked", START + SECOND),
    ]
    assert rule.on_stored([(first, OK)], {}) == [(first, OK)]


# --- down, back, disabled -----------------------------------------------------------------------------------


def test_an_endpoint_without_success_for_ten_minutes_is_down_and_nothing_is_read_for_it() -> None:
    endpoint = Endpoint(lambda *_: BAD)
    endpoint.run(START, [delivery(1)])
    assert rule.is_reading(endpoint.row, START + 10 * MINUTE - 1)
    assert not rule.is_reading(endpoint.row, START + 10 * MINUTE)
    after = endpoint.run(START + 13 * MINUTE)
    assert after.is_down
    assert endpoint.row.down_since == START + 13 * MINUTE


def test_one_success_within_ten_minutes_keeps_it_up() -> None:
    endpoint = Endpoint(lambda one, now: OK if one.task == "good" else BAD)
    endpoint.run(START, [delivery(1)])
    endpoint.run(START + 9 * MINUTE, [delivery(2, "good")])
    endpoint.run(START + 11 * MINUTE, [delivery(3)])
    assert rule.is_reading(endpoint.row, START + 11 * MINUTE)
    assert endpoint.row.down_since is None


def test_more_than_a_thousand_parked_deliveries_make_it_down() -> None:
    endpoint = Endpoint(lambda *_: BAD)
    endpoint.run(START, [delivery(number) for number in range(1, 1001)])
    assert (endpoint.row.parked, endpoint.row.down_since) == (1000, None)
    after = endpoint.run(START + SECOND, [delivery(1001)])
    assert after.is_down
    assert not rule.is_reading(endpoint.row, START + SECOND)


def test_a_thousand_parked_behind_one_delivery_of_a_healthy_endpoint_are_drained_without_a_pause() -> None:
    endpoint = Endpoint(lambda *_: BAD)
    endpoint.run(START, [delivery(number) for number in range(1, 1002)])
    endpoint.answer = lambda *_: OK
    assert endpoint.run(START + MINUTE).is_back
    endpoint.run(START + MINUTE)
    assert (endpoint.rows, endpoint.row.parked, endpoint.row.down_since) == ({}, 0, None)


def test_while_it_is_down_one_delivery_is_tried_at_a_time_and_each_in_turn() -> None:
    endpoint = Endpoint(lambda *_: BAD)
    endpoint.run(START, [delivery(number, f"t{number}") for number in range(1, 101)])
    endpoint.run(START + 11 * MINUTE)
    assert endpoint.row.down_since is not None
    endpoint.seen.clear()
    endpoint.run_until(START + 11 * MINUTE, START + 20 * HOUR, MINUTE)
    assert len(endpoint.seen) == 5
    assert len({sequence for _, sequence in endpoint.seen}) == 5


def test_with_the_first_success_everything_parked_is_due_with_a_new_schedule() -> None:
    endpoint = Endpoint(lambda *_: BAD)
    endpoint.run(START, [delivery(number, f"t{number}") for number in range(1, 11)])
    endpoint.run_until(START, START + 40 * HOUR, MINUTE)
    endpoint.answer = lambda *_: OK
    now = endpoint.run_until(START + 40 * HOUR, START + 47 * HOUR, MINUTE)
    assert endpoint.rows == {}
    assert endpoint.row.down_since is None
    back = [after.is_back for after in endpoint.rounds]
    assert back.count(True) == 1
    # Between the first success and the last one there is no hour of waiting.
    good = [one.tried_at for after in endpoint.rounds for one in after.deliveries if one.state == "delivered"]
    assert max(good) - min(good) <= MINUTE  # type: ignore[type-var,operator]
    assert now == START + 47 * HOUR


def test_what_fails_after_a_return_is_not_given_up_for_failures_before_it() -> None:
    endpoint = Endpoint(lambda *_: BAD)
    endpoint.run(START, [delivery(1, "a"), delivery(2, "b")])
    endpoint.run_until(START, START + 60 * HOUR, MINUTE)
    endpoint.answer = lambda one, _: OK if one.task == "a" else BAD
    endpoint.run_until(START + 60 * HOUR, START + 80 * HOUR, MINUTE)
    assert endpoint.row.failed == 0
    assert [one.task for one in endpoint.rows.values()] == ["b"]


def test_one_delivery_that_a_healthy_endpoint_refuses_is_given_up_and_the_webhook_stays() -> None:
    endpoint = Endpoint(lambda one, _: BAD if one.task == "bad" else OK)
    endpoint.run(START, [delivery(1, "bad"), delivery(2, "bad")])
    number = 2
    for now in range(START + MINUTE, START + 80 * HOUR, MINUTE):
        number += 1
        endpoint.run(now, [delivery(number, "good", now)])
        if endpoint.row.failed:
            break
    assert endpoint.row.enabled
    assert endpoint.row.failed == 1
    given_up = [one for after in endpoint.rounds for one in after.deliveries if one.state == "failed"]
    assert [(one.sequence, one.body) for one in given_up] == [(1, b"body")]
    assert [one.sequence for one in endpoint.rows.values()] == [2]


def test_what_was_disabled_is_resumed_with_everything_due_and_the_whole_schedule() -> None:
    endpoint = Endpoint(lambda *_: BAD)
    endpoint.run(START, [delivery(1)])
    endpoint.run_until(START, START + 100 * HOUR, MINUTE)
    assert not endpoint.row.enabled
    now = START + 200 * HOUR
    endpoint.row = rule.resumed(endpoint.row, now)
    assert rule.is_reading(endpoint.row, now)
    endpoint.run(now)
    assert endpoint.row.enabled
    assert [one.next_at for one in endpoint.rows.values()] == [now + 5 * SECOND]


def test_a_paused_webhook_sends_nothing_and_keeps_what_is_parked() -> None:
    row = rule.paused(webhook(), "paused by ann", START)
    assert rule.lanes(row, [delivery(1)], START) == []
    assert not rule.is_reading(row, START)
    assert rule.resumed(row, START).disabled_for is None
    kept = rule.resumed(rule.paused(webhook(), "paused by ann", START, 40), START + HOUR)
    assert rule.readings([kept], 90, START + HOUR) == {40: [kept]}
    assert rule.paused(webhook(sequence=7), "", START, 40).sequence == 7


def test_a_delivery_is_replayed_under_the_same_message_id() -> None:
    endpoint = Endpoint(lambda *_: OK)
    (done,) = endpoint.run(START, [delivery(1)]).deliveries
    endpoint.row, again = rule.replayed(endpoint.row, done, b"from the log", START + HOUR)
    assert (again.id, again.message, again.state, again.body) == (done.id, done.message, "parked", b"from the log")
    endpoint.rows[again.id] = again
    assert endpoint.row.parked == 1
    endpoint.run(START + HOUR)
    assert (endpoint.row.parked, endpoint.row.delivered) == (0, 2)


def test_of_the_delivery_log_the_newest_thousand_are_kept_and_all_that_is_parked() -> None:
    done = [replace(delivery(number), state="delivered", tried_at=START + number) for number in range(1, 1004)]
    assert [one.sequence for one in rule.surplus([delivery(0), *reversed(done)])] == [1, 2, 3]
    assert rule.surplus(done[:1000]) == []


# --- reading ------------------------------------------------------------------------------------------------


def test_webhooks_share_one_reading_and_one_that_was_down_has_its_own_until_it_has_caught_up() -> None:
    a, b, late = webhook(), webhook(), webhook(sequence=10)
    down = webhook(down_since=START, sequence=5)
    found = rule.readings([a, b, late, down], 50, START)
    assert {place: len(rows) for place, rows in found.items()} == {50: 2, 10: 1}
    assert rule.moved(late, 30, 50, START).sequence == 30
    assert rule.moved(late, 55, 60, START).sequence == 55  # the others went on to 60 in the same step
    assert rule.moved(late, 50, 50, START).sequence is None
    assert rule.moved(replace(a, down_since=START), 50, 50, START).sequence == 50
    assert rule.moved(a, 60, 60, START).sequence is None
