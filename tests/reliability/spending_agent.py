"""A scripted agent of the proof `spending`: speaks as Codex or as Claude Code does, and keeps a diary of what it used.

    python spending_agent.py codex|claude FOLDER [the words that the runner starts such an agent with]

What it uses and how it behaves is in its prompt, under `script`. It writes into FOLDER/diary before it says anything:
what was used is known there whatever becomes of the runner.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, NoReturn

CALLED = {"haiku": "claude-haiku-5-5", "sonnet": "claude-sonnet-5-5", "opus": "claude-opus-5-5"}
TOKENS = ("fresh", "cached", "written", "output")


class Agent:
    def __init__(self, form: str, folder: Path, words: list[str]) -> None:
        self.form, self.folder = form, folder
        self.prompt = sys.stdin.read()
        self.task, self.generation = os.environ["TENURE_TASK"], int(os.environ["TENURE_GENERATION"])
        self.script: dict[str, Any] = block_below(self.prompt, "Details:")["script"]
        model = word_after(words, "-m" if form == "codex" else "--model") or "none"
        self.model = CALLED.get(model, model)
        self.budget = word_after(words, "--max-budget-usd")
        self.used = dict.fromkeys(TOKENS, 0)

    def work(self) -> None:
        """All but the last word differs only where the script says that the first try goes wrong."""
        wrong = self.script.get("first") if self.generation == 1 else None
        self.begin()
        got = self.read_inputs()
        if self.script.get("puts"):
            self.put(self.script["puts"])
        tokens = {kind: self.script[kind] for kind in TOKENS}
        if wrong == "overruns":
            self.overrun(tokens)
        self.use(tokens, got=got)
        if wrong == "killed":
            self.say_usage(tokens)
            self.be_met("killed")
        if wrong == "fails":
            self.fail(tokens)
        said: Any = {"task": self.task, "sources": sorted(got), "lines": tokens["output"] // 10}
        if wrong == "invalid":
            said = {"task": self.task, "lines": "many"}
        if self.script.get("writes"):  # what `test-pass` looks at
            Path(f"{self.task}.checked").write_text("wrong\n" if wrong == "untested" else "right\n")
        text = json.dumps(said) if self.script["speaks"] == "json" else f"DONE {self.task}: read {len(got)} files."
        if wrong == "unmatched":
            text = "I think that I am done."
        self.finish(text, tokens)

    # --- what it does ---

    def read_inputs(self) -> dict[str, str]:
        """Artifacts that were handed over: what they are called, and the digest of the file."""
        if "## Results of earlier tasks" not in self.prompt:
            return {}
        section = self.prompt.partition("## Results of earlier tasks\n")[2].partition("\n## ")[0]
        return {
            f"{key}/{entry['name']}": hashlib.sha256(Path(entry["path"]).read_bytes()).hexdigest()
            for key, block in re.findall(r"^- from (\S+) .*?\n```json\n(.*?)\n```", section, re.DOTALL | re.MULTILINE)
            for entry in json.loads(block).get("artifacts", ())
        }

    def put(self, name: str) -> None:
        file = self.folder / "made" / f"{self.task}.{self.generation}.{name}"
        file.write_text(f"{self.task} by generation {self.generation}\n" * 100)
        subprocess.run(
            [sys.executable, "-P", "-m", "tenure", "artifact", "put", str(file), "--name", name], check=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
        )  # fmt: skip

    def overrun(self, tokens: dict[str, int]) -> None:
        """Comes near what the task may cost, is warned of, goes on all the same, and is stopped."""
        self.print({"type": "item.completed", "item": {"type": "agent_message", "text": "half of it is done"}})
        for part in ("near", "over"):
            self.use(self.script[part])
            self.say_usage(self.script[part])
            if part == "near":
                self.be_met("near")
        time.sleep(600)

    def be_met(self, what: str) -> None:
        """Tell the proof that it is here, and wait for what happens to it then."""
        file = self.folder / what / self.task
        file.with_suffix(".new").write_text(str(os.getpid()))
        file.with_suffix(".new").rename(file)
        while not file.with_suffix(".go").exists():
            time.sleep(0.02)

    def use(self, tokens: dict[str, int], **seen: Any) -> None:
        usd = self.script["usd"] if self.form == "claude" else None  # one tells dollars too, the other only tokens
        entry = {
            "task": self.task, "generation": self.generation, "agent": os.environ["TENURE_AGENT"], "form": self.form,
            "model": self.model, "tier": os.environ.get("TENURE_TIER"), "usd": usd, "budget": self.budget, **tokens,
            "saw": [line[3:] for line in self.prompt.splitlines() if line.startswith("## ")], **seen,
        }  # fmt: skip
        line = json.dumps(entry).encode() + b"\n"
        file = os.open(self.folder / "diary", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        os.write(file, line)
        os.close(file)

    # --- how it speaks ---

    def print(self, event: dict[str, Any]) -> None:
        print(json.dumps(event), flush=True)

    def begin(self) -> None:
        if self.form == "codex":
            self.print({"type": "thread.started", "thread_id": f"thread-{os.getpid()}"})
            self.print({"type": "turn.started"})
        else:
            self.print({"type": "system", "subtype": "init", "model": self.model, "session_id": f"s-{os.getpid()}"})

    def say_usage(self, tokens: dict[str, int]) -> None:
        """As Codex counts: input is all of it."""
        self.print({"type": "turn.completed", "usage": {
            "input_tokens": tokens["fresh"] + tokens["cached"] + tokens["written"],
            "cached_input_tokens": tokens["cached"], "cache_write_input_tokens": tokens["written"],
            "output_tokens": tokens["output"], "reasoning_output_tokens": 0,
        }})  # fmt: skip

    def finish(self, text: str, tokens: dict[str, int], *, is_error: bool = False) -> NoReturn:
        if self.form == "codex":
            self.print({"type": "item.completed", "item": {"type": "agent_message", "text": text}})
            self.say_usage(tokens)
        else:
            used = {
                "inputTokens": tokens["fresh"], "cacheReadInputTokens": tokens["cached"],
                "cacheCreationInputTokens": tokens["written"], "outputTokens": tokens["output"],
                "costUSD": float(self.script["usd"]),
            }  # fmt: skip
            self.print({
                "duration_api_ms": 10, "subtype": "success", "is_error": is_error, "result": text,
                "modelUsage": {self.model: used}, "type": "result", "terminal_reason": "completed",
            })  # fmt: skip
        sys.exit(int(is_error))

    def fail(self, tokens: dict[str, int]) -> NoReturn:
        if self.form == "claude":
            self.finish("I could not do it.", tokens, is_error=True)
        self.say_usage(tokens)
        self.print({"type": "turn.failed", "error": {"message": "the patch does not apply"}})
        sys.exit(1)


def block_below(prompt: str, heading: str) -> dict[str, Any]:
    """The first JSON block below a line of the prompt."""
    _, _, rest = prompt.partition(f"{heading}\n")
    _, _, block = rest.partition("```json\n")
    found: dict[str, Any] = json.loads(block.partition("\n```")[0])
    return found


def word_after(words: list[str], option: str) -> str | None:
    return words[words.index(option) + 1] if option in words else None


if __name__ == "__main__":
    Agent(sys.argv[1], Path(sys.argv[2]), sys.argv[3:]).work()
