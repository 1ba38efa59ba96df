"""`tenure emit`, `tenure webhook`, `tenure relay` and `tenure msg --action` from a shell."""

from __future__ import annotations

import pytest

from tenure.client import Client
from tenure.core.records import Sink
from tests.cli.conftest import Tenure

URL = "https://ci.example.org/hook"


@pytest.fixture
def sink(tenure: Tenure) -> str:
    """A sink that a process has relayed to."""
    with Client(str(tenure.folder / ".tenure" / "tenure.db")) as client:
        row = Sink(project="", id="nats", sequence=3, url="nats://broker", created_at=client.now())
        client.engine.transact((), lambda work: work.put(row))
    return "nats"


def test_a_webhook_from_its_secret_to_its_end(tenure: Tenure) -> None:
    made = tenure("webhook", "set", "ci", URL, "--on", "task.completed", "--where", "event.track=B", "--json")
    assert (made.code, made.json["outcome"], made.json["hint"]) == (
        0, "CREATED", "save the secret now: it is not shown again",
    )  # fmt: skip
    secret = made.json["secret"]
    assert secret.startswith("whsec_")
    for words in (("set", "ci", URL, "--on", "task.completed", "--where", "event.track=B"), ("show", "ci"), ("list",)):
        assert secret not in tenure("webhook", *words, "--json").out
    assert 'where event.track is "B"' in tenure("webhook", "show", "ci").out
    assert "nothing is sent: `tenure serve`" in tenure("webhook", "list").out
    assert "webhook.test is on its way" in tenure("webhook", "test", "ci").out
    assert tenure("webhook", "log", "ci").out == "no deliveries\n"
    assert "paused, to" in tenure("webhook", "pause", "ci", "-m", "holidays").out
    assert "holidays; `tenure webhook resume ci`" in tenure("webhook", "show", "ci").out
    assert "ok, to" in tenure("webhook", "resume", "ci").out
    rotated = tenure("webhook", "rotate", "ci", "--grace", "1h")
    assert "secret whsec_" in rotated.out
    assert secret not in rotated.out
    assert "signed with both secrets until" in tenure("webhook", "show", "ci").out
    assert "are sent again" in tenure("webhook", "replay", "ci", "--since", "2h").out
    assert "is removed" in tenure("webhook", "remove", "ci").out
    assert tenure("webhook", "list").out == "no webhooks\n"


def test_the_first_secret_of_a_store_names_its_master_key(tenure: Tenure) -> None:
    assert "back it up" in tenure("webhook", "set", "ci", URL).err
    assert tenure("webhook", "rotate", "ci").err == ""


def test_what_a_webhook_cannot_be_is_refused_with_what_to_do(tenure: Tenure) -> None:
    for words, code, said in (
        (("set", "ci", "http://ci.example.org"), 8, "https"),
        (("set", "ci", URL, "--on", "task.complet"), 8, "did you mean"),
        (("show", "ci"), 4, "no webhook 'ci'"),
        (("replay", "ci", "evt_1", "--since", "2h"), 2, "not both"),
    ):
        refused = tenure("webhook", *words)
        assert (refused.code, said in refused.err) == (code, True), (words, refused)


def test_a_relay_is_paused_resumed_rewound_and_removed(tenure: Tenure, sink: str) -> None:
    (row,) = tenure("relay", "list", "--json").json
    assert (row["name"], row["sequence"], row["url"]) == ("nats", 3, "nats://broker")
    assert "is paused" in tenure("relay", "pause", sink).out
    assert "paused" in tenure("relay", "list").out
    assert "is resumed" in tenure("relay", "resume", sink).out
    rewound = tenure("relay", "rewind", sink, "--to", "1")
    assert "continues after sequence 1" in rewound.out
    assert "the same message ids" in rewound.out
    assert "continues after sequence 0" in tenure("relay", "rewind", sink, "--since", "2h").out
    assert "is removed" in tenure("relay", "remove", sink).out
    assert "no sinks: set [sinks.NAME] url" in tenure("relay", "list").out


def test_a_relay_that_cannot_be_is_refused_with_what_to_do(tenure: Tenure, sink: str) -> None:
    for words, code, said in (
        (("pause", "natz"), 4, "did you mean nats"),
        (("rewind", sink), 2, "either --to SEQ or --since"),
        (("rewind", sink, "--to", "1", "--since", "2h"), 2, "either"),
        (("rewind", sink, "--to", "99999"), 8, "the end of the log"),
    ):
        refused = tenure("relay", *words)
        assert (refused.code, said in refused.err) == (code, True), (words, refused)


def test_a_fact_is_in_the_log_with_its_data(tenure: Tenure) -> None:
    (tenure.folder / "fact.json").write_text('{"commit": "4f2a"}')
    assert tenure("emit", "build_passed", "--data", f"@{tenure.folder}/fact.json").code == 0
    (event,) = tenure("log", "--kind", "agent.emitted", "--json").json
    assert (event["details"]["name"], event["details"]["data"]) == ("build_passed", {"commit": "4f2a"})
    assert tenure("log", "--kind", "agent.emitted", "--since", "2h", "--json").json == [event]
    for words, code, said in (
        (("stale",), 8, "event of agents"),
        (("Build",), 8, "lower-case"),
        (("build", "--data", "{x"), 2, "not valid JSON"),
        (("build", "--data", "@none.json"), 2, "there is no file none.json"),
    ):
        refused = tenure("emit", *words)
        assert (refused.code, said in refused.err) == (code, True), (words, refused)


def test_triggers_wait_for_facts_and_for_files(tenure: Tenure) -> None:
    added = tenure("trigger", "add", "fix", "--on", "emitted:build_failed", "Fix {event.details.data.commit}", "--json")
    assert (added.json["trigger"]["on"], added.json["trigger"]["filter"]) == (
        "agent.emitted", {"event.details.name": "build_failed"},
    )  # fmt: skip
    added = tenure("trigger", "add", "docs", "--on-files", "docs/**", "--on-files", "*.md", "Check links", "--json")
    assert added.json["trigger"]["filter"] == {"event.details.paths": {"paths": ["docs/**", "*.md"]}}
    assert 'paths ["docs/**","*.md"]' in tenure("trigger", "show", "docs").out
    tenure("emit", "build_failed", "--data", '{"commit": "4f2a"}')
    assert "Fix 4f2a" in tenure("trigger", "test", "fix").out
    for words in (("x",), ("--on", "task.failed", "--on-files", "src", "x")):
        assert "either --on KIND or --on-files" in tenure("trigger", "add", "t", *words).err
    assert tenure("trigger", "add", "t", "--on-files", "/etc", "x").code == 8


def test_a_message_with_an_action_is_a_command_for_a_type(tenure: Tenure) -> None:
    tenure("join", "-n", "bo", "-t", "codex")
    sent = tenure("msg", "Look at B-003", "--to", "@type:codex", "--action", "review", "--expires", "60s", "--json")
    assert sent.code == 0
    (event,) = tenure("log", "--kind", "message.sent", "--json").json
    assert (event["details"]["to"], event["details"]["action"]) == ("@type:codex", "review")


def test_a_test_notice_goes_to_every_channel_and_each_answer_is_shown(tenure: Tenure) -> None:
    refused = tenure("notify", "test")
    assert (refused.code, "[notify.NAME]" in refused.err) == (4, True)
    got = tenure.folder / "got.json"
    config = tenure.folder / ".tenure" / "config.toml"
    kept = config.read_text() if config.exists() else ""
    config.write_text(kept + f'[notify.desk]\ncommand = ["tee", "{got}"]\n[notify.broken]\ncommand = ["false"]\n')
    assert "tenure trust" in tenure("notify", "test").err
    assert tenure("trust").code == 0
    said = tenure("notify", "test")
    assert (said.code, "desk  sent" in said.out, "broken  failed: " in said.out) == (10, True, True), said
    assert "notices arrive here" in got.read_text()
    assert tenure("notify", "test", "desk", "--json").json == [{"channel": "desk", "sent": True, "error": None}]
    assert "did you mean desk" in tenure("notify", "test", "desc").err
