"""Briefings: what the next holder gets; what an agent should hear; what waits for a person."""

from __future__ import annotations

from typing import Any

import pytest

from tenure.core import commands as c
from tenure.core.commands import Dependency, Principal
from tenure.core.errors import NotAllowed
from tenure.core.limits import NOTES_SHOWN
from tenure.core.queries import AgentNews, Briefing, History, Todo
from tenure.engine.reads.query_table import read_query
from tenure.testing.engine.stage import Stage
from tenure.testing.factories import AGENT, MEMBER, PROJECT, Scene

REVIEWED = {"validation": "review"}


def brief(scene: Scene, task: str) -> dict[str, Any]:
    found: dict[str, Any] = read_query(scene.engine, Briefing(project=PROJECT, task=task))
    return found


def news(scene: Scene, agent: str = "ann", by: Principal = MEMBER) -> dict[str, Any]:
    found: dict[str, Any] = read_query(scene.engine, AgentNews(project=PROJECT, agent=agent), by)
    return found


def todo(scene: Scene, **asked: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = read_query(scene.engine, Todo(project=PROJECT, **asked))
    return found


class Briefings(Stage):
    def test_a_briefing_has_the_summary_of_a_dependency_and_who_wrote_it(self, scene: Scene) -> None:
        first = scene.add("first")
        second = scene.add("second", depends_on=(first,))
        scene.submit(scene.take(first, "bo"), data=None, summary="the API is at /v2")
        handed = brief(scene, second)["inputs"][scene.task(first).key]
        assert (handed["summary"], handed["agent"]) == ("the API is at /v2", "bo")
        assert scene.claim(second).inputs == brief(scene, second)["inputs"]

    def test_a_briefing_has_the_error_of_a_dependency_whose_failure_is_ignored(self, scene: Scene) -> None:
        first = scene.add("first", max_attempts=1)
        second = scene.add("second", depends_on=(Dependency(task=first, on_failure="ignore"),))
        scene.fail(scene.take(first), message="the disk is full")
        handed = brief(scene, second)["inputs"][scene.task(first).key]
        assert (handed["state"], handed["error"]["message"]) == ("dead_lettered", "the disk is full")

    def test_a_briefing_has_notes_with_their_authors(self, scene: Scene) -> None:
        key = scene.add()
        assert "notes" not in brief(scene, key)
        scene.do(c.Note, task=key, text="mind the cache", by=MEMBER)
        scene.do(c.Note, task=key, text="it is in Redis")
        assert [(note["by"], note["text"]) for note in brief(scene, key)["notes"]] == [
            ("human:mia", "mind the cache"),
            ("human:olaf", "it is in Redis"),
        ]

    def test_a_briefing_has_the_last_failure_and_the_note_of_a_retry(self, scene: Scene) -> None:
        key = scene.add(max_attempts=1)
        scene.fail(scene.take(key, "bo"), message="no such table")
        scene.do(c.Retry, task=key, note="I created the table", by=MEMBER)
        found = brief(scene, key)
        assert (found["failure"]["message"], found["failure"]["agent"]) == ("no such table", "bo")
        assert [(note["by"], note["text"]) for note in found["retries"]] == [("human:mia", "I created the table")]

    def test_a_briefing_has_the_note_of_a_retry_that_did_not_wait(self, scene: Scene) -> None:
        key = scene.add()
        scene.fail(scene.take(key, "bo"), message="no such table")
        scene.do(c.Retry, task=key, note="I created the table", by=MEMBER)
        assert [(note["by"], note["text"]) for note in brief(scene, key)["retries"]] == [
            ("human:mia", "I created the table")
        ]

    def test_a_briefing_has_what_earlier_holders_said_when_they_released_the_task(self, scene: Scene) -> None:
        key = scene.add()
        scene.do(c.Release, receipt=scene.take(key, "bo"))
        assert "releases" not in brief(scene, key)
        scene.do(c.Release, receipt=scene.take(key, "ann"), reason="half of it is on branch tabs")
        assert [(note["by"], note["text"]) for note in brief(scene, key)["releases"]] == [
            ("agent:ann", "half of it is on branch tabs")
        ]
        claims = read_query(scene.engine, History(project=PROJECT, task=key))
        assert [claim["error"] for claim in claims] == [None, "half of it is on branch tabs"]

    def test_retries_do_not_push_notes_out_of_a_briefing(self, scene: Scene) -> None:
        key = scene.add(max_attempts=2 * NOTES_SHOWN)
        scene.do(c.Note, task=key, text="mind the cache", by=MEMBER)
        for number in range(NOTES_SHOWN + 1):
            scene.fail(scene.take(key, f"agent-{number}"))
            scene.do(c.Retry, task=key, note=f"try {number}", by=MEMBER)
        found = brief(scene, key)
        assert [note["text"] for note in found["notes"]] == ["mind the cache"]
        assert [note["text"] for note in found["retries"]][-1] == f"try {NOTES_SHOWN}"

    def test_a_briefing_has_the_reason_of_the_reviewer(self, scene: Scene) -> None:
        key = scene.add(output=REVIEWED)
        scene.submit(scene.take(key, "bo"))
        scene.do(c.Reject, task=key, reason="no tests", by=MEMBER)
        review = brief(scene, key)["review"]
        assert (review["by"], review["reasons"], review["generation"]) == ("human:mia", ["no tests"], 1)

    def test_a_review_of_an_earlier_run_is_not_in_the_briefing(self, scene: Scene) -> None:
        key = scene.add(output=REVIEWED, max_attempts=1)
        scene.submit(scene.take(key, "bo"))
        scene.do(c.Reject, task=key, reason="no tests", by=MEMBER)
        scene.do(c.Retry, task=key, by=MEMBER)
        assert "review" not in brief(scene, key)

    def test_a_briefing_names_the_editor_of_the_text_alone(self, scene: Scene) -> None:
        key = scene.add()
        scene.do(c.Edit, task=key, changes={"priority": 10}, by=MEMBER)
        assert "edited_by" not in brief(scene, key)
        scene.do(c.Edit, task=key, changes={"description": "other words"}, by=MEMBER)
        assert brief(scene, key)["edited_by"] == "human:mia"

    def test_news_count_mail_and_name_what_is_asked(self, scene: Scene) -> None:
        key = scene.add()
        receipt = scene.take(key)
        assert news(scene) == {"mail": 0, "directives": []}
        scene.do(c.Send, sender="bo", to="ann", text="hello")
        scene.do(c.Pause, task=key, drain=True)
        found = news(scene)
        assert (found["mail"], [(d["directive"], d["task"]) for d in found["directives"]]) == (
            1,
            [("pause", scene.task(key).key)],
        )
        scene.do(c.Release, receipt=receipt)
        scene.do(c.Drain, agent="ann")
        assert [d["directive"] for d in news(scene)["directives"]] == ["drain"]
        scene.do(c.Terminate, agent="ann", reason="too slow")
        assert [(d["directive"], "too slow" in d["text"]) for d in news(scene)["directives"]] == [("terminated", True)]

    def test_an_agent_hears_its_own_news_alone(self, scene: Scene) -> None:
        assert news(scene, by=AGENT)["mail"] == 0
        with pytest.raises(NotAllowed):
            news(scene, "bo", by=AGENT)

    def test_answers_to_signs_of_life_count_mail(self, scene: Scene) -> None:
        receipt = scene.take(scene.add())
        scene.do(c.Send, sender="bo", to="ann", text="hello")
        for answer in (
            scene.do(c.Start, receipt=receipt),
            scene.do(c.Progress, receipt=receipt, percent=10),
            scene.do(c.SaveCheckpoint, receipt=receipt, data={}),
            scene.do(c.Renew, receipt=receipt),
        ):
            assert answer.mail == 1

    def test_all_that_waits_for_a_person_is_listed_longest_first(self, scene: Scene) -> None:
        asked, reviewed, dead, ready = scene.add("a"), scene.add("b", output=REVIEWED), scene.add("c"), scene.add("d")
        scene.add("behind", depends_on=(dead,))
        scene.bury(dead)
        scene.pass_time(minutes=1)
        scene.submit(scene.take(reviewed, "bo"))
        scene.pass_time(minutes=1)
        scene.do(c.Ask, receipt=scene.take(asked, "cy"), question="red or blue?")
        scene.do(c.Pause, task=ready, reason="later")  # a person wanted it: nobody waits for a decision
        found = todo(scene)
        assert [(one["what"], one["title"], one["blocks"]) for one in found] == [
            ("dead letter", "c", 1),
            ("review", "b", 0),
            ("question", "a", 0),
        ]
        assert "red or blue?" in found[2]["text"]
        assert found[2]["by"] == "agent:cy"
        assert [one["title"] for one in todo(scene, limit=1)] == ["c"]
        scene.do(c.Answer, task=asked, text="blue")
        scene.do(c.Approve, task=reviewed, by=MEMBER)
        assert [one["title"] for one in todo(scene)] == ["c"]

    def test_a_budget_that_is_used_up_waits_for_a_person(self, scene: Scene) -> None:
        key = scene.add()
        scene.do(c.Fail, receipt=scene.take(key), error_class="budget_exceeded", message="no money")
        (one,) = todo(scene)
        assert (one["what"], one["key"], one["do"][0]) == ("budget", scene.task(key).key, "budget set")
