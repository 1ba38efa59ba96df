"""`tenure run` from claim to result, with real processes."""

from __future__ import annotations

import json
import subprocess
import sys

from tenure.client import Client
from tenure.core.commands import Register
from tests.runner.conftest import Stage


def test_a_plan_is_worked_off_and_each_result_is_handed_on(stage: Stage) -> None:
    first = stage.add("First", description="Do it well.")
    second = stage.add("Second", after=[first])
    stage.go()

    log = stage.run("--until-empty", "-n", "2").ends()

    assert stage.state(first) == stage.state(second) == "completed"
    shown = stage.client.show(first)
    assert shown["result"]["data"] == {"made": first}
    assert shown["result"]["summary"] == f"{first} is done"
    assert "Do it well." in (stage.control / "prompts" / first).read_text()
    assert json.dumps(f"{first} is done") in (stage.control / "prompts" / second).read_text()
    assert "2 completed" in log
    assert stage.lineage(second) == [(1, "COMPLETED", True)]
    assert stage.outbox() == []
    assert stage.nothing_left()


def test_the_transcript_is_kept_with_the_generation(stage: Stage) -> None:
    key = stage.add("Talk")
    stage.do(says=["one", "two"], errors="oops\n")
    stage.go()

    stage.run("--once").ends()

    file = stage.home / "transcripts" / "default" / key / "gen-1.jsonl"
    assert file.stat().st_mode & 0o777 == 0o600
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    assert [line["text"] for line in lines if line["from"] == "agent"] == ["one", "two"]
    assert [line["text"] for line in lines if line["from"] == "errors"] == ["oops"]
    shown = stage.client.show(key)
    assert shown["result"]["data"] == {
        "output": "one\ntwo",
        "transcript": f".tenure/transcripts/default/{key}/gen-1.jsonl",
    }
    assert (file.parent / "gen-1.prompt.md").read_text().startswith("# Talk")


def test_an_agent_knows_its_task_and_may_speak_of_it(stage: Stage) -> None:
    key = stage.add("Speak")
    stage.do(tenure=[["progress", "half of it", "--percent", "50"], ["whoami"], ["cancel", key]])
    stage.go()

    stage.run("--once", CLAUDECODE="1", CLAUDE_CODE_SESSION_ID="another", TENURE_MASTER_KEY="ab" * 32).ends()

    progress, whoami, cancel = (stage.control / "calls" / key).read_text().split("\n\n")[:3]
    assert progress.startswith("0 ")
    assert key in whoami
    assert "role     agent" in whoami
    assert cancel.startswith("7 ")  # an agent may not operate on work, even where a person has started the runner
    environ = json.loads((stage.control / "environ" / key).read_text())
    assert "CLAUDECODE" not in environ
    assert "TENURE_MASTER_KEY" not in environ
    assert environ["TENURE_TASK"] == key
    assert stage.state(key) == "completed"


def test_mail_is_in_the_prompt_once(stage: Stage) -> None:
    first, second = stage.add("First"), stage.add("Second")
    stage.go()
    stage.client.do(Register(project="default", agent="worker-1"))
    stage.client.send("mind the gap", to="worker-1")

    stage.run("--until-empty", "--name", "worker").ends()

    prompts = [(stage.control / "prompts" / key).read_text() for key in (first, second)]
    assert sum("mind the gap" in prompt for prompt in prompts) == 1


def test_a_result_that_the_agent_handed_in_itself_is_not_handed_in_twice(stage: Stage) -> None:
    key = stage.add("Itself")
    stage.do(tenure=[["done", "-s", "did it myself"]], says=["and now I chat"])
    stage.go()

    log = stage.run("--once").ends()

    assert stage.lineage(key) == [(1, "COMPLETED", True)]
    assert [r["summary"] for r in stage.client.results(key)] == ["did it myself"]
    assert "submitted with its receipt while the agent ran" in log
    assert "1 completed" in log


def test_a_question_of_the_agent_is_not_a_result(stage: Stage) -> None:
    key = stage.add("Ask")
    stage.do(tenure=[["ask", "red or blue?"]], says=["I have asked."])
    stage.go()

    stage.run("--once").ends()

    assert stage.state(key) == "paused"
    assert stage.client.results(key) == []
    assert stage.lineage(key) == [(1, "PAUSED", None)]


def test_a_task_that_the_agent_gave_back_is_not_taken_again(stage: Stage) -> None:
    key = stage.add("Back")
    stage.do(tenure=[["release", "-m", "not mine"]], says=["I gave it back."])
    stage.go()

    stage.run("--once").ends()

    assert stage.state(key) == "ready"
    assert stage.lineage(key) == [(1, "VOLUNTARY", None)]


def test_usage_is_booked_with_the_result(stage: Stage) -> None:
    key = stage.add("Costly")
    usage = {"model": "m1", "fresh": 100, "cached": 40, "output": 20, "cost_usd": "0.25"}
    stage.do(says=[json.dumps({"usage": usage | {"fresh": 50}}), json.dumps({"result": 1, "usage": usage})])
    stage.go()

    log = stage.run("--once", "--json").ends()

    spent = stage.client.show(key)["usage"]
    assert (spent["fresh"], spent["cached"], spent["output"], spent["cost_usd"]) == (100, 40, 20, "0.25")
    assert json.loads(log.splitlines()[-1])["ended"][0]["usage"][0]["fresh"] == 100


def test_a_command_may_say_what_its_usage_was_for(stage: Stage) -> None:
    stage.add("Costly")
    total, part = {"model": "m1", "fresh": 100}, {"model": "m1", "fresh": 30, "operation": "review"}
    stage.do(says=[json.dumps({"usage": [total, part]}), json.dumps({"result": 1})])
    stage.go()

    stage.run("--once").ends()

    assert {row["operation"]: row["fresh"] for row in stage.client.spent("operation")} == {"": 70, "review": 30}


def test_json_is_one_value_on_stdout(stage: Stage) -> None:
    key = stage.add("Quiet")
    words = [sys.executable, "-P", "-m", "tenure", "run", "--agent", "echo hello", "--once", "--json"]
    done = subprocess.run(words, cwd=stage.folder, env=stage.environ, capture_output=True, text=True, check=False)
    value = json.loads(done.stdout)
    assert done.returncode == 0
    assert value["counts"] == {"completed": 1}
    assert (value["ended"][0]["key"], value["ended"][0]["generation"]) == (key, 1)
    assert key in done.stderr


def test_until_empty_waits_for_tasks_that_only_other_runners_may_take(stage: Stage) -> None:
    first = stage.add("For another type", constraints={"agent_type": "codex"})
    second = stage.add("After it", after=[first])
    # Without anybody else who could take the first task, the second cannot become ready.
    log = stage.run("--until-empty", "--name", "alone").ends()
    assert "no task was ready" in log

    stage.client.do(Register(project="default", agent="codex-1", type="codex", managed=True))
    runner = stage.run("--until-empty", "--name", "ann")
    runner.says("ann-1 waits for a task: 1 task waits")
    codex = Client(str(stage.home / "tenure.db"), "default", agent="codex-1", session="s-codex")
    granted = codex.claim(first)
    codex.submit(str(granted.receipt), 1, "done")
    codex.leave()
    codex.close()
    stage.started(second)
    stage.go()
    assert "1 completed" in runner.ends()


def test_a_runner_signs_its_results_with_the_users_key(stage: Stage) -> None:
    keys = [stage.add("One"), stage.add("Two")]
    stage.go()

    stage.run("--until-empty", "--sign").ends()

    found = [entry["signatures"] for key in keys for entry in stage.client.history(key)]
    assert [len(one) for one in found] == [1, 1]
    assert len({one[0]["public_key"] for one in found}) == 1
    assert stage.outbox() == []
