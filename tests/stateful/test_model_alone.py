"""The reference model by itself: were it wrong, agreement with it would prove nothing."""

from __future__ import annotations

from tests.stateful.model import World
from tests.stateful.model_rows import MINUTE, SECOND


def world_with(*names: str, **fields: object) -> World:
    world = World(now=0)
    for name in names:
        world.do("add", name=name, **fields)
    return world


def claim(world: World, task: str, session: str, receipt: str, agent: str = "ann", lease: int = MINUTE) -> dict:
    return world.do("claim", task=task, agent=agent, session=session, receipt=receipt, lease=lease)


def submit(world: World, receipt: str, data: object = 1) -> dict:
    return world.do("submit", receipt=world.receipts[receipt], data=data)


def fail(world: World, receipt: str, **fields: object) -> dict:
    return world.do("fail", receipt=world.receipts[receipt], **fields)


def reasons(world: World, task: str) -> list[tuple[str | None, bool | None]]:
    return [(claim.reason, claim.accepted) for claim in world.tasks[task].claims]


def test_the_happy_path() -> None:
    world = world_with("t")
    assert claim(world, "t", "a", "r1")["generation"] == 1
    assert world.do("renew", receipt=world.receipts["r1"])["outcome"] == "RENEWED"
    assert submit(world, "r1")["outcome"] == "ACCEPTED"
    assert submit(world, "r1") == {"outcome": "ACCEPTED", "generation": 1, "again": True}
    assert reasons(world, "t") == [("COMPLETED", True)]


def test_a_partitioned_holder_is_refused_and_its_work_kept() -> None:
    world = world_with("t")
    claim(world, "t", "a", "r1")
    world.now += MINUTE
    assert claim(world, "t", "b", "r2")["generation"] == 2
    assert submit(world, "r2")["outcome"] == "ACCEPTED"
    late = submit(world, "r1", 2)
    assert (late["outcome"], late["current_generation"], late["work_lost"]) == ("STALE_GENERATION", 2, True)
    assert reasons(world, "t") == [("EXPIRED", False), ("COMPLETED", True)]
    assert len(world.tasks["t"].kept) == 1


def test_two_crash_and_the_third_completes() -> None:
    world = world_with("t")
    for generation, session in enumerate("abc", 1):
        assert claim(world, "t", session, f"r{generation}")["attempt"] == generation
        world.now += MINUTE if session != "c" else 0
    assert submit(world, "r3")["outcome"] == "ACCEPTED"
    assert [submit(world, r)["outcome"] for r in ("r1", "r2")] == ["STALE_GENERATION"] * 2
    assert [c.generation for c in world.tasks["t"].claims] == [1, 2, 3]


def test_subtasks_of_two_agents_make_their_parent_ready() -> None:
    world = world_with("parent")
    for name in "12345":
        world.do("add", name=name, parent="parent")
    assert world.tasks["parent"].state == "pending"
    for name in "123":
        claim(world, name, "a", f"a{name}")
    assert [claim(world, n, "b", f"b{n}")["outcome"] for n in "345"] == ["DENIED_ACTIVE_CLAIM", "GRANTED", "GRANTED"]
    assert [submit(world, r)["outcome"] for r in ("a1", "a2", "b4", "b5")] == ["ACCEPTED"] * 4
    world.now += MINUTE
    assert claim(world, "3", "b", "b3")["generation"] == 2
    assert world.tasks["parent"].state == "pending"
    assert submit(world, "b3")["outcome"] == "ACCEPTED"
    assert submit(world, "a3")["outcome"] == "STALE_GENERATION"
    assert world.tasks["parent"].state == "ready"


def test_a_late_result_counts_until_somebody_else_claims() -> None:
    world = world_with("t")
    claim(world, "t", "a", "r1")
    world.now += MINUTE
    world.settle()
    assert world.tasks["t"].state == "ready"
    assert submit(world, "r1")["outcome"] == "ACCEPTED"
    assert reasons(world, "t") == [("EXPIRED", True)]


def test_a_session_that_claims_again_goes_on_with_its_attempt() -> None:
    world = world_with("t", max_attempts=2)
    claim(world, "t", "a", "r1")
    world.now += MINUTE
    assert claim(world, "t", "a", "r2")["attempt"] == 1
    world.now += MINUTE
    assert claim(world, "t", "b", "r3")["attempt"] == 2
    world.now += MINUTE
    assert claim(world, "t", "b", "r4")["outcome"] == "DENIED_DEAD_LETTERED"


def test_delays_count_from_the_instant_and_not_from_the_look() -> None:
    world = world_with("t", on_lost="back_off")
    claim(world, "t", "a", "r1")
    world.now += MINUTE + 9 * SECOND
    world.settle()
    assert (world.tasks["t"].state, world.tasks["t"].retry_at) == ("retrying", MINUTE + 10 * SECOND)
    world.now += SECOND
    world.settle()
    assert (world.tasks["t"].state, world.tasks["t"].ready_at) == ("ready", MINUTE + 10 * SECOND)


def test_failures_of_the_task_count_and_those_of_the_agent_do_not() -> None:
    world = world_with("t", max_attempts=1)
    claim(world, "t", "a", "r1")
    assert fail(world, "r1", error_class="environment")["state"] == "ready"
    assert fail(world, "r1", error_class="environment") == {"outcome": "OK", "again": True}
    assert world.tasks["t"].attempts == 0
    assert world.do("claim_next", agent="ann", session="a", receipts=["r2"])["outcome"] == "NO_TASK"
    claim(world, "t", "a", "r2")
    assert fail(world, "r2")["state"] == "dead_lettered"


def test_trouble_on_three_agents_is_the_tasks_own() -> None:
    world = world_with("t", max_attempts=1)
    states = []
    for agent in ("ann", "bo", "cy"):
        claim(world, "t", agent, agent, agent)
        states.append(fail(world, agent, error_class="auth_failure")["state"])
    assert states == ["ready", "ready", "dead_lettered"]


def test_the_eleventh_release_keeps_its_attempt() -> None:
    world = world_with("t")
    for n in range(11):
        claim(world, "t", "a", f"r{n}")
        world.do("release", receipt=world.receipts[f"r{n}"])
    assert (world.tasks["t"].attempts, world.tasks["t"].given_back) == (1, 10)


def test_a_dead_letter_takes_along_who_chose_so_and_brings_them_back() -> None:
    world = world_with("t", max_attempts=1)
    for edge in ("block", "cancel", "ignore"):
        world.do("add", name=edge, needs=[("t", edge)])
    world.do("add", name="after", needs=[("cancel", "cancel")])
    claim(world, "t", "a", "r1")
    fail(world, "r1")
    states = {name: task.state for name, task in world.tasks.items()}
    assert states == {
        "t": "dead_lettered", "block": "pending", "cancel": "cancelled", "ignore": "ready", "after": "cancelled"
    }  # fmt: skip
    world.do("retry", task="t")
    assert [world.tasks[name].state for name in states] == ["ready", "pending", "pending", "pending", "pending"]


def test_a_reset_names_who_goes_on_or_takes_them_along() -> None:
    world = world_with("t")
    world.do("add", name="held", needs=[("t", "block")])
    world.do("add", name="done", needs=[("t", "block")])
    for name in ("t", "held", "done"):
        claim(world, name, "a", f"r-{name}")
        if name != "held":
            submit(world, f"r-{name}")
    left = world.do("reset", task="t")["left"]
    assert left == {world.tasks["held"].ref, world.tasks["done"].ref}
    claim(world, "t", "a", "r2")
    submit(world, "r2")
    assert world.do("reset", task="t", cascade=True)["left"] == set()
    assert [(t.state, t.run) for t in world.tasks.values()] == [("ready", 2 + 1), ("pending", 1), ("pending", 2)]
    assert world.tasks["held"].claims[-1].reason == "SUPERSEDED"


def test_who_waits_for_subtasks_comes_back_when_all_have_ended() -> None:
    world = world_with("t")
    claim(world, "t", "a", "r1")
    spawned = world.do("spawn", receipt=world.receipts["r1"], names=["x", "y"], wait=True)
    assert (spawned["state"], spawned["tasks"]) == ("pending", ["A-001::1", "A-001::2"])
    claim(world, "t/x#1", "b", "r2")
    submit(world, "r2")
    assert world.tasks["t"].state == "pending"
    world.do("cancel", task="t/y#1")
    assert world.tasks["t"].state == "ready"
    assert claim(world, "t", "a", "r3")["attempt"] == 1
    assert world.do("spawn", receipt=world.receipts["r3"], names=["x"])["tasks"] == ["A-001::1"]


def test_offers_go_first_then_critical_then_the_rest_by_effective_priority() -> None:
    world = world_with("plain")
    world.do("add", name="urgent", priority=60, deadline=2 * 60 * MINUTE)
    world.do("add", name="critical", priority=9)
    world.do("add", name="offered", priority=99)
    world.do("register", agent="ann")
    world.do("assign", task="offered", agent="ann")
    order = [
        world.do("claim_next", agent="ann", session="a", receipts=[f"r{n}"])["claims"][0]["task"] for n in range(4)
    ]
    assert order == [world.tasks[name].ref for name in ("offered", "critical", "urgent", "plain")]


def test_what_is_touched_is_not_touched_twice() -> None:
    world = World(now=0)
    for name, touches in (("one", ("src/*",)), ("two", ("src/a.py",)), ("three", ("docs/a.md",))):
        world.do("add", name=name, touches=touches)
    claim(world, "one", "a", "r1")
    assert claim(world, "two", "a", "r2")["outcome"] == "DENIED_CONFLICT"
    assert claim(world, "three", "a", "r3")["outcome"] == "GRANTED"


def test_an_old_epochs_receipt_is_refused_and_its_claim_given_back() -> None:
    world = world_with("t")
    claim(world, "t", "a", "r1")
    world.new_epoch()
    assert (world.tasks["t"].state, world.tasks["t"].attempts) == ("ready", 0)
    refused = submit(world, "r1")
    assert (refused["outcome"], refused["work_lost"]) == ("STALE_EPOCH", True)


def test_reservations_are_shared_raised_and_end_with_their_claim() -> None:
    world = world_with("one", "two")
    for name in ("one", "two"):
        claim(world, name, f"s-{name}", f"r-{name}")
        granted = world.do("reserve", receipt=world.receipts[f"r-{name}"], patterns=["src/*"], mode="shared")
        assert granted["outcome"] == "GRANTED"
    raised = {"receipt": world.receipts["r-one"], "patterns": ["src/a.py"], "mode": "exclusive"}
    assert world.do("reserve", **raised)["outcome"] == "DENIED_CONFLICT"
    submit(world, "r-two")
    assert world.do("reserve", **raised)["outcome"] == "GRANTED"
    alone = {"patterns": ["src/a.py"], "agent": "bo", "session": "b", "lease": MINUTE}
    assert world.do("reserve_alone", hold="h1", **alone)["outcome"] == "DENIED_CONFLICT"
    submit(world, "r-one")
    assert world.do("reserve_alone", hold="h1", **alone)["outcome"] == "GRANTED"
    world.now += MINUTE
    assert world.do("unreserve", receipt=world.receipts["h1"])["outcome"] == "NOT_FOUND"


def test_a_task_goes_on_when_the_last_cause_is_gone() -> None:
    world = world_with("t")
    claim(world, "t", "a", "r1")
    world.do("ask", receipt=world.receipts["r1"])
    assert world.do("pause", task="t")["outcome"] == "UPDATED"
    assert world.do("answer", task="t")["state"] == "paused"
    assert world.do("resume", task="t")["state"] == "ready"
    assert (world.tasks["t"].attempts, world.tasks["t"].given_back) == (0, 0)


def test_a_drain_pauses_when_the_holder_lets_go_and_can_be_taken_back() -> None:
    world = world_with("t")
    claim(world, "t", "a", "r1")
    world.do("pause", task="t", drain=True)
    assert world.do("renew", receipt=world.receipts["r1"])["directive"] == "pause"
    world.do("resume", task="t")
    assert world.do("renew", receipt=world.receipts["r1"])["directive"] == "continue"
    world.do("pause", task="t", drain=True)
    assert world.do("release", receipt=world.receipts["r1"])["state"] == "paused"


def test_a_stopped_holder_may_claim_again_at_once() -> None:
    for stopped, outcome in ((True, "GRANTED"), (False, "NO_TASK")):
        world = world_with("t")
        claim(world, "t", "ann", "r1")
        world.do("release", receipt=world.receipts["r1"], stopped=stopped)
        assert world.do("claim_next", agent="ann", session="s1", receipts=["r2"])["outcome"] == outcome


def test_pauses_and_persons_verbs_never_count_and_releases_do_after_ten() -> None:
    world = world_with("t", max_attempts=1)
    for number in range(12):
        assert claim(world, "t", "a", f"p{number}")["attempt"] == 1
        world.do("recover", task="t")
    for number in range(11):
        claim(world, "t", "a", f"r{number}")
        released = world.do("release", receipt=world.receipts[f"r{number}"])
        world.now += 10 * MINUTE
    assert released["state"] == "dead_lettered"


def test_three_failures_by_two_agents_are_a_dead_letter() -> None:
    world = world_with("t", max_attempts=9, retry={"strategy": "immediate"})
    for number, agent in enumerate(("ann", "ann", "ann", "bo")):
        claim(world, "t", agent, f"r{number}", agent=agent)
        failed = fail(world, f"r{number}")
        assert failed["state"] == ("dead_lettered" if agent == "bo" else "retrying")


def test_a_repeated_request_is_answered_as_it_was_after_another_has_claimed() -> None:
    world = world_with("t")
    claim(world, "t", "a", "r1")
    asked = {"receipt": world.receipts["r1"], "request_id": "q"}
    assert world.do("release", **asked) == {"outcome": "OK", "state": "ready"}
    claim(world, "t", "b", "r2", agent="bo")
    assert world.do("release", **asked) == {"outcome": "OK", "state": "ready", "again": True}
    assert world.do("ask", **asked) == {"error": "REQUEST_ID_REUSED"}
    assert world.do("release", receipt=world.receipts["r1"])["outcome"] == "STALE_GENERATION"


def test_a_result_for_a_description_that_was_not_seen_is_not_taken() -> None:
    world = world_with("t")
    claim(world, "t", "a", "r1")
    world.do("edit", task="t", text=1)
    assert submit(world, "r1")["outcome"] == "CHANGED"
    assert world.do("submit", receipt=world.receipts["r1"], data=1, seen=2)["outcome"] == "ACCEPTED"


def test_undo_puts_back_what_nothing_has_touched_since() -> None:
    world = world_with("t", "u")
    world.do("cancel", task="t", mark="m")
    assert world.do("undo", of="m")["outcome"] == "UPDATED"
    assert world.tasks["t"].state == "ready"
    assert world.do("undo", of="m")["outcome"] == "CANNOT_UNDO"
    world.do("cancel", task="u", mark="n")
    world.do("archive", task="u")
    assert world.do("undo", of="n")["outcome"] == "CANNOT_UNDO"


def test_a_plan_that_is_applied_again_edits_what_nobody_has_begun() -> None:
    world = World(now=0)
    assert world.do("plan", plan="P", tasks=[{"name": "a"}, {"name": "b"}])["outcome"] == "CREATED"
    claim(world, "P.a", "s", "r1")
    again = world.do("plan", plan="P", tasks=[{"name": "a", "priority": 20}, {"name": "c"}], prune=True)
    assert (again["outcome"], again["left"], again["changed_keys"]) == ("UPDATED", {"A-001"}, {"A-002"})
    assert [task.state for task in world.tasks.values()] == ["claimed", "cancelled", "ready"]


def test_money_is_reserved_spent_and_given_back() -> None:
    world = world_with("one", "two")
    world.do("set_budget", cents=5, estimate=3)
    claim(world, "one", "a", "r1")
    assert claim(world, "two", "b", "r2")["outcome"] == "DENIED_BUDGET"
    over = world.do("usage", receipt=world.receipts["r1"], cents=6)
    assert (over["directive"], over["state"]) == ("pause", "paused")
    assert world.do("resume", task="one")["outcome"] == "UNCHANGED"
    assert world.do("set_budget", cents=20, estimate=3)["changed_keys"] == {"A-001"}
    assert claim(world, "two", "b", "r2")["outcome"] == "GRANTED"


def test_time_stands_still_while_the_clock_is_behind() -> None:
    world = world_with("t")
    claim(world, "t", "a", "r1", lease=MINUTE)
    world.jump_back(10 * MINUTE)
    world.advance(10 * MINUTE)
    assert world.do("renew", receipt=world.receipts["r1"])["outcome"] == "RENEWED"
    world.advance(MINUTE)
    assert world.do("renew", receipt=world.receipts["r1"])["outcome"] == "ALREADY_EXPIRED"


def test_mail_goes_to_those_who_are_there_when_it_is_sent() -> None:
    world = world_with("t")
    claim(world, "t", "a", "r1")
    world.do("register", agent="bo")
    assert world.do("send", sender="bo", to="@all", text="hello")["recipients"] == {"ann"}
    assert world.do("renew", receipt=world.receipts["r1"])["mail"] == 1
    assert world.do("read", agent="ann")["texts"] == ["hello"]
    assert world.do("renew", receipt=world.receipts["r1"])["mail"] == 0


def test_what_never_counts_is_bounded_by_the_claims_of_a_run() -> None:
    world = world_with("t")
    world.do("limit_generations", most=3)
    for number in range(3):
        assert claim(world, "t", "a", f"r{number}")["outcome"] == "GRANTED"
        world.do("recover", task="t")
    assert claim(world, "t", "a", "r9") == {"outcome": "DENIED_LIMIT", "state": "dead_lettered"}
    world.do("retry", task="t")
    assert claim(world, "t", "a", "r9")["outcome"] == "GRANTED"
