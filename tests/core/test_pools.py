"""Free places, back-off, who may claim, which spawns are over."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenure.agents.runner.clis import KNOWN
from tenure.core import limits, pools
from tenure.core.commands import Principal
from tenure.core.pools import ENDED, LOST, RUNNING, STARTING, Facts
from tenure.core.records import Pool, Spawn, replace
from tenure.spawners.programs import AGENTS

NOW = 1_000_000_000
POOL = Pool(project="p", id="crew", program="claude", size=2, idle=30_000_000, created_at=0, changed_at=0)
SPAWN = Spawn(
    project="p", id="spawn_1", pool="crew", place=1, agent="crew-1", task="t", task_key="A-001", spawner="local",
    term=1, started_at=NOW, offer_until=NOW + pools.OFFER,
)  # fmt: skip
RUNS = replace(SPAWN, state=RUNNING, session="s", running_at=NOW, claimed_at=NOW)
OVER = NOW + pools.OFFER


def test_programs_that_are_agents_are_those_of_the_runner_and_of_spawners() -> None:
    assert set(pools.AGENT_TYPES) == set(KNOWN) == set(AGENTS)


@given(
    st.integers(1, 5), st.lists(st.tuples(st.integers(1, 7), st.sampled_from(pools.STATES), st.booleans()), max_size=9)
)
def test_a_place_is_free_while_none_of_its_spawns_is_live(size: int, given: list[tuple[int, str, bool]]) -> None:
    pool = replace(POOL, size=size)
    spawns = [
        replace(SPAWN, place=place, state=state, offer_until=NOW + (1 if is_open else 0))
        for place, state, is_open in given
    ]
    free = pools.free_places(pool, spawns, NOW)
    live = {place for place, state, is_open in given if state == RUNNING or (state == STARTING and is_open)}
    assert set(free) == set(range(1, size + 1)) - live
    assert pools.free_places(pool, [replace(one, pool="other") for one in spawns], NOW) == list(range(1, size + 1))


def test_the_pause_after_failures_doubles_up_to_a_minute() -> None:
    pool, waits = POOL, []
    for _ in range(20):
        pool = pools.failed(pool, "x" * 1000, NOW)
        waits.append((pool.wait_until or 0) - NOW)
        assert not pools.may_start(pool, NOW)
        assert pools.may_start(pool, pool.wait_until or 0)
    assert waits[:7] == [second * 1_000_000 for second in (1, 2, 4, 8, 16, 32, 60)]
    assert set(waits[6:]) == {limits.SPAWN_BACK_OFF}
    assert len(pool.error or "") == limits.POOL_ERROR
    assert pools.may_start(pools.succeeded(pool), NOW)


@pytest.mark.parametrize(
    ("spawn", "pool", "agent", "session", "now", "said"),
    [
        (SPAWN, POOL, "crew-1", "s", NOW, None),
        (SPAWN, POOL, "crew-1", "s", OVER - 1, None),
        (SPAWN, POOL, "crew-1", "s", OVER, "lost"),
        (RUNS, POOL, "crew-1", "s", OVER, None),
        (RUNS, None, "crew-1", "s", OVER, None),
        (RUNS, replace(POOL, size=0), "crew-1", "s", OVER, None),
        (RUNS, POOL, "crew-1", "other", OVER, "started twice"),
        (None, None, "crew-1", "s", NOW, "not known"),
        (SPAWN, POOL, "crew-2", "s", NOW, "is for agent crew-1"),
        (SPAWN, None, "crew-1", "s", NOW, "removed"),
        (replace(SPAWN, place=3), POOL, "crew-1", "s", NOW, "2 places now"),
        (replace(RUNS, state=ENDED, why="it left"), POOL, "crew-1", "s", NOW, "is ended: it left"),
        (replace(SPAWN, state=LOST), POOL, "crew-1", "s", NOW, "is lost"),
    ],
)
def test_who_may_claim(
    spawn: Spawn | None, pool: Pool | None, agent: str, session: str, now: int, said: str | None
) -> None:
    why = pools.refusal(spawn, pool, Principal(role="agent"), agent, session, now)
    assert why is None if said is None else said in (why or "")


IDLE = replace(RUNS, idle_at=NOW)


@pytest.mark.parametrize(
    ("spawn", "facts", "now", "end"),
    [
        (SPAWN, Facts(POOL), OVER - 1, None),
        (SPAWN, Facts(POOL), OVER, (LOST, True)),
        (SPAWN, Facts(None), NOW, (ENDED, False)),
        (replace(SPAWN, place=3), Facts(POOL), NOW, (ENDED, False)),
        (SPAWN, Facts(POOL, report="ended"), NOW, (ENDED, True)),
        (SPAWN, Facts(POOL, report="unknown"), NOW, None),
        (SPAWN, Facts(POOL, is_terminated=True), NOW, (ENDED, False)),
        (RUNS, Facts(POOL, is_terminated=True, holds=True), OVER, None),
        (RUNS, Facts(None, holds=True), OVER, None),
        (RUNS, Facts(POOL, has_left=True), NOW, (ENDED, True)),
        (RUNS, Facts(POOL, report="ended", holds=True), NOW, (ENDED, True)),
        (IDLE, Facts(POOL), NOW + POOL.idle - 1, None),
        (IDLE, Facts(POOL), NOW + POOL.idle, (ENDED, True)),
        (IDLE, Facts(POOL, holds=True), NOW + POOL.idle, None),
        (IDLE, Facts(POOL, report="unknown"), NOW + limits.SPAWN_UNKNOWN - 1, None),
        (IDLE, Facts(POOL, report="unknown"), NOW + limits.SPAWN_UNKNOWN, (LOST, True)),
    ],
)
def test_how_a_spawn_ends(spawn: Spawn, facts: Facts, now: int, end: tuple[str, bool] | None) -> None:
    found = pools.end_of(spawn, facts, now)
    assert (None if found is None else (found.state, found.counts)) == end


def test_offers_count_as_reserved_until_their_claim_or_their_end() -> None:
    funded = replace(SPAWN, funds={"project": 4, "tenant": 1})
    elsewhere = replace(funded, project="q")
    claimed = pools.called(funded, "s", NOW, is_granted=True)
    late = replace(funded, offer_until=NOW)
    pending = pools.pending_funds([funded, funded, elsewhere, claimed, late], "p", NOW)
    assert pending == {("p", "project"): 8, ("", "tenant"): 3}
    assert pools.fits({"project": 2}, {"project": 10}, pending, "p")
    assert not pools.fits({"project": 3}, {"project": 10}, pending, "p")
    assert not pools.fits({"tenant": 1}, {"tenant": 3}, pending, "p")
