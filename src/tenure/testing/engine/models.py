"""Models: which one a claim gets and why, those that cool down, what tasks are expected to take, what routing saved."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from tenure.core import commands as c
from tenure.core import queries as q
from tenure.core.commands import NewTask, Totals
from tenure.core.outcomes import Outcome
from tenure.core.records import Brief, Claim, LikeTasks, Model, Project, Task
from tenure.engine.models.estimates import Estimate, estimate_of
from tenure.engine.reads.query_table import read_query
from tenure.testing.engine.stage import Stage
from tenure.testing.factories import PROJECT, Scene

SECOND, MINUTE = 1_000_000, 60_000_000


def register(scene: Scene, agent: str, type: str = "claude", models: tuple[str, ...] = ()) -> None:
    scene.do(c.Register, agent=agent, type=type, models=models)


def model_and_tier(outcome: Outcome) -> tuple[str | None, str | None]:
    return outcome.model, outcome.tier


def seen(scene: Scene, kind: type[q.Query]) -> Any:
    return read_query(scene.engine, kind(project=PROJECT))


def used(model: str = "haiku", fresh: int = 0, output: int = 0, **more: Any) -> tuple[Totals, ...]:
    return (Totals(model=model, fresh=fresh, output=output, **more),)


def spend(scene: Scene, tokens: int, *, before: bool = False, cost: str | None = None, **task: Any) -> str:
    """A task that is done for so many tokens, reported with its result or before it."""
    key = scene.add(**task)
    receipt = scene.take(key)
    totals = used("m", fresh=tokens, cost_usd=cost)
    if before:
        scene.do(c.ReportUsage, receipt=receipt, model="m", fresh=tokens, cost_usd=cost)
    assert scene.submit(receipt, usage=() if before else totals).outcome == "ACCEPTED"
    return key


def estimate(scene: Scene, key: str, agent: str | None = None) -> Estimate:
    from tenure.core.records import Agent
    from tenure.engine.runtime.rows import task_named
    from tenure.engine.runtime.unit_of_work import UnitOfWork

    def ask(work: UnitOfWork) -> Estimate:
        task: Task = task_named(work, PROJECT, key)
        brief = work.get(Brief, PROJECT, task.id)
        assert brief is not None
        return estimate_of(work, task, brief, work.get(Agent, PROJECT, agent) if agent else None)

    return scene.engine.read_settled((PROJECT,), ask)


class Models(Stage):
    # --- which model ----------------------------------------------------------------------------------------------

    @pytest.mark.parametrize(
        ("task", "model", "tier"),
        [
            ({}, "sonnet", "middle"),
            ({"priority": "critical"}, "opus", "top"),
            ({"constraints": {"complexity": 9}}, "opus", "top"),
            ({"constraints": {"complexity": 5}}, "haiku", "small"),
            ({"constraints": {"complexity": 6}}, "sonnet", "middle"),
            ({"constraints": {"estimated_tokens": 9_999}}, "haiku", "small"),
            ({"type": "boilerplate"}, "haiku", "small"),
            ({"tags": ("typo",)}, "haiku", "small"),
            ({"constraints": {"model_preferences": ["claude-opus-4-6"]}}, "claude-opus-4-6", "top"),
        ],
    )
    def test_a_claim_tells_the_model_and_why(self, scene: Scene, task: dict[str, Any], model: str, tier: str) -> None:
        register(scene, "ann")
        key = scene.add(**task)
        granted = scene.next()
        assert (granted.task or {})["key"] == key
        assert model_and_tier(granted) == (model, tier)
        assert granted.why

    def test_the_same_is_told_of_a_task_that_is_claimed_by_name(self, scene: Scene) -> None:
        register(scene, "ann")
        assert model_and_tier(scene.claim(scene.add(type="boilerplate"))) == ("haiku", "small")

    def test_an_agent_that_is_first_heard_of_with_its_claim_says_its_type_there(self, scene: Scene) -> None:
        scene.add()
        assert model_and_tier(scene.next("new", agent_type="codex")) == ("gpt-6.1-terra", "middle")

    def test_of_an_agent_without_a_family_only_the_tier_is_told(self, scene: Scene) -> None:
        scene.add()
        assert model_and_tier(scene.next()) == (None, "middle")

    def test_registered_models_go_before_the_type(self, scene: Scene) -> None:
        register(scene, "ann", models=("gpt-5-mini", "gpt-5"))
        scene.add(type="boilerplate")
        scene.add()
        assert [scene.next().model for _ in range(2)] == ["gpt-5-mini", "gpt-5"]

    def test_a_project_may_tell_no_models_but_those_that_its_tasks_name(self, scene: Scene) -> None:
        register(scene, "ann")
        scene.do(c.DefineProject, routing=False)
        scene.add()
        scene.add(constraints={"model_preferences": ["opus"]})
        scene.add(constraints={"model_preferences": ["gpt-5"]})
        plain, named, anothers = (scene.next() for _ in range(3))
        assert (plain.model, plain.tier, plain.why) == (None, None, None)
        assert model_and_tier(named) == ("opus", "top")
        assert (anothers.model, anothers.models) == (None, ("gpt-5",))

    def test_fallback_models_take_over_with_the_second_failure(self, scene: Scene) -> None:
        register(scene, "ann")
        wanted = {"model_preferences": ["sonnet"], "fallback_models": ["opus"]}
        key = scene.add(constraints=wanted, max_attempts=5)
        models = []
        for _ in range(4):
            granted = scene.claim(key)
            models.append(granted.model)
            scene.fail(granted.receipt or "", retry_after=0)
        assert models == ["sonnet", "sonnet", "opus", "opus"]
        assert [claim.model for claim in sorted(scene.rows(Claim), key=lambda c: c.generation)] == models

    def test_a_repeated_claim_tells_the_same_though_models_cool_down_meanwhile(self, scene: Scene) -> None:
        register(scene, "ann")
        key, other = (scene.add(constraints={"model_preferences": ["sonnet", "opus"]}) for _ in range(2))
        limited = scene.take(scene.add(), "bo")
        before = scene.claim(key, request_id="r")
        scene.fail(limited, "rate_limit", model="sonnet", retry_after=60)
        meanwhile = scene.claim(other, request_id="s")
        assert (before.model, meanwhile.model) == ("sonnet", "opus")
        scene.pass_time(seconds=70)
        for first, task, request in ((before, key, "r"), (meanwhile, other, "s")):
            again = scene.claim(task, request_id=request)
            assert (again.model, again.tier, again.why, again.again) == (first.model, first.tier, first.why, True)

    # --- rate limits ----------------------------------------------------------------------------------------------

    def test_a_model_that_cools_down_is_passed_over_for_all_agents_of_its_family(self, scene: Scene) -> None:
        for agent in ("ann", "bo"):
            register(scene, agent)
        register(scene, "cy", "codex")
        scene.fail(scene.take(scene.add(type="boilerplate")), "rate_limit", retry_after=60)
        assert [(m.id, m.troubles) for m in scene.rows(Model)] == [("haiku", 1)]
        for agent, model in (("ann", "sonnet"), ("bo", "sonnet"), ("cy", "gpt-6-luna")):
            scene.add(type="boilerplate")
            assert scene.next(agent).model == model

    def test_the_limit_of_a_dated_model_is_its_aliass_too(self, scene: Scene) -> None:
        register(scene, "ann")
        receipt = scene.take(scene.add())
        scene.fail(receipt, "rate_limit", model="anthropic/claude-haiku-4-5-20251001", retry_after=60)
        scene.add(type="boilerplate")
        assert scene.next().model == "sonnet"

    def test_where_all_that_an_agent_has_cools_down_it_is_told_when_to_come_back(self, scene: Scene) -> None:
        register(scene, "ann", models=("opus",))
        register(scene, "bo", "codex")
        failed = scene.add()
        scene.fail(scene.take(failed), "rate_limit", retry_after=3600, model="opus")
        scene.do(c.Cancel, task=failed)  # its own delay would wake whoever waits, too
        key = scene.add()
        nothing = scene.next()
        assert (nothing.outcome, (nothing.counts or {})["model_cooling"]) == ("NO_TASK", 1)
        assert nothing.retry_at == scene.now + 3600 * SECOND
        assert model_and_tier(scene.claim(key, "bo")) == ("gpt-6.1-terra", "middle")

    def test_a_cool_off_on_one_task_tells_when_it_ends(self, scene: Scene) -> None:
        scene.fail(scene.take(scene.add()), "environment")
        nothing = scene.next()
        assert (nothing.outcome, nothing.retry_at) == ("NO_TASK", scene.now + 10 * MINUTE)

    def test_cool_offs_grow_until_a_success_clears_them(self, scene: Scene) -> None:
        register(scene, "ann", models=("opus",))
        for minutes in (1, 2, 4, 8, 16, 30, 30):
            key = scene.add()
            scene.fail(scene.take(key), "rate_limit")
            (model,) = scene.rows(Model)
            assert model.cool_until == scene.now + minutes * MINUTE
            scene.pass_time(minutes=minutes)
        assert scene.submit(scene.take(scene.add())).outcome == "ACCEPTED"
        assert scene.rows(Model) == []
        assert [p.limited for p in scene.rows(Project)] == [()]

    def test_after_a_cool_off_one_claim_finds_out_for_all(self, scene: Scene) -> None:
        for agent in ("ann", "bo"):
            register(scene, agent, models=("opus",))
        scene.fail(scene.take(scene.add()), "rate_limit", retry_after=60)
        scene.add()
        scene.pass_time(seconds=60)
        tries = scene.next("ann")
        assert model_and_tier(tries) == ("opus", "top")
        assert scene.next("bo").outcome == "NO_TASK"
        scene.do(c.Release, receipt=tries.receipt or "")
        assert scene.next("bo").model == "opus"

    def test_a_batch_lets_one_through_too(self, scene: Scene) -> None:
        register(scene, "ann", models=("opus",))
        scene.fail(scene.take(scene.add()), "rate_limit", retry_after=60)
        scene.add()
        scene.pass_time(seconds=60)
        assert len(scene.next(n=2).claims or ()) == 1

    def test_what_was_used_clears_a_model_whatever_has_noticed(self, scene: Scene) -> None:
        scene.fail(scene.take(scene.add()), "rate_limit", model="our-own", retry_after=60)
        scene.submit(scene.take(scene.add()), usage=used("our-own", fresh=5))
        assert scene.rows(Model) == []

    def test_trouble_that_is_long_past_is_forgiven(self, scene: Scene) -> None:
        register(scene, "ann")
        scene.fail(scene.take(scene.add()), "rate_limit", model="gpt-5", retry_after=60)
        scene.pass_time(minutes=32)
        scene.next()
        assert scene.rows(Model) == []

    def test_a_claim_by_name_goes_to_a_model_that_cools_down(self, scene: Scene) -> None:
        register(scene, "ann", models=("opus",))
        scene.fail(scene.take(scene.add()), "rate_limit", retry_after=60)
        assert scene.claim(scene.add()).model == "opus"

    def test_why_tells_which_agents_wait_for_a_model(self, scene: Scene) -> None:
        register(scene, "ann", models=("opus",))
        register(scene, "bo")
        scene.fail(scene.take(scene.add()), "rate_limit", retry_after=60)
        key = scene.add()
        reasons = {
            a["agent"]: a["why_not"] for a in read_query(scene.engine, q.Why(project=PROJECT, task=key))["agents"]
        }
        assert reasons["bo"] == []
        assert "rate limited" in reasons["ann"][0]

    def test_models_are_seen_with_their_trouble(self, scene: Scene) -> None:
        register(scene, "ann", models=("opus",))
        scene.fail(scene.take(scene.add()), "rate_limit", retry_after=60)
        found = seen(scene, q.Models)
        assert [tier["tier"] for tier in found["tiers"]] == ["small", "middle", "top"]
        assert found["limited"] == [
            {"model": "opus", "troubles": 1, "cool_until": scene.now + 60 * SECOND, "tried_by": None}
        ]
        scene.pass_time(seconds=60)
        key = (scene.next().task or {})["key"]
        assert seen(scene, q.Models)["limited"][0]["tried_by"] == key

    # --- estimates ------------------------------------------------------------------------------------------------

    def test_the_median_of_like_tasks_counts_from_the_fifth_on(self, scene: Scene) -> None:
        for n, tokens in enumerate((9_000, 5_000, 7_000, 6_000, 8_000)):
            assert estimate(scene, scene.add()) == (None, None, None, "nothing")
            spend(scene, tokens, before=n % 2 == 0)
        register(scene, "ann")
        assert estimate(scene, scene.add()) == (7_000, None, None, "like tasks")
        assert estimate(scene, scene.add(type="test")).source == "nothing"
        assert model_and_tier(scene.claim(scene.add())) == ("haiku", "small")

    def test_a_size_is_estimated_by_its_own_kind(self, scene: Scene) -> None:
        for _ in range(5):
            spend(scene, 50_000, constraints={"complexity": 3}, cost="0.5")
        assert estimate(scene, scene.add(constraints={"complexity": 3})) == (50_000, 500_000_000, None, "like tasks")
        assert estimate(scene, scene.add(constraints={"complexity": 4})) == (7_176, None, None, "complexity")
        constraints = {"complexity": 3, "estimated_tokens": 100}
        assert estimate(scene, scene.add(constraints=constraints)) == (100, None, None, "said")

    def test_the_cost_is_by_the_price_of_the_agents_model(self, scene: Scene) -> None:
        """10,764 tokens, of which 8,611 are read at 2 dollars a million and 2,153 written at 10."""
        register(scene, "ann")
        key = scene.add(constraints={"complexity": 6})
        cost = 8_611 * 2_000 + 2_153 * 10_000
        assert estimate(scene, key, "ann") == (10_764, cost, "sonnet", "complexity")
        scene.take(key)
        assert estimate(scene, key, "ann").cost == cost

    def test_what_a_cache_gave_is_not_counted_again(self, scene: Scene) -> None:
        receipt = scene.take(scene.add())
        scene.submit(receipt, usage=used("m", fresh=5, output=7, cached=10**6, written=11))
        (row,) = scene.rows(LikeTasks)
        assert [f.tokens for f in row.finished] == [23]

    def test_a_task_counts_once_with_all_of_its_run(self, scene: Scene) -> None:
        key = scene.add()
        failed = scene.take(key)
        scene.do(c.ReportUsage, receipt=failed, model="m", fresh=100)
        scene.fail(failed, retry_after=0)
        lost = scene.take(key, lease=60)
        scene.pass_time(seconds=60)
        done = scene.take(key, "bo")
        scene.do(c.ReportUsage, receipt=lost, model="m", fresh=1000)  # overtaken: paid, but late
        scene.do(c.ReportUsage, receipt=done, model="m", fresh=10)
        scene.submit(done, usage=used("m", fresh=20))
        scene.submit(done, usage=used("m", fresh=500))  # after its end: paid, but late
        (row,) = scene.rows(LikeTasks)
        assert [f.tokens for f in row.finished] == [120]
        scene.do(c.Reset, task=key)
        scene.submit(scene.take(key), usage=used("m", fresh=7))
        (row,) = scene.rows(LikeTasks)
        assert [f.tokens for f in row.finished] == [7]

    def test_tasks_that_tell_nothing_leave_nothing(self, scene: Scene) -> None:
        scene.finish(scene.add())
        scene.submit(scene.take(scene.add()), usage=used("m"))
        assert scene.rows(LikeTasks) == []

    def test_estimates_come_within_a_fifth_of_what_tasks_take(self, scene: Scene) -> None:
        """Three kinds of work, each with its own usual size and scatter: the aim of the specification."""
        dice = Random(6)  # noqa: S311 - a history, not a secret
        kinds = {"code": 40_000, "test": 9_000, "documentation": 3_000}
        for _ in range(22):
            for type, usual in kinds.items():
                spend(scene, round(usual * dice.lognormvariate(0, 0.2)), type=type)
        found = seen(scene, q.Estimates)
        assert (found["tasks"], found["estimated"]) == (66, 51)
        assert found["median_error"] <= 0.2
        assert found["within"] >= 0.5
        by_type = {kind["type"]: kind for kind in found["types"]}
        for type, usual in kinds.items():
            (size,) = by_type[type]["sizes"]
            assert abs(size["tokens"] - usual) / usual <= 0.2
            assert size["is_used"]

    # --- savings --------------------------------------------------------------------------------------------------

    def test_what_routing_saved_on_a_plan_of_mixed_tasks(self, scene: Scene) -> None:
        """By hand, at the table's dollars for a million tokens: haiku 0.10 and 0.50, sonnet 2 and 10, opus 4 and 20.

        small:  6 tasks of 80,000 in, 20,000 out: 6 × (0.008 + 0.01) = 0.108; in the middle 6 × (0.16 + 0.2) = 2.16
        middle: 3 such tasks: 3 × 0.36 = 1.08, either way
        top:    1 such task: 0.32 + 0.4 = 0.72; in the middle 0.36
        all:    1.908 instead of 3.60: 1.692 saved, 47 %
        """
        register(scene, "ann")
        small, middle, top = (
            NewTask(title="stub", type="boilerplate"),
            NewTask(title="feature"),
            NewTask(title="design", constraints={"complexity": 9}),
        )
        tasks = [small] * 6 + [middle] * 3 + [top]
        scene.plan(*tasks)
        tiers = []
        for _ in tasks:
            granted = scene.next()
            tiers.append(granted.tier)
            usage = used(granted.model or "", fresh=80_000, output=20_000)
            assert scene.submit(granted.receipt or "", usage=usage).outcome == "ACCEPTED"
        assert sorted(t or "" for t in tiers) == ["middle"] * 3 + ["small"] * 6 + ["top"]
        found = seen(scene, q.ShowSavings)
        assert [(t["tier"], t["cost_usd"], t["middle_usd"], t["saved_usd"]) for t in found["tiers"]] == [
            ("small", "0.108", "2.16", "2.052"),
            ("middle", "1.08", "1.08", "0.00"),
            ("top", "0.72", "0.36", "-0.36"),
        ]
        assert (found["cost_usd"], found["middle_usd"], found["saved_usd"]) == ("1.908", "3.60", "1.692")
        assert found["saved"] == pytest.approx(0.47)

    def test_models_without_a_price_are_named_and_not_counted(self, scene: Scene) -> None:
        scene.submit(scene.take(scene.add()), usage=used("our-own", fresh=5, cost_usd="9"))
        found = seen(scene, q.ShowSavings)
        assert (found["tiers"], found["saved"], found["saved_usd"]) == ([], None, "0.00")
        assert found["unknown"] == [{"model": "our-own", "tokens": 5}]
