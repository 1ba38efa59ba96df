"""A scripted agent: reports that it works, waits for its go, runs its script.

    python scripted.py FOLDER

FOLDER/started/KEY.GENERATION is made with its pid; it goes on when FOLDER/go/KEY or FOLDER/go/all is there. What it
does then is in FOLDER/do/KEY (else FOLDER/do/all): JSON with any of brood, stubborn, whole, tenure_first, shell,
tenure, finish (the arguments of that tool, called over MCP), writes, says, errors, exit.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path


def main(folder: Path) -> int:
    prompt = sys.stdin.read()
    key = os.environ["TENURE_TASK"]
    plan = next((json.loads(p.read_text()) for p in (folder / "do" / key, folder / "do" / "all") if p.exists()), {})
    if plan.get("stubborn"):
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if plan.get("whole"):  # finishes at SIGTERM
        signal.signal(signal.SIGTERM, lambda *_: finish({"result": "just finished", "summary": "in time"}))
    if plan.get("brood"):
        subprocess.Popen(["sleep", "1000"])
        subprocess.Popen(["sleep", "1000"], start_new_session=True)
    (folder / "prompts" / key).write_text(prompt)
    (folder / "environ" / key).write_text(json.dumps({**os.environ, "CWD": str(Path.cwd())}))
    for words in plan.get("tenure_first", ()):
        call(folder, key, words)
    started = folder / "started" / f"{key}.{os.environ['TENURE_GENERATION']}"
    started.with_suffix(".new").write_text(str(os.getpid()))
    started.with_suffix(".new").rename(started)
    while not any((folder / "go" / name).exists() for name in (key, "all")):
        time.sleep(0.01)
    for command in plan.get("shell", ()):
        subprocess.run(command, shell=True, check=False, stdin=subprocess.DEVNULL)
    for words in plan.get("tenure", ()):
        call(folder, key, words)
    if "finish" in plan:
        finish_by_tool(folder, key, plan["finish"])
    for name, text in plan.get("writes", {}).items():
        Path(name).write_text(text.replace("KEY", key))
    for line in plan.get("says", ()):
        print(line, flush=True)
    sys.stderr.write(plan.get("errors", ""))
    if "says" not in plan and not plan.get("exit"):
        finish({"result": {"made": key}, "summary": f"{key} is done"})
    return int(plan.get("exit", 0))


def call(folder: Path, key: str, words: list[str]) -> None:
    done = subprocess.run(
        [sys.executable, "-P", "-m", "tenure", *words],
        capture_output=True,
        text=True,
        check=False,
        stdin=subprocess.DEVNULL,
    )
    with (folder / "calls" / key).open("a") as file:
        file.write(f"{done.returncode} {done.stdout}{done.stderr}\n")


def finish_by_tool(folder: Path, key: str, arguments: dict[str, object]) -> None:
    """As an agent without a shell: its receipt is in the reply of `show`."""
    words = [sys.executable, "-P", "-m", "tenure", "mcp"]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdin is not None
        assert server.stdout is not None

        def ask(number: int, method: str, **params: object) -> str:
            assert server.stdin is not None
            assert server.stdout is not None
            server.stdin.write(json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params}) + "\n")
            server.stdin.flush()
            for line in server.stdout:
                if json.loads(line).get("id") == number:
                    return line
            raise AssertionError("the server has ended")

        client = {"name": "scripted", "version": "1"}
        ask(1, "initialize", protocolVersion="2025-06-18", capabilities={}, clientInfo=client)
        server.stdin.write('{"jsonrpc": "2.0", "method": "notifications/initialized"}\n')
        held = ask(2, "tools/call", name="show", arguments={"what": "held"})
        receipt = re.search(r"[A-Z]+-\d+@\d+:\w+", held)
        assert receipt is not None, held
        said = ask(3, "tools/call", name="finish", arguments={"receipt": receipt[0], **arguments})
        server.stdin.close()
    with (folder / "calls" / key).open("a") as file:
        file.write(f"finish {said}\n")


def finish(result: dict[str, object]) -> None:
    print(json.dumps(result), flush=True)
    os._exit(0)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
