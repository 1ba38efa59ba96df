"""What a new agent is given of those before it: checkpoint, files, what they said, what they left in git."""

from __future__ import annotations

import json
import os
import re
import sys
from pathlib import Path

from tenure.agents.receipts import Receipts
from tenure.agents.runner.held_claim import HeldClaim, OwnEnding, Stop
from tenure.client import Client
from tenure.config import Home
from tenure.core.records import RetryPolicy
from tenure.process_table import described
from tenure.testing import FakeClock
from tests.runner.conftest import Stage

MINUTE = 60.0


# --- what is handed over ---


def test_files_of_the_task_before_lie_in_a_folder_of_the_claim(stage: Stage) -> None:
    first = stage.add("Make it")
    second = stage.add("Use it", after=[first])
    (stage.folder / "plan.md").write_text("# The plan\n")
    stage.do(first, tenure=[["artifact", "put", "plan.md", "--name", "docs/plan.md"]])
    stage.go()
    stage.run("--max-tasks", "1").ends()
    script = stage.folder.parent / "reads.py"
    script.write_text(
        "import json, sys\n"
        "prompt = sys.stdin.read()\n"
        "path = prompt.split('\"path\": \"')[1].split('\"')[0]\n"
        "print(json.dumps({'result': {'read': open(path).read(), 'path': path}}))\n"
    )
    stage.run("--once", agent=f"{sys.executable} {script}").ends()

    data = stage.client.show(second)["result"]["data"]
    assert data["read"] == "# The plan\n"
    assert data["path"].endswith(f"gen-1.inputs/{first}/docs/plan.md")
    assert not Path(data["path"]).exists()  # it went with the claim


def test_what_an_agent_said_is_an_artifact_of_its_generation(stage: Stage) -> None:
    key = stage.add("Talk")
    stage.do(says=["thinking aloud", json.dumps({"result": 1})])
    stage.go()
    stage.run("--once").ends()

    (entry,) = stage.client.artifacts(key)
    assert (entry["name"], entry["generation"]) == ("transcript.jsonl", 1)
    assert b"thinking aloud" in stage.client.get_artifact(key, "transcript.jsonl").read()
    assert stage.client.verify() == []


def test_an_agent_that_handed_in_by_itself_is_heard_too(stage: Stage) -> None:
    key = stage.add("By itself")
    stage.do(tenure=[["done", key, "-s", "mine"]], says=["and some last words"])
    stage.go()
    stage.run("--once").ends()

    assert b"last words" in stage.client.get_artifact(key, "transcript.jsonl").read()


def test_the_next_agent_gets_checkpoint_files_and_transcript_of_a_failed_one(stage: Stage) -> None:
    key = stage.add("Twice")
    (stage.folder / "half.txt").write_text("half\n")
    stage.do(
        tenure=[
            ["checkpoint", "save", key, "--next-action", "do the other half"],
            ["artifact", "put", key, "half.txt"],
        ],
        says=["I got stuck in the middle"],
        exit=1,
    )
    stage.go()
    stage.run("--once").ends()
    assert stage.state(key) == "ready"
    stage.do()
    stage.run("--once").ends()

    prompt = (stage.control / "prompts" / key).read_text()
    assert "do the other half" in prompt
    assert re.search(r"Checkpoint of the previous agent \(.*-1, generation 1\)", prompt)
    assert re.search(r'"path": ".*gen-2\.inputs/earlier/half\.txt"', prompt)
    assert re.search(r'"path": ".*gen-2\.inputs/earlier/transcript\.jsonl"', prompt)
    assert f"transcripts/default/{key}/gen-1.jsonl" in prompt
    assert stage.is_completed(key)


def test_a_killed_runner_leaves_its_worktree_and_transcript_to_the_next(stage: Stage) -> None:
    stage.repository()
    key = stage.add("Killed")
    stage.do(tenure_first=[["checkpoint", "save", key, "--next-action", "commit it"]])
    runner = stage.run("--worktree", "--once", "--grace", "0.2")
    stage.started(key)
    where = Path(json.loads((stage.control / "environ" / key).read_text())["CWD"])
    (where / "new.py").write_text("unsaved\n")
    runner.kill()
    stage.nothing_left()
    stage.go()
    stage.run("--worktree", "--once").ends()

    prompt = (stage.control / "prompts" / key).read_text()
    assert "commit it" in prompt
    assert f"left uncommitted changes in {where}" in prompt
    assert f"transcripts/default/{key}/gen-1.jsonl" in prompt
    assert (where / "new.py").read_text() == "unsaved\n"  # and nothing has removed it
    assert stage.lineage(key)[-1] == (2, "COMPLETED", True)


def test_missing_inputs_are_reported(stage: Stage) -> None:
    stage.add("Other")
    key = stage.add("Asks", spec={"context_refs": ["artifact:A-001/none.txt"]})
    stage.go()
    stage.run("--until-empty").ends()
    prompt = (stage.control / "prompts" / key).read_text()
    assert "## Requested inputs that are missing" in prompt
    assert '["artifact:A-001/none.txt"]' in prompt


def test_without_an_artifact_store_transcripts_are_only_files(stage: Stage) -> None:
    key = stage.add("No place")
    stage.go()
    log = stage.run("--once", TENURE_ARTIFACTS="nowhere://x").ends()
    assert "transcripts are kept as files only" in log
    assert stage.is_completed(key)
    assert (stage.home / "transcripts" / "default" / key / "gen-1.jsonl").exists()


# --- hung ---


class Held:
    """A claim that is held for an agent, on a clock that is moved by hand."""

    def __init__(self, folder: Path, **fields: object) -> None:
        self.clock = FakeClock()
        self.client = Client(str(folder / "store.db"), "default", agent="ann", clock=self.clock, create=True)
        self.client.init()
        self.client.add("Hangs", retry=RetryPolicy(strategy="immediate"), **fields)
        granted = self.client.claim("A-001", lease=24 * 3600.0, process=described(os.getpid()))
        self.said: list[str] = []
        self.stops: list[Stop] = []
        self.settled: list[OwnEnding] = []
        self.claim = HeldClaim(
            self.client,
            granted,
            lease=24 * 3600.0,
            process=lambda: described(os.getpid()),
            stopped=self.stops.append,
            settled=self.settled.append,
            moved=lambda _: None,
            renewed=lambda: None,
            say=self.said.append,
            receipts=Receipts(Home(str(folder), str(folder / "tenure.db")), "default", "s", "me"),
        )

    def after(self, minutes: float) -> None:
        self.clock.advance(seconds=minutes * MINUTE)
        self.claim.look()

    def endings(self) -> list[tuple[object, object]]:
        return [(entry["generation"], entry["release_reason"]) for entry in self.client.history("A-001")]


def test_a_hung_agent_is_warned_then_ended_and_no_second_is_begun(tmp_path: Path) -> None:
    held = Held(tmp_path)
    held.client.progress(held.claim.receipt, step="almost", done_in=10 * MINUTE)
    held.after(39)
    assert (held.said, held.stops) == ([], [])
    held.after(2)  # half an hour past what it said
    assert ["warned" in text for text in held.said] == [True]
    held.after(8)
    assert len(held.said) == 1
    assert held.stops == []
    held.after(2)  # and ten minutes more without a word
    assert [stop.directive for stop in held.stops] == ["abort"]
    assert "no progress" in held.stops[0].why
    assert not held.claim.is_live
    assert held.endings() == [(1, "SUPERSEDED")]  # although the task was ready again at once
    held.client.close()


def test_an_agent_that_gives_a_sign_of_life_is_left_alone(tmp_path: Path) -> None:
    held = Held(tmp_path)
    held.client.progress(held.claim.receipt, step="almost", done_in=10 * MINUTE)
    held.after(41)
    held.client.progress(held.claim.receipt, step="still at it", done_in=60 * MINUTE)
    held.after(60)
    assert held.stops == []
    assert held.client.show("A-001")["state"] == "running"
    held.client.close()


def test_an_agent_over_its_time_is_ended(tmp_path: Path) -> None:
    held = Held(tmp_path, constraints={"max_duration": 20 * MINUTE})
    held.after(19)
    assert held.stops == []
    held.after(2)
    assert [stop.directive for stop in held.stops] == ["abort"]
    assert held.endings() == [(1, "SUPERSEDED")]
    held.client.close()


def test_an_aborted_agent_is_ended_with_all_it_has_started(stage: Stage) -> None:
    key = stage.add("Aborted")
    stage.do(brood=True)
    runner = stage.run("--once", "--grace", "0.3")
    stage.started(key)

    stage.client.abort(key, "it hangs")

    assert "1 stopped" in runner.ends()
    assert stage.nothing_left()
    assert stage.lineage(key) == [(1, "SUPERSEDED", None)]
    assert stage.state(key) == "ready"
