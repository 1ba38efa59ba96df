"""A scripted agent of the proof `run`: works for a while, then tells what it made, and from what."""

from __future__ import annotations

import json
import os
import random
import re
import subprocess
import sys
import time
import uuid
from pathlib import Path


def main(executions: Path, work: float) -> None:
    prompt = sys.stdin.read()
    with executions.open("a") as file:
        file.write(f"{os.environ['TENURE_TASK']} {os.environ['TENURE_GENERATION']}\n")
    subprocess.Popen(["sleep", "1000"], start_new_session=True)  # agents leave things behind
    time.sleep(random.uniform(0.5, 1.5) * work)
    print(json.dumps({"result": {
        "task": os.environ["TENURE_TASK"], "token": uuid.uuid4().hex,
        "inputs": {key: entry["data"]["token"] for key, entry in inputs_of(prompt).items()},
    }}))  # fmt: skip


def inputs_of(prompt: str) -> dict[str, dict[str, dict[str, str]]]:
    section = prompt.partition("## Results of earlier tasks\n")[2].partition("\n## ")[0]
    found = re.findall(r"^- from (\S+) .*?\n```json\n(.*?)\n```", section, re.DOTALL | re.MULTILINE)
    return {key: json.loads(block) for key, block in found}


if __name__ == "__main__":
    main(Path(sys.argv[1]), float(sys.argv[2]))
