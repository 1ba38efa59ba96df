"""The verbs, as people and agents use them."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from tenure.client import Client
from tenure.stores.sqlite import schema
from tests.cli.conftest import Tenure

Add = Callable[..., str]


@pytest.fixture
def claim(tenure: Tenure) -> Callable[..., str]:
    """Claims for an agent and gives the receipt."""

    def claim_one(agent: str = "ann", *words: object) -> str:
        said = tenure("claim", *words, "--agent", agent, "--session", f"{agent}-session", "--json")
        assert said.code == 0, said
        return str(said.json["receipt"])

    return claim_one


def state(tenure: Tenure, task: str) -> str:
    return str(tenure("show", task, "--json").json["state"])


# --- making -------------------------------------------------------------------------------------------------


def test_a_task_can_be_described_in_full(tenure: Tenure) -> None:
    tenure("add", "Before", "--track", "B")
    said = tenure(
        "add", "Write the API", "--track", "C", "-d", "REST, JSON", "-p", "high", "-t", "api", "-t", "http",
        "--deadline", "2h", "--cap", "python", "--touches", "src/api/**", "--spec", '{"goal": "v1"}',
        "--ref", "task:B-001:output", "--context", "It is old code.", "--metadata", '{"owner": "ann"}',
        "--max-attempts", 5, "--type", "code",
        "--json",
    ).json  # fmt: skip
    assert (said["track"], said["tier"], said["tags"], said["max_attempts"]) == ("C", "high", ["api", "http"], 5)
    assert said["constraints"] == {"required_capabilities": ["python"]}
    assert said["spec"] == {"goal": "v1", "context_refs": ["task:B-001:output"], "context": "It is old code."}
    assert said["touches"] == ["src/api/**"]
    assert said["deadline"] > said["created_at"]


def test_texts_come_from_stdin_and_files(tenure: Tenure) -> None:
    tenure("add", "One", "-d", "-", stdin="from stdin")
    (tenure.folder / "text.md").write_text("from a file")
    tenure("add", "Two", "-d", f"@{tenure.folder}/text.md")
    assert [tenure("show", ref, "--json").json["description"] for ref in ("A-001", "A-002")] == [
        "from stdin",
        "from a file",
    ]


def test_an_idempotency_key_makes_nothing_twice(tenure: Tenure) -> None:
    first, again = (tenure("add", "One", "--idempotency-key", "k", "--json").json for _ in range(2))
    assert (first["outcome"], again["outcome"], again["id"]) == ("CREATED", "EXISTS", first["id"])


def test_links_and_circles(tenure: Tenure, add: Add) -> None:
    add("One"), add("Two", "--after", "A-001")
    assert state(tenure, "A-002") == "pending"
    said = tenure("link", "A-001", "A-002", "--json")
    assert (said.code, said.json["error"]["code"]) == (8, "CYCLE")
    assert "→" in said.json["error"]["message"]
    assert tenure("unlink", "A-002", "A-001").code == 0
    assert state(tenure, "A-002") == "ready"


def test_drafts_wait_to_be_published(tenure: Tenure, add: Add) -> None:
    add("One", "--draft")
    assert tenure("claim").code == 3
    assert tenure("publish", "A-001").code == 0
    assert tenure("claim").code == 0


# --- holding ------------------------------------------------------------------------------------------------


def test_the_whole_loop_without_ever_naming_a_receipt(tenure: Tenure, add: Add) -> None:
    add("One")
    assert tenure("next").out.startswith("A-001-one")
    assert "A-001@1:" in tenure("claim").out
    assert tenure("start").code == 0
    assert tenure("progress", "half of it", "--percent", 50).code == 0
    shown = tenure("show", "A-001").out
    assert "50 %" in shown
    assert "half of it" in shown
    assert tenure("renew", "--lease", "1h").code == 0
    assert "A-001" in tenure("whoami").out
    assert tenure("done", "-s", "all of it").code == 0
    assert state(tenure, "A-001") == "completed"
    again = tenure("done", "A-001", "-s", "all of it", "--json")
    assert (again.code, again.json["again"]) == (0, True)


def test_with_two_tasks_held_the_text_needs_its_task(tenure: Tenure, add: Add) -> None:
    add("One"), add("Two")
    tenure("claim", "-n", 2)
    said = tenure("progress", "going on")
    assert said.code == 4
    assert "A-001@1 (held), A-002@1 (held)" in said.err
    assert tenure("progress", "A-002", "going on").code == 0
    assert tenure("show", "A-002", "--json").json["step"] == "going on"


def test_failing_and_releasing(tenure: Tenure, add: Add) -> None:
    add("One")
    tenure("claim")
    assert tenure("release", "-m", "not mine").code == 0
    tenure("claim", "A-001")
    said = tenure("fail", "-m", "tests are red", "--class", "task", "--json")
    assert (said.code, said.json["state"]) == (0, "retrying")
    assert tenure("fail", "--class", "bad luck").code in (6, 8)
    assert "tests are red" in tenure("show", "A-001").out


def test_a_question_and_its_answer(tenure: Tenure, add: Add) -> None:
    add("One")
    tenure("claim")
    assert tenure("ask", "Which port?").code == 0
    assert state(tenure, "A-001") == "paused"
    assert "Which port?" in tenure("why", "A-001").out
    assert tenure("answer", "A-001", "8080").code == 0
    assert "8080" in tenure("claim").out


def test_subtasks_come_back_with_their_outputs(tenure: Tenure, add: Add, claim: Callable[..., str]) -> None:
    add("Book")
    receipt = claim("lead")
    assert tenure("spawn", "Part one", "--receipt", receipt, "--wait").code == 0
    part = claim("ann")
    assert tenure("done", "--receipt", part, "--result", '"text"').code == 0
    said = tenure("claim", "--agent", "lead", "--session", "lead-session", "--json").json
    assert [entry["data"] for entry in said["inputs"].values()] == ["text"]


# --- looking ------------------------------------------------------------------------------------------------


def test_lists_are_filtered_and_paged(tenure: Tenure, add: Add) -> None:
    for n in range(5):
        add(f"Task {n}", "--track", "B" if n % 2 else "C", "-t", "even" if n % 2 == 0 else "odd")
    keys = lambda *words: [task["ref"] for task in tenure("list", *words, "--json").json]  # noqa: E731
    assert keys("--track", "B") == ["B-001", "B-002"]
    assert keys("-t", "even") == ["C-001", "C-002", "C-003"]
    assert keys("-s", "completed") == []
    assert keys("--limit", 2) == ["C-001", "B-001"]
    assert keys("--limit", 2, "--after", "B-001") == ["C-002", "B-002"]
    assert tenure("list", "-s", "finished").code == 8


def test_ready_is_in_the_order_of_the_claim(tenure: Tenure, add: Add) -> None:
    add("Later", "-p", "low"), add("First", "-p", "critical"), add("Waits", "--after", "A-001")
    refs = [task["ref"] for task in tenure("ready", "--json").json]
    assert refs == ["A-002", "A-001"]
    assert tenure("next", "--json").json["task"]["ref"] == "A-002"
    assert tenure("claim", "--json").json["task"]["ref"] == "A-002"


def test_looking_changes_nothing(tenure: Tenure, add: Add) -> None:
    add("One")
    before = tenure("log", "--json").json
    for words in (("next",), ("ready",), ("list",), ("show", "A-001"), ("why", "A-001"), ("status",), ("dlq",)):
        assert tenure(*words).code == 0
    assert tenure("log", "--json").json == before


def test_the_log_by_task_kind_and_level(tenure: Tenure, add: Add) -> None:
    add("One"), add("Two")
    tenure("claim", "A-001")
    kinds = [event["kind"] for event in tenure("log", "--task", "A-001", "--json").json]
    assert kinds == ["task.created", "task.claimed"]
    assert tenure("log", "--kind", "task.claimed").out.count("\n") == 1
    assert tenure("log", "--level", "error", "--json").json == []
    assert tenure("log", "--since", "2100-01-01", "--json").json == []


def test_following_the_log_shows_what_comes_and_ends_with_its_reader(tenure: Tenure, add: Add) -> None:
    add("One")
    following = tenure.start("log", "-f", "--json")
    assert following.stdout is not None
    kinds = [json.loads(following.stdout.readline())["kind"] for _ in range(2)]
    assert kinds == ["project.created", "task.created"]
    add("Two")
    assert json.loads(following.stdout.readline())["key"] == "A-002-two"
    following.stdout.close()
    add("Three")
    assert following.wait(timeout=60) == 0
    assert following.stderr is not None
    assert following.stderr.read() == ""
    following.stderr.close()


def test_waiting_ends_with_the_task(tenure: Tenure, add: Add) -> None:
    add("One")
    assert tenure("wait", "A-001", "--timeout", 0).code == 3
    waiting = tenure.start("wait", "A-001", "--json")
    tenure("claim")
    tenure("done")
    out, _ = waiting.communicate(timeout=60)
    assert waiting.returncode == 0
    assert json.loads(out)[0]["state"] == "completed"
    add("Two")
    tenure("cancel", "A-002")
    assert tenure("wait", "A-002").code == 7
    assert tenure("wait", "A-009").code == 4


def test_dead_letters_tell_their_story(tenure: Tenure, add: Add) -> None:
    add("One", "--max-attempts", 1)
    tenure("claim")
    tenure("fail", "-m", "tests are red")
    assert "tests are red" in tenure("dlq").out
    assert tenure("retry", "A-001", "-m", "mended").code == 0
    assert tenure("dlq").out == "no dead letters\n"
    assert state(tenure, "A-001") == "ready"


# --- operating ----------------------------------------------------------------------------------------------


def test_many_at_once_by_filter_with_a_dry_run_first(tenure: Tenure, add: Add) -> None:
    add("One", "-t", "old"), add("Two", "-t", "old"), add("Three")
    dry = tenure("cancel", "-t", "old", "--dry-run", "--json")
    assert [entry["outcome"] for entry in dry.json] == ["UPDATED", "UPDATED"]
    assert {state(tenure, ref) for ref in ("A-001", "A-002", "A-003")} == {"ready"}
    real = tenure("cancel", "-t", "old", "-m", "outdated", "--json")
    assert [(entry["name"], entry["outcome"]) for entry in real.json] == [
        ("A-001-one", "UPDATED"),
        ("A-002-two", "UPDATED"),
    ]
    assert [state(tenure, ref) for ref in ("A-001", "A-002", "A-003")] == ["cancelled", "cancelled", "ready"]
    assert tenure("undo", *(entry["command_id"] for entry in real.json)).code == 0
    assert state(tenure, "A-001") == "ready"


def test_a_bulk_verb_needs_to_know_which(tenure: Tenure, add: Add) -> None:
    add("One")
    assert tenure("cancel").code == 2
    assert tenure("cancel", "A-001", "--state", "ready").code == 2
    assert tenure("cancel", "-t", "nothing-has-it").out == "no task matches\n"
    assert state(tenure, "A-001") == "ready"


def test_undo_lists_what_can_be_undone_and_refuses_what_moved_on(tenure: Tenure, add: Add) -> None:
    add("One")
    command = tenure("edit", "A-001", "--title", "Uno", "--json").json["command_id"]
    assert command in tenure("undo").out
    tenure("edit", "A-001", "--title", "Eins")
    assert tenure("undo", command).code == 7
    assert tenure("show", "A-001", "--json").json["title"] == "Eins"


def test_edits_with_a_version_lose_no_update(tenure: Tenure, add: Add) -> None:
    add("One")
    version = tenure("show", "A-001", "--json").json["version"]
    assert tenure("edit", "A-001", "-p", "high", "--version", version).code == 0
    said = tenure("edit", "A-001", "-p", "low", "--version", version, "--json")
    assert (said.code, said.json["outcome"]) == (8, "VERSION_CONFLICT")
    assert tenure("edit", "A-001", "--set", "boost=0.1").code == 0
    assert tenure("edit", "A-001", "--set", "bost=1").code == 8


def test_a_holder_sees_a_changed_description_before_its_result_is_accepted(tenure: Tenure, add: Add) -> None:
    add("One", "-d", "Paint it red.")
    tenure("claim", "A-001")
    assert tenure("edit", "A-001", "-d", "Paint it blue.").code == 0
    told = tenure("renew", "A-001")
    assert "+Paint it blue." in told.out
    refused = tenure("done", "A-001", "-s", "red")
    assert (refused.code, "CHANGED" in refused.out, "--seen 2" in refused.out) == (8, True, True)
    assert tenure("done", "A-001", "-s", "blue", "--seen", "2").code == 0


def test_a_resume_says_what_still_holds_a_task_back(tenure: Tenure, add: Add) -> None:
    add("One")
    tenure("claim", "A-001")
    tenure("ask", "A-001", "Which?")
    tenure("pause", "A-001", "-m", "later")
    (said,) = tenure("resume", "A-001", "--json").json
    assert (said["outcome"], [pause["cause"] for pause in said["pauses"]]) == ("UPDATED", ["question"])
    assert [one["outcome"] for one in tenure("resume", "A-001", "--budget", "--json").json] == ["UNCHANGED"]
    assert tenure("answer", "A-001", "Both.", "--json").json["state"] == "ready"


def test_pause_resume_reset_archive(tenure: Tenure, add: Add) -> None:
    add("One")
    assert tenure("pause", "A-001", "-m", "later").code == 0
    assert tenure("claim", "A-001").code == 7
    assert tenure("resume", "A-001").code == 0
    tenure("claim"), tenure("done")
    assert tenure("reset", "A-001").code == 0
    assert state(tenure, "A-001") == "ready"
    tenure("claim"), tenure("done")
    assert tenure("archive", "-s", "completed").code == 0
    assert tenure("list", "--json").json == []
    assert len(tenure("list", "--archived", "--json").json) == 1


def test_offers_and_reassignment(tenure: Tenure, add: Add, claim: Callable[..., str]) -> None:
    add("One")
    assert tenure("assign", "A-001", "bo", "--for", "10m").code == 4  # nobody of that name
    tenure("join", "-n", "bo", "--session", "s-bo"), tenure("join", "-n", "cy", "--session", "s-cy")
    assert "offered to agent bo for 10 min" in tenure("assign", "A-001", "bo", "--for", "10m").out
    assert tenure("claim", "A-001", "--agent", "ann", "--session", "s").code == 7
    claim("bo")
    assert "offered to agent cy" in tenure("reassign", "A-001", "cy").out
    assert tenure("show", "A-001", "--json").json["offer_to"] == "cy"


def test_a_kept_result_can_be_adopted(tenure: Tenure, add: Add, claim: Callable[..., str]) -> None:
    add("One")
    late = claim("ann")
    tenure("recover", "A-001")
    assert tenure("done", "--receipt", late, "--result", '"kept"').code == 6
    assert tenure("adopt", "A-001", "-m", "good enough").code == 0
    assert tenure("show", "A-001", "--json").json["result"]["data"] == "kept"


def test_the_line_can_be_stopped(tenure: Tenure, add: Add) -> None:
    add("One", "--track", "B"), add("Two", "--track", "C")
    assert tenure("stop", "--track", "B", "-m", "broken build").code == 0
    assert tenure("claim", "--json").json["task"]["ref"] == "C-001"
    assert tenure("claim").code == 3
    assert tenure("go", "--track", "B").code == 0
    assert tenure("claim").code == 0
    assert tenure("stop", "--track", "B", "--type", "code").code == 2


def test_notes_stand_in_the_log(tenure: Tenure, add: Add) -> None:
    add("One")
    assert tenure("note", "A-001", "seen by legal").code == 0
    assert "seen by legal" in tenure("log", "--task", "A-001").out


# --- the team -----------------------------------------------------------------------------------------------


def test_joining_leaving_and_who_is_there(tenure: Tenure, add: Add) -> None:
    add("One", "--cap", "rust")
    said = tenure("join", "-n", "kit", "-t", "codex", "-c", "rust", "--session", "kits")
    assert said.out.startswith("export TENURE_AGENT=kit\nexport TENURE_SESSION=kits\n# heartbeat: 30 s; ")
    assert tenure("claim", "--agent", "bo", "--session", "b").code == 3
    assert tenure("claim", "--agent", "kit", "--session", "kits").code == 0
    assert "A-001" in tenure("agents").out
    assert "claim_acquired" in tenure("session", "kits").out
    assert tenure("leave", "--agent", "kit", "--session", "kits").code == 0
    assert state(tenure, "A-001") == "ready"
    assert tenure("done", "A-001", "--session", "kits").code == 6


def test_mail_is_read_once(tenure: Tenure) -> None:
    for name in ("bo", "cy"):
        tenure("join", "-n", name, "--session", name)
    assert "2 agents" in tenure("msg", "lunch?", "--agent", "ann").out
    assert "lunch?" in tenure("inbox", "--agent", "bo", "--keep").out
    assert "lunch?" in tenure("inbox", "--unread", "--agent", "bo").out
    assert tenure("inbox", "--unread", "--agent", "bo").out == "no mail\n"
    assert "lunch?" in tenure("inbox", "--agent", "bo").out
    assert tenure("inbox", "--from", "kit", "--agent", "bo", "--json").json == []


def test_reservations_alone_and_with_a_task(tenure: Tenure, add: Add) -> None:
    alone = tenure("reserve", "port:8080", "--agent", "ann", "--session", "a", "--json")
    assert alone.code == 0
    assert tenure("reserve", "port:8080", "--agent", "bo", "--session", "b").code == 7
    assert "port:8080" in tenure("locks").out
    assert tenure("unreserve", alone.json["receipt"]).code == 0
    assert tenure("locks").out == "no reservations\n"
    add("One")
    tenure("claim")
    assert tenure("reserve", "src/**", "--with", "A-001").code == 0
    assert tenure("done").code == 0
    assert tenure("locks").out == "no reservations\n"


def test_leading(tenure: Tenure) -> None:
    said = tenure("lead", "--agent", "ann", "--json")
    assert (said.code, said.json["outcome"], said.json["term"]) == (0, "ELECTED", 1)
    assert tenure("lead", "--agent", "bo").code == 5
    assert tenure("lead", "--step-down", "--agent", "ann").code == 2
    assert tenure("lead", "--step-down", "--term", 1, "--agent", "ann").code == 0
    assert tenure("lead", "--agent", "bo").code == 0
    refused = tenure("lead", "--agent", "bo", "--lease", 60)
    assert (refused.code, "pass it with --term" in refused.err) == (2, True)
    assert tenure("lead", "--agent", "bo", "--lease", 60, "--term", 2, "--json").json["lease"] == 60
    stale = tenure("lead", "--step-down", "--term", 1, "--agent", "cy")
    assert (stale.code, "ann led with term 1, which is over; bo leads with term 2" in stale.out) == (6, True)


def test_the_lease_of_an_agents_leadership_is_a_setting(tenure: Tenure) -> None:
    assert tenure("config", "agents.leader_lease", "7").code == 0
    assert tenure("lead", "--agent", "ann", "--json").json["lease"] == 7
    assert tenure("lead", "--step-down", "--term", 1, "--agent", "ann").code == 0
    assert tenure("project", "set", "--lead", "auto").code == 0
    tenure.process("join", "-n", "bo", CLAUDECODE="1", CLAUDE_CODE_SESSION_ID="bo")
    assert "for 7 s" in tenure.process("lead", "--agent", "bo", CLAUDECODE="1", CLAUDE_CODE_SESSION_ID="bo").out
    refused = tenure.process("claim", TENURE_AGENTS_LEADER_LEASE="4000")
    assert (refused.code, "must be from 1 to 3600 seconds" in refused.err) == (11, True)


def test_the_interval_of_heartbeats_is_a_setting_that_shows(tenure: Tenure) -> None:
    assert tenure("config", "agents.heartbeat", "12").code == 0
    assert "# heartbeat: 12 s; stale after 1800 s without a sign of life" in tenure("join", "-n", "ann").out
    assert "heartbeat    12 s; stale after 1800 s" in tenure("agent", "show", "ann").out
    shown = tenure("agent", "show", "ann", "--json").json
    assert (shown["heartbeat"], shown["stale_after"]) == (12, 1800)
    tenure("add", "One")
    assert tenure("run", "--once", "--agent", "true", "--name", "kit").code == 0
    assert tenure("agent", "show", "kit-1", "--json").json["heartbeat"] == 12


def test_mail_that_reaches_nobody_says_so(tenure: Tenure) -> None:
    leaderless = tenure("msg", "hi", "--to", "@leader")
    assert (leaderless.code, "has no leader now" in leaderless.err, "`tenure agents`" in leaderless.err) == (
        4,
        True,
        True,
    )
    assert tenure("msg", "hi", "--to", "ghost").code == 4
    everybody = tenure("msg", "hi")
    assert (everybody.code, "sent to nobody: no other agent is here" in everybody.out) == (0, True)


# --- upkeep -------------------------------------------------------------------------------------------------


def test_a_backup_is_a_store_of_its_own(tenure: Tenure, add: Add, claim: Callable[..., str]) -> None:
    add("One")
    receipt = claim("ann")
    assert tenure("db", "backup", "copy.db").code == 0
    assert tenure("db", "backup", "copy.db").code != 0
    assert tenure("db", "check").out == "no errors found\n"
    restored = tenure.process("done", "--receipt", receipt, "--json", TENURE_URL=str(tenure.folder / "copy.db"))
    assert (restored.code, restored.json["outcome"]) == (6, "STALE_EPOCH")
    assert tenure("done", "--receipt", receipt).code == 0


def test_a_daemon_makes_the_events_of_time_prompt(tenure: Tenure, add: Add) -> None:
    add("One")
    assert tenure("claim", "--lease", 1).code == 0
    daemon = tenure.start("daemon", "--every", "0.05")
    following = tenure.start("log", "-f", "--kind", "task.lease_expired", "--json")
    assert following.stdout is not None
    assert json.loads(following.stdout.readline())["key"] == "A-001-one"  # nobody has asked
    following.kill()
    following.communicate()
    daemon.terminate()
    out, err = daemon.communicate(timeout=60)
    assert (out, err.count("\n"), "coordinating" in err) == ("", 1, True)
    assert daemon.returncode == 0


def test_what_was_spent_is_added_up(tenure: Tenure, add: Add, claim: Callable[..., str]) -> None:
    add("One"), add("Two")
    assert tenure("usage").out == "no usage was reported\n"
    with Client(str(tenure.folder / ".tenure" / "tenure.db"), "default") as client:
        client.usage(claim("ann"), "opus", fresh=1000, output=200, cost_usd="1.25")
        client.usage(claim("bo"), "haiku", fresh=10, cost_usd="0.01")
    assert "$1.25" in tenure("usage").out
    assert [(row["model"], row["cost_usd"]) for row in tenure("usage", "--by", "model", "--json").json] == [
        ("opus", "1.25"),
        ("haiku", "0.01"),
    ]


def test_upgrading_says_which_schema_there_is(tenure: Tenure) -> None:
    assert tenure("db", "upgrade", "--json").json["schema"] == len(schema.migrations())


def test_a_new_epoch_voids_every_receipt(tenure: Tenure, add: Add, claim: Callable[..., str]) -> None:
    add("One")
    receipt = claim("ann")
    assert tenure("db", "new-epoch", "-m", "restored").code == 0
    assert tenure("done", "--receipt", receipt, "--json").json["outcome"] == "STALE_EPOCH"


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_scripts_ask_for_the_next_word(tenure: Tenure, shell: str) -> None:
    script = tenure("completion", shell).out
    assert f"tenure completion {shell} --words" in script
    assert tenure("completion", shell, "--words", "cl").out.split() == ["claim"]


def test_bash_completes_verbs_options_and_keys(tenure: Tenure, add: Add) -> None:
    import subprocess
    import sys

    add("Write the parser")
    bin_folder = tenure.folder / "bin"
    bin_folder.mkdir()
    launcher = bin_folder / "tenure"
    launcher.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m tenure "$@"\n')
    launcher.chmod(0o755)

    def completed(*words: str) -> set[str]:
        line = " ".join(f'"{word}"' for word in ("tenure", *words))
        script = f'eval "$(tenure completion bash)"; COMP_WORDS=({line}); COMP_CWORD={len(words)}; _tenure; '
        script += 'printf "%s\\n" "${COMPREPLY[@]}"'
        env = tenure.environ | {"PATH": f"{bin_folder}:{tenure.environ['PATH']}"}
        done = subprocess.run(
            ["bash", "-c", script], capture_output=True, text=True, cwd=tenure.folder, env=env, check=True
        )
        return set(done.stdout.split())

    assert completed("cl") == {"claim"}
    assert "--summary" in completed("done", "--su")
    assert completed("checkpoint", "sh") == {"show"}
    assert completed("show", "A-0") == {"A-001-write-the-parser"}
    assert completed("list", "-s", "re") == {"ready", "retrying"}
    assert completed("--project", "x", "list", "--state", "dead") == {"dead_lettered", "dead-letter"}
    assert completed("add", "x", "-p", "") == {"critical", "high", "normal", "low", "background"}
    assert completed("add", "x", "--track", "C") == {"C"}
    assert completed("link", "A-001", "--on-failure", "") == {"block", "cancel", "ignore"}
    assert completed("msg", "hi", "--to", "@a") == {"@all"}
    assert completed("config", "run.t") == {"run.timeout"}
    assert completed("nothing", "x") == set()


def test_completion_offers_the_values_of_tenants_roles_and_limits(tenure: Tenure) -> None:
    def offered(*words: str) -> set[str]:
        return set(tenure("completion", "bash", "--words", *words).out.split())

    assert offered("member", "invite", "bo", "--role", "") == {"viewer", "member", "admin", "owner"}
    assert offered("tenant", "limits", "lo") == {"local"}
    assert offered("tenant", "add", "x", "--tier", "") == {"default", "enterprise"}
    assert offered("tenant", "add", "x", "--isolation", "") == {"logical", "schema", "instance"}
    assert offered("limits", "set", "max_l") == {"max_lease="}
    assert offered("limits", "set", "--compliance", "") == {"soc2", "pci", "hipaa", "none"}
    assert offered("add", "x", "--retry", "") == {"exponential", "fixed", "immediate"}
    assert offered("db", "rls", "on", "--role", "") == set()


def test_the_projects_of_a_store_are_listed(tenure: Tenure) -> None:
    tenure("init", "--project", "other")
    here = str(tenure("status", "--json").json["project"])
    assert sorted(tenure("project", "list", "--json").json) == sorted(["other", here])
    assert sorted(tenure("project", "list").out.splitlines()) == sorted([f"* {here}", "  other"])


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("add", "  "), 8, "title must not be blank"),
        (("add", "x", "--estimate", "-5"), 8, "must be from 1s to 3650d (got -5 s)"),
        (
            ("claim", "--lease", "90d"),
            8,
            "lease must be from 1s (min_lease) to 30d (max_lease) in this project (got 90d)",
        ),
        (("join", "-n", ""), 2, "the name must not be empty"),
        (("list", "--project", "\udcff"), 8, "text that is not valid UTF-8"),
        (("watch", "-r", "0"), 2, "must be from 0.1 to 3600 seconds (got 0)"),
    ],
)
def test_a_bad_value_is_named_with_what_it_must_be(
    tenure: Tenure, words: tuple[str, ...], code: int, said: str
) -> None:
    answer = tenure(*words)
    assert (answer.code, said in answer.err) == (code, True), answer


def test_setup_completes_the_names_of_agent_programs(tenure: Tenure) -> None:
    assert tenure("completion", "bash", "--words", "setup", "c").out.split() == ["claude", "codex", "copilot"]
    assert tenure("completion", "bash", "--words", "forecast", "--agents", "").out.split() == []


def test_the_dag_of_a_single_task_names_who_created_it(tenure: Tenure, add: Add) -> None:
    task = tenure("show", add("alone"), "--json").json
    with Client(
        str(tenure.folder / ".tenure" / "tenure.db"), str(tenure("whoami", "--json").json["project"])
    ) as client:
        assert client.dag(task["dag"])["created_by"] == task["created_by"]


def test_the_holder_of_a_cancelled_task_hears_it_once(tenure: Tenure, add: Add, claim: Callable[..., str]) -> None:
    key = add("one")
    receipt = claim("ann")
    tenure("cancel", key)
    said = tenure("progress", "half", "--receipt", receipt).out
    assert "you hold generation 1; the task was cancelled\n" in said
