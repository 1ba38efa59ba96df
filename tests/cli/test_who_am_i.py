"""Scripts, sub-agents, background jobs, CI: each is somebody of its own, and a zombie reaches nobody else's claim."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tenure import process_table
from tenure.agents import identity
from tests.cli.conftest import Tenure
from tests.cli.scripts import said, script, terminal, until, without_terminal

# A command whose store is this many seconds ahead.
LATER = """
import os, sys, time
from tenure.stores import host_clock
from tenure.cli import main
real = time.time_ns
time.time_ns = lambda: real() + int(os.environ["TENURE_TEST_LATER"]) * 10**9
sys.exit(main.main(sys.argv[1:]))
"""
CLAUDE = {"CLAUDECODE": "1", "CLAUDE_CODE_SESSION_ID": "one-session"}

WORKER = """
tenure join -n worker --json > "$1.joined"
until tenure claim --json > "$1.claim"; do :; done
: > "$1.has"
until_there "$2.has"
while :; do
  tenure progress "first" --json >> "$1.log"
  tenure progress "second" --json >> "$1.log"
  tenure done -s "$1" --json >> "$1.log"
  tenure claim --json > "$1.claim" || break
done
: > "$1.over"
"""


@pytest.fixture(autouse=True)
def real_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who a caller is depends on its parent processes."""
    monkeypatch.setattr(Tenure, "is_forked", False)


# --- F1: a receipt serves one agent alone -------------------------------------------------------------------


def test_a_zombie_that_repeats_done_does_not_reach_the_claim_of_another_agent_in_its_terminal(
    tenure: Tenure, add: Callable[..., str]
) -> None:
    add("One"), add("Two")
    assert tenure.process("claim", "A-001", "--agent", "A").code == 0
    assert tenure("recover", "A-001").code == 0
    assert tenure.process("claim", "A-001", "--session", "elsewhere").code == 0
    assert tenure.process("done", "--agent", "A", "--json").json["outcome"] == "STALE_GENERATION"
    assert tenure.process("claim", "A-002", "--agent", "B").code == 0
    again = tenure.process("done", "--agent", "A", "--json")
    assert (again.code, again.json["outcome"]) == (6, "STALE_GENERATION")
    named = tenure.process("done", "A-002", "--agent", "A", "--json")
    assert (named.code, named.json["error"]["code"]) == (6, "NO_RECEIPT")
    assert tenure("show", "A-002", "--json").json["state"] == "claimed"
    assert tenure.process("done", "--agent", "B", "--json").json["outcome"] == "ACCEPTED"


def test_of_two_sub_agents_in_one_session_the_zombie_is_refused_and_the_living_one_is_served(
    tenure: Tenure, add: Callable[..., str]
) -> None:
    """Nothing tells them apart: the same session id, the same name."""
    add("One"), add("Two")
    first = tenure.process("claim", "A-001", "--json", **CLAUDE).json["task_ref"]
    assert tenure("recover", "A-001").code == 0
    assert tenure.process("claim", "A-001", "--session", "elsewhere").code == 0
    second = tenure.process("claim", "A-002", "--json", **CLAUDE).json["task_ref"]
    assert (first, second) == ("A-001@1", "A-002@1")
    for words in (("done",), ("done", "A-001"), ("done", "A-002"), ("progress", "half"), ("release",)):
        refused = tenure.process(*words, "--json", **CLAUDE)
        assert (refused.code, refused.json["error"]["code"]) == (4, "AMBIGUOUS"), words
        assert "A-001@1 (superseded)" in refused.json["error"]["message"]
        assert "A-002@1 (held)" in refused.json["error"]["message"]
    zombie = tenure.process("done", first, "--json", **CLAUDE)
    assert (zombie.code, zombie.json["outcome"]) == (6, "STALE_GENERATION")
    assert tenure.process("done", "--json", **CLAUDE).json["error"]["code"] == "AMBIGUOUS"
    assert tenure.process("progress", "half", "--json", **CLAUDE, TENURE_TASK=second).code == 0
    living = tenure.process("done", second, "--json", **CLAUDE)
    assert (living.code, living.json["outcome"]) == (0, "ACCEPTED")


def test_two_sub_agents_that_took_the_same_task_after_one_another_are_told_apart(
    tenure: Tenure, add: Callable[..., str]
) -> None:
    add("One")
    assert tenure.process("claim", "--json", **CLAUDE).json["task_ref"] == "A-001@1"
    assert tenure("recover", "A-001").code == 0
    assert tenure.process("claim", "A-001", "--json", **CLAUDE).json["task_ref"] == "A-001@2"
    assert tenure.process("done", "A-001", "--json", **CLAUDE).json["error"]["code"] == "AMBIGUOUS"
    assert tenure.process("done", "A-001@1", "--json", **CLAUDE).json["outcome"] == "STALE_GENERATION"
    assert tenure.process("done", "A-001@2", "--json", **CLAUDE).json["outcome"] == "ACCEPTED"


def test_a_loop_that_never_lost_a_claim_never_names_one(tenure: Tenure, add: Callable[..., str]) -> None:
    for title in ("One", "Two", "Three"):
        add(title)
    for number in (1, 2, 3):
        assert tenure.process("claim", "--json").json["task_ref"] == f"A-00{number}@1"
        assert tenure.process("progress", "half").code == 0
        assert tenure.process("done", "--json").json["outcome"] == "ACCEPTED"
    repeated = tenure.process("done", "A-003", "--json").json
    assert (repeated["outcome"], repeated["again"]) == ("ACCEPTED", True)


def test_claim_prints_the_claims_name_and_an_export_line(tenure: Tenure, add: Callable[..., str]) -> None:
    add("One"), add("Two"), add("Three")
    lines = tenure("claim").out.splitlines()
    assert "claim    A-001@1" in lines
    assert lines[-1] == "export TENURE_TASK=A-001@1"
    several = tenure("claim", "-n", "2", "--json").json
    assert [claim["task_ref"] for claim in several["claims"]] == ["A-002@1", "A-003@1"]
    done = tenure.process("done", "--json", TENURE_TASK="A-002@1").json
    assert done["outcome"] == "ACCEPTED"
    assert tenure("show", "A-002", "--json").json["state"] == "completed"
    assert tenure.process("checkpoint", "show", "--json", TENURE_TASK="A-003@1").code == 0


# --- F2: a script that has joined ---------------------------------------------------------------------------


def test_a_plain_worker_script_run_twice_at_once_in_one_terminal_completes_everything(
    tenure: Tenure, add: Callable[..., str]
) -> None:
    for number in range(4):
        add(f"Task {number}")
    script(tenure, "worker.sh", WORKER)
    both = script(tenure, "both.sh", "bash worker.sh a b & bash worker.sh b a & wait\n")
    with terminal(tenure, str(both)) as shown:
        until(lambda: all((tenure.folder / f"{name}.over").exists() for name in "ab"), "both workers' end")
        assert shown.ended() == 0, shown.raw
    tasks = tenure("list", "--json", "--state", "completed").json
    assert len(tasks) == 4
    joined = [said(tenure, f"{name}.joined") for name in "ab"]
    assert [one["name"] for one in joined] == ["worker", "worker"]
    assert joined[0]["session"] != joined[1]["session"]
    assert all(one["id"] for one in joined)
    for name in "ab":
        outcomes = [json.loads(line)["outcome"] for line in (tenure.folder / f"{name}.log").read_text().splitlines()]
        assert set(outcomes) == {"OK", "ACCEPTED"}, outcomes


def test_of_two_joined_scripts_the_zombie_is_refused_and_the_living_one_is_served(
    tenure: Tenure, add: Callable[..., str]
) -> None:
    add("One")
    script(
        tenure, "one.sh",
        'tenure join -n same > /dev/null\ntenure claim --json > "$1.claim"\n: > "$1.has"\nuntil_there "$1.go"\n'
        'tenure done -s "$1" --json > "$1.first"\ntenure done -s "$1" --json > "$1.done"\n',
    )  # fmt: skip
    main = script(
        tenure, "main.sh",
        "bash one.sh a & until_there a.has\ntenure recover A-001 > /dev/null\n"
        "bash one.sh b & until_there b.has\n: > a.go\nuntil_there a.done; : > b.go\nwait\n",
    )  # fmt: skip
    with terminal(tenure, str(main)) as shown:
        said(tenure, "b.done")
        assert shown.ended() == 0, shown.raw
    assert [said(tenure, f"{name}.claim")["task_ref"] for name in "ab"] == ["A-001@1", "A-001@2"]
    assert [said(tenure, f"a.{which}")["outcome"] for which in ("first", "done")] == ["STALE_GENERATION"] * 2
    assert said(tenure, "b.first")["outcome"] == "ACCEPTED"


@pytest.mark.parametrize(
    "join", ["tenure join -n kit --json > joined", "joined=$(tenure join -n kit --json | cat); echo $joined > joined"]
)
def test_whoever_a_script_joined_as_its_later_commands_are(tenure: Tenure, join: str) -> None:
    inner = script(tenure, "inner.sh", "tenure whoami --json > deeper\n")
    path = script(tenure, "join.sh", f"{join}\ntenure whoami --json > direct\nbash {inner}\n")
    with without_terminal(tenure, str(path)) as job:
        assert job.wait() == 0
    joined = said(tenure, "joined")
    for name in ("direct", "deeper"):
        who = said(tenure, name)
        assert (who["agent"], who["session"]) == ("kit", joined["session"])
        assert (who["source"], who["process"]) == ("a process that joined", job.pid)
        assert who["agent_source"] == f"a process that joined (pid {job.pid})"
    outside = tenure.process("whoami", "--json").json
    assert outside["agent"] == "ann"
    assert outside["session"] != joined["session"]


def test_plain_terminals_are_agents_of_their_own_and_write_to_each_other(tenure: Tenure) -> None:
    rc = str(script(tenure, "rc.sh", ""))
    with terminal(tenure, "--rcfile", rc, "-i") as one, terminal(tenure, "--rcfile", rc, "-i") as two:
        one.press("tenure join --json > one\n")
        assert said(tenure, "one")["agent"]["name"] == "ann"
        two.press("tenure join --json > two\n")
        assert said(tenure, "two")["agent"]["name"] == "ann-2"
        two.press("tenure join --json > again\n")
        assert said(tenure, "again")["agent"]["name"] == "ann-2"
        one.press("tenure msg hello --json > sent\n")
        assert said(tenure, "sent")["message"] == "sent to 1 agent"
        two.press("tenure inbox --json > mail\n")
        assert [letter["text"] for letter in said(tenure, "mail")] == ["hello"]
        two.press("tenure join -n ann --json > same\n")
        same = said(tenure, "same")
        assert same["outcome"] == "UPDATED"
        (warning,) = same["warnings"]
        assert warning.startswith("the name ann is taken: session terminal-")
        one.press("exit\n")
        one.ended()
        assert tenure.process("join", "--json").json["name"] == "ann"  # whose terminal has ended


def test_a_script_that_was_killed_is_taken_over_at_once(tenure: Tenure, add: Callable[..., str]) -> None:
    add("One")
    path = script(tenure, "one.sh", "tenure join -n kit > /dev/null\ntenure claim --json > claim\nuntil_there never\n")
    with without_terminal(tenure, str(path)) as job:
        assert said(tenure, "claim")["generation"] == 1
        assert tenure.process("claim", "--session", "bo", "--json").json["outcome"] == "NO_TASK"
        job.kill()
        job.wait()
        assert tenure.process("claim", "--session", "bo", "--json").json["generation"] == 2


@pytest.mark.parametrize("join", ["tenure join -n kit > /dev/null", 'eval "$(tenure join -n kit)"'])
def test_the_urgent_task_of_a_killed_script_is_taken_over_though_others_are_ready(
    tenure: Tenure, add: Callable[..., str], join: str
) -> None:
    urgent, *others = (add("Urgent", "-p", "critical"), add("One"), add("Two"))
    path = script(tenure, "one.sh", f"{join}\ntenure claim --json > claim\nuntil_there never\n")
    with without_terminal(tenure, str(path)) as job:
        assert said(tenure, "claim")["key"].startswith(urgent)
        assert status_of(tenure, "kit") == "active"
        first = tenure.process("claim", "--session", "bo", "--json").json
        assert (first["key"][:5], first["generation"]) == (others[0], 1)
        job.kill()
        job.wait()
        assert status_of(tenure, "kit") == "offline"
        taken = tenure.process("claim", "--session", "bo", "--json").json
        assert (taken["key"][:5], taken["generation"], taken["attempt"]) == (urgent, 2, 2)


def status_of(tenure: Tenure, agent: str) -> str:
    """What every list of agents calls it."""
    listed = tenure.process("agents", "--json").json
    (status,) = {one["status"] for one in listed if one["name"] == agent}
    in_status = tenure.process("status", "--json").json["agents"]
    assert [one["status"] for one in in_status if one["name"] == agent] == [status]
    return str(status)


READS = ["status", "inbox", "list", "ready", "agents", "agent list"]


@pytest.mark.parametrize("read", READS)
@pytest.mark.parametrize("join", ["tenure join -n kit > /dev/null", 'eval "$(tenure join -n kit)"'])
def test_what_a_joined_script_reads_is_a_sign_of_life(
    tenure: Tenure, monkeypatch: pytest.MonkeyPatch, join: str, read: str
) -> None:
    later = f"later() {{ TENURE_TEST_LATER=$1 {sys.executable} -c '{LATER}' {read} > /dev/null; }}\n"
    path = script(
        tenure, "one.sh",
        f"{later}{join}\ntenure agents --json > joined\nlater 59\ntenure agents --json > soon\nlater 61\n"
        "tenure agents --json > then\n",
    )  # fmt: skip
    with without_terminal(tenure, str(path)) as job:
        assert job.wait() == 0
    joined, soon, then = (said(tenure, name)[0]["last_seen"] for name in ("joined", "soon", "then"))
    assert joined == soon < then


def test_what_is_read_after_leaving_brings_no_agent_back(tenure: Tenure) -> None:
    path = script(
        tenure, "one.sh",
        f"later() {{ TENURE_TEST_LATER=$1 {sys.executable} -c '{LATER}' status > /dev/null; }}\n"
        'eval "$(tenure join -n kit)"\ntenure leave > /dev/null\nlater 61\ntenure agents --json > then\n',
    )  # fmt: skip
    with without_terminal(tenure, str(path)) as job:
        assert job.wait() == 0
    assert [one["status"] for one in said(tenure, "then")] == ["offline"]


def test_the_children_of_a_joined_script_speak_for_it_after_its_end(tenure: Tenure, add: Callable[..., str]) -> None:
    add("One")
    path = script(
        tenure, "one.sh",
        "tenure join -n kit > /dev/null\ntenure claim --json > claim\n"
        "{ until_there go; tenure done --json > done; } &\nexit 0\n",
    )  # fmt: skip
    with without_terminal(tenure, str(path)) as job:
        assert job.wait() == 0
        (tenure.folder / "go").touch()
        assert said(tenure, "done")["outcome"] == "ACCEPTED"


def test_a_name_that_was_joined_by_inside_an_agent_stays_with_its_session(
    tenure: Tenure, add: Callable[..., str]
) -> None:
    """Each command of an agent has a shell of its own, which ends with it."""
    add("One")
    path = script(tenure, "one.sh", "tenure join -n kit > /dev/null\ntenure claim --json > claim\n")
    with without_terminal(tenure, str(path), **CLAUDE) as job:
        assert job.wait() == 0
    who = tenure.process("whoami", "--json", **CLAUDE).json
    assert (who["agent"], who["session"], who["role"]) == ("kit", "one-session", "agent")
    assert tenure.process("done", "--json", **CLAUDE).json["outcome"] == "ACCEPTED"


def test_the_end_of_an_agent_that_a_joined_script_started_does_not_end_the_scripts_session(
    tenure: Tenure, add: Callable[..., str]
) -> None:
    add("One")
    ended = json.dumps({"session_id": "one-session", "hook_event_name": "SessionEnd", "reason": "other"})
    path = script(
        tenure, "one.sh",
        "tenure join -n boss > /dev/null\ntenure claim > /dev/null\n"
        f"echo '{ended}' | CLAUDECODE=1 CLAUDE_CODE_SESSION_ID=one-session tenure hook\ntenure done --json > done\n",
    )  # fmt: skip
    with without_terminal(tenure, str(path)) as job:
        assert job.wait() == 0
    assert said(tenure, "done")["outcome"] == "ACCEPTED"


def test_a_session_that_was_left_is_joined_no_more(tenure: Tenure) -> None:
    path = script(
        tenure, "one.sh", "tenure join -n kit > joined\ntenure leave > /dev/null\ntenure whoami --json > who\n"
    )
    with without_terminal(tenure, str(path)) as job:
        assert job.wait() == 0
    assert said(tenure, "who")["agent"] == "ann"


# --- F3: what outlives its shell ----------------------------------------------------------------------------


def test_a_script_that_outlives_its_shell_keeps_its_claim_and_its_name(tenure: Tenure, add: Callable[..., str]) -> None:
    add("One")
    path = script(
        tenure, "agent.sh",
        "tenure whoami --json > before\ntenure claim --json > claim\nuntil_there go\n"
        "tenure whoami --json > after\ntenure done --json > done\n",
    )  # fmt: skip
    with terminal(tenure, "--norc", "-i") as shell:
        shell.press(f"nohup bash {path} > /dev/null 2>&1 & disown; exit\n")
        claimed = said(tenure, "claim")
        shell.ended()
    assert tenure.process("claim", "--session", "bo", "--json").json["outcome"] == "NO_TASK"
    (tenure.folder / "go").touch()
    assert said(tenure, "done")["outcome"] == "ACCEPTED"
    before, after = said(tenure, "before"), said(tenure, "after")
    assert (before["session"], before["agent"]) == (after["session"], after["agent"])
    assert (claimed["generation"], before["process"]) == (1, None)


def test_what_is_typed_at_a_prompt_ends_with_its_terminal(tenure: Tenure, add: Callable[..., str]) -> None:
    add("One")
    path = script(tenure, "rc.sh", "")
    with terminal(tenure, "--rcfile", str(path), "-i") as shell:
        shell.press("tenure claim --json > claim\n")
        assert said(tenure, "claim")["generation"] == 1
        assert tenure.process("claim", "--session", "bo", "--json").json["outcome"] == "NO_TASK"
        shell.press("exit\n")
        shell.ended()
    assert tenure.process("claim", "--session", "bo", "--json").json["generation"] == 2


@pytest.mark.parametrize("command", ["tenure claim --json > claim &", "bash one.sh"])
def test_what_runs_in_the_background_or_by_a_script_does_not(
    tenure: Tenure, add: Callable[..., str], command: str
) -> None:
    add("One")
    script(tenure, "one.sh", "tenure claim --json > claim\n")
    path = script(tenure, "rc.sh", "")
    with terminal(tenure, "--rcfile", str(path), "-i") as shell:
        shell.press(f"{command}\n")
        assert said(tenure, "claim")["generation"] == 1
        shell.press("exit\n")
        shell.press("exit\n")  # a shell with jobs asks twice
        shell.ended()
    assert tenure.process("claim", "--session", "bo", "--json").json["outcome"] == "NO_TASK"


def test_in_ci_without_a_terminal_the_zombie_is_refused_and_the_living_job_is_served(
    tenure: Tenure, add: Callable[..., str]
) -> None:
    add("One")
    path = script(
        tenure, "job.sh",
        'tenure claim --json > "$1.claim"\nuntil_there "$1.go"\ntenure done -s "$1" --json > "$1.done"\n',
    )  # fmt: skip
    with without_terminal(tenure, str(path), "a") as first:
        assert said(tenure, "a.claim")["generation"] == 1
        assert tenure("recover", "A-001").code == 0
        with without_terminal(tenure, str(path), "b") as second:
            assert said(tenure, "b.claim")["generation"] == 2
            (tenure.folder / "a.go").touch()
            assert first.wait() == 6
            (tenure.folder / "b.go").touch()
            assert second.wait() == 0
    assert said(tenure, "a.done")["outcome"] == "STALE_GENERATION"
    assert said(tenure, "b.done")["outcome"] == "ACCEPTED"


def test_a_session_is_named_when_it_is_first_seen_and_a_new_leader_is_a_new_session(tmp_path: Path) -> None:
    environ = {"TENURE_STATE": str(tmp_path)}
    first = identity.terminal(environ).session
    assert identity.terminal(environ).session == first
    (record,) = (tmp_path / "who" / process_table.boot_id()).iterdir()
    row = json.loads(record.read_text())
    record.write_text(json.dumps({**row, "start": row["start"] + 1, "session": "another's"}))
    assert identity.terminal(environ).session == first
    record.write_text(json.dumps({**row, "session": "the name it got first"}))
    assert identity.terminal(environ).session == "the name it got first"


def test_where_nothing_can_be_kept_one_is_still_somebody(tenure: Tenure, add: Callable[..., str]) -> None:
    add("One")
    (tenure.folder / "file").write_text("")
    nowhere = {"TENURE_STATE": str(tenure.folder / "file"), "TMPDIR": str(tenure.folder / "file")}
    first = tenure.process("whoami", "--json", **nowhere).json
    assert first["session"] == tenure.process("whoami", "--json", **nowhere).json["session"]
    assert tenure.process("join", "-n", "kit", "--json", **nowhere).json["name"] == "kit"


def test_whoami_tells_how_each_part_was_recognised(tenure: Tenure, add: Callable[..., str]) -> None:
    add("One"), add("Two")
    person = tenure.process("whoami", "--json").json
    assert (person["agent_source"], person["role_source"]) == ("the user's name", "no agent was recognised")
    agent = tenure.process("whoami", "--json", **CLAUDE).json
    assert (agent["source"], agent["role_source"]) == ("CLAUDE_CODE_SESSION_ID", "CLAUDECODE is set")
    assert agent["agent_source"] == "Claude Code and its session"
    named = tenure.process("whoami", "--agent", "kit", "--session", "mine", "--json").json
    assert (named["agent_source"], named["source"]) == ("--agent", "--session")
    assert tenure.process("claim", **CLAUDE).code == 0
    assert tenure.process("claim", "--agent", "kit", **CLAUDE).code == 0
    text = tenure.process("whoami", **CLAUDE).out
    assert "holds    A-001@1" in text
    assert "beside   A-002@1  A-002-two  of agent kit in this session" in text


def test_receipts_survive_what_cleans_the_repository(tenure: Tenure, add: Callable[..., str]) -> None:
    add("One")
    assert tenure.process("claim").code == 0
    assert not (tenure.folder / ".tenure" / "receipts").exists()
    assert tenure.process("done", "--json").json["outcome"] == "ACCEPTED"
    assert os.environ["HOME"] in str(next(Path(tenure.environ["HOME"]).rglob("A-001@1.ended")))
