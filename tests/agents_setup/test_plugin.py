"""OpenCode's plugin asks `tenure hook` at the right places, acts on its answers, and never stands in the way."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tenure.agents.recipes.recipe import text
from tenure.agents.transcript_usage import totals_between
from tests.agents import install

NODE, _ = install.node()

# Stands in for `tenure hook`: notes the payload, and answers as the table says.
HOOK = """
import json, sys
said = json.load(sys.stdin)
if path := said.get("transcript_path"):
    said["transcript"] = open(path).read()
open(sys.argv[1], "a").write(json.dumps(said) + "\\n")
answer = json.loads(sys.argv[2]).get(said["hook_event_name"])
sys.stdout.write(answer if isinstance(answer, str) else json.dumps(answer) if answer else "")
"""

# Plays OpenCode: loads the plugin and does what the real one was seen to do.
HOST = """
const { Tenure } = await import(process.argv[2])
const prompts = []
const client = { session: { promptAsync: async (asked) => { prompts.push(asked) } } }
const hooks = await Tenure({ client, directory: process.argv[3] })
const system = []
for (let n = 0; n < 2; n++) await hooks["experimental.chat.system.transform"]({ sessionID: "ses_1" }, { system })
let denied = null
try {
  const input = { tool: "write", sessionID: "ses_1", callID: "call_0" }
  await hooks["tool.execute.before"](input, { args: { filePath: "a" } })
} catch (error) { denied = error.message }
const used = { input: 100, output: 20, reasoning: 1, cache: { read: 40, write: 3 } }
const info = { id: "msg_1", sessionID: "ses_1", role: "assistant", modelID: "m1", time: { created: 5000 } }
for (const tokens of [{ input: 0, output: 0 }, used]) {
  const properties = { sessionID: "ses_1", info: { ...info, tokens, parts: "secret words" } }
  await hooks.event({ event: { type: "message.updated", properties } })
}
const other = { sessionID: "ses_1", info: { id: "msg_0", sessionID: "ses_1", role: "user", time: { created: 1 } } }
await hooks.event({ event: { type: "message.updated", properties: other } })
await hooks["tool.execute.before"]({ tool: "bash", sessionID: "ses_1", callID: "call_1" }, { args: {} })
const bash = { title: "", output: "hi", metadata: {} }
await hooks["tool.execute.after"]({ tool: "bash", sessionID: "ses_1", callID: "call_1" }, bash)
const mcp = { content: [], isError: false }
await hooks["tool.execute.after"]({ tool: "tenure_claim", sessionID: "ses_1", callID: "call_2" }, mcp)
await hooks.event({ event: { type: "session.idle", properties: { sessionID: "ses_1" } } })
await hooks.event({ event: { type: "session.compacted", properties: { sessionID: "ses_1" } } })
await hooks["experimental.chat.system.transform"]({ sessionID: "ses_1" }, { system })
await hooks.dispose()
console.log(JSON.stringify({ system, denied, bash, mcp, prompts }))
process.exit(0)  // node keeps the timer of a command that could not be started
"""


def play(folder: Path, command: list[str]) -> dict[str, Any]:
    plugin = folder / "plugin.mjs"
    plugin.write_text(text("plugin.ts").replace('["tenure", "hook", "--from", "opencode"]', json.dumps(command)))
    host = folder / "host.mjs"
    host.write_text(HOST)
    done = subprocess.run(
        [NODE, host, plugin, folder], capture_output=True, text=True, check=True, timeout=60, cwd=folder
    )
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def hook(folder: Path, answers: dict[str, Any]) -> list[str]:
    (folder / "hook.py").write_text(HOOK)
    return [sys.executable, str(folder / "hook.py"), str(folder / "asked"), json.dumps(answers)]


def context(event: str, text: str) -> dict[str, Any]:
    return {"hookSpecificOutput": {"hookEventName": event, "additionalContext": text}}


def test_the_plugin_acts_on_what_the_hook_answers(tmp_path: Path) -> None:
    refusal = {"hookEventName": "PreToolUse", "permissionDecision": "deny", "permissionDecisionReason": "it is bo's"}
    answers = {
        "SessionStart": context("SessionStart", "primed"), "PreToolUse": {"hookSpecificOutput": refusal},
        "PostToolUse": context("PostToolUse", "mail"), "Stop": {"decision": "block", "reason": "go on"},
    }  # fmt: skip
    found = play(tmp_path, hook(tmp_path, answers))

    assert found["system"] == ["primed", "primed", "primed"]
    assert found["denied"] == "it is bo's"
    assert found["bash"]["output"] == "hi\n\nmail"
    assert found["mcp"]["content"] == [{"type": "text", "text": "mail"}]
    assert found["prompts"] == [{"path": {"id": "ses_1"}, "body": {"parts": [{"type": "text", "text": "go on"}]}}]

    asked = [json.loads(line) for line in (tmp_path / "asked").read_text().splitlines()]
    assert [said["hook_event_name"] for said in asked] == [
        "SessionStart", "PreToolUse", "PostToolUse", "PostToolUse", "Stop", "SessionStart", "SessionEnd",
    ]  # fmt: skip  # primed once, and once more after the compaction; no question about a tool that edits nothing
    assert {said["cwd"] for said in asked} == {str(tmp_path)}
    assert asked[1]["tool_input"] == {"filePath": "a"}
    assert asked[1]["tool_use_id"] == "call_0"


def test_the_plugin_keeps_what_messages_used_in_a_file_for_the_hook_and_removes_it(tmp_path: Path) -> None:
    play(tmp_path, hook(tmp_path, {}))
    asked = [json.loads(line) for line in (tmp_path / "asked").read_text().splitlines()]
    assert ["transcript" in said for said in asked] == [False, False, True, True, True, True, True]
    assert {said["transcript"] for said in asked if "transcript" in said} == {asked[-1]["transcript"]}
    assert "secret words" not in asked[-1]["transcript"]
    kept = tmp_path / "kept.jsonl"
    kept.write_text(asked[-1]["transcript"])
    (total,) = totals_between(str(kept), 5)
    found = (total.model, total.fresh, total.cached, total.written, total.output)
    assert found == ("m1", 100, 40, 3, 21)
    assert totals_between(str(kept), 6) == ()
    assert not Path(asked[-1]["transcript_path"]).parent.exists()


@pytest.mark.parametrize(
    "answers", [{}, {"SessionStart": "no json", "PreToolUse": "[", "PostToolUse": "x", "Stop": "1"}]
)
def test_without_an_answer_the_agent_continues(tmp_path: Path, answers: dict[str, Any]) -> None:
    found = play(tmp_path, hook(tmp_path, answers))
    assert found == {
        "system": [], "denied": None, "bash": {"title": "", "output": "hi", "metadata": {}},
        "mcp": {"content": [], "isError": False}, "prompts": [],
    }  # fmt: skip


def test_without_tenure_the_agent_continues(tmp_path: Path) -> None:
    assert play(tmp_path, ["/nowhere/tenure", "hook"])["denied"] is None
