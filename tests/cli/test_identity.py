"""Who speaks, which receipts they find, and that a zombie never finds another's."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tenure.agents import processes
from tenure.agents.identity import recognise
from tenure.agents.receipts import NoReceipt, Receipts
from tenure.core.outcomes import Outcome
from tests.cli.conftest import Tenure


def test_two_agents_in_one_folder_without_receipts_and_the_zombie_is_refused(
    tenure: Tenure, add: Callable[..., str]
) -> None:
    add("Write the parser")
    ann = {"CLAUDECODE": "1", "CLAUDE_CODE_SESSION_ID": "ann-session"}
    bo = {"CLAUDECODE": "1", "CLAUDE_CODE_SESSION_ID": "bo-session"}
    assert tenure.process("claim", **ann).code == 0
    assert tenure.process("done", "A-001", **bo).code == 6  # no receipt in this session, whatever the folder holds
    assert tenure("recover", "A-001").code == 0
    assert tenure.process("claim", **bo).code == 0
    zombie = tenure.process("done", "-s", "late", "--json", **ann)
    assert (zombie.code, zombie.json["outcome"], zombie.json["work_lost"]) == (6, "STALE_GENERATION", True)
    holder = tenure.process("done", "-s", "good", "--json", **bo)
    assert (holder.code, holder.json["outcome"]) == (0, "ACCEPTED")


@pytest.mark.parametrize(
    ("environ", "type", "session"),
    [
        ({"CLAUDECODE": "1", "CLAUDE_CODE_SESSION_ID": "abc-1234"}, "claude", "abc-1234"),
        ({"CODEX_SESSION_ID": "codex-1"}, "codex", "codex-1"),
        ({"COPILOT_AGENT_SESSION_ID": "cop-1"}, "copilot", "cop-1"),
    ],
)
def test_agents_are_known_from_their_environment(environ: dict[str, str], type: str, session: str) -> None:
    who = recognise({"USER": "ann", **environ})
    assert (who.type, who.session, who.role) == (type, session, "agent")
    assert who.agent.startswith(f"{type}-")


def test_a_person_is_the_owner_and_speaks_in_the_session_of_the_terminal(environ: dict[str, str]) -> None:
    who = recognise(environ)
    assert (who.agent, who.role, who.type) == ("ann", "owner", "human")
    assert who.session == recognise(environ).session
    assert str(os.getsid(0)) in who.session or who.source == "the nearest agent process"


def test_flags_beat_the_environment_and_the_environment_beats_what_was_recognised() -> None:
    environ = {"USER": "ann", "CLAUDECODE": "1", "CLAUDE_CODE_SESSION_ID": "own", "TENURE_SESSION": "told"}
    assert recognise(environ).session == "told"
    assert recognise(environ, session="flag").session == "flag"
    assert recognise({**environ, "TENURE_AGENT": "kit"}).agent == "kit"
    assert recognise({**environ, "TENURE_AGENT": "kit"}, agent="flag").agent == "flag"
    assert recognise(environ, agent="flag").role == "agent"  # a marker lowers the role; a name does not raise it


def test_agents_cannot_operate_on_the_work_of_others(tenure: Tenure, add: Callable[..., str]) -> None:
    add("Write the parser")
    agent = {"CLAUDECODE": "1", "CLAUDE_CODE_SESSION_ID": "a"}
    for words in (("cancel", "A-001"), ("reset", "A-001"), ("recover", "A-001"), ("edit", "A-001", "--title", "x")):
        said = tenure.process(*words, "--json", **agent)
        assert (said.code, said.json["error"]["code"]) == (7, "NOT_ALLOWED"), words
    said = tenure.process("cancel", "--state", "ready", **agent)
    assert said.code == 7
    assert tenure("show", "A-001", "--json").json["state"] == "ready"
    assert tenure.process("db", "new-epoch", "-m", "x", **agent).code == 7


def test_a_process_is_known_by_pid_and_start() -> None:
    own = processes.look_up(os.getpid())
    assert own is not None
    assert (own.pid, own.parent) == (os.getpid(), os.getppid())
    assert processes.look_up(2**22 + 7) is None
    assert processes.nearest(own.programs, os.getpid()) == own
    assert processes.nearest(["no-such-program"]) is None


def test_the_task_of_an_agent_that_was_killed_is_taken_over_at_once(tenure: Tenure, add: Callable[..., str]) -> None:
    add("Write the parser")
    # an agent CLI as the process table shows it: a process of its name, with a shell below that runs the command
    script = tenure.folder / "claude"
    claim = tenure.command("claim", "--json")
    script.write_text(f"import subprocess, sys\nsubprocess.run({claim!r})\nsys.stdin.read()\n")
    marked = tenure.environ | {"CLAUDECODE": "1", "CLAUDE_CODE_SESSION_ID": "killed"}
    agent = subprocess.Popen(
        [sys.executable, str(script)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=marked,
        cwd=tenure.folder,
    )  # fmt: skip
    assert agent.stdout is not None
    assert json.loads(agent.stdout.readline())["generation"] == 1
    assert tenure.process("claim", "--session", "bo", "--json").json["outcome"] == "NO_TASK"
    agent.kill()
    agent.communicate()
    taken = tenure.process("claim", "--session", "bo", "--json")
    assert (taken.code, taken.json["generation"]) == (0, 2)
    zombie = tenure.process("done", "A-001", "--session", "killed", "--json")
    assert (zombie.code, zombie.json["outcome"]) == (6, "STALE_GENERATION")


# --- receipts -----------------------------------------------------------------------------------------------


def test_receipts_are_for_the_user_alone(tmp_path: Path) -> None:
    kept = Receipts(str(tmp_path), "p", "s")
    kept.keep("task_1", "A-001-x", "A-001@1:T")
    (file,) = (tmp_path / "receipts" / "s").iterdir()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE((tmp_path / "receipts").stat().st_mode) & 0o077 == 0


def test_receipts_are_found_by_session_and_task(tmp_path: Path) -> None:
    ann, bo = Receipts(str(tmp_path), "p", "ann"), Receipts(str(tmp_path), "p", "bo")
    ann.keep("task_1", "A-001-x", "A-001@1:T")
    assert ann.find(None).receipt == ann.find("A-001").receipt == ann.find("a-001-x").receipt == "A-001@1:T"
    with pytest.raises(NoReceipt, match="holds no task"):
        bo.find(None)
    with pytest.raises(NoReceipt, match="no receipt for A-001"):
        bo.find("A-001")
    with pytest.raises(NoReceipt):
        Receipts(str(tmp_path), "other", "ann").find("A-001")


def test_a_short_key_never_stands_for_a_longer_number(tmp_path: Path) -> None:
    kept = Receipts(str(tmp_path), "p", "s")
    kept.keep("task_1", "A-0011-write-it", "A-0011@1:T")
    with pytest.raises(NoReceipt):
        kept.find("A-001")
    assert kept.find("A-0011-wri").key == "A-0011-write-it"
    with pytest.raises(NoReceipt):
        kept.find("A-0011-x")


def test_with_two_tasks_the_one_must_be_named(tmp_path: Path) -> None:
    kept = Receipts(str(tmp_path), "p", "s")
    kept.keep("task_1", "A-001-x", "A-001@1:T")
    kept.keep("task_2", "A-002-y", "A-002@1:T")
    with pytest.raises(NoReceipt, match="2 tasks: A-001-x, A-002-y"):
        kept.find(None)
    kept.settle("A-001@1:T", Outcome(outcome="ACCEPTED"))
    assert kept.find(None).key == "A-002-y"
    assert kept.find("A-001").receipt == "A-001@1:T"  # a repeat is still presented


@pytest.mark.parametrize("session", ["../../etc", "a/b", ".hidden", "x" * 300, "ü ß", ""])
def test_no_session_name_leaves_the_folder(tmp_path: Path, session: str) -> None:
    kept = Receipts(str(tmp_path), "p", session)
    kept.keep("../task", "A-001-x", "A-001@1:T")
    files = [p for p in tmp_path.rglob("*") if p.is_file()]
    assert len(files) == 1
    assert files[0].parent.parent == tmp_path / "receipts"
    assert kept.find(None).receipt == "A-001@1:T"


def test_a_file_of_nobody_is_passed_over(tmp_path: Path) -> None:
    kept = Receipts(str(tmp_path), "p", "s")
    kept.keep("task_1", "A-001-x", "A-001@1:T")
    (tmp_path / "receipts" / "s" / "half").write_text("{")
    assert kept.find(None).key == "A-001-x"
