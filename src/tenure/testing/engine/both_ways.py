"""A store that declares FUSED gives the same by its own statements as by the rules: rows, log and answers.

The other parts of the suite run by the short way where a store has one. Here long histories, and crowds of plain tasks
in which much goes wrong, are played twice: once with the store's own statements and once without.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tenure.core import commands as c
from tenure.core.commands import NewTask, Principal, Totals
from tenure.core.events import Event
from tenure.core.outcomes import Outcome
from tenure.core.records import Agent, Answered, Claim, Dag, Leader, Model, Reservation, Result, Session, Task, Track
from tenure.engine import Context, Engine
from tenure.engine.runtime.engine import checked_command
from tenure.engine.runtime.optimistic import Optimism
from tenure.stores.port import FAST_PATH, Store
from tenure.testing.clock import FakeClock
from tenure.testing.engine.crowds import crowd
from tenure.testing.engine.histories import play, play_in_batches
from tenure.testing.engine.stage import Stage
from tenure.testing.factories import PRODUCT, PROJECT, Scene, code_of, comparable
from tenure.testing.suites.store_setting import needs

_ID = re.compile(r"\b(cmd|dag|evt|hold|msg|result|task)_[0-9A-Z]{26}")
_BY_CHANCE = {"nonce", "epoch", "claim_epoch"}
_ANSWERED = {field.name for field in msgspec.structs.fields(Answered)}  # its digest is of a command with a receipt


class Eager(Optimism):
    def note(self, kind: Any, went: bool) -> None:
        pass


class Twice:
    """The same scene on two stores: `short` as the store likes it best, `long` by the rules alone."""

    def __init__(self, open_store: Callable[[Path, FakeClock], Store], folder: Path, *, is_eager: bool) -> None:
        """`is_eager`: all that can be tried is tried, with nothing learned from what does not go well."""
        self.is_eager = is_eager
        scenes = []
        for name in ("short", "long"):
            (folder / name).mkdir()
            clock = FakeClock()
            scenes.append(Scene(open_store(folder / name, clock), clock))
        self.short, self.long = scenes
        self.long.engine = Engine(self.long.store, self.long.dice, Context(fast_path=False))
        if is_eager:
            eager = Context(optimism=Eager())
            self.short.engine = Engine(self.short.store, self.short.dice, eager)

    def both(self, play: Callable[[Scene], Any]) -> None:
        assert play(self.short) == play(self.long)

    def check(self) -> None:
        """Everything that is stored is the same, but for what chance gave."""
        for kind in (Task, Claim, Result, Agent, Session, Dag, Track, Leader):
            assert _comparable_rows(self.short.rows(kind)) == _comparable_rows(self.long.rows(kind)), kind.__name__
        short, long = _comparable_rows(self.short.events()), _comparable_rows(self.long.events())
        for mine, theirs in zip(short, long, strict=False):
            assert mine == theirs
        assert len(short) == len(long)
        for scene in (self.short, self.long):
            assert scene.engine.verify() == []
            assert scene.store.check() == []

    def close(self) -> None:
        self.short.store.close()
        self.long.store.close()


def _comparable_rows(rows: list[Any]) -> list[Any]:
    """Rows without ids and nonces, in an order that does not depend on them."""
    stripped = []
    for row in rows:
        values = msgspec.to_builtins(row, builtin_types=(bytes,))
        if isinstance(row, Event):
            del values["sequence"]
            for _, _, fields in values.get("patch", ()):
                (fields or {}).pop("updated_at", None)  # left out by the rules where it was the same instant
        stripped.append(_without_chance(values))
    return sorted(stripped, key=msgspec.json.encode)


def _without_chance(value: Any) -> Any:
    """Members of an object have no order; those of a list have."""
    if isinstance(value, dict):
        by_chance = _BY_CHANCE | ({"digest"} if value.keys() == _ANSWERED else set())
        return {k: _without_chance(v) for k, v in sorted(value.items()) if k not in by_chance}
    if isinstance(value, (list, tuple)):
        return [_without_chance(v) for v in value]
    return PRODUCT.sub(r"\1-…", _ID.sub(r"\1_…", value)) if isinstance(value, str) else value


class BothWays(Stage):
    @pytest.fixture(params=["learning", "eager"])
    def twice(self, store: Store, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Twice]:
        needs(store, FAST_PATH)
        twice = Twice(self.open_store, tmp_path, is_eager=request.param == "eager")
        yield twice
        twice.close()

    @pytest.mark.parametrize("seed", range(700, 704))
    def test_a_history_leaves_the_same_by_the_short_way_and_the_long(self, twice: Twice, seed: int) -> None:
        twice.both(lambda scene: play(scene, seed, 120))
        twice.both(lambda scene: play_in_batches(scene, seed + 50, 80, 9, one_by_one=False))
        twice.check()

    @pytest.mark.parametrize("seed", range(800, 806))
    def test_a_crowd_on_plain_tasks_leaves_the_same(self, twice: Twice, seed: int) -> None:
        twice.both(lambda scene: crowd(scene, seed))
        twice.check()

    @pytest.mark.parametrize(
        "settings", [{"router": True}, {"order": "shortest"}, {"lead": "auto"}, {"router": True, "lead": "auto"}]
    )
    def test_a_project_that_assigns_orders_or_leads_leaves_the_same(
        self, twice: Twice, settings: dict[str, Any]
    ) -> None:
        twice.both(lambda scene: comparable(scene.do(c.DefineProject, **settings)))
        twice.both(lambda scene: crowd(scene, 807))
        twice.both(lambda scene: comparable(scene.do(c.Reorder)))
        twice.both(lambda scene: play_in_batches(scene, 757, 60, 9, one_by_one=False))
        twice.check()
        if "router" in settings:
            assert twice.short.events(kind="track.assigned")
        if "lead" in settings:
            assert twice.short.events(kind="leader.lost")

    def test_a_claim_of_a_plain_task_assigns_its_track(self, twice: Twice) -> None:
        def play(scene: Scene) -> list[Any]:
            scene.do(c.DefineProject, router=True)
            scene.do(c.Register, agent="ann", session="s-ann")
            answers: list[Any] = []
            for _ in range(3):
                scene.add("plain")
                granted = scene.next("ann")
                answers += [comparable(granted), comparable(scene.submit(str(granted.receipt)))]
            assert scene.events(kind="track.assigned")
            return answers

        twice.both(play)
        twice.check()

    def test_an_answer_is_of_its_own_turn_in_the_batch(self, twice: Twice) -> None:
        """A repeat reports its task as it is now: the result behind it in the batch, which moves it, comes after."""

        def waits_for_the_next(scene: Scene) -> list[Any]:
            first, second = scene.add("first"), scene.add("second")
            old = scene.take(first)
            scene.submit(old)
            scene.do(c.Reset, task=first)
            scene.do(c.Link, task=first, needs=second)
            later = scene.take(second, "bo")
            batch = [c.Submit(project=PROJECT, receipt=receipt, data="done") for receipt in (old, later)]
            answers = [comparable(answer) for answer in scene.run(*batch)]
            assert [answer["state"] for answer in answers] == ["pending", "completed"]
            assert scene.state(first) == "ready"
            return answers

        twice.both(waits_for_the_next)
        twice.check()

    def test_the_same_model_is_told_either_way(self, twice: Twice) -> None:
        """Of all kinds of agents and sizes; then while a model is in trouble, and after what was learnt of sizes."""
        kinds = {"ann": ("claude", ()), "bo": ("codex", ()), "cy": ("generic", ()), "di": ("claude", ("gpt-5", "x"))}
        sizes: tuple[dict[str, Any], ...] = (
            {}, {"priority": 5}, {"constraints": {"complexity": 9}}, {"constraints": {"complexity": 2}},
            {"type": "boilerplate"}, {"tags": ("ui", "typo")}, {"constraints": {"estimated_tokens": 20_000}},
        )  # fmt: skip

        def asks(scene: Scene, **more: Any) -> list[Any]:
            for task in sizes:
                scene.run(*[c.Add(project=PROJECT, task=NewTask(title="work", **task, **more))] * len(kinds))
            batch = [c.ClaimNext(project=PROJECT, agent=a, session=a, n=len(sizes)) for a in kinds]
            answers = scene.run(*batch)
            claims = [claim for answer in answers if isinstance(answer, Outcome) for claim in answer.claims or ()]
            assert len(claims) == len(kinds) * len(sizes)
            scene.run(*(c.Submit(project=PROJECT, receipt=claim.receipt or "") for claim in claims[1:]))
            scene.fail(claims[0].receipt or "", "rate_limit", model="haiku", retry_after=30)
            scene.do(c.Cancel, task=(claims[0].task or {})["key"])  # one that was claimed before is not plain
            return [comparable(answer) for answer in answers]

        def knows(scene: Scene) -> list[Any]:
            for agent, (type, models) in kinds.items():
                scene.do(c.Register, agent=agent, session=agent, type=type, models=models)
            seen = [*asks(scene), *asks(scene)]
            scene.pass_time(minutes=40)
            seen += asks(scene, spec={"prompt": "x" * 5000})  # a large value: read from rows, not from columns
            for _ in range(6):
                usage = (Totals(model="haiku", fresh=9000),)
                scene.submit(scene.take(scene.add("learnt"), "ann"), usage=usage)
            return [*seen, *asks(scene)]

        twice.both(knows)
        twice.check()
        rows = _comparable_rows(twice.short.rows(Claim))
        assert {claim.get("model") for claim in rows} > {None, "sonnet"}

    def test_each_claim_is_checked_though_the_asker_is_known(self, twice: Twice) -> None:
        def asks_for_the_impossible(scene: Scene) -> list[Any]:
            scene.run(*[c.Add(project=PROJECT, task=NewTask(title="plain"))] * 3)
            asked = (None, ("a|b",), None)
            batch = [c.ClaimNext(project=PROJECT, agent="ann", session="s", capabilities=wanted) for wanted in asked]
            answers = scene.run(*batch)
            assert [code_of(answer) for answer in answers] == ["GRANTED", "INVALID_INPUT", "GRANTED"]
            return [comparable(answer) for answer in answers]

        twice.both(asks_for_the_impossible)
        twice.check()

    def test_who_is_heard_of_again_is_told_in_its_own_callers_name(self, twice: Twice) -> None:
        def comes_back(scene: Scene) -> list[Any]:
            receipts = [scene.take(scene.add("long"), agent, lease=3600.0) for agent in ("ann", "bo")]
            scene.clock.advance(seconds=2000)
            scene.engine.sweep()
            batch = [
                checked_command(c.Submit(project=PROJECT, receipt=receipt), Principal(user=user))
                for receipt, user in zip(receipts, ("one", "two"), strict=True)
            ]
            answers = [comparable(answer) for answer in scene.engine.run_checked(batch)]
            back = {(e.agent, e.user) for e in scene.events() if e.kind == "agent.recovered"}
            assert back == {("ann", "one"), ("bo", "two")}
            return answers

        twice.both(comes_back)
        twice.check()

    def test_an_asker_who_is_not_like_others_gets_the_same(self, twice: Twice) -> None:
        """Each was heard of a moment ago, and something has to be decided about it all the same."""

        def odd(scene: Scene) -> list[Any]:
            names = ("offered", "leaving", "full", "plain")
            for name in names:
                scene.do(c.Register, agent=name, session=name, max_concurrent_tasks=1 if name == "full" else None)
            tasks = [scene.add("first"), *(scene.add("other") for _ in range(7))]
            scene.do(c.Assign, task=tasks[-1], agent="offered")
            scene.do(c.Drain, agent="leaving")
            answers = []
            for _ in range(2):
                batch = [c.ClaimNext(project=PROJECT, agent=name, session=name) for name in names]
                answers += [comparable(answer) for command in batch for answer in scene.run(command)]
                answers += [comparable(answer) for answer in scene.run(*batch)]
            codes = [answer["outcome"] for answer in answers[:4]]
            assert codes == ["GRANTED", "DENIED_LIMIT", "GRANTED", "GRANTED"]
            return answers

        twice.both(odd)
        twice.check()

    def test_a_claim_that_chooses_among_plain_tasks_gets_the_same(self, twice: Twice) -> None:
        """By the agent's type, and by what it excludes."""

        def play(scene: Scene) -> list[Any]:
            scene.do(c.Register, agent="ann", session="s", type="coder")
            for_coders = scene.add("typed", constraints={"agent_type": "coder"})
            first, second = scene.add("first"), scene.add("second")
            got = [scene.next("ann", session="s"), scene.next("ann", session="s", without=(scene.task(first).id,))]
            assert [(answer.task or {})["key"] for answer in got] == [for_coders, second]
            return [comparable(answer) for answer in got]

        twice.both(play)
        twice.check()

    @pytest.mark.parametrize("alike", [False, True])
    def test_agents_who_can_do_different_things_get_the_same_tasks(self, twice: Twice, alike: bool) -> None:
        """Of many lanes few heads are read at first: here most want more of one, and some can take nothing of it."""
        skills = [(), ("sql",), *[("web",)] * 12, ("sql", "web"), ("sql",)]
        if alike:
            skills = [("sql", "web")] * 16
        wanted: list[tuple[tuple[str, ...], str, int]] = [(("web",), "A", 20)] * 14
        wanted += [
            (own, track, 50) for own in ((), ("sql",), ("web",), ("sql", "web")) for track in "ABC" for _ in "123"
        ]

        def play(scene: Scene) -> list[Any]:
            for n, own in enumerate(skills):
                scene.do(c.Register, agent=f"a{n}", session=f"a{n}", capabilities=own)
            for own, track, priority in wanted:
                scene.add(track=track, priority=priority, constraints={"required_capabilities": list(own)})
            asked = [c.ClaimNext(project=PROJECT, agent=f"a{n}", session=f"a{n}") for n in range(len(skills))]
            answers = scene.run(*asked)
            got = [answer.task or {} for answer in answers if isinstance(answer, Outcome)]
            assert [task["priority"] for task in got] == ([*[20] * 14, 50, 50] if alike else [50, 50, *[20] * 13, 50])
            return [comparable(answer) for answer in answers]

        twice.both(play)
        twice.check()

    @pytest.mark.parametrize("there", [0, 1, 3])
    def test_a_claim_of_several_gets_what_there_is(self, twice: Twice, there: int) -> None:
        """Alone, and behind one that takes the first."""

        def play(scene: Scene) -> list[Any]:
            for agent in ("ann", "bob"):
                scene.do(c.Register, agent=agent, session=f"s-{agent}")
            scene.run(*[c.Add(project=PROJECT, task=NewTask(title="plain"))] * there)
            asked = c.ClaimNext(
                project=PROJECT, agent="ann", session="s-ann", n=5, request_id="r1", user="u", lease=60.0
            )
            answers = scene.run(asked)
            assert [len(one.claims or ()) for one in answers if isinstance(one, Outcome)] == [there]
            answers += [*scene.run(asked), scene.next("ann", session="s-ann", n=2)]
            scene.run(*[c.Add(project=PROJECT, task=NewTask(title="plain"))] * (there + 1))
            one = c.ClaimNext(project=PROJECT, agent="ann", session="s-ann")
            answers += scene.run(one, c.ClaimNext(project=PROJECT, agent="bob", session="s-bob", n=5))
            return [comparable(answer) for answer in answers]

        twice.both(play)
        twice.check()

    def test_each_claim_of_several_names_what_its_own_session_holds(self, twice: Twice) -> None:
        def play(scene: Scene) -> list[Any]:
            scene.run(*[c.Add(project=PROJECT, task=NewTask(title="plain"))] * 7)
            for agent, n in (("ann", 1), ("bob", 2)):
                scene.do(c.Register, agent=agent, session=f"s-{agent}")
                scene.next(agent, n=n)
            asked = [c.ClaimNext(project=PROJECT, agent=a, session=f"s-{a}", n=2) for a in ("ann", "bob")]
            answers = [answer for answer in scene.run(*asked) if isinstance(answer, Outcome)]
            assert [len(answer.unfinished or ()) for answer in answers] == [1, 2]
            return [comparable(answer) for answer in answers]

        twice.both(play)
        twice.check()

    def test_a_claim_of_a_task_that_touches_files_reserves_them(self, twice: Twice) -> None:
        def play(scene: Scene) -> list[Any]:
            scene.do(c.Register, agent="ann", session="s")
            scene.add(touches=("src/**",))
            answers = [comparable(scene.next("ann", session="s"))]
            assert scene.rows(Reservation)
            return answers

        twice.both(play)
        twice.check()

    def test_what_a_holder_changes_after_a_plain_claim_is_the_same(self, twice: Twice) -> None:
        def play(scene: Scene) -> list[Any]:
            scene.do(c.Register, agent="ann", session="s")
            scene.run(*[c.Add(project=PROJECT, task=NewTask(title="plain"))] * 3)
            receipts = [str(scene.next("ann", session="s").receipt) for _ in range(3)]
            return [
                comparable(scene.do(c.Progress, receipt=receipts[0], percent=10)),
                comparable(scene.fail(receipts[1])),
                comparable(scene.do(c.Release, receipt=receipts[2])),
            ]

        twice.both(play)
        twice.check()

    def test_a_terminated_agent_that_still_holds_a_task_gets_no_other(self, twice: Twice) -> None:
        def play(scene: Scene) -> list[Any]:
            scene.do(c.Register, agent="ann", session="s")
            scene.run(*[c.Add(project=PROJECT, task=NewTask(title="plain"))] * 2)
            held = scene.next("ann", session="s")
            scene.do(c.Terminate, agent="ann", graceful=True)
            denied = scene.next("ann", session="s")
            assert (held.outcome, denied.outcome) == ("GRANTED", "DENIED_AGENT")
            return [comparable(held), comparable(denied)]

        twice.both(play)
        twice.check()

    def test_a_lone_task_with_subtasks_is_counted_in_its_own_dag(self, twice: Twice) -> None:
        def play(scene: Scene) -> list[Any]:
            scene.do(c.Register, agent="ann", session="s")
            codes = []
            for _ in range(2):
                scene.add("Parent")
                claim = scene.do(c.ClaimNext, agent="ann", session="s")
                scene.do(c.Spawn, receipt=str(claim.receipt), tasks=(NewTask(title="Child", name="child"),))
                codes.append(code_of(scene.do(c.Submit, receipt=str(claim.receipt), data="done")))
                scene.run(*[c.Cancel(project=PROJECT, task=t.id) for t in scene.rows(Task, state="ready")])
            return codes

        twice.both(play)
        twice.check()

    def test_a_claim_by_key_is_stored_with_the_key(self, twice: Twice) -> None:
        by = Principal(role="agent", agent="ann", session="s", key="k-ann", is_proven=True)

        def play(scene: Scene) -> list[Any]:
            scene.do(c.Register, agent="ann", session="s")
            scene.add(), scene.add()
            scene.run(*[c.ClaimNext(project=PROJECT, agent="ann", session="s")] * 2, by=by)
            keys = [claim.key for claim in scene.rows(Claim)]
            assert keys == ["k-ann", "k-ann"]
            return keys

        twice.both(play)
        twice.check()

    def test_a_claim_of_a_task_with_large_values_returns_them(self, twice: Twice) -> None:
        def play(scene: Scene) -> list[Any]:
            scene.do(c.Register, agent="ann", session="s")
            answers = []
            for large in ({"spec": {"prompt": "x" * 5000}}, {"description": "x" * 5000}) * 2:
                scene.add(**large)
                answers.append(comparable(scene.do(c.ClaimNext, agent="ann", session="s")))
            return answers

        twice.both(play)
        twice.check()

    def test_a_result_clears_the_trouble_of_its_model(self, twice: Twice) -> None:
        def play(scene: Scene) -> list[Any]:
            scene.do(c.Register, agent="ann", session="s", type="claude")
            scene.add()
            limited = scene.do(c.ClaimNext, agent="ann", session="s")
            scene.fail(str(limited.receipt), "rate_limit", model=limited.model, retry_after=30)
            scene.do(c.Cancel, task=(limited.task or {})["key"])
            scene.pass_time(seconds=31)
            scene.add()
            working = scene.do(c.ClaimNext, agent="ann", session="s")
            assert [row.tried_by is not None for row in scene.rows(Model)] == [True]
            scene.submit(str(working.receipt), "done")
            return scene.rows(Model)

        twice.both(play)
        assert twice.short.rows(Model) == []
        twice.check()

    def test_a_lone_task_releases_the_task_that_was_linked_to_it(self, twice: Twice) -> None:
        def play(scene: Scene) -> list[Any]:
            scene.do(c.Register, agent="ann", session="s")
            states = []
            for _ in range(2):
                first, second = scene.add("First"), scene.add("Second")
                scene.do(c.Link, task=second, needs=first)
                scene.submit(str(scene.claim(first, "ann", session="s").receipt), "done")
                states.append(scene.task(second).state)
            assert states == ["ready", "ready"]
            return states

        twice.both(play)
        twice.check()

    def test_results_that_others_wait_for_are_written_together(self, twice: Twice) -> None:
        """Of a dag, with dependents, and of claims by name or repeated, among them a receipt that is not valid."""

        def play(scene: Scene) -> list[Any]:
            observed = []
            for turn in range(3):
                keys = scene.plan(
                    NewTask(title="a", name="a"), NewTask(title="b", name="b"),
                    NewTask(title="c", name="c", depends_on=("a", "b")),
                    NewTask(title="d", name="d", depends_on=("c",)),
                )  # fmt: skip
                lone = scene.add("lone")
                scene.do(c.Release, receipt=scene.take(lone))
                receipts = [scene.take(key, agent) for key, agent in ((keys[0], "ann"), (keys[1], "bo"), (lone, "cy"))]
                # from the first on it is known that something follows
                observed.append(comparable(scene.submit(receipts[0], turn)))
                given = [*receipts[1:], "no", *receipts]
                batch = [c.Submit(project=PROJECT, receipt=receipt, data=turn) for receipt in given]
                observed += [comparable(answer) for answer in scene.run(*batch)]
                observed += [scene.states(*keys, lone)]
                assert observed[-1] == ["completed", "completed", "ready", "pending", "completed"]
                scene.finish(keys[2], keys[3])
            assert scene.events(kind="dag.completed")
            return observed

        twice.both(play)
        twice.check()

    @pytest.mark.parametrize("last", ["claim", "renewal"])
    def test_a_claim_and_a_renewal_are_signs_of_life(self, twice: Twice, last: str) -> None:
        def play(scene: Scene) -> list[Any]:
            scene.do(c.Register, agent="ann", session="s")
            scene.run(*[c.Add(project=PROJECT, task=NewTask(title="plain"))] * 2)
            answers = [scene.next("ann", session="s")]
            scene.pass_time(seconds=100)
            if last == "claim":
                answers.append(scene.next("ann", session="s"))
            else:
                answers.append(scene.do(c.Renew, receipt=str(answers[0].receipt)))
            return [comparable(answer) for answer in answers]

        twice.both(play)
        twice.check()

    def test_a_request_that_comes_twice_is_granted_once(self, twice: Twice) -> None:
        def play(scene: Scene) -> list[Any]:
            scene.do(c.Register, agent="ann", session="s")
            scene.run(*[c.Add(project=PROJECT, task=NewTask(title="plain"))] * 4)
            claim = c.ClaimNext(project=PROJECT, agent="ann", session="s", request_id="r")
            answers = [*scene.run(claim, claim), *scene.run(claim), *scene.run(claim)]
            assert len({answer.receipt for answer in answers if isinstance(answer, Outcome)}) == 1
            return [comparable(answer) for answer in answers]

        twice.both(play)
        twice.check()

    def test_results_after_something_fell_due_are_the_same(self, twice: Twice) -> None:
        def play(scene: Scene) -> list[Any]:
            observed = []
            for _ in range(2):
                first, second, other = scene.add("First"), scene.add("Second"), scene.add("Other")
                scene.do(c.Link, task=second, needs=first)
                scene.take(other, "bo", lease=30.0)
                receipt = scene.take(first, "ann", lease=600.0)
                scene.clock.advance(seconds=60)
                observed += [comparable(answer) for answer in scene.run(c.Submit(project=PROJECT, receipt=receipt))]
                observed += [scene.states(first, second, other)]
            return observed

        twice.both(play)
        twice.check()

    @pytest.mark.parametrize("pauses", [(0, 0), (0, 100)], ids=["troubles", "signs"])
    def test_a_result_clears_its_agents_troubles_and_is_a_sign_of_life(
        self, twice: Twice, pauses: tuple[int, ...]
    ) -> None:
        def play(scene: Scene) -> list[Any]:
            scene.do(c.Register, agent="ann", session="s")
            outcomes = []
            for pause in pauses:
                keys = [scene.add() for _ in range(3)]
                receipts = [str(scene.claim(key, "ann", session="s").receipt) for key in keys]
                scene.pass_time(seconds=pause)
                outcomes += [scene.do(c.Renew, receipt=receipts[0]).outcome]
                scene.pass_time(seconds=pause)
                if not pause:
                    scene.fail(receipts.pop(), "environment")
                outcomes += [scene.submit(receipt, "done").outcome for receipt in receipts]
            return outcomes

        twice.both(play)
        twice.check()

    def test_plain_tasks_take_the_short_way(self, twice: Twice, monkeypatch: pytest.MonkeyPatch) -> None:
        used: list[str] = []
        store: Any = type(twice.short.store)
        real = store.call

        def noted(self: Any, tenant: str, calls: Any) -> Any:
            done = real(self, tenant, calls)
            used.extend(type(call).__name__ for call in calls)
            return done

        monkeypatch.setattr(store, "call", noted)
        for turn in range(3):
            twice.both(partial(_one_of_each, turn=turn))
        assert used == ["Claims", "Renewals", "Submits"] * 3
        twice.check()


def _one_of_each(scene: Scene, turn: int) -> list[Any]:
    scene.do(c.Register, agent="ann", session="s")  # whom nobody knows yet takes the long way
    scene.run(*[c.Add(project=PROJECT, task=NewTask(title="plain"))] * 2)
    claims = scene.run(*[c.ClaimNext(project=PROJECT, agent="ann", session="s", request_id=f"{r}{turn}") for r in "ab"])
    receipts = [str(claim.receipt) for claim in claims if not isinstance(claim, Exception)]
    started = scene.run(*[c.Start(project=PROJECT, receipt=receipt) for receipt in receipts])
    renewed = scene.run(*[c.Renew(project=PROJECT, receipt=receipt) for receipt in receipts])
    done = scene.run(*[c.Submit(project=PROJECT, receipt=receipt) for receipt in receipts])
    return [comparable(answer) for answer in (*claims, *started, *renewed, *done)]
