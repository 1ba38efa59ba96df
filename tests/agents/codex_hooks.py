"""Codex's trust in hooks, as its /hooks page gives it: the hash of each hook, in the user's own settings."""

import json
import subprocess
from typing import Any

from tests.agents.stage import Stage


def trust_hooks(stage: Stage) -> int:
    """Trust every hook of the stage's repository; gives how many there are."""
    hooks = _listed(stage)
    with (stage.home / ".codex" / "config.toml").open("a") as file:
        for hook in hooks:
            file.write(f'\n[hooks.state.{json.dumps(hook["key"])}]\ntrusted_hash = "{hook["currentHash"]}"\n')
    return len(hooks)


def _listed(stage: Stage) -> list[dict[str, Any]]:
    child = subprocess.Popen(
        ["codex", "app-server"],
        cwd=stage.folder,
        env=stage.environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert child.stdin
    assert child.stdout
    asked = (
        {"id": 1, "method": "initialize", "params": {"clientInfo": {"name": "t", "title": "t", "version": "1"}}},
        {"method": "initialized"},
        {"id": 2, "method": "hooks/list", "params": {"cwds": [str(stage.folder)]}},
    )
    try:
        child.stdin.writelines(json.dumps(question) + "\n" for question in asked)
        child.stdin.flush()
        answers = (json.loads(line) for line in child.stdout)
        listed = next(answer for answer in answers if answer.get("id") == 2)
    finally:
        child.terminate()
        child.communicate()
    return list(listed["result"]["data"][0]["hooks"])
