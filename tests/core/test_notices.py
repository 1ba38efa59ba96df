"""Notices to people: which events are one, and how few messages they make."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenure.core import notices as rule
from tenure.core.events import Event
from tenure.core.notices import Channel, Notice, Summary

SECOND, MINUTE, HOUR = 1_000_000, 60_000_000, 3_600_000_000
START = 1_700_000_000 * SECOND


def notice(at: int, kind: str = rule.DEAD_LETTER, text: str = "A-001 is dead") -> Notice:
    return Notice(kind=kind, at=at, text=text, project="web")


def event(kind: str, **fields: object) -> Event:
    return Event(id="e", time=START, kind=kind, project="web", key="A-001", agent="ann", **fields)  # type: ignore[arg-type]


def sent_for(times: list[int], until: int) -> list[tuple[int, Summary]]:
    """The messages of one channel, where notices come at these times and it is looked at whenever it is due."""
    channel: Channel = {}
    found: list[tuple[int, Summary]] = []
    left = sorted(times)
    now = START
    while now <= until:
        while left and left[0] <= now:
            channel = rule.added(channel, [notice(left.pop(0))])
        channel, summaries = rule.taken(channel, now)
        found += [(now, one) for one in summaries]
        coming = [at for at in (left[0] if left else None, rule.due_at(channel)) if at is not None]
        if not coming:
            break
        now = max(now, min(coming))
    return found


# --- what is a notice ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("found", "kind"),
    [
        (event("task.dead_lettered", message="boom"), rule.DEAD_LETTER),
        (event("task.question", message="which?"), rule.REVIEW),
        (event("task.validating", details={"validator": "review"}), rule.REVIEW),
        (event("task.paused", details={"budget": "project:"}), rule.BUDGET_PAUSE),
        (event("task.paused", patch=(("task", "t", {"pauses": [{"cause": "budget"}]}),)), rule.BUDGET_PAUSE),
        (event("task.paused", patch=(("task", "t", {"pauses": [{"cause": "review"}]}),)), rule.REVIEW),
        (event("task.process_gone"), rule.AGENT_DIED),
        (event("sink.behind"), rule.SINK_BEHIND),
        (event("webhook.disabled"), rule.WEBHOOK_DISABLED),
    ],
)
def test_what_wants_a_person_is_a_notice(found: Event, kind: str) -> None:
    made = rule.notice_of(found)
    assert made is not None
    assert (made.kind, made.at, made.project, made.task) == (kind, START, "web", "A-001")
    assert made.kind in rule.KINDS
    assert found.kind in rule.EVENTS
    assert "\n" not in made.text


@pytest.mark.parametrize(
    "found",
    [
        event("task.completed"),
        event("task.validating", details={"validator": "test-pass"}),
        event("task.paused", patch=(("task", "t", {"pauses": [{"cause": "person"}]}),)),
        event("task.paused", patch=(("task", "t", None), ("claim", "c", {"state": "released"}))),
        event("agent.stale"),
        event("budget.alert"),
    ],
)
def test_what_goes_its_way_is_no_notice(found: Event) -> None:
    assert rule.notice_of(found) is None


def test_a_long_text_of_an_agent_is_cut_to_one_line() -> None:
    made = rule.notice_of(event("task.dead_lettered", message="a\nb\x1b[31m" + "x" * 5000))
    assert made is not None
    assert len(made.text) <= 500
    assert made.text.isprintable()


@pytest.mark.parametrize(
    ("stale", "living", "told", "expected"),
    [(2, 3, False, True), (2, 4, False, False), (1, 1, False, False), (5, 6, True, False), (3, 3, False, True)],
)
def test_most_agents_stale_is_more_than_half_and_at_least_two(
    stale: int, living: int, told: bool, expected: bool
) -> None:
    assert (rule.agents_stale(stale, living, told, START, "web") is not None) is expected


def test_a_store_that_is_unavailable_for_five_minutes_is_a_notice_once() -> None:
    assert rule.store_unavailable(None, False, START) is None
    assert rule.store_unavailable(START, False, START + 5 * MINUTE - 1) is None
    made = rule.store_unavailable(START, False, START + 5 * MINUTE)
    assert made is not None
    assert made.text == "the store has been unavailable for 5 minutes"
    assert rule.store_unavailable(START, True, START + 9 * MINUTE) is None


# --- how many messages --------------------------------------------------------------------------------------


def test_the_first_notice_goes_out_at_once_and_the_next_ones_together_after_a_minute() -> None:
    found = sent_for([START, START + SECOND, START + 2 * SECOND], START + HOUR)
    assert [(at - START, one.count) for at, one in found] == [(0, 1), (MINUTE, 2)]


@given(st.lists(st.integers(0, MINUTE - 1), min_size=500, max_size=500), st.lists(st.integers(-HOUR, -1), max_size=3))
def test_500_dead_letters_in_a_minute_make_at_most_two_messages(burst: list[int], before: list[int]) -> None:
    start = START + 2 * HOUR
    found = sent_for([start + at for at in (*before, *burst)], start + 3 * HOUR)
    about_burst = [one for at, one in found if at >= start]
    assert len(about_burst) <= 2
    assert sum(one.count for _, one in found) == 500 + len(before)


@given(
    st.lists(st.integers(0, 3 * HOUR), max_size=300) | st.lists(st.integers(0, 2 * HOUR), min_size=150, max_size=300)
)
def test_a_channel_gets_at_most_20_messages_of_a_kind_in_any_hour_and_every_notice_is_counted(times: list[int]) -> None:
    found = sent_for([START + at for at in times], START + 10 * HOUR)
    when = [at for at, _ in found]
    assert sum(one.count for _, one in found) == len(times)
    for first, later in zip(when, when[20:], strict=False):
        assert later - first >= HOUR
    assert all(after - before >= MINUTE for before, after in itertools.pairwise(when))


def test_beyond_the_limit_of_the_hour_one_digest_comes() -> None:
    found = sent_for([START + number * MINUTE for number in range(60)], START + 2 * HOUR)
    assert [one.is_digest for _, one in found] == [False] * 20 + [True]
    at, digest = found[-1]
    assert (at - START, digest.count, digest.since) == (HOUR, 40, START + 20 * MINUTE)


def test_kinds_have_limits_of_their_own() -> None:
    channel = rule.added({}, [notice(START), notice(START, rule.REVIEW), notice(START)])
    channel, summaries = rule.taken(channel, START)
    assert sorted((one.kind, one.count) for one in summaries) == [("dead letter", 2), ("review wanted", 1)]
    assert rule.due_at(channel) is None


def test_a_message_that_cannot_be_sent_waits_with_what_came_meanwhile() -> None:
    channel, (summary,) = rule.taken(rule.added({}, [notice(START)]), START)
    channel = rule.put_back(rule.added(channel, [notice(START + SECOND, text="later")]), summary)
    assert rule.due_at(channel) == START + MINUTE
    channel, (again,) = rule.taken(channel, START + MINUTE)
    assert [one.text for one in again.first] == ["A-001 is dead", "later"]
    assert (again.count, again.since) == (2, START)


def test_a_message_names_ten_and_counts_the_rest() -> None:
    channel = rule.added({}, [notice(START + number, text=f"A-{number:03} is dead") for number in range(500)])
    _, (summary,) = rule.taken(channel, START)
    assert summary.title == "500 tasks are dead letters and wait for a person"
    assert len(summary.lines) == 11
    assert (summary.lines[0], summary.lines[-1]) == ("web: A-000 is dead", "and 490 more")
    _, (one,) = rule.taken(rule.added({}, [notice(START)]), START)
    assert one.title == "dead letter: A-001 is dead"


def test_a_channel_is_kept_and_read_back() -> None:
    channel, _ = rule.taken(rule.added({}, [notice(START)]), START)
    channel = rule.added(channel, [notice(START + 1)])
    assert rule.from_plain(rule.to_plain(channel)) == channel
