"""Schedules: compared with a reckoning minute by minute, across the days on which clocks change."""

import time
from datetime import UTC, date, datetime, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenure.core.errors import InvalidInput
from tenure.core.schedules import (
    ALL,
    GRACE,
    MISFIRES,
    MOST_AT_ONCE,
    ONCE,
    SKIP,
    check_schedule,
    due_ticks,
    next_tick,
)  # fmt: skip

MINUTE = 60 * 1_000_000
# The days around each change of 2026 in two zones, one with half an hour, and one that never changes.
CHANGES = {
    "America/New_York": (date(2026, 3, 8), date(2026, 11, 1)),
    "Europe/Berlin": (date(2026, 3, 29), date(2026, 10, 25)),
    "Australia/Lord_Howe": (date(2026, 10, 4),),  # in autumn half an hour comes twice: see the module's own words
    "Asia/Kolkata": (date(2026, 3, 29),),
}
DAYS = [(zone, day) for zone, days in CHANGES.items() for day in days]


def at(text: str, zone: str = "UTC", fold: int = 0) -> int:
    return micros(datetime.fromisoformat(text).replace(tzinfo=ZoneInfo(zone), fold=fold))


def micros(moment: datetime) -> int:
    return round(moment.timestamp()) * 1_000_000


def shown(tick: int | None, zone: str) -> str:
    assert tick is not None
    return datetime.fromtimestamp(tick / 1e6, ZoneInfo(zone)).isoformat(timespec="minutes")


def ticks_of(cron: str, zone: str, after: int, until: int) -> list[int]:
    found = []
    tick = next_tick(cron, zone, after)
    while tick is not None and tick <= until:
        found.append(tick)
        tick = next_tick(cron, zone, tick)
    return found


# --- where clocks change ---


@pytest.mark.parametrize(
    ("cron", "zone", "after", "expected"),
    [
        # skipped in spring: right after the gap, once
        ("30 2 * * *", "America/New_York", "2026-03-08T00:00", "2026-03-08T03:00-04:00"),
        ("15,45 2 * * *", "Europe/Berlin", "2026-03-29T00:00", "2026-03-29T03:00+02:00"),
        ("15 2 * * *", "Australia/Lord_Howe", "2026-10-04T00:00", "2026-10-04T02:30+11:00"),
        # twice in autumn: the first time
        ("30 1 * * *", "America/New_York", "2026-11-01T00:00", "2026-11-01T01:30-04:00"),
        ("30 2 * * *", "Europe/Berlin", "2026-10-25T00:00", "2026-10-25T02:30+02:00"),
        # as ever on other days
        ("30 2 * * *", "America/New_York", "2026-03-07T00:00", "2026-03-07T02:30-05:00"),
        ("0 9 * * mon-fri", "Europe/Berlin", "2026-03-28T00:00", "2026-03-30T09:00+02:00"),
        ("@daily", "Europe/Berlin", "2026-10-25T00:00", "2026-10-26T00:00+01:00"),
        ("0 0 29 2 *", "UTC", "2026-01-01T00:00", "2028-02-29T00:00+00:00"),
    ],
)
def test_the_next_tick(cron: str, zone: str, after: str, expected: str) -> None:
    assert shown(next_tick(cron, zone, at(after, zone)), zone) == expected


def test_a_fixed_time_in_the_repeated_hour_does_not_come_twice() -> None:
    zone = "America/New_York"
    for second_time in ("2026-11-01T01:10", "2026-11-01T01:40"):
        tick = next_tick("30 1 * * *", zone, at(second_time, zone, fold=1))
        assert shown(tick, zone) == "2026-11-02T01:30-05:00"


def test_every_quarter_of_an_hour_goes_by_real_time() -> None:
    for zone, day in DAYS:
        midnight = datetime(day.year, day.month, day.day, tzinfo=ZoneInfo(zone))
        start, end = micros(midnight - timedelta(seconds=1)), micros(midnight + timedelta(days=1, hours=6))
        ticks = ticks_of("*/15 * * * *", zone, start, end)
        assert {later - tick for tick, later in pairwise(ticks)} == {15 * MINUTE}


def reckoned(cron: str, zone: str, start: int, end: int) -> set[int]:
    """All ticks in (start, end], minute by minute, for fields that are `*`, a number or a list."""
    minute, hour, *_ = cron.split()
    minutes = set(range(60)) if minute == "*" else {int(n) for n in minute.split(",")}
    hours = set(range(24)) if hour == "*" else {int(n) for n in hour.split(",")}
    info, found = ZoneInfo(zone), set[int]()
    if "*" in (minute, hour):
        for instant in range(start - start % MINUTE, end + 1, MINUTE):
            local = datetime.fromtimestamp(instant / 1e6, info)
            if local.minute in minutes and local.hour in hours:
                found.add(instant)
    else:
        day = datetime.fromtimestamp(start / 1e6, info).date() - timedelta(days=1)
        while micros(datetime(day.year, day.month, day.day, tzinfo=info)) <= end:
            for h in hours:
                for m in minutes:
                    wall = datetime(day.year, day.month, day.day, h, m)  # noqa: DTZ001 the clock on the wall
                    while (real := wall.replace(tzinfo=info).astimezone(UTC)).astimezone(info).replace(
                        tzinfo=None
                    ) != wall:
                        wall += timedelta(minutes=1)  # in the gap
                    found.add(micros(real))
            day += timedelta(days=1)
    return {tick for tick in found if start < tick <= end}


SOME_HOURS = st.lists(st.integers(0, 4), min_size=1, max_size=3).map(lambda hours: ",".join(map(str, hours)))
SOME_MINUTES = st.lists(st.integers(0, 59), min_size=1, max_size=4).map(lambda minutes: ",".join(map(str, minutes)))
CRONS = st.builds("{} {} * * *".format, SOME_MINUTES | st.just("*"), SOME_HOURS | st.just("*"))


@given(CRONS, st.sampled_from(DAYS), st.integers(-1440, 1440), st.integers(1, 1000))
def test_ticks_are_those_of_a_reckoning_minute_by_minute(
    cron: str, where: tuple[str, date], begin: int, minutes: int
) -> None:
    zone, day = where
    start = micros(datetime(day.year, day.month, day.day, tzinfo=ZoneInfo(zone))) + begin * MINUTE
    end = start + minutes * MINUTE
    assert ticks_of(cron, zone, start, end) == sorted(reckoned(cron, zone, start, end))


@given(CRONS, st.sampled_from(DAYS), st.integers(-3000, 3000), st.integers(0, 3000))
def test_a_later_start_never_has_an_earlier_tick(cron: str, where: tuple[str, date], begin: int, more: int) -> None:
    zone, day = where
    start = micros(datetime(day.year, day.month, day.day, tzinfo=UTC)) + begin * MINUTE
    first, second = next_tick(cron, zone, start), next_tick(cron, zone, start + more * MINUTE)
    assert first is not None
    assert second is not None
    assert start < first <= second
    assert next_tick(cron, zone, first - 1) == first


# --- what was missed ---


@given(CRONS, st.sampled_from(DAYS), st.integers(-1440, 1440), st.integers(0, 1000), st.sampled_from(MISFIRES))
def test_what_is_due_is_the_end_of_all_that_is(
    cron: str, where: tuple[str, date], begin: int, minutes: int, misfire: str
) -> None:
    zone, day = where
    since = micros(datetime(day.year, day.month, day.day, tzinfo=UTC)) + begin * MINUTE
    now = since + minutes * MINUTE
    every = ticks_of(cron, zone, since, now)
    due = due_ticks(cron, zone, since=since, now=now, misfire=misfire)
    wanted = {
        SKIP: [tick for tick in every if now - tick <= GRACE],
        ONCE: every[-1:],
        ALL: every[-MOST_AT_ONCE:],
    }[misfire]
    assert list(due.ticks) == wanted
    assert due.missed == (len(wanted) < len(every))


def test_policies_after_a_night_of_silence() -> None:
    since, now = at("2026-06-01T22:30"), at("2026-06-02T06:00") + 5_000_000
    assert [shown(t, "UTC")[11:16] for t in due_ticks("0 * * * *", "UTC", since=since, now=now, misfire=ALL).ticks] == [
        "23:00", "00:00", "01:00", "02:00", "03:00", "04:00", "05:00", "06:00",
    ]  # fmt: skip
    once = due_ticks("0 * * * *", "UTC", since=since, now=now, misfire=ONCE)
    assert ([shown(t, "UTC")[11:16] for t in once.ticks], once.missed) == (["06:00"], True)
    late = now + 10 * MINUTE
    assert due_ticks("0 * * * *", "UTC", since=since, now=late, misfire=SKIP) == ((), True)
    assert due_ticks("0 * * * *", "UTC", since=since, now=late, misfire=ONCE) == once
    assert due_ticks("0 * * * *", "UTC", since=late, now=late + MINUTE) == ((), False)


def test_what_a_gap_makes_one_is_due_once_and_what_comes_twice_is_not_due_again() -> None:
    spring = {"since": at("2026-03-29T00:00", "Europe/Berlin"), "now": at("2026-03-29T05:00", "Europe/Berlin")}
    due = due_ticks("15,45 2 * * *", "Europe/Berlin", misfire=ALL, **spring)
    assert due == ((at("2026-03-29T03:00", "Europe/Berlin"),), False)
    zone = "America/New_York"
    autumn = {"since": at("2026-11-01T01:10", zone, fold=1), "now": at("2026-11-01T05:00", zone)}
    assert due_ticks("30 1 * * *", zone, misfire=ALL, **autumn) == ((), False)


def test_ten_years_of_silence_are_not_counted_minute_by_minute() -> None:
    since, now = at("2016-01-01T00:00"), at("2026-01-01T00:00")
    began = time.monotonic()
    due = due_ticks("* * * * *", "Europe/Berlin", since=since, now=now, misfire=ALL)
    assert time.monotonic() - began < 5
    assert (len(due.ticks), due.ticks[-1], due.missed) == (MOST_AT_ONCE, now, True)
    assert due_ticks("0 0 29 2 *", "UTC", since=since, now=now, misfire=ALL).ticks == (
        at("2016-02-29T00:00"), at("2020-02-29T00:00"), at("2024-02-29T00:00"),
    )  # fmt: skip


def test_each_tick_is_fired_once_by_whoever_goes_on_from_the_last() -> None:
    """A thousand ticks in uneven steps, across both changes of the year."""
    zone, since = "America/New_York", at("2026-03-07T00:00")
    fired: list[int] = []
    mark, step = since, 0
    while len(fired) < 1000:
        step = (step * 7 + 13) % 600
        now = mark + (step + 1) * MINUTE
        due = due_ticks("*/20 * * * *", zone, since=mark, now=now, misfire=ALL)
        fired += due.ticks
        mark = now
    assert fired == ticks_of("*/20 * * * *", zone, since, fired[-1])
    assert len(set(fired)) == len(fired)


# --- what is no schedule ---


@pytest.mark.parametrize(
    "cron",
    ["", "* * * *", "* * * * * *", "60 * * * *", "* 24 * * *", "* * 0 * *", "* * * 13 *", "* * * * 8", "x * * * *",
     "*/0 * * * *", "5-1 * * * *", "1,, * * * *", "@reboot", "@never", "* * * * mon#6", "0 0 31 2 *", "- - - - -",
     "1-2-3 * * * *", "* * * * L", "１ * * * *", "* " * 500, "0 0 1/1/1 * *"],
)  # fmt: skip
def test_what_is_no_schedule_is_refused(cron: str) -> None:
    with pytest.raises(InvalidInput, match="schedule"):
        check_schedule(cron, "UTC")


@pytest.mark.parametrize(
    "zone",
    ["", "Mars/Base", "../../etc/passwd", "/etc/localtime", "America", "Europe/Berlin\0", "x" * 100, "europe/\nx"],
)
def test_what_is_no_zone_is_refused(zone: str) -> None:
    with pytest.raises(InvalidInput, match="time zone"):
        check_schedule("@daily", zone)


@given(st.text(alphabet="0123456789*/-,#LWMONJA@ \t?", max_size=30) | st.text(max_size=20))
def test_any_text_is_a_schedule_or_refused(text: str) -> None:
    try:
        check_schedule(text, "Europe/Berlin")
    except InvalidInput:
        return
    tick = next_tick(text, "Europe/Berlin", at("2026-01-01T00:00"))
    assert tick is None or tick % MINUTE == 0


def test_one_that_never_comes_ends() -> None:
    assert next_tick("0 0 1 1 mon#5", "UTC", at("2026-01-01T00:00")) is not None  # either will do
    never = "0 0 */31 2 mon#5"  # 1 February is never a fifth Monday, and both are asked for
    assert next_tick(never, "UTC", at("2026-01-01T00:00")) is None
    assert due_ticks(never, "UTC", since=0, now=at("2026-01-01T00:00")) == ((), False)


@pytest.mark.parametrize("instant", [-1, 10**18, 10**30])
def test_instants_beyond_reckoning_are_refused(instant: int) -> None:
    with pytest.raises(InvalidInput, match="instant"):
        next_tick("@daily", "UTC", instant)


def test_an_unknown_policy_is_refused() -> None:
    with pytest.raises(InvalidInput, match="skip, once, all"):
        due_ticks("@daily", "UTC", since=0, now=1, misfire="sometimes")
