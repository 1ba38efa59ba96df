"""Processes of this host that have ended: a claim looks for them first, and no view calls their agents active."""

from __future__ import annotations

import pytest

from tenure.client.transports.local import EndedHolders
from tenure.core import commands as c
from tenure.core import queries as q
from tenure.core.commands import Process
from tenure.core.processes import text_of
from tenure.core.records import replace
from tenure.engine import Engine
from tenure.engine.reads.query_table import read_query
from tenure.testing.engine.stage import Stage
from tenure.testing.factories import AGENT, PROJECT, Scene

MINE, OTHER = (Process(host="build-7", boot="5c3f-boot", pid=pid, start=99) for pid in (4711, 4712))
ELSEWHERE = Process(host="build-8", boot="5c3f-boot", pid=4711, start=99)


class Table:
    """The process table of a host, where a test ends processes."""

    place = "build-7|5c3f-boot|"

    def __init__(self) -> None:
        self.ended: set[Process] = set()
        self.looks: list[str] = []

    def has_ended(self, process: Process) -> bool:
        self.looks.append(text_of(process))
        return process in self.ended


class Look:
    """What stands before each claim of an embedded client, with a clock of the test's."""

    def __init__(self, scene: Scene) -> None:
        self.table, self.at = Table(), 0.0
        self.holders = EndedHolders(scene.engine, self.table, lambda: self.at)

    def __call__(self) -> int:
        """The next look, a second later; how many processes it looked at."""
        self.table.looks.clear()
        self.at += 1
        self.holders.end(PROJECT, AGENT)
        return len(self.table.looks)


def statuses(scene: Scene, table: Table) -> dict[str, str]:
    engine = Engine(scene.store, scene.dice, replace(scene.engine.context, table=table))
    found = {one["name"]: one["status"] for one in read_query(engine, q.Agents(project=PROJECT))}
    assert found == {one["name"]: one["status"] for one in read_query(engine, q.Status(project=PROJECT))["agents"]}
    for name, status in found.items():
        assert read_query(engine, q.ShowAgent(project=PROJECT, agent=name))["status"] == status
        assert read_query(engine, q.AgentHealth(project=PROJECT, agent=name))["status"] == status
    return found


class EndedHoldersFirst(Stage):
    @pytest.fixture
    def look(self, scene: Scene) -> Look:
        return Look(scene)

    # --- before a claim -------------------------------------------------------------------------------------------

    def test_the_urgent_task_of_a_dead_process_is_taken_over_though_others_are_ready(
        self, scene: Scene, look: Look
    ) -> None:
        urgent, _ = scene.add(priority="critical"), scene.add()
        scene.take(urgent, "ann", process=MINE)
        look.table.ended.add(MINE)
        look()
        taken = scene.next("bo")
        assert taken.task is not None
        assert (taken.task["key"], taken.generation, taken.attempt) == (urgent, 2, 2)

    def test_a_process_that_runs_and_one_of_another_host_keep_their_tasks(self, scene: Scene, look: Look) -> None:
        scene.take(scene.add(), "ann", process=MINE)
        scene.take(scene.add(), "bo", process=ELSEWHERE)
        scene.take(scene.add(), "cy")
        look.table.ended.add(ELSEWHERE)
        before = scene.tables()
        assert look() == 1
        assert look.table.looks == [text_of(MINE)]
        assert scene.tables() == before

    def test_nothing_is_looked_at_where_no_process_of_this_host_holds_anything(self, scene: Scene, look: Look) -> None:
        scene.submit(scene.take(scene.add(), "ann", process=MINE))
        scene.take(scene.add(), "bo", process=ELSEWHERE)
        assert look() == 0

    def test_it_looks_at_most_once_a_second(self, scene: Scene, look: Look) -> None:
        scene.take(scene.add(), "ann", process=MINE)
        assert look() == 1
        look.at += 0.999
        look.holders.end(PROJECT, AGENT)
        assert len(look.table.looks) == 1
        look.at += 0.001
        look.holders.end(PROJECT, AGENT)
        assert len(look.table.looks) == 2

    def test_it_looks_at_no_more_than_sixteen_and_at_each_in_its_turn(self, scene: Scene, look: Look) -> None:
        processes = [Process(host=MINE.host, boot=MINE.boot, pid=1000 + 217 * n, start=1) for n in range(40)]
        for n, process in enumerate(processes):
            scene.take(scene.add(f"Task {n}"), "ann", process=process)
        seen: set[str] = set()
        for _ in range(3):
            assert look() == 16
            seen |= {*look.table.looks}
        assert seen == {text_of(process) for process in processes}

    # --- what views say -------------------------------------------------------------------------------------------

    def test_an_agent_whose_process_is_gone_is_not_called_active(self, scene: Scene, look: Look) -> None:
        scene.take(scene.add(), "ann", process=MINE)
        scene.take(scene.add(), "bo", process=OTHER)
        scene.take(scene.add(), "cy")
        look.table.ended.add(MINE)
        assert statuses(scene, look.table) == {"ann": "offline", "bo": "active", "cy": "active"}

    def test_an_agent_that_lives_elsewhere_too_is_called_active(self, scene: Scene, look: Look) -> None:
        for name, process in (("ann", MINE), ("ann", OTHER)):
            scene.take(scene.add(), name, process=process)
        scene.take(scene.add(), "bo", session="s-bo", process=MINE)
        scene.claim(scene.add("more"), "bo", session="s-other")
        look.table.ended.add(MINE)
        assert statuses(scene, look.table) == {"ann": "active", "bo": "active"}

    def test_an_agent_that_reported_its_process_is_gone_with_it_though_it_holds_nothing(
        self, scene: Scene, look: Look
    ) -> None:
        for name, process in (("ann", MINE), ("bo", OTHER)):
            scene.do(c.Register, agent=name, host=MINE.host, boot=MINE.boot, pid=process.pid, pid_start=process.start)
        look.table.ended.add(MINE)
        assert statuses(scene, look.table) == {"ann": "offline", "bo": "idle"}

    def test_an_agent_with_another_open_session_is_idle_at_most(self, scene: Scene, look: Look) -> None:
        scene.submit(scene.take(scene.add(), "ann", session="s-2"))
        scene.take(scene.add(), "ann", process=MINE)
        look.table.ended.add(MINE)
        assert statuses(scene, look.table) == {"ann": "idle"}
