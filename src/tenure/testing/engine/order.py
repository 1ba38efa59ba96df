"""In which order work is offered, to whom, and when: priority, ageing, deadlines, lanes, offers, stopped lines."""

from __future__ import annotations

import pytest

from tenure.core import commands as c
from tenure.core import queries as q
from tenure.core.errors import InvalidInput
from tenure.core.records import replace
from tenure.engine.reads.query_table import read_query
from tenure.testing.engine.graphs import new
from tenure.testing.engine.stage import Stage
from tenure.testing.factories import PROJECT, Scene

HOUR = 3_600_000_000


class Order(Stage):
    # --- priority -------------------------------------------------------------------------------------------------

    def test_lower_numbers_go_first_and_ties_by_sequence(self, scene: Scene) -> None:
        low, first, second, high = (scene.add(priority=p) for p in ("low", 50, "normal", "high"))
        assert scene.next_keys(4) == [high, first, second, low]

    def test_names_of_tiers_stand_for_numbers(self, scene: Scene) -> None:
        numbers = {"critical": 0, "high": 20, "normal": 50, "low": 70, "background": 90}
        for name, number in numbers.items():
            key = scene.add(priority=name)
            assert scene.task(key).priority == number
            assert (scene.do(c.Edit, task=key, changes={"priority": "55"}).outcome, scene.task(key).priority) == (
                "UPDATED",
                55,
            )

    def test_critical_work_goes_before_all_others_however_old(self, scene: Scene) -> None:
        old = scene.add(priority=10, boost=10)
        scene.pass_time(hours=1000)
        critical = scene.add(priority=9, boost=0)
        assert scene.next_keys(2) == [critical, old]

    def test_old_work_overtakes_newer_work_that_is_more_important(self, scene: Scene) -> None:
        old = scene.add(priority=60)
        scene.pass_time(minutes=99)
        newer = scene.add(priority=50)
        assert scene.next_keys(1) == [newer]  # 60 − 9.9 is still above 50
        scene.do(c.Recover, task=newer)
        another = scene.add(priority=50)
        scene.pass_time(minutes=2)
        late = scene.add(priority=50)
        assert scene.next_keys(4) == [newer, another, old, late]

    def test_work_of_different_boosts_is_compared_at_the_moment_of_the_claim(self, scene: Scene) -> None:
        steady, fast = scene.add(priority=50, boost=0), scene.add(priority=60, boost=1)
        assert scene.next_keys(1) == [steady]
        scene.do(c.Recover, task=steady)
        scene.pass_time(minutes=10)
        assert scene.next_keys(1) == [steady]  # equal now: the sequence decides
        scene.do(c.Recover, task=steady)
        scene.clock.advance(1)
        assert scene.next_keys(2) == [fast, steady]

    def test_a_nearing_deadline_makes_work_urgent(self, scene: Scene) -> None:
        plain = scene.add(priority=50, boost=0)
        urgent = scene.add(priority=60, boost=0, deadline=scene.now + 13 * HOUR)
        keys = []
        for hours in (0, 1):  # ten points at twelve hours; the tie goes to the earlier
            scene.pass_time(hours=hours)
            keys += scene.next_keys(1)
            scene.do(c.Recover, task=keys[-1])
        scene.pass_time(hours=6)  # twenty points at six
        keys += scene.next_keys(1)
        assert keys == [plain, plain, urgent]

    @pytest.mark.parametrize(("hours", "points"), [(24, 5), (12, 10), (6, 20), (3, 40), (0, 40), (-1, 40)])
    def test_urgency_grows_at_its_hours_and_not_before(self, scene: Scene, hours: int, points: int) -> None:
        urgent = scene.add(priority=60, boost=0, deadline=scene.now + 30 * HOUR)
        rival = scene.add(priority=60 - points, boost=0)
        lesser = scene.add(priority=61 - points, boost=0)
        scene.pass_time(hours=30 - hours)
        scene.clock.advance(-1)
        before = scene.next_keys(3)
        for key in before:
            scene.do(c.Recover, task=key)
        scene.clock.advance(1)
        after = scene.next_keys(3)
        assert after == [urgent, rival, lesser]  # the tie goes to the earlier sequence
        if hours > 0:
            assert before == [rival, lesser, urgent]

    def test_what_others_wait_for_weighs_two_points_a_step_up_to_twenty(self, scene: Scene) -> None:
        plain = scene.add(priority=49, boost=0)
        root, *_ = scene.plan(
            new("t0", priority=60, boost=0), *(new(f"t{n}", f"t{n - 1}", priority=60, boost=0) for n in range(1, 13))
        )
        weighty = scene.add(priority=41, boost=0)
        assert scene.task(root).height == 10
        assert scene.next_keys(3) == [root, weighty, plain]

    def test_the_longest_of_several_paths_below_counts(self, scene: Scene) -> None:
        parent = scene.add("parent")
        one, two = (scene.add(name, parent=parent) for name in ("one", "two"))
        scene.add("last", depends_on=(parent, one))
        assert (scene.task(one).height, scene.task(two).height) == (2, 2)
        assert scene.next_keys(2) == [one, two]

    def test_a_diamond_weighs_as_much_as_its_longer_side(self, scene: Scene) -> None:
        top = scene.add("top")
        left = scene.add("left", depends_on=(top,))
        right = scene.add("right", depends_on=(left,))
        foot = scene.add("foot", depends_on=(top, left, right))
        scene.add("below", depends_on=(foot, top))
        assert [scene.task(key).height for key in (top, left, right, foot)] == [4, 3, 2, 1]

    def test_weight_follows_links_as_they_come_and_go(self, scene: Scene) -> None:
        a, b = scene.add(priority=50), scene.add(priority=50)
        waits = scene.add(depends_on=(b,))
        deeper = scene.add(depends_on=(waits,))
        assert (scene.task(b).height, scene.task(waits).height) == (2, 1)
        scene.do(c.Unlink, task=deeper, needs=waits)
        scene.do(c.Unlink, task=waits, needs=b)
        assert scene.task(b).height == 0
        assert scene.next_keys(2)[0] == a

    def test_an_edit_changes_the_place_in_the_order(self, scene: Scene) -> None:
        a, b = scene.add(), scene.add()
        scene.do(c.Edit, task=b, changes={"priority": 30})
        scene.do(c.Edit, task=a, changes={"boost": 1})
        assert scene.next_keys(2) == [b, a]

    def test_a_task_keeps_its_age_when_it_comes_back(self, scene: Scene) -> None:
        old = scene.add(priority=50)
        scene.pass_time(minutes=60)
        newer = scene.add(priority=50)
        scene.do(c.Recover, task=scene.next_keys(1)[0])
        assert scene.next_keys(2) == [old, newer]

    # --- who may take what ----------------------------------------------------------------------------------------

    def test_an_agent_takes_what_it_has_the_capabilities_for(self, scene: Scene) -> None:
        gpu = scene.add(constraints={"required_capabilities": ["gpu", "cuda"]}, priority=0)
        plain = scene.add()
        scene.do(c.Register, agent="ann", capabilities=("gpu",))
        assert scene.claim(gpu, "ann").outcome == "DENIED_CAPABILITY"
        assert scene.next_keys(2, "ann") == [plain]
        scene.do(c.Register, agent="bo", capabilities=("cuda", "gpu", "more"))
        assert scene.next_keys(2, "bo") == [gpu]

    def test_a_claim_may_name_its_capabilities(self, scene: Scene) -> None:
        gpu = scene.add(constraints={"required_capabilities": ["gpu"]})
        assert scene.next_keys(1, capabilities=("gpu",)) == [gpu]

    def test_work_bound_to_a_region_stays_there(self, scene: Scene) -> None:
        bound = scene.add(constraints={"region": "eu"})
        scene.do(c.Register, agent="ann", region="us")
        scene.do(c.Register, agent="bo", region="eu")
        assert scene.claim(bound, "ann").outcome == "DENIED_CAPABILITY"
        assert scene.next("ann").outcome == "NO_TASK"
        assert scene.next_keys(1, "bo") == [bound]

    def test_work_that_prefers_a_region_goes_there_first_and_elsewhere_too(self, scene: Scene) -> None:
        for agent, region in (("ann", "us"), ("bo", "eu"), ("cy", None)):
            scene.do(c.Register, agent=agent, region=region)
            preferring = scene.add(constraints={"prefer_region": "eu"}, priority=50, type=agent)
            other, low = scene.add(priority=55, type=agent), scene.add(priority=65, type=agent)
            first = [preferring, other] if agent == "bo" else [other, preferring]
            assert scene.next_keys(3, agent, types=(agent,)) == [*first, low]
        critical = scene.add(constraints={"prefer_region": "eu"}, priority=0)
        plain = scene.add(priority=10)
        assert scene.next_keys(2, "ann") == [critical, plain]

    def test_a_task_that_prefers_a_region_is_claimed_by_name_from_anywhere(self, scene: Scene) -> None:
        key = scene.add(constraints={"prefer_region": "eu"})
        scene.do(c.Register, agent="ann", region="us")
        assert scene.claim(key, "ann").outcome == "GRANTED"
        with pytest.raises(InvalidInput):
            scene.add(constraints={"region": "eu", "prefer_region": "us"})

    def test_work_for_one_agent_type_is_claimed_by_agents_of_that_type(self, scene: Scene) -> None:
        reviewed = scene.add(constraints={"agent_type": "reviewer"})
        scene.do(c.Register, agent="ann", type="coder")
        scene.do(c.Register, agent="bo", type="reviewer")
        denied = scene.claim(reviewed, "ann")
        assert (denied.outcome, "type reviewer" in denied.message) == ("DENIED_CAPABILITY", True)
        assert scene.next("ann").outcome == "NO_TASK"
        why = {
            one["agent"]: one["why_not"]
            for one in read_query(scene.engine, q.Why(project=PROJECT, task=reviewed))["agents"]
        }
        assert why == {"ann": ["has the type coder; it needs an agent of type reviewer"], "bo": []}
        anyones = scene.add()
        assert scene.next_keys(2, "ann") == [anyones]
        assert scene.next_keys(2, "bo") == [reviewed]

    def test_many_claims_at_once_keep_to_the_agent_type(self, scene: Scene) -> None:
        for name in ("coder", "reviewer"):
            scene.do(c.Register, agent=name, type=name)
        keys = {name: [scene.add(constraints={"agent_type": name}) for _ in range(3)] for name in ("coder", "reviewer")}
        for name, own in keys.items():
            assert scene.next_keys(9, name) == own

    def test_an_edit_changes_which_agent_type_may_claim(self, scene: Scene) -> None:
        key = scene.add(constraints={"agent_type": "reviewer"})
        scene.do(c.Edit, task=key, changes={"constraints": {"agent_type": "coder"}})
        scene.do(c.Register, agent="ann", type="coder")
        assert scene.next_keys(1, "ann") == [key]

    def test_an_agent_that_claims_for_the_first_time_has_the_type_it_says(self, scene: Scene) -> None:
        key = scene.add(constraints={"agent_type": "reviewer"})
        assert scene.next("new", agent_type="coder").outcome == "NO_TASK"
        assert scene.next_keys(1, "newer", agent_type="reviewer") == [key]

    def test_the_name_of_mailboxes_is_refused_as_an_agent_type(self, scene: Scene) -> None:
        with pytest.raises(InvalidInput, match="instance"):
            scene.do(c.Register, agent="ann", type="instance")
        with pytest.raises(InvalidInput, match=r"constraints\.agent_type"):
            scene.add(constraints={"agent_type": "instance"})
        with pytest.raises(InvalidInput, match=r"constraints\.agent_type"):
            scene.add(constraints={"agent_type": "a|b"})
        with pytest.raises(InvalidInput, match="instance"):
            scene.next("ann", agent_type="instance")

    def test_filters_by_track_type_and_tags(self, scene: Scene) -> None:
        a = scene.add(track="B", type="review", tags=("x", "y"))
        b = scene.add(track="C", type="code", tags=("x",))
        assert scene.next_keys(1, tracks=("Z",)) == []
        assert scene.next_keys(1, types=("test",)) == []
        assert scene.next_keys(1, tags=("x", "z")) == []
        assert scene.next_keys(1, tags=("y",)) == [a]
        assert scene.next_keys(1, tracks=("B", "C"), types=("code", "review"), tags=("x",)) == [b]

    def test_an_agent_of_some_tracks_stays_on_them(self, scene: Scene) -> None:
        scene.add(track="B")
        mine = scene.add(track="C")
        scene.do(c.Register, agent="ann", tracks=("C",))
        assert scene.next_keys(2, "ann") == [mine]

    def test_several_at_once_are_the_best_in_order(self, scene: Scene) -> None:
        keys = [scene.add(priority=p) for p in (70, 30, 50)]
        granted = scene.next(n=2)
        assert [(x.task or {})["key"] for x in granted.claims or ()] == [keys[1], keys[2]]
        rest = scene.next(n=5)
        assert [(x.task or {})["key"] for x in rest.claims or ()] == [keys[0]]

    def test_with_nothing_to_take_the_answer_counts_what_there_is(self, scene: Scene) -> None:
        waiting = scene.add(not_before=scene.now + 60_000_000)
        scene.add(depends_on=(waiting,))
        scene.take(scene.add(), "bo")
        scene.add(constraints={"required_capabilities": ["gpu"]})
        scene.do(c.Release, receipt=scene.take(scene.add(), "ann"))
        nothing = scene.next("ann")
        assert nothing.outcome == "NO_TASK"
        assert nothing.counts is not None
        assert (nothing.counts["waiting"], nothing.counts["held"], nothing.counts["cooling"]) == (2, 1, 1)
        assert nothing.retry_at == scene.now + 60_000_000

    def test_a_session_is_told_of_what_it_has_not_finished(self, scene: Scene) -> None:
        a, _ = scene.add(), scene.add()
        assert scene.next().unfinished is None
        assert scene.next().unfinished == (a,)

    def test_work_with_a_time_is_not_offered_before_it(self, scene: Scene) -> None:
        key = scene.add(not_before=scene.now + HOUR)
        assert scene.state(key) == "pending"
        scene.clock.advance(HOUR - 1)
        denied = scene.claim(key)
        assert (denied.outcome, denied.retry_at) == ("DENIED_NOT_READY", scene.now + 1)
        scene.clock.advance(1)
        assert scene.next_keys(1) == [key]
        assert scene.task(key).ready_at == scene.now

    def test_a_time_that_is_moved_moves_the_task(self, scene: Scene) -> None:
        key = scene.add()
        assert scene.do(c.Edit, task=key, changes={"not_before": scene.now + HOUR}).state == "pending"
        assert scene.do(c.Edit, task=key, changes={"not_before": None}).state == "ready"

    def test_a_missed_deadline_is_told_once_and_the_task_stays_claimable(self, scene: Scene) -> None:
        key = scene.add(deadline=scene.now + HOUR)
        scene.pass_time(hours=2)
        for _ in range(2):
            scene.engine.sweep()
        assert scene.log(key).count("task.deadline_missed") == 1
        assert scene.next_keys(1) == [key]
        scene.do(c.Edit, task=key, changes={"deadline": scene.now + HOUR})
        scene.pass_time(hours=2)
        scene.engine.sweep()
        assert scene.log(key).count("task.deadline_missed") == 2

    def test_a_finished_task_misses_no_deadline(self, scene: Scene) -> None:
        done, cancelled = scene.add(deadline=scene.now + HOUR), scene.add(deadline=scene.now + HOUR)
        scene.finish(done)
        scene.do(c.Cancel, task=cancelled)
        scene.pass_time(hours=2)
        scene.engine.sweep()
        assert not any(e.kind == "task.deadline_missed" for e in scene.events())

    # --- offers ---------------------------------------------------------------------------------------------------

    def test_an_offer_keeps_a_task_for_one_agent_for_a_while(self, scene: Scene) -> None:
        key = scene.add()
        scene.know("bo")
        offered = scene.do(c.Assign, task=key, agent="bo")
        assert (offered.outcome, offered.holder) == ("UPDATED", "bo")
        denied = scene.claim(key, "ann")
        assert (denied.outcome, denied.holder, denied.retry_at) == ("DENIED_OFFERED", "bo", scene.now + 60_000_000)
        assert scene.next("ann").outcome == "NO_TASK"
        scene.pass_time(seconds=60)
        assert scene.next_keys(1, "ann") == [key]

    def test_its_next_claim_gets_the_offer_first(self, scene: Scene) -> None:
        scene.add(priority=0)
        key = scene.add(priority=100)
        scene.know("bo")
        scene.do(c.Assign, task=key, agent="bo")
        assert scene.next_keys(1, "bo") == [key]
        assert scene.task(key).offer_to is None

    def test_only_ready_work_is_assigned(self, scene: Scene) -> None:
        waiting = scene.add(not_before=scene.now + HOUR)
        held = scene.add()
        scene.take(held)
        for key in (waiting, held):
            before = scene.tables()
            assert scene.do(c.Assign, task=key, agent="bo").outcome == "DENIED_STATE"
            assert scene.tables() == before

    def test_a_reassignment_that_cannot_be_leaves_the_claim_alone(self, scene: Scene) -> None:
        a, b = scene.plan(new("a"), new("b", "a"))
        scene.finish(a)
        receipt = scene.take(b)
        scene.do(c.Reset, task=a)  # b goes on, but would have to wait once it is free
        before = scene.tables()
        assert scene.do(c.Reassign, task=b, agent="bo").outcome == "DENIED_STATE"
        assert scene.tables() == before
        assert scene.do(c.Renew, receipt=receipt).outcome == "RENEWED"

    def test_an_assignment_is_no_sign_of_life_of_the_agent(self, scene: Scene) -> None:
        scene.do(c.Register, agent="bo", stale_after=60)
        scene.pass_time(seconds=90)
        scene.engine.sweep()
        scene.know("bo")
        scene.do(c.Assign, task=scene.add(), agent="bo")
        assert [e.kind for e in scene.events() if e.agent == "bo"].count("agent.recovered") == 0

    # --- stop the line --------------------------------------------------------------------------------------------

    @pytest.mark.parametrize("scope", ["project:", "track:B", "type:review", "agent:ann", "dag:"])
    def test_nothing_is_claimed_where_the_line_is_stopped(self, scene: Scene, scope: str) -> None:
        stopped = scene.add(track="B", type="review", priority=0)
        free = scene.add(track="C", type="code")
        if scope == "dag:":
            scope += scene.task(stopped).dag
        held = scene.take(scene.add(track="B", type="review"), "ann")
        assert scene.do(c.StopLine, scope=scope, reason="flood").outcome == "UPDATED"
        assert scene.do(c.StopLine, scope=scope).outcome == "UNCHANGED"
        denied = scene.claim(stopped, "ann")
        assert denied.outcome == "DENIED_PAUSED"
        assert "flood" in denied.message
        everything = scope in ("project:", "agent:ann")
        assert scene.next_keys(2, "ann") == ([] if everything else [free])
        assert scene.submit(held).outcome == "ACCEPTED"  # what is held goes on
        scene.do(c.StartLine, scope=scope)
        assert scene.next_keys(2, "ann") == ([stopped, free] if everything else [stopped])
        assert scene.do(c.StartLine, scope=scope).outcome == "UNCHANGED"

    def test_a_stopped_agent_does_not_stop_others(self, scene: Scene) -> None:
        key = scene.add()
        scene.do(c.StopLine, scope="agent:ann")
        assert scene.next_keys(1, "bo") == [key]

    def test_an_offer_does_not_pass_a_stopped_line(self, scene: Scene) -> None:
        key = scene.add(track="B")
        scene.know("ann")
        scene.do(c.Assign, task=key, agent="ann")
        scene.do(c.StopLine, scope="track:B")
        assert scene.next("ann").outcome == "NO_TASK"

    # --- what is handed out with a claim --------------------------------------------------------------------------

    def test_a_claim_carries_what_its_context_refers_to(self, scene: Scene) -> None:
        source = scene.add("source")
        scene.finish(source)
        key = scene.add(spec={"prompt": "go", "context_refs": [f"task:{source}:output"]})
        granted = scene.claim(key)
        assert granted.inputs is not None
        assert granted.inputs[source]["data"] == f"output of {source}"
        assert granted.task is not None
        assert granted.task["spec"]["prompt"] == "go"

    def test_a_reference_that_names_several_tasks_keeps_nobody_from_the_claim(self, scene: Scene) -> None:
        scene.finish(scene.add("first"))
        key = scene.add("second", spec={"context_refs": ["task:A-0:output"]})
        assert scene.next_keys(1) == [key]  # two tasks begin so by now

    @pytest.mark.parametrize("ref", ["task:A-999:output", "artifact:A-999/a", "artifact:nothing", "elsewhere"])
    def test_a_reference_to_nothing_is_refused_when_the_task_is_created(self, scene: Scene, ref: str) -> None:
        with pytest.raises(InvalidInput, match="context_refs"):
            scene.add("first", spec={"context_refs": [ref]})

    def test_a_reference_by_a_plan_s_own_name_reaches_the_task(self, scene: Scene) -> None:
        a, b = scene.plan(new("a"), replace(new("b", "a"), spec={"context_refs": ["task:a:output"]}))
        scene.finish(a)
        granted = scene.claim(b)
        assert granted.task is not None
        assert granted.task["spec"]["context_refs"] == [f"task:{a}:output"]
        assert granted.missing is None

    def test_a_claim_carries_a_quarter_megabyte_of_inputs_and_names_the_rest(self, scene: Scene) -> None:
        a, b, d = scene.plan(new("a"), new("b"), new("d", "a", "b"))
        for key in (a, b):
            scene.submit(scene.take(key), "x" * 200_000)
        granted = scene.claim(d)
        assert granted.inputs is not None
        assert len(granted.inputs[a]["data"]) == 200_000
        assert "data" not in granted.inputs[b]
        assert granted.inputs[b]["data_ref"] == scene.results(b)[0].id

    @pytest.mark.parametrize("value", [{"$body": "x"}, {"$body": 1}, {"$body": None}, {"$body": {"$body": "y"}}])
    def test_values_that_look_like_our_own_references_come_back_as_they_were(
        self, scene: Scene, value: dict[str, object]
    ) -> None:
        key = scene.add(spec=value)
        granted = scene.next()
        assert granted.task is not None
        assert (granted.task["key"], granted.task["spec"]) == (key, value)
        scene.do(c.SaveCheckpoint, receipt=granted.receipt, data=value)
        scene.submit(granted.receipt or "", value)
        after = scene.claim(scene.add(depends_on=(key,)))
        assert after.inputs is not None
        assert after.inputs[key]["data"] == value

    def test_large_texts_come_back_whole(self, scene: Scene) -> None:
        spec = {"prompt": "p" * 200_000}
        key = scene.add(description="d" * 60_000, spec=spec)
        granted = scene.claim(key)
        assert granted.task is not None
        assert (granted.task["description"], granted.task["spec"]) == ("d" * 60_000, spec)
        assert all(len(str(e.patch)) < 20_000 for e in scene.events())

    def test_the_task_is_found_by_id_key_short_key_or_beginning(self, scene: Scene) -> None:
        key = scene.add("Implement repositories", track="B")
        task = scene.task(key)
        for name in (task.id, key, "B-001", "B-001-impl", task.id[:20]):
            assert scene.task(name).id == task.id
        scene.add("Implement more", track="B")
        for name in ("B-0", "B-003", "B-001-other", "x", ""):
            assert scene.run(c.Note(project="p", task=name, text="x"))[0].code in ("NOT_FOUND", "AMBIGUOUS")  # type: ignore[union-attr]  # an error each
