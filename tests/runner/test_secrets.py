"""`tenure run` and the secrets of a task: in the agent's environment, and in nothing that is kept."""

from __future__ import annotations

import json
import os
from base64 import b64encode

from tenure.core.task_secrets import SHOWN, spellings
from tests.runner.conftest import Stage

PLAIN = "correct horse battery"


def test_an_agent_gets_them_as_variables_and_what_it_prints_is_kept_without_them(stage: Stage) -> None:
    key = stage.add("Deploy", spec={"context": {"DB_PASSWORD": {"$secret": PLAIN}, "host": "db"}})
    encoded = b64encode(f"user:{PLAIN}".encode()).decode()
    calls = [["progress", f"uses {PLAIN}"], ["note", key, PLAIN]]
    stage.do(tenure=calls, says=[f"it is {PLAIN}", encoded], errors=f"{PLAIN}\n")
    stage.go()

    log = stage.run("--once", TENURE_STATE=os.environ["TENURE_STATE"]).ends()

    environ = json.loads((stage.control / "environ" / key).read_text())
    assert environ["TENURE_SECRET_DB_PASSWORD"] == PLAIN
    prompt = (stage.control / "prompts" / key).read_text()
    assert "`TENURE_SECRET_DB_PASSWORD`" in prompt
    result = stage.client.show(key)["result"]["data"]["output"]
    assert f"it is {SHOWN}" in result
    kept = [log, prompt, *(file.read_text() for file in stage.home.glob("transcripts/**/*") if file.is_file())]
    kept += [json.dumps(stage.client.log(limit=1000), default=str), json.dumps(stage.client.show(key), default=str)]
    for secret in spellings(PLAIN):
        assert not any(secret in text for text in kept)
        assert secret.encode() not in (stage.home / "tenure.db").read_bytes()
    assert sum(SHOWN in text for text in kept) >= 3


def test_the_next_attempt_of_the_runner_is_searched_for_the_secrets_of_the_one_before(stage: Stage) -> None:
    first = stage.add("Deploy", spec={"context": {"DB_PASSWORD": {"$secret": PLAIN}}})
    key = stage.add("Tell", after=[first])
    stage.do(says=[f"it was {PLAIN}"])
    stage.go()

    log = stage.run("--max-tasks", "2", TENURE_STATE=os.environ["TENURE_STATE"]).ends()

    kept = [log, *(file.read_text() for file in stage.home.glob("transcripts/**/*") if file.is_file())]
    kept.append(json.dumps(stage.client.show(key), default=str, ensure_ascii=False))
    assert f"it was {SHOWN}" in kept[-1]
    assert not any(PLAIN in text for text in kept)
    assert PLAIN.encode() not in (stage.home / "tenure.db").read_bytes()


def test_a_task_without_secrets_has_no_such_variable(stage: Stage) -> None:
    key = stage.add("Plain")
    stage.go()

    stage.run("--once").ends()

    environ = json.loads((stage.control / "environ" / key).read_text())
    assert not any(name.startswith("TENURE_SECRET_") for name in environ)
    assert "Secrets of this task" not in (stage.control / "prompts" / key).read_text()
