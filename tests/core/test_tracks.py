"""Who is assigned to a track, whatever comes and goes there."""

from hypothesis import given
from hypothesis import strategies as st

from tenure.core import limits, tracks
from tenure.core.records import Track, replace
from tenure.testing.samples import row_of

TRACK = replace(row_of(Track), assigned={}, idle_since={}, pinned=())
agents = st.sampled_from(["ann", "bo", "cy"])
joins = st.tuples(agents, st.booleans(), st.booleans())
steps = st.lists(st.tuples(st.integers(0, 2 * limits.TRACK_IDLE), joins | st.sets(agents)), max_size=12)


@given(steps)
def test_a_pinned_agent_is_assigned_until_it_leaves_and_no_other_is_pinned(steps: list[tuple[int, object]]) -> None:
    track, now, pinned = TRACK, 0, set[str]()
    for pause, step in steps:
        now += pause
        if isinstance(step, tuple):
            agent, holds, is_pinned = step
            track = tracks.joined(track, agent, now, holds=holds, pinned=is_pinned)
            pinned |= {agent} if is_pinned else set()
        elif isinstance(step, set):
            track = tracks.left(track, step)
            pinned -= step
        assert sorted(track.pinned) == sorted(pinned)
        assert pinned <= {*tracks.assigned(track, now)} <= {*track.assigned}
        assert {*track.idle_since} <= {*track.assigned}
    assert tracks.cleared(track) == TRACK
