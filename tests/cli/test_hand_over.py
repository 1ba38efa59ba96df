"""What the next agent and the person at a terminal read: briefings, mail, directives, refusals, times, money."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from tenure.cli.text_format import money
from tenure.client import Client
from tests.cli.conftest import Tenure

Claim = Callable[..., str]


@pytest.fixture
def claim(tenure: Tenure) -> Claim:
    """Claim the next task for an agent in its own session; returns the receipt."""

    def claimed(agent: str) -> str:
        return str(tenure("claim", "--agent", agent, "--session", f"s-{agent}", "--json").json["receipt"])

    return claimed


@pytest.fixture
def second(tenure: Tenure) -> str:
    """A task whose dependency was done by bo, with a note, a review that refused it, and mail for its next holder."""
    tenure("add", "First"), tenure("add", "Second", "--after", "A-001", "--validate", "review")
    tenure("claim", "--agent", "bo", "--session", "s-bo")
    tenure("done", "-s", "the API is at /v2", "--agent", "bo", "--session", "s-bo")
    tenure("note", "A-002", "mind the cache")
    tenure("claim", "A-002", "--agent", "ann", "--session", "s-ann")
    tenure("done", "-s", "half of it", "--agent", "ann", "--session", "s-ann")
    tenure("reject", "A-002", "-m", "there are no tests")
    tenure("retry", "A-002")
    return "A-002"


def test_a_claim_has_all_that_came_before(tenure: Tenure, second: str) -> None:
    said = tenure("claim", second, "--agent", "cy", "--session", "s-cy").out
    for part in ('by agent bo): "the API is at /v2"', '"mind the cache"', "refused by", '"there are no tests"'):
        assert part in said
    value = tenure("show", second, "--json").json
    assert value["inputs"]["A-001-first"]["summary"] == "the API is at /v2"
    assert [note["text"] for note in value["notes"]] == ["mind the cache"]
    assert value["review"]["reasons"] == ["there are no tests"]
    assert '"the API is at /v2"' in tenure("show", second).out


def test_a_claim_has_the_words_of_those_who_released_and_retried_it(tenure: Tenure) -> None:
    tenure("add", "First")
    tenure("claim", "--agent", "bo", "--session", "s-bo")
    tenure("release", "-m", "half of it is on branch tabs", "--agent", "bo", "--session", "s-bo")
    tenure("claim", "--agent", "ann", "--session", "s-ann")
    tenure("fail", "-m", "no such table", "--agent", "ann", "--session", "s-ann")
    tenure("retry", "A-001", "-m", "I created the table")
    said = tenure("claim", "--agent", "cy", "--session", "s-cy").out
    for part in ('agent:bo: "half of it is on branch tabs"', '"no such table"', '"I created the table"'):
        assert part in said


def test_what_another_agent_of_the_terminal_holds_is_not_called_yours(tenure: Tenure) -> None:
    tenure("add", "First")
    tenure("claim", "--agent", "ann")
    assert "this session holds: A-001-first" in tenure("claim", "--agent", "bo").out


def test_an_unknown_word_is_answered_with_an_example(tenure: Tenure) -> None:
    said = tenure("note", "A-001", "-m", "mind the cache")
    assert said.code == 2
    assert 'as in `tenure note B-003 "the token expires hourly"`' in said.err


def test_the_json_of_a_claim_has_what_scripts_read_first(tenure: Tenure, second: str) -> None:
    value = tenure("claim", second, "--agent", "cy", "--session", "s-cy", "--json").json
    assert (value["key"], value["title"], value["id"]) == ("A-002-second", "Second", value["task"]["id"])
    assert value["receipt"]
    assert [note["text"] for note in value["notes"]] == ["mind the cache"]


def test_every_command_of_a_holder_shows_mail_and_directives(tenure: Tenure) -> None:
    tenure("add", "Work"), tenure("add", "More")
    me = ("--agent", "ann", "--session", "s-ann")
    tenure("claim", "A-001", *me)
    tenure("msg", "the build is red", "--to", "ann", "--agent", "bo")
    tenure("pause", "A-001", "--drain", "-m", "deploying")
    for verb in (("progress", "half"), ("renew",), ("start",), ("checkpoint", "save", "--notes", "x")):
        said = tenure(*verb, *me)
        assert "mail: 1 unread message" in said.out, verb
        assert "directive A-001-work: pause" in said.out, verb
        value = tenure(*verb, *me, "--json").json
        assert (value["mail"], [one["directive"] for one in value["directives"]]) == (1, ["pause"]), verb
    assert "mail: 1 unread message" in tenure("claim", "A-002", *me).out
    assert tenure("done", "A-002", "-s", "x", *me, "--json").json["mail"] == 1
    assert "mail: 1 unread message" in tenure("release", "A-001", *me).out
    tenure("inbox", *me)
    assert "unread" not in tenure("claim", "A-001", *me).out


def test_an_agent_that_only_reads_hears_its_news(tenure: Tenure) -> None:
    tenure("add", "First")
    tenure("claim", "--agent", "ann", "--session", "s-ann")
    tenure("msg", "hurry", "--to", "ann", "--agent", "bo", "--session", "s-bo")
    tenure("pause", "A-001", "--drain")
    for verb in ("ready", "show A-001", "why A-001", "next", "status"):
        said = tenure(*verb.split(), "--agent", "ann", "--session", "s-ann").out
        assert "mail: 1 unread message" in said, verb
        assert "directive A-001-first: pause" in said, verb
        assert "mail:" not in tenure(*verb.split()).out
    assert "mail:" not in tenure("list", "--agent", "ann").out  # a person's filter
    as_agent = {"TENURE_AGENT": "ann", "TENURE_ROLE": "agent"}
    assert "mail: 1 unread message" in tenure.process("list", **as_agent).out


def test_a_command_that_shows_no_diff_says_that_the_description_has_changed(tenure: Tenure) -> None:
    tenure("add", "First")
    tenure("claim", "--agent", "ann", "--session", "s-ann")
    tenure("edit", "A-001", "-d", "other words")
    said = tenure("checkpoint", "save", "--next-action", "x", "--agent", "ann", "--session", "s-ann").out
    assert "directive A-001-first: changed: the description was changed" in said
    assert "`tenure renew A-001-first` shows it" in said
    assert "+other words" in (renewed := tenure("renew", "--agent", "ann", "--session", "s-ann").out)
    assert "directive" not in renewed


def test_the_log_names_the_person_who_ended_a_claim(tenure: Tenure) -> None:
    tenure("add", "First")
    tenure("claim", "--agent", "ann", "--session", "s-ann")
    tenure("pause", "A-001", "-m", "hold on")
    paused = tenure("log", "--json").json[-1]
    assert (paused["kind"], paused["agent"]) == ("task.paused", "ann")
    told = tenure("log", "-n", "1").out.splitlines()[0]
    assert told.endswith(f"task.paused  A-001-first@1  {paused['user']}: hold on")


def test_a_person_s_own_commands_are_not_followed_by_mail(tenure: Tenure) -> None:
    assert "mail" not in tenure("add", "Work", "--json").json


def test_a_superseded_holder_is_asked_to_stop(tenure: Tenure, claim: Claim) -> None:
    tenure("add", "Work")
    stale = claim("ann")
    tenure("recover", "A-001")
    claim("bo")
    said = tenure("progress", "half", "--receipt", stale, "--agent", "ann")
    assert (said.code, "directive: abort: you no longer hold this task" in said.out) == (6, True)


# --- refusals ---


@pytest.mark.parametrize(
    ("words", "right"),
    [
        (("stop", "--agent", "ann"), "stop --by ann"),
        (("go", "--agent", "ann"), "go --by ann"),
        (("key", "create", "ci", "--project", "p1"), "--only p1"),
        (("key", "create", "ci", "--agent", "ann"), "--for-agent ann"),
    ],
)
def test_an_option_that_means_something_else_is_refused_and_the_right_one_named(
    tenure: Tenure, words: tuple[str, ...], right: str
) -> None:
    said = tenure(*words)
    assert (said.code, right in said.err) == (2, True)
    assert tenure("status", "--json").json["stopped"] == {}
    assert tenure("key", "list", "--json").json == []


def test_a_stopped_line_says_so(tenure: Tenure) -> None:
    tenure("add", "Work")
    assert "claiming is stopped for the whole project: lunch" in tenure("stop", "-m", "lunch").out
    assert "claiming is stopped for the whole project: lunch" in tenure("claim").out
    assert "claiming is stopped for the whole project: lunch" in tenure("ready").out
    assert "allowed again in the whole project" in tenure("go").out


@pytest.mark.parametrize(
    ("words", "code", "word"),
    [
        (("add", "x", "-d", "@missing.md"), 2, "there is no file missing.md"),
        (("add", "x", "--deadline", "2020-01-01"), 8, "in the past"),
        (("add", "x", "--key", "retry-me"), 8, "TRACK-SEQ-slug"),
        (("add", "x", "--ref", "task:B-009:output"), 8, "unknown"),
        (("msg", "hi", "--to", "nobody"), 4, "no agent 'nobody'"),
        (("log", "--kind", "foo"), 8, "no such kind"),
        (("list", "-s", "foo"), 8, "must be one of"),
    ],
)
def test_what_cannot_be_meant_is_refused(tenure: Tenure, words: tuple[str, ...], code: int, word: str) -> None:
    said = tenure(*words)
    assert (said.code, word in said.err) == (code, True), said


def test_a_text_may_begin_with_an_at_sign(tenure: Tenure) -> None:
    tenure("add", "x", "-d", "@@missing.md")
    assert tenure("show", "A-001", "--json").json["description"] == "@missing.md"
    tenure("add", "y", "-d", "@bo please look")
    assert tenure("show", "A-002", "--json").json["description"] == "@bo please look"


# --- words, times, money ---


def test_states_are_named_as_they_are_shown(tenure: Tenure) -> None:
    tenure("add", "x", "--draft")
    assert "draft" in tenure("list").out
    assert len(tenure("list", "--status", "draft", "--json").json) == 1


def test_add_echoes_the_tier_of_a_number(tenure: Tenure) -> None:
    assert tenure("add", "x", "-p", "5").out == "A-001-x  ready, critical (5)\n"


def test_a_list_is_ordered_as_its_help_says(tenure: Tenure) -> None:
    tenure("add", "low", "-p", "low"), tenure("add", "high", "-p", "high")
    titles = [task["title"] for task in tenure("list", "--order", "-priority", "--json").json]
    assert titles == ["low", "high"]


def test_a_command_that_can_be_undone_says_how(tenure: Tenure) -> None:
    tenure("add", "x")
    found = re.search(r"to undo: tenure undo (\S+)", tenure("cancel", "A-001").out)
    assert found is not None
    assert tenure("undo", found[1]).code == 0
    assert tenure("show", "A-001", "--json").json["state"] == "ready"


def test_bulk_verbs_answer_with_a_list_whatever_the_number(tenure: Tenure) -> None:
    tenure("add", "x"), tenure("add", "y")
    assert [one["outcome"] for one in tenure("cancel", "A-001", "--json").json] == ["UPDATED"]
    assert [one["name"] for one in tenure("retry", "A-001", "A-002", "--json").json] == ["A-001", "A-002"]


@pytest.mark.parametrize(
    ("amount", "text"),
    [("1.2", "$1.20"), ("0.123456789", "$0.12"), ("-0.5", "-$0.50"), ("0.0042", "<$0.01"), ("0", "$0.00"),
     ("1234.5", "$1,234.50"), (None, "–")],
)  # fmt: skip
def test_money_has_two_digits(amount: str | None, text: str) -> None:
    assert money(amount) == text


def test_times_have_dates(tenure: Tenure) -> None:
    tenure("add", "x", "--not-before", "3d")
    why = tenure("why", "A-001").out
    assert re.search(r"not start before \d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC, in ", why)
    assert not re.search(r"\d{12}", why)
    tenure("add", "y")
    tenure("claim", "A-002")
    assert re.search(r"\d{4}-\d\d-\d\d \d\d:\d\d", tenure("history", "A-002").out)


def test_letters_of_other_languages_stay_in_keys(tenure: Tenure) -> None:
    assert tenure("add", "Prüfe die Größe", "--json").json["key"] == "A-001-prufe-die-grosse"
    assert tenure("add", "Łódź", "--json").json["key"] == "A-002-lodz"


# --- verbs and options ---


def test_what_waits_for_a_person_is_one_list(tenure: Tenure) -> None:
    assert tenure("todo").out == "nothing waits for a person\n"
    tenure("add", "x")
    tenure("claim", "A-001")
    tenure("ask", "A-001", "Which database?")
    said = tenure("todo").out
    assert "question  A-001" in said
    assert 'tenure answer A-001 "…"' in said
    assert [one["what"] for one in tenure("todo", "--json").json] == ["question"]


def test_a_task_has_its_bounds_from_options(tenure: Tenure) -> None:
    value = tenure(
        "add", "x", "--max-cost", "2.50", "--max-duration", "2h", "--estimate", "30m", "--needs", "env:staging",
        "--retry", "fixed", "--key", "B-007-mine", "--json",
    ).json  # fmt: skip
    assert (value["key"], value["ref"]) == ("B-007-mine", "B-007")
    assert value["constraints"] == {
        "max_cost_usd": "2.50", "max_duration": 7200, "estimated_duration": 1800, "needs": ["env:staging"],
    }  # fmt: skip


def test_usage_is_reported_by_hand_and_summed_by_type(tenure: Tenure, claim: Claim) -> None:
    tenure("add", "x", "--type", "code"), tenure("add", "y", "--type", "docs")
    for who in ("ann", "bo"):
        receipt = claim(who)
        for _ in range(2):  # totals: a repeat counts once
            said = tenure("usage", "add", "--receipt", receipt, "--model", "m", "--in", 1000, "--cost", "0.50")
            assert (said.code, "$0.50" in said.out) == (0, True)
    rows = {row["type"]: row["cost_usd"] for row in tenure("usage", "--by", "type", "--json").json}
    assert {name: float(cost) for name, cost in rows.items()} == {"code": 0.5, "docs": 0.5}
    (track,) = tenure("usage", "--by", "track", "--json").json
    assert (track["track"], float(track["cost_usd"]), track["fresh"]) == ("A", 1.0, 2000)


def test_all_claims_of_a_session_fail_together(tenure: Tenure) -> None:
    tenure("add", "x"), tenure("add", "y")
    me = ("--agent", "ann", "--session", "s-ann")
    tenure("claim", "-n", "2", *me)
    asked = tenure("fail", "--all", *me, "--json")
    assert (asked.code, "-y" in asked.json["error"]["hint"]) == (2, True)
    done = tenure("fail", "--all", "-y", "-m", "restart", *me, "--json").json
    assert [one["outcome"] for one in done] == ["OK", "OK"]
    assert tenure("fail", "--all", "-y", *me).out == "you hold nothing\n"


def test_leave_ends_the_sessions_of_other_terminals_on_request(tenure: Tenure) -> None:
    tenure("add", "x"), tenure("add", "y")
    for number in (1, 2):
        tenure("claim", "--agent", "ann", "--session", f"s-{number}")
    tenure("leave", "--agent", "ann", "--session", "s-1")
    assert len(tenure("list", "-s", "claimed", "--json").json) == 1
    tenure("leave", "--agent", "ann", "--session", "s-3", "--force")
    assert tenure("list", "-s", "claimed", "--json").json == []


def test_the_only_project_of_a_store_is_the_default(bare: Tenure, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TENURE_URL", str(bare.folder / "team.db"))
    assert bare("init", "--project", "web").code == 0
    assert bare("add", "x").code == 0
    assert bare("status", "--json").json["project"] == "web"


def test_a_nested_store_has_its_own_name(tenure: Tenure) -> None:
    inner = tenure.folder / "inner"
    inner.mkdir()
    value = Tenure(inner, tenure.environ)("init", "--force", "--json").json
    assert (value["project"], Path(value["store"]).parent.parent) == ("inner", inner.resolve())


def test_status_names_the_leader(tenure: Tenure) -> None:
    term = tenure("lead", "--agent", "ann", "--json").json["term"]
    leader = tenure("status", "--json").json["leader"]
    assert (leader["name"], leader["term"]) == ("ann", term)


def test_the_version_is_a_verb(tenure: Tenure) -> None:
    assert tenure("version").out == tenure("--version").out


def test_log_takes_a_number_and_an_agent(tenure: Tenure, claim: Claim) -> None:
    tenure("add", "x"), tenure("add", "y")
    claim("ann"), claim("bo")
    assert len(tenure("log", "-n", "1", "--json").json) == 1
    assert {event["agent"] for event in tenure("log", "--agent", "bo", "--json").json} == {"bo"}


def test_init_with_agents_ends_with_the_next_step(bare: Tenure) -> None:
    said = bare("init", "--agents", "all")
    lines = said.out.splitlines()
    assert len(lines) <= 15
    assert lines[-1].strip().startswith("tenure done")


def test_a_server_that_does_not_answer_is_named_early(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from tenure.cli import noted_client

    waits: list[float] = []
    monkeypatch.setattr(noted_client.time, "sleep", waits.append)
    patience = noted_client.Patience("http://127.0.0.1:9")
    for _ in range(4):
        patience(0.2)
        named = "http://127.0.0.1:9 does not answer" in capsys.readouterr().err
        assert named == (len(waits) == 3)  # within the first second, and once
    assert waits == [0.2] * 4


def test_json_stays_one_value(tenure: Tenure) -> None:
    tenure("add", "x")
    assert json.loads(tenure("claim", "--json").out)["mail"] == 0


def test_a_store_that_a_program_made_is_used_by_the_command_line_and_by_other_programs(
    bare: Tenure, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in the first tutorial: no `tenure init` has named its one project."""
    monkeypatch.chdir(bare.folder)
    with Client(".tenure/tenure.db", "shop", agent="ann", create=True) as client:
        client.add("one")
    assert [task["title"] for task in bare("list", "--json").json] == ["one"]
    with Client(agent="bo") as client:
        assert (client.project, client.claim().outcome) == ("shop", "GRANTED")
    with Client(".tenure/tenure.db", "second", agent="ann", create=True):
        pass
    assert "no project 'default' here" in bare("list").err
