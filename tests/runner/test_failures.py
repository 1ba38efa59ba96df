"""How an agent fails decides what becomes of its task."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from tests.runner.conftest import Stage, until


def test_a_failed_task_quotes_the_end_of_stderr(stage: Stage) -> None:
    key = stage.add("Fails", max_attempts=1)
    stage.do(says=["trying"], errors="lots of noise\nthe disk is on fire\n", exit=3)
    stage.go()

    log = stage.run("--once").ends(8)

    assert stage.state(key) == "dead_lettered"
    (claim,) = stage.client.history(key)
    assert claim["error_class"] == "task"
    assert "exit code 3" in claim["error"]
    assert "the disk is on fire" in claim["error"]
    assert "1 failed" in log


def test_a_failure_with_bytes_that_no_store_takes_is_reported(stage: Stage) -> None:
    key = stage.add("Fails", max_attempts=1)
    stage.do(says=[json.dumps({"fail": {"class": "task", "message": "bad \0 byte"}})], exit=3)
    stage.go()

    log = stage.run("--once").ends(8)

    assert stage.state(key) == "dead_lettered"
    assert "bad \\x00 byte" in stage.client.history(key)[0]["error"]
    assert "1 failed" in log


def test_a_run_until_empty_says_by_its_exit_code_what_is_left(stage: Stage) -> None:
    key = stage.add("Waits")
    stage.client.ask(stage.client.claim(key).receipt, "Which port?")
    assert "only tasks that wait for a person are left; see `tenure todo`" in stage.run("--until-empty").ends(3)
    stage.client.answer(key, "80")
    stage.do(says=["done"])
    stage.go()
    stage.run("--until-empty").ends()


def test_a_temporary_failure_costs_no_attempt(stage: Stage) -> None:
    key = stage.add("Later", max_attempts=1)
    stage.do(says=[], exit=75)
    stage.go()

    stage.run("--once").ends()

    assert stage.state(key) == "ready"
    assert stage.client.show(key)["attempts"] == 0
    assert stage.client.history(key)[0]["error_class"] == "environment"


def test_a_rate_limit_holds_the_whole_runner_back(stage: Stage) -> None:
    first, second = stage.add("Limited", priority=1), stage.add("Other")
    limited = {"fail": {"class": "rate_limit", "message": "slow down", "retry_after": 1.5, "model": "m1"}}
    stage.do(first, says=[json.dumps(limited)], exit=1)
    stage.go()

    runner = stage.run()
    runner.says("slow down")
    (stage.control / "do" / first).unlink()

    assert stage.is_completed(first)
    assert stage.is_completed(second)
    claims = stage.client.history(first)
    assert [c["error_class"] for c in claims] == ["rate_limit", None]
    assert claims[1]["attempt"] == 1  # the first was given back
    began = stage.client.history(second)[0]["acquired_at"]
    assert began - claims[0]["released_at"] >= 1_400_000


def test_an_agent_that_cannot_sign_in_ends_the_run_and_burns_no_tasks(stage: Stage) -> None:
    keys = [stage.add(f"Task {n}") for n in range(5)]
    stage.do(says=[json.dumps({"fail": {"class": "auth_failure", "message": "who are you?"}})], exit=1)
    stage.go()

    log = stage.run("--until-empty").ends(12)

    assert "who are you?" in log
    assert [len(stage.client.history(key)) for key in keys] == [1, 0, 0, 0, 0]
    assert {stage.state(key) for key in keys} == {"ready"}


def test_trouble_of_the_machine_is_tried_out_by_one_agent_alone(stage: Stage) -> None:
    for n in range(12):
        stage.add(f"Task {n}")
    stage.do(says=[], errors="no space left on device\n", exit=75)
    stage.go()

    runner = stage.run("-n", "3")
    # the agent that met it first cools off after three in a row; the others do not even begin again
    until(lambda: any(a["cool_until"] for a in stage.client.agents()), "an agent to cool off")

    failed = stage.client.log(kind="task.failed", limit=100)
    by_agent = [sum(e["agent"] == f"{name}" for e in failed) for name in sorted({e["agent"] for e in failed})]
    assert sum(count > 1 for count in by_agent) == 1
    assert all(s["attempts"] == 0 for s in stage.client.tasks())
    runner.kill()


def test_a_run_that_is_to_end_ends_where_the_machine_is_in_trouble(stage: Stage) -> None:
    keys = [stage.add(f"Task {n}") for n in range(5)]
    stage.do(says=[], errors="no space left on device\n", exit=75)
    stage.go()

    log = stage.run("--until-empty").ends(11)

    assert "cannot run here" in log
    assert "no space left on device" in log
    assert [len(stage.client.history(key)) for key in keys] == [1, 1, 1, 0, 0]


def test_an_agent_that_takes_too_long_is_ended(stage: Stage) -> None:
    key = stage.add("Slow", max_attempts=1)
    stage.do(stubborn=True, brood=True)

    stage.run("--once", "--timeout", "0.5", "--grace", "0.2").ends(8)

    assert stage.client.history(key)[0]["error_class"] == "timeout"
    assert stage.nothing_left()


def test_the_time_that_the_task_gives_counts_too(stage: Stage) -> None:
    key = stage.add("Short", max_attempts=1, constraints={"max_duration": 1})

    stage.run("--once", "--grace", "0.2").ends(8)

    assert stage.client.history(key)[0]["error_class"] == "timeout"


def test_a_large_result_becomes_an_artifact(stage: Stage) -> None:
    key = stage.add("Large")
    code = "import json; print(json.dumps({'result': 'x' * (2 << 20)}))"

    stage.run("--once", agent=f'{sys.executable} -c "{code}"').ends()

    assert stage.client.show(key)["result"]["data"]["$artifact"] == "result.json"
    assert stage.client.get_artifact(key, "result.json").read() == b'"' + b"x" * (2 << 20) + b'"'


def test_a_result_that_is_too_large_fails_and_is_put_aside(stage: Stage) -> None:
    stage.client.init(limits={"max_result_size": 1 << 20})
    key = stage.add("Large", max_attempts=1)
    code = "import json; print(json.dumps({'result': 'x' * (2 << 20)}))"

    stage.run("--once", agent=f'{sys.executable} -c "{code}"').ends(8)

    assert stage.client.history(key)[0]["error_class"] == "invalid_output"
    assert [name.rpartition(".")[2] for name in stage.outbox()] == ["refused"]


def test_endless_output_fills_neither_memory_nor_disk(stage: Stage) -> None:
    key = stage.add("Chatty")
    code = "import sys; sys.stdout.write('x' * (40 << 20)); print(); print('the end')"

    stage.run("--once", agent=f'{sys.executable} -c "{code}"').ends()

    assert stage.client.show(key)["result"]["data"]["output"].endswith("the end")
    assert (stage.home / "transcripts" / "default" / key / "gen-1.jsonl").stat().st_size < 20 << 20


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("--agent", "no-such-program --x"), 11, "no-such-program is not installed"),
        (("--agent", "'unbalanced"), 8, "mind the quotes"),
        ((), 2, "which agent?"),
        (("--agent", "true", "-n", "0"), 2, "from 1 to"),
        (("--agent", "true", "--once", "--until-empty"), 2, "exclude each other"),
        (("--agent", "true", "--max-tasks", "0"), 2, "at least 1"),
        (("--agent", "true", "--timeout", "soon"), 2, "not a duration"),
        (("--agent", "true", "--lease", "0.01"), 8, "min_lease"),
        (("--agent", "true", "--onto", "main"), 2, "--worktree or --land"),
        (("--agent", "true", "--name", "a b"), 8, "ASCII letters"),
    ],
)
def test_a_run_that_cannot_begin_claims_nothing(stage: Stage, words: tuple[str, ...], code: int, said: str) -> None:
    key = stage.add("Untouched")
    command = [sys.executable, "-P", "-m", "tenure", "run", *words]
    done = subprocess.run(command, cwd=stage.folder, env=stage.environ, capture_output=True, text=True, check=False)
    assert done.returncode == code, done.stderr
    assert said in done.stderr
    assert "Traceback" not in done.stderr
    assert stage.client.history(key) == []


def test_an_agent_that_a_file_names_is_started_only_where_the_file_is_trusted(stage: Stage) -> None:
    key = stage.add("Careful")
    (stage.folder / "tenure.toml").write_text('[run]\nagent = "touch owned"\n')
    command = [sys.executable, "-P", "-m", "tenure", "run", "--once"]
    done = subprocess.run(command, cwd=stage.folder, env=stage.environ, capture_output=True, text=True, check=False)
    assert done.returncode == 11
    assert 'run.agent = "touch owned"' in done.stderr
    assert "`tenure trust`" in done.stderr
    local = stage.home / "config.toml"
    local.write_text('[run]\nagent = "echo local"\n')
    done = subprocess.run(command, cwd=stage.folder, env=stage.environ, capture_output=True, text=True, check=False)
    assert (done.returncode, "mode 0644" in done.stderr) == (11, True)
    local.chmod(0o600)
    done = subprocess.run(command, cwd=stage.folder, env=stage.environ, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert stage.client.show(key)["result"]["data"]["output"] == "local"


def test_a_program_that_cannot_be_started_is_the_machines_fault(stage: Stage) -> None:
    key = stage.add("Broken")
    broken = stage.folder / "broken"
    broken.write_text("#!/no/such/interpreter\n")
    broken.chmod(0o755)

    stage.run("--once", agent=str(broken)).ends()

    assert stage.client.history(key)[0]["error_class"] == "environment"
    assert stage.state(key) == "ready"
