"""Another machine for the command spawner: a daemon that runs agents for its clients, as Docker's does.

`machine.py daemon SOCKET` serves; `machine.py start SOCKET WORDS…`, `status SOCKET HANDLE` and `end SOCKET HANDLE
GRACEFUL` are what a template of the configuration runs. `start-late SOCKET SECONDS WORDS…` starts them after a while.
"""

from __future__ import annotations

import json
import os
import socket
import sys
import threading
from typing import Any

from tenure.processes import detached


def answer_of(asked: dict[str, Any]) -> dict[str, Any]:
    if asked["verb"] == "start-late":
        late = {**asked, "verb": "start", "words": asked["words"][1:]}
        threading.Timer(float(asked["words"][0]), answer_of, [late]).start()
        return {"exit": 0, "text": "late"}
    if asked["verb"] == "start":
        try:
            started = detached.start(
                asked["words"], cwd="/", env=asked["env"], grace=1.0, seconds=10.0, record=lambda _: None
            )
        except detached.NotStarted as error:
            return {"exit": 125, "text": str(error)}
        return {"exit": 0, "text": str(started.pid)}
    process = detached.found(int(asked["words"][0])) if asked["words"][0].isdecimal() else None
    if asked["verb"] == "status":
        return {"exit": 0 if process is not None else 1, "text": ""}
    if process is not None:
        detached.end(process, graceful=asked["words"][1] == "true")
    return {"exit": 0, "text": ""}


def serve(path: str) -> None:
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(path)
        listening.listen()
        while True:
            connection, _ = listening.accept()
            with connection, connection.makefile("rwb") as stream:
                line = stream.readline()
                if line:
                    stream.write(json.dumps(answer_of(json.loads(line))).encode() + b"\n")


def ask(verb: str, path: str, words: list[str]) -> int:
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(path)
        with connection.makefile("rwb") as stream:
            stream.write(json.dumps({"verb": verb, "words": words, "env": dict(os.environ)}).encode() + b"\n")
            stream.flush()
            answer = json.loads(stream.readline())
    print(answer["text"])
    return int(answer["exit"])


if __name__ == "__main__":
    if sys.argv[1] == "daemon":
        serve(sys.argv[2])
    sys.exit(ask(sys.argv[1], sys.argv[2], sys.argv[3:]))
