"""A task may prefer a region: that changes an order, and excludes nobody."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenure.core import priority, settle
from tenure.core.errors import InvalidInput
from tenure.core.priority import ELSEWHERE, PREFERS, Profile
from tenure.core.records import Task, replace
from tenure.stores.memory import Memory
from tenure.testing import FakeClock
from tenure.testing.factories import Scene
from tenure.testing.samples import row_of

CLOCK = FakeClock()
regions = st.sampled_from(["eu", "us", "ap"])
TASK: Task = replace(row_of(Task), requires=(), agent_type=None, track="A", type="task")


def profile(region: str | None) -> Profile:
    return Profile("ann", frozenset(), region, (), "coder")


@given(st.none() | regions, regions, st.none() | regions)
def test_a_preference_never_excludes(where: str | None, wanted: str, required: str | None) -> None:
    preferring = priority.parse_lane(priority.lane_of(replace(TASK, region=priority.region_of(None, wanted))))
    assert next(priority.lane_obstacles(profile(where), preferring), None) is None
    bound = priority.parse_lane(priority.lane_of(replace(TASK, region=required)))
    excluded = next(priority.lane_obstacles(profile(where), bound), None) is not None
    assert excluded == (required not in (None, where))
    assert priority.set_back(profile(where), bound) == 0


@given(st.none() | regions, regions)
def test_only_agents_elsewhere_find_it_further_back(where: str | None, wanted: str) -> None:
    lane = priority.lane_of_task(replace(TASK, region=priority.region_of(None, wanted)))
    assert priority.set_back(profile(where), lane) == (0 if where == wanted else ELSEWHERE)


@given(st.lists(st.tuples(st.integers(10, 100), st.none() | regions), min_size=1, max_size=8), st.none() | regions)
def test_the_best_plain_task_without_the_set_back_is_the_best_with_it(
    tasks: list[tuple[int, str | None]], where: str | None
) -> None:
    """Which lets a store compare positions without it, as long as it leaves preferring tasks to the ordinary path."""

    def order(n: int, *, is_set_back: bool) -> tuple[int, int]:
        base, wanted = tasks[n]
        lane = priority.lane_of_task(replace(TASK, region=priority.region_of(None, wanted)))
        return base * priority.UNIT + (priority.set_back(profile(where), lane) if is_set_back else 0), n

    first = min(range(len(tasks)), key=lambda n: order(n, is_set_back=False))
    if tasks[first][1] is None:
        assert min(range(len(tasks)), key=lambda n: order(n, is_set_back=True)) == first


def test_a_preferring_task_is_not_plain() -> None:
    scene = Scene(Memory(clock=CLOCK), CLOCK)
    plain = scene.task(scene.add(constraints={"region": "eu"}))
    assert settle.is_plain(plain)
    assert not settle.is_plain(replace(plain, region=PREFERS + "eu"))


def test_a_task_requires_or_prefers_a_region() -> None:
    assert (priority.region_of("eu", None), priority.region_of(None, "eu")) == ("eu", ",eu")
    assert priority.region_of(None, None) is None
    with pytest.raises(InvalidInput):
        priority.region_of("eu", "us")
