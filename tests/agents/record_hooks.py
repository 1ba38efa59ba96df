"""Records what the agent CLIs send to their hooks: `python -m tests.agents.record_hooks [agent …]`.

Each line of `samples/<agent>/hooks.jsonl` is one call of a hook: the payload on its stdin, and those variables of its
environment that are the agent's. Copilot CLI reads two files of hooks, which get different payloads.
`transcript.jsonl` is what the agent itself writes about its session.
"""

import json
import re
import sys
import tempfile
from pathlib import Path
from typing import Any

from tests.agents.clis import CLIS, Cli
from tests.agents.install import installed
from tests.agents.record import SAMPLES, WORK, scrubbed
from tests.agents.stage import Stage, staged

CLAUDE = ("SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse", "Stop", "SessionEnd")
GEMINI = ("SessionStart", "BeforeAgent", "BeforeTool", "AfterTool", "AfterAgent", "SessionEnd")
COPILOT = ("sessionStart", "userPromptSubmitted", "preToolUse", "postToolUse", "agentStop", "sessionEnd")

THEIRS = re.compile(r"AI_AGENT$|(CLAUDE|CODEX|GEMINI|COPILOT|OPENCODE)")
# What the stage put there, what is secret for the time of the run, and what says where things are installed.
NOT_THEIRS = re.compile(
    r"TOKEN|KEY|SOCKET|DISABLE|RETRIES|CONTENT|DIST_DIR|PACKAGE_ROOT|AUTO_UPDATE|_MODEL|OFFLINE|BASE_URL"
)

RECORDER = """\
import json, os, sys
call = {{"from": sys.argv[1], "payload": json.load(sys.stdin), "environment": dict(os.environ)}}
with open({log!r}, "a") as file:
    file.write(json.dumps(call) + "\\n")
"""

PLUGIN = """\
import { appendFileSync } from "node:fs"
const send = (hook, payload) =>
  appendFileSync(LOG, JSON.stringify({ from: hook, payload, environment: {} }) + "\\n")
export const Recorder = async () => ({
  event: async ({ event }) => { if (/^(session|message)[.](?!part)/.test(event.type)) send("event", event) },
  "chat.message": async (input) => send("chat.message", { input }),
  "tool.execute.before": async (input, output) => send("tool.execute.before", { input, output }),
  "tool.execute.after": async (input, output) => send("tool.execute.after", { input, output }),
  "shell.env": async (input) => send("shell.env", { input }),
})
"""


def hook_up(stage: Stage, log: Path) -> list[str]:
    """Write the agent's hooks; gives the words that it needs beside its usual ones."""
    recorder = stage.home / "recorder.py"
    recorder.write_text(RECORDER.format(log=str(log)))

    def claude_like(path: str, events: tuple[str, ...]) -> None:
        command = {"type": "command", "command": f"{sys.executable} {recorder} {path}"}
        write(path, {"hooks": {event: [{"matcher": "*", "hooks": [command]}] for event in events}})

    def write(path: str, content: object) -> None:
        file = stage.folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content if isinstance(content, str) else json.dumps(content))

    match stage.cli.name:
        case "claude":
            claude_like(".claude/settings.json", CLAUDE)
        case "codex":
            claude_like(".codex/hooks.json", CLAUDE)
            return ["--dangerously-bypass-hook-trust"]
        case "gemini":
            claude_like(".gemini/settings.json", GEMINI)
        case "copilot":
            claude_like(".claude/settings.json", CLAUDE)
            command = {"type": "command", "bash": f"{sys.executable} {recorder} .github/hooks", "timeoutSec": 10}
            write(".github/hooks/recorder.json", {"version": 1, "hooks": {event: [command] for event in COPILOT}})
        case "opencode":
            write(".opencode/plugin/recorder.ts", PLUGIN.replace("LOG", json.dumps(str(log))))
    return []


def record(cli: Cli) -> str:
    with tempfile.TemporaryDirectory() as place, staged(cli, [installed(cli.name)], Path(place), WORK) as stage:
        stage.trust()
        log = stage.home / "hooks.jsonl"
        ran = stage.start("Do what is to be done.", *hook_up(stage, log))
        calls = [json.loads(line) for line in log.read_text().splitlines()]
        for call in calls:
            theirs = {name: value for name, value in call["environment"].items() if THEIRS.match(name)}
            call["environment"] = {name: value for name, value in theirs.items() if not NOT_THEIRS.search(name)}
        text = "".join(json.dumps(call) + "\n" for call in calls)
        (SAMPLES / cli.name).mkdir(parents=True, exist_ok=True)
        (SAMPLES / cli.name / "hooks.jsonl").write_text(scrubbed(text, stage))
        keep_transcript(stage, calls)
        return f"{cli.name}: exit {ran.code}, {len(calls)} calls"


def keep_transcript(stage: Stage, calls: list[dict[str, Any]]) -> None:
    """The transcript that the hooks name, without the agent's own prompt."""
    paths = {call["payload"].get(name) for call in calls for name in ("transcript_path", "transcriptPath")}
    for path in filter(None, paths):
        if Path(path).is_file():
            lines = Path(path).read_text().splitlines(keepends=True)
            kept = "".join(line for line in lines if '"system.message"' not in line)
            (SAMPLES / stage.cli.name / "transcript.jsonl").write_text(scrubbed(kept, stage))


def main() -> None:
    for agent in sys.argv[1:] or CLIS:
        print(record(CLIS[agent]), flush=True)


if __name__ == "__main__":
    main()
