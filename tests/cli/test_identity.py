"""Who speaks, which receipts they find, and that a zombie never finds another's."""

from __future__ import annotations

import json
import os
import shutil
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tenure import process_table
from tenure.agents.identity import recognise
from tenure.agents.receipts import AmbiguousClaim, NoReceipt, Receipts
from tenure.config import Home
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
    # 0 where the session began outside of this container: its first process stands for the leader
    number = os.getsid(0) or process_table.lineage(os.getpid())[-1].pid
    assert str(number) in who.session or who.source == "the nearest agent process"


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
    own = process_table.look_up(os.getpid())
    assert own is not None
    assert (own.pid, own.parent) == (os.getpid(), os.getppid())
    assert process_table.look_up(2**22 + 7) is None
    assert process_table.nearest(own.programs, os.getpid()) == own
    assert process_table.nearest(["no-such-program"]) is None


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
    zombie = tenure.process("done", "A-001", "--json", CLAUDECODE="1", CLAUDE_CODE_SESSION_ID="killed")
    assert (zombie.code, zombie.json["outcome"]) == (6, "STALE_GENERATION")


def test_a_command_may_be_the_first_process_of_a_container(tenure: Tenure, add: Callable[..., str]) -> None:
    add("Write the parser")
    inside = ["unshare", "--fork", "--pid", "--mount-proc"]
    if not shutil.which("unshare") or subprocess.run([*inside, "true"], capture_output=True, check=False).returncode:
        pytest.skip("this user may not make a process namespace")
    for words in (("claim", "--json"), ("done", "A-001", "--json")):
        run = subprocess.run(
            [*inside, *tenure.command(*words)], capture_output=True, text=True, check=False, cwd=tenure.folder,
            env=tenure.environ | {"TENURE_SESSION": "box"},
        )  # fmt: skip
        assert run.returncode == 0, run.stderr
    nameless = [*inside, *tenure.command("list", "--json")]
    run = subprocess.run(nameless, capture_output=True, text=True, check=False, cwd=tenure.folder, env=tenure.environ)
    assert run.returncode == 0, run.stderr


# --- receipts -----------------------------------------------------------------------------------------------


def receipts(folder: Path, session: str = "s", agent: str | None = "ann", project: str = "p") -> Receipts:
    home = Home(str(folder / ".tenure"), str(folder / ".tenure" / "tenure.db"))
    return Receipts(home, project, session, agent, {"TENURE_STATE": str(folder / "state")})


def files(folder: Path) -> list[Path]:
    return [path for path in (folder / "state").rglob("*") if path.is_file()]


def known(task: str, key: str, generation: int, state: str = "active") -> dict[str, object]:
    reason = None if state == "active" else state.upper()
    return {
        "task": task, "key": key, "ref": "-".join(key.split("-")[:2]), "generation": generation, "state": state,
        "reason": reason,
    }  # fmt: skip


def test_receipts_are_for_the_user_alone(tmp_path: Path) -> None:
    receipts(tmp_path).keep("task_1", "A-001-x", "A-001@1:T")
    (file,) = files(tmp_path)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    for folder in file.relative_to(tmp_path / "state").parents:
        assert stat.S_IMODE((tmp_path / "state" / folder).stat().st_mode) & 0o077 == 0


def test_receipts_are_found_by_session_agent_and_task(tmp_path: Path) -> None:
    ann, bo = receipts(tmp_path, "ann"), receipts(tmp_path, "bo")
    ann.keep("task_1", "A-001-x", "A-001@1:T")
    for name in (None, "A-001", "a-001-x", "A-001@1", "a-001-x@1", "task_1", "task_1@1"):
        assert ann.find(name).receipt == "A-001@1:T"
    for other in (bo, receipts(tmp_path, "ann", "bo"), receipts(tmp_path, "ann", project="other")):
        for name in (None, "A-001", "A-001@1", "task_1@1"):
            with pytest.raises(NoReceipt):
                other.find(name)
    with pytest.raises(NoReceipt, match="no receipt for A-001@2"):
        ann.find("A-001@2")


def test_one_who_finds_no_receipt_is_told_whose_there_are_in_the_session(tmp_path: Path) -> None:
    receipts(tmp_path, agent="bo").keep("task_1", "A-001-x", "A-001@1:T")
    with pytest.raises(NoReceipt) as refused:
        receipts(tmp_path).find(None)
    assert "A-001@1 for agent bo" in str(refused.value.hint)


def test_a_short_key_never_stands_for_a_longer_number(tmp_path: Path) -> None:
    kept = receipts(tmp_path)
    kept.keep("task_1", "A-0011-write-it", "A-0011@1:T")
    with pytest.raises(NoReceipt):
        kept.find("A-001")
    assert kept.find("A-0011-wri").key == "A-0011-write-it"
    with pytest.raises(NoReceipt):
        kept.find("A-0011-x")


def test_with_two_tasks_the_one_must_be_named(tmp_path: Path) -> None:
    kept = receipts(tmp_path)
    kept.keep("task_1", "A-001-x", "A-001@1:T")
    kept.keep("task_2", "A-002-y", "A-002@1:T")
    both = [known("task_1", "A-001-x", 1), known("task_2", "A-002-y", 1)]
    with pytest.raises(AmbiguousClaim, match=r"2 tasks: A-001@1 \(held\), A-002@1 \(held\)"):
        kept.find(None, lambda: both)
    assert kept.find("A-002", lambda: both).receipt == "A-002@1:T"
    kept.settle("A-001@1:T", Outcome(outcome="ACCEPTED"))
    assert kept.find(None).key == "A-002-y"
    assert kept.find("A-001").receipt == "A-001@1:T"  # a repeat is still presented


def test_a_claim_whose_last_word_was_never_noted_is_not_in_the_way(tmp_path: Path) -> None:
    """Its command was killed between the commit and the note: the store knows that it is over."""
    kept = receipts(tmp_path)
    kept.keep("task_1", "A-001-x", "A-001@1:T")
    kept.keep("task_2", "A-002-y", "A-002@1:T")
    assert kept.find(None, lambda: [known("task_2", "A-002-y", 1)]).receipt == "A-002@1:T"


def test_after_a_loss_the_claim_must_be_named_with_its_generation(tmp_path: Path) -> None:
    kept = receipts(tmp_path)
    kept.keep("task_1", "A-001-x", "A-001@1:T")
    kept.keep("task_2", "A-002-y", "A-002@1:T")
    lost = [known("task_1", "A-001-x", 1, "expired"), known("task_2", "A-002-y", 1)]
    kept.settle("A-001@1:T", Outcome(outcome="STALE_GENERATION"))
    for name in (None, "A-001", "A-002"):
        with pytest.raises(AmbiguousClaim, match=r"A-002@1 \(held\), A-001@1 \(expired\)"):
            kept.find(name, lambda: lost)
    assert kept.find("A-002@1", lambda: lost).receipt == "A-002@1:T"
    assert kept.find("A-001@1", lambda: lost).receipt == "A-001@1:T"


def test_a_lost_claim_that_is_the_only_one_is_still_presented(tmp_path: Path) -> None:
    kept = receipts(tmp_path)
    kept.keep("task_1", "A-001-x", "A-001@1:T")
    kept.settle("A-001@1:T", Outcome(outcome="STALE_GENERATION"))
    assert kept.find(None, lambda: [known("task_1", "A-001-x", 1, "superseded")]).receipt == "A-001@1:T"


def test_two_generations_of_one_task_are_two_claims(tmp_path: Path) -> None:
    kept = receipts(tmp_path)
    kept.keep("task_1", "A-001-x", "A-001@1:T")
    kept.keep("task_1", "A-001-x", "A-001@2:U")
    lost = [known("task_1", "A-001-x", 1, "expired"), known("task_1", "A-001-x", 2)]
    with pytest.raises(AmbiguousClaim):
        kept.find("A-001", lambda: lost)
    assert kept.find("A-001@1", lambda: lost).receipt == "A-001@1:T"
    assert kept.find("A-001@2", lambda: lost).receipt == "A-001@2:U"


def test_a_holder_that_took_its_task_again_need_not_name_it(tmp_path: Path) -> None:
    kept = receipts(tmp_path)
    kept.keep("task_1", "A-001-x", "A-001@1:T")
    kept.keep("task_1", "A-001-x", "A-001@2:U", instead_of="A-001@1:T")
    lost = [known("task_1", "A-001-x", 1, "expired"), known("task_1", "A-001-x", 2)]
    for name in (None, "A-001", "A-001@1", "A-001@2"):
        assert kept.find(name, lambda: lost).receipt == "A-001@2:U"


@pytest.mark.parametrize("session", ["../../etc", "a/b", ".hidden", "x" * 300, "ü ß", ""])
def test_no_session_or_agent_name_leaves_the_folder(tmp_path: Path, session: str) -> None:
    kept = receipts(tmp_path, session, agent=session)
    kept.keep("../task", "A-001-x", "A-001@1:T")
    (file,) = files(tmp_path)
    assert file.resolve().is_relative_to((tmp_path / "state" / "stores").resolve())
    assert kept.find(None).receipt == "A-001@1:T"


def test_a_file_of_nobody_is_passed_over(tmp_path: Path) -> None:
    kept = receipts(tmp_path)
    kept.keep("task_1", "A-001-x", "A-001@1:T")
    (file,) = files(tmp_path)
    file.with_name("half").write_text("{")
    assert kept.find(None, lambda: [known("task_1", "A-001-x", 1)]).key == "A-001-x"


def test_a_receipt_that_ended_in_a_sandbox_has_ended(tmp_path: Path) -> None:
    """A sandbox cannot write to the home folder: its notes lie in the temporary one, and are read as well."""
    outside = receipts(tmp_path)
    outside.keep("task_1", "A-001-x", "A-001@1:T")
    home = Home(str(tmp_path / ".tenure"), str(tmp_path / ".tenure" / "tenure.db"))
    (tmp_path / "taken").write_text("a file where the folder should be")
    (tmp_path / "tmp").mkdir()
    inside = {"TENURE_STATE": str(tmp_path / "taken"), "TMPDIR": str(tmp_path / "tmp")}
    Receipts(home, "p", "s", "ann", inside).keep("task_1", "A-001-x", "A-001@1:T")
    Receipts(home, "p", "s", "ann", inside).settle("A-001@1:T", Outcome(outcome="ACCEPTED"))
    both = {"TENURE_STATE": str(tmp_path / "state"), "TMPDIR": str(tmp_path / "tmp")}
    assert Receipts(home, "p", "s", "ann", both).live() == []
    assert len(outside.live()) == 1  # as the first place alone has it
