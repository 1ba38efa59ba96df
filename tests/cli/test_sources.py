"""`tenure schedule` and `tenure trigger` from a shell, and the page about them."""

from __future__ import annotations

import re
from pathlib import Path

import tenure as package
from tests.cli.conftest import Tenure
from tests.docs import sessions

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "schedule-work.md"


def test_a_schedule_from_making_to_its_end(tenure: Tenure) -> None:
    made = tenure(
        "schedule", "add", "nightly", "30 2 * * *", "Triage", "--zone", "Europe/Berlin", "-p", "high", "--json"
    )
    assert (made.code, made.json["outcome"], made.json["schedule"]["zone"]) == (0, "CREATED", "Europe/Berlin")
    assert (
        tenure("schedule", "add", "nightly", "30 2 * * *", "Triage", "--zone", "Europe/Berlin", "-p", "high").code == 0
    )
    shown = tenure("schedule", "show", "nightly", "--ticks", "3", "--json").json
    assert [tick["local"][11:16] for tick in shown["ticks"]] == ["02:30"] * 3
    assert shown["template"]["tasks"] == [{"title": "Triage", "priority": "high"}]
    (task,) = tenure("schedule", "run", "nightly", "--json").json["tasks"]
    assert (task["created_by"], task["tier"]) == ("cron:nightly", "high")
    assert "paused: holidays" in tenure("schedule", "pause", "nightly", "-m", "holidays").out
    assert tenure("schedule", "list", "--json").json[0]["next_at"] is None
    assert "next" in tenure("schedule", "resume", "nightly").out
    assert tenure("schedule", "remove", "nightly").code == 0
    assert tenure("schedule", "list").out == "no schedules\n"


def test_what_cannot_be_is_refused_with_its_code(tenure: Tenure) -> None:
    for words, code, said in (
        (("schedule", "add", "s", "61 * * * *", "x"), 8, "bad minute"),
        (("schedule", "add", "s", "* * * * *"), 2, "a title or --plan"),
        (("schedule", "add", "s", "* * * * *", "x", "--zone", "Nowhere"), 8, "Nowhere"),
        (("schedule", "show", "s"), 4, "no schedule"),
        (("trigger", "add", "t", "--on", "task.dead_letered", "x"), 8, "did you mean task.dead_lettered"),
        (("trigger", "add", "t", "--on", "task.failed", "x", "--where", "event"), 2, "as in"),
        (("trigger", "add", "t", "--on", "task.failed", "x", "--where", "secret.x=1"), 8, "is not a path"),
        (("trigger", "rotate", "t"), 4, "no trigger"),
        (("trigger", "watch", "--threshold", "2"), 8, "threshold"),
        (("trigger", "watch", "--off", "--least", "2"), 2, "--off"),
    ):
        refused = tenure(*words)
        assert (refused.code, said in refused.err) == (code, True), (words, refused)


def test_a_plan_file_is_a_template(tenure: Tenure) -> None:
    (tenure.folder / "check.yaml").write_text(
        "title: Check\ntasks:\n  - title: Look\n  - {title: Mend, depends_on: look}\n"
    )
    assert tenure("schedule", "add", "weekly", "@weekly", "--plan", "check.yaml").code == 0
    tasks = tenure("schedule", "run", "weekly", "--json").json["tasks"]
    assert [(task["title"], task["state"]) for task in tasks] == [("Look", "ready"), ("Mend", "pending")]
    assert len({task["dag"] for task in tasks}) == 1


def test_conditions_are_said_by_their_signs(tenure: Tenure) -> None:
    words = ("event.a=1", "event.b=text", "event.c!=null", "event.d^=be", "event.e~=pat*", "event.f|=1,two,true")
    where = [word for condition in words for word in ("--where", condition)]
    made = tenure("trigger", "add", "t", "--on", "task.*", "x", *where, "--json").json
    assert made["trigger"]["filter"] == {
        "event.a": 1, "event.b": "text", "event.c": {"not": None}, "event.d": {"prefix": "be"},
        "event.e": {"glob": "pat*"}, "event.f": {"in": [1, "two", True]},
    }  # fmt: skip
    assert 'where event.f in [1,"two",true]' in tenure("trigger", "show", "t").out


def test_a_secret_is_shown_once_and_stands_nowhere_else(tenure: Tenure) -> None:
    secret = tenure("trigger", "add", "hook", "--on", "webhook", "x", "--json").json["secret"]
    assert re.fullmatch(r"whsec_[A-Za-z0-9+/=]{44}", secret)
    shown = "".join(tenure(*words).out for words in (
        ("trigger", "list"), ("trigger", "list", "--json"), ("trigger", "show", "hook", "--json"), ("log", "--json"),
        ("doctor", "--verify"), ("status", "--json"),
    ))  # fmt: skip
    assert secret.removeprefix("whsec_") not in shown
    assert tenure("trigger", "rotate", "hook", "--json").json["secret"] != secret
    own = tenure("trigger", "add", "g", "--on", "webhook", "x", "--github", "--secret", "a secret of our own", "--json")
    assert own.json["secret"] == "a secret of our own"


def test_without_a_coordinator_status_and_doctor_say_that_they_wait(tenure: Tenure) -> None:
    assert "Waiting" not in tenure("status").out
    tenure("schedule", "add", "s", "* * * * *", "x")
    tenure("trigger", "add", "t", "--on", "task.failed", "x")
    assert "Waiting  1 schedule and 1 trigger" in tenure("status").out
    assert tenure("status", "--json").json["sources"] == {"schedules": 1, "triggers": 1, "watch": 0}
    found = [f for f in tenure("doctor", "--json").json if f["check"] == "sources"]
    assert [f["level"] for f in found] == ["warning"]
    assert tenure("list", "--json").json == []  # and no command fires them by the way


def test_the_pages_session_runs_as_written(tmp_path: Path) -> None:
    steps = sessions.steps_of(PAGE.read_text())
    assert len(steps) >= 12
    environ = sessions.environment(tmp_path / "home")
    folder = tmp_path / "shop"
    folder.mkdir()
    sessions.play(steps, folder, environ)


def test_the_pages_python_runs(tmp_path: Path) -> None:
    (code,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.S)
    store = str(tmp_path / "tenure.db")
    with package.Client(store, "shop", create=True) as client:
        client.init()
    exec(code.replace(".tenure/tenure.db", store), {})
    with package.Client(store, "shop") as client:
        assert [row["name"] for row in (*client.schedules(), *client.triggers())] == ["nightly", "post-mortem"]
