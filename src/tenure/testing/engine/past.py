"""The past: queries with `at` answer as they did then."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any, NamedTuple

import pytest

from tenure.core import commands as c
from tenure.core import queries as q
from tenure.core.commands import NewTask, Principal, Totals
from tenure.core.errors import HistoryPruned, InvalidInput, NotFound
from tenure.core.queries import Query
from tenure.core.records import KINDS, Archived, Budget, Leader, Row, replace
from tenure.core.written_times import spell_instant
from tenure.engine.archive import mover
from tenure.engine.past.rebuild import rebuilt
from tenure.engine.reads.query_table import read_query
from tenure.engine.runtime.rows import row_pages
from tenure.engine.verify.replay import differences
from tenure.testing.engine.histories import History, Player
from tenure.testing.engine.stage import Stage
from tenure.testing.factories import PROJECT, Scene

# What the log does not have: leases, renewals and presence; and usage that grew later.
# Of a validation the log has no renewals either, so whether its taker's lease had run out.
UNKNOWN = frozenset(
    {"lease_until", "renewals", "usage", "agents", "until", "reported_at", "validations", "holder", "taken_at"}
)


class Snapshot(NamedTuple):
    """What was stored at a moment, and what queries answered."""

    instant: int
    sequence: int
    rows: dict[type[Row], dict[tuple[str, str], Row]]
    answers: list[tuple[Query, Any]]


def asked(scene: Scene, query: Query, at: int | str | None = None, by: Principal | None = None) -> Any:
    """The answer, or the error; `at` is an instant, or the text of a moment."""
    text = spell_instant(at) if isinstance(at, int) else at
    query = query if at is None else replace(query, at=text)
    return read_query(scene.engine, query, by) if by is not None else read_query(scene.engine, query)


def snapshot(scene: Scene, dice: Random) -> Snapshot:
    def stored(tx: Any) -> dict[type[Row], dict[tuple[str, str], Row]]:
        logged: list[type[Row]] = [kind for kind in KINDS if KINDS[kind].logged or kind is Archived]
        return {
            kind: {
                (row.project, row.id): row
                for project in (("", PROJECT) if kind in (Budget, Leader) else (PROJECT,))
                for page in row_pages(tx, kind, {"project": project}, 500)
                for row in page
            }
            for kind in logged
        }

    last = scene.engine.read(lambda tx: tx.events({}, limit=1, last=True))
    tasks = asked(scene, q.Tasks(project=PROJECT, archived=True, limit=500))
    some = dice.sample(tasks, min(2, len(tasks)))
    queries = [q.Status(project=PROJECT), q.Tasks(project=PROJECT), q.Tasks(project=PROJECT, archived=True, limit=500)]
    queries += [kind(project=PROJECT, task=task["id"]) for task in some for kind in (q.Show, q.History, q.Briefing)]
    answers = [(query, asked(scene, query)) for query in queries]
    return Snapshot(scene.now, last[0].sequence, scene.engine.read(stored), answers)


def snapshots(scene: Scene, seed: int, length: int, share: float) -> Iterator[Snapshot]:
    """A random history with archive, sweeps and epochs; snapshots of this share of its steps."""
    player, dice = Player(scene), Random(seed)  # noqa: S311 - a history, not a secret
    for step in History(seed, length):
        scene.clock.advance(microseconds=1)
        if not callable(step):
            scene.clock.advance(seconds=step)
            if dice.random() < 0.5:
                scene.engine.sweep()
        else:
            command = step(player)
            (answer,) = scene.run(command)
            player.learn(command, answer)
        if dice.random() < 0.08:
            mover.move_all(scene.engine, PROJECT, older=0)
        if dice.random() < 0.01:
            scene.engine.new_epoch("a test")
        if dice.random() < share:
            yield snapshot(scene, dice)


def known(value: Any) -> Any:
    """An answer without what the log does not have."""
    if isinstance(value, dict):
        return {name: known(part) for name, part in value.items() if name not in UNKNOWN}
    return [known(part) for part in value] if isinstance(value, (list, tuple)) else value


def faults(scene: Scene, then: Snapshot) -> list[str]:
    """Where the past that the log gives differs from what was there."""
    found = []
    for at in (spell_instant(then.instant), str(then.sequence)):
        rows: Any = rebuilt(scene.engine, PROJECT, at).rows
        found += [f"{at}: {fault}" for fault in differences(rows, then.rows)]  # type: ignore[arg-type]  # rows by kind
        archived = {key: row for key, row in then.rows[Archived].items() if not row.out}  # type: ignore[attr-defined]
        if rows[Archived].keys() != archived.keys():
            found.append(f"{at}: archived {rows[Archived].keys() ^ archived.keys()}")
        for key in rows[Archived].keys() & archived.keys():
            mine, theirs = (replace(row, document=b"", size=0) for row in (rows[Archived][key], archived[key]))
            found += [f"{at}: {mine} was {theirs}"] if mine != theirs else []
    for query, answer in then.answers:
        answer_now = asked(scene, query, then.instant)
        found += [f"{then.instant}: {query}: {answer_now} was {answer}"] if known(answer_now) != known(answer) else []
    return found


class Past(Stage):
    @pytest.mark.parametrize("seed", [1, 2, 3])
    def test_the_past_is_what_was_there(self, scene: Scene, seed: int) -> None:
        taken = list(snapshots(scene, seed, 120, 0.15))
        assert len(taken) > 8
        assert [fault for then in taken for fault in faults(scene, then)][:5] == []

    def test_a_lease_that_had_run_out_is_over_whether_or_not_it_was_settled(self, scene: Scene) -> None:
        key = scene.add()
        scene.take(key, lease=60)
        scene.pass_time(seconds=59)
        during = scene.now
        scene.pass_time(seconds=2)
        after = scene.now
        show = q.Show(project=PROJECT, task=key)
        for _ in ("nobody has settled it", "a command has"):
            assert asked(scene, show, during)["state"] == "claimed"
            assert "lease_until" not in asked(scene, show, during)  # renewals are not in the log
            assert asked(scene, show, after)["state"] == "ready"
            scene.pass_time(hours=1)
            scene.engine.sweep()
        assert [entry["release_reason"] for entry in asked(scene, q.History(project=PROJECT, task=key), after)] == [
            "EXPIRED"
        ]

    def test_a_renewed_lease_is_not_over(self, scene: Scene) -> None:
        key = scene.add()
        receipt = scene.take(key, lease=60)
        for _ in range(3):
            scene.pass_time(seconds=50)
            scene.do(c.Renew, receipt=receipt)
        then = scene.now
        scene.submit(receipt, "x")
        assert asked(scene, q.Show(project=PROJECT, task=key), then - 1)["state"] == "running"

    def test_archived_tasks_are_as_they_were(self, scene: Scene) -> None:
        scene.do(c.DefineProject, limits={"archive_after": 0})
        key = scene.add(description="d" * 5000)
        receipt = scene.take(key)
        scene.pass_time(seconds=1)
        held = scene.now
        scene.pass_time(seconds=1)
        scene.submit(receipt, {"big": "r" * 5000}, usage=(Totals(model="opus", fresh=3),))
        scene.pass_time(seconds=1)
        done = scene.now
        scene.pass_time(seconds=1)
        assert mover.move_all(scene.engine, PROJECT).tasks == 1
        scene.pass_time(seconds=1)
        moved = scene.now
        scene.pass_time(seconds=1)
        scene.do(c.Reset, task=key)
        scene.pass_time(seconds=1)
        show, list_ = q.Show(project=PROJECT, task=key), q.Tasks(project=PROJECT)
        for _ in ("returned", "archived again"):
            then = asked(scene, show, held)
            assert (then["state"], then["agent"], then["description"]) == ("claimed", "ann", "d" * 5000)
            assert asked(scene, show, done)["result"]["data"] == {"big": "r" * 5000}
            assert [len(asked(scene, list_, at)) for at in (held, done, moved)] == [1, 1, 0]
            assert [t["state"] for t in asked(scene, replace(list_, archived=True), moved)] == ["completed"]
            for at in (done, moved):
                status = asked(scene, q.Status(project=PROJECT), at)
                assert (at, status["tasks"], status["usage"]["fresh"]) == (at, {"completed": 1}, 3)
            assert asked(scene, q.Status(project=PROJECT), held)["usage"]["fresh"] == 0
            scene.do(c.Cancel, task=key)
            scene.pass_time(seconds=1)
            mover.move_all(scene.engine, PROJECT)

    def test_an_archived_task_that_returned_had_its_subtasks(self, scene: Scene) -> None:
        scene.do(c.DefineProject, limits={"archive_after": 0})
        key = scene.add()
        receipt = scene.take(key)
        (part,) = scene.do(c.Spawn, receipt=receipt, tasks=(NewTask(title="part"),)).tasks or ()
        scene.submit(scene.take(str(part["key"]), "bo"))
        scene.submit(receipt)
        scene.pass_time(seconds=1)
        assert mover.move_all(scene.engine, PROJECT).tasks == 2
        scene.pass_time(seconds=1)
        moved = scene.now
        before = scene.engine.read(lambda tx: {row.id: (row.dag, row.root) for row in tx.find(Archived, {})})
        scene.pass_time(seconds=1)
        scene.do(c.Reset, task=key)
        rows: Any = rebuilt(scene.engine, PROJECT, spell_instant(moved)).rows
        assert {row.id: (row.dag, row.root) for row in rows[Archived].values()} == before
        assert asked(scene, q.Show(project=PROJECT, task=key), moved)["subtasks"] == [part["key"]]

    def test_budgets_are_as_they_were(self, scene: Scene) -> None:
        scene.do(c.SetBudget, scope="project", usd="10", default_estimate="2")
        scene.do(c.SetBudget, scope="agent:bo", usd="3", default_estimate="1")
        dag = scene.do(c.Plan, tasks=(NewTask(title="a"), NewTask(title="b"))).tasks or ()
        capped = scene.add("capped", constraints={"max_cost_usd": "3"})
        recorded = []

        def note() -> None:
            scene.pass_time(seconds=1)
            found = [asked(scene, q.Budgets(project=PROJECT, scope=scope)) for scope in (None, "task")]
            recorded.append((scene.now, found))
            scene.pass_time(seconds=1)

        note()
        first = scene.take(str(dag[0]["key"]))
        note()
        scene.submit(first, usage=(Totals(model="opus", fresh=1, cost_usd="6"),))
        note()
        second = scene.take(capped, "bo")
        note()
        scene.submit(second, usage=(Totals(model="opus", fresh=1, cost_usd="3"),))
        note()
        scene.do(c.SetBudget, scope="project", usd="20")
        note()
        mover.move_all(scene.engine, PROJECT, older=0)
        scene.do(c.RemoveBudget, scope="agent:bo")
        for at, found in recorded:
            then = [asked(scene, q.Budgets(project=PROJECT, scope=scope), at) for scope in (None, "task")]
            assert [(b["id"], _amounts(b)) for part in then for b in part] == [
                (b["id"], _amounts(b)) for part in found for b in part
            ]
        assert asked(scene, q.ShowBudget(project=PROJECT, scope="project"), recorded[0][0])["consumed"] == "0.00"
        with pytest.raises(NotFound):
            asked(scene, q.ShowBudget(project=PROJECT, scope="agent:bo"))

    def test_usage_from_before_a_budget_never_counts_in_it(self, scene: Scene) -> None:
        """Its row may grow after the budget began: it says when it last grew, not by how much."""
        receipt = scene.take(scene.add())
        scene.do(c.ReportUsage, receipt=receipt, model="opus", fresh=1, cost_usd="0.20")
        scene.pass_time(seconds=1)
        scene.do(c.SetBudget, scope="project", usd="5", period="day")
        scene.pass_time(seconds=1)
        scene.do(c.ReportUsage, receipt=receipt, model="opus", fresh=9)
        scene.pass_time(seconds=1)
        then, wanted = scene.now, q.ShowBudget(project=PROJECT, scope="project")
        live = asked(scene, wanted)
        for hours in (0, 72):  # in the budget's first period, and when that is over
            scene.pass_time(seconds=1, hours=hours)
            scene.take(scene.add(), "bo")  # which settles its period
            assert _amounts(asked(scene, wanted, then)) == _amounts(live)
        assert live["consumed"] == "0.00"

    def test_a_throttled_budget_let_the_next_claim_be_when_it_did(self, scene: Scene) -> None:
        scene.do(c.SetBudget, scope="project", usd="20", default_estimate="1", throttle=True)
        receipt = scene.take(scene.add(), lease=500_000.0)
        scene.pass_time(hours=12)
        scene.do(c.ReportUsage, receipt=receipt, model="opus", cost_usd="6", fresh=1)
        scene.take(scene.add(), "bo")
        then, wanted = scene.now, q.ShowBudget(project=PROJECT, scope="project")
        live = asked(scene, wanted)["next_claim_at"]
        assert live is not None
        scene.pass_time(hours=2)
        scene.take(scene.add(), "cy")
        assert asked(scene, wanted)["next_claim_at"] != live == asked(scene, wanted, then)["next_claim_at"]

    def test_usage_that_grew_later_is_left_out(self, scene: Scene) -> None:
        """Usage has no events: only the last report of a claim is known."""
        receipt = scene.take(scene.add())
        scene.do(c.ReportUsage, receipt=receipt, model="opus", fresh=1)
        scene.pass_time(seconds=1)
        then = scene.now
        status = q.Status(project=PROJECT)
        assert asked(scene, status, then)["usage"]["fresh"] == 1
        scene.pass_time(seconds=1)
        scene.do(c.ReportUsage, receipt=receipt, model="opus", fresh=5)
        assert asked(scene, status, then)["usage"]["fresh"] == 0
        assert asked(scene, status, scene.now)["usage"]["fresh"] == 5

    def test_a_moment_that_cannot_be_shown_is_refused_with_the_reason(self, scene: Scene) -> None:
        scene.add()
        status = q.Status(project=PROJECT)
        first = scene.events(project=PROJECT)[0]
        for bad, why in (
            (scene.now + 1, "in the future"),
            (first.time - 1, "before project p"),
            ("1000000", "no event has that sequence yet"),
            ("0", "not the sequence"),
            ("2h", "a duration"),
            ("yesterday", "not a time"),
            ("2023-11-14T12:00:00", "time zone"),
        ):
            with pytest.raises(InvalidInput, match=why):
                asked(scene, status, bad)
        with pytest.raises(NotFound):
            asked(scene, q.Status(project="other"), scene.now)
        with pytest.raises(NotFound):  # as for a project that does not exist
            asked(scene, status, scene.now, by=Principal(role="viewer", user="v", projects=("other",)))
        assert asked(scene, status, str(first.sequence))["tasks"] == {}
        assert asked(scene, status, first.time)["now"] == first.time

    def test_what_retention_deleted_is_refused_and_later_moments_are_whole(self, scene: Scene) -> None:
        scene.do(c.DefineProject, limits={"archive_after": 0, "history_retention": 30})
        scene.finish(scene.add("old"))
        early = scene.now
        scene.pass_time(seconds=1)
        assert mover.move_all(scene.engine, PROJECT).tasks == 1
        scene.pass_time(hours=20 * 24)
        late, before = scene.now, asked(scene, q.Status(project=PROJECT))
        scene.pass_time(seconds=1)
        key = scene.add("new")
        scene.pass_time(hours=20 * 24)
        assert mover.move_all(scene.engine, PROJECT).pruned == 1
        with pytest.raises(HistoryPruned, match="retention"):
            asked(scene, q.Status(project=PROJECT), early)
        assert known(asked(scene, q.Status(project=PROJECT), late)) == known(before)
        assert [t["key"] for t in asked(scene, q.Tasks(project=PROJECT), scene.now)] == [key]

    def test_the_past_of_a_clock_that_was_set_back(self, scene: Scene) -> None:
        """An instant that happened twice means the second time."""
        if "host_clock" not in scene.store.features:
            pytest.skip("its time is not the host's")
        one = scene.add("before")
        scene.pass_time(hours=1)
        scene.add("ahead")
        scene.clock.jump(-1800)
        scene.engine.accept_clock()
        scene.pass_time(seconds=1)
        then = scene.now
        scene.pass_time(seconds=1)
        scene.add("after")
        titles = [[t["title"] for t in asked(scene, q.Tasks(project=PROJECT), at)] for at in (then, scene.now)]
        assert titles == [["before", "ahead"], ["before", "ahead", "after"]]
        assert one

    def test_asking_about_the_past_writes_nothing(self, scene: Scene) -> None:
        key = scene.add()
        scene.take(key, lease=60)
        scene.pass_time(hours=1)
        before = scene.tables()
        for query in (q.Status(project=PROJECT), q.Show(project=PROJECT, task=key), q.Budgets(project=PROJECT)):
            asked(scene, query, scene.now)
        assert scene.tables() == before


def _amounts(budget: dict[str, Any]) -> tuple[Any, ...]:
    names = ("allocated", "consumed", "reserved", "percent", "alerts", "since", "period")
    return tuple(budget[name] for name in names)
