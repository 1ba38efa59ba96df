"""How far one claim walks: files and functions of tenure, on the command line and over HTTP with its server.

Counts functions that are called, not what importing a module runs. The command line is a whole process with its start;
over HTTP it is the second claim of a client, and what its server calls for it.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

from bench.report import Figure, show

Walked = dict[str, set[str]]  # functions by file
FEED = "tenure-feed"  # the thread that reads new events for all streams, after the claim


class Walk:
    """A profiler that notes which functions of tenure are called while `is_on`."""

    def __init__(self, *, is_on: bool) -> None:
        import tenure

        self.is_on = is_on
        self.walked: Walked = {}
        self._root = str(Path(tenure.__file__).parent) + os.sep
        self._local = threading.local()  # each thread's depth of imports

    def __call__(self, frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        if code.co_name == "<module>":
            step = {"call": 1, "return": -1}.get(event, 0)
            self._local.imports = getattr(self._local, "imports", 0) + step
        elif event == "call" and self.is_on and not getattr(self._local, "imports", 0):
            self._note(code)

    def _note(self, code: CodeType) -> None:
        is_function = code.co_flags & 1 and not code.co_name.startswith("<")  # no class body, no comprehension
        is_ours = is_function and code.co_filename.startswith(self._root)
        if is_ours and threading.current_thread().name != FEED:
            self.walked.setdefault(code.co_filename.removeprefix(self._root), set()).add(code.co_qualname)


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="./x bench walk", description=__doc__)
    parser.add_argument("--list", action="store_true", help="print the files with their numbers of functions")
    parser.add_argument("--json", action="store_true", help="one object a line")
    options = parser.parse_args(argv)
    figures = []
    with tempfile.TemporaryDirectory() as folder:
        for name, measure in (("command line", _command_line), ("HTTP, client and server", _http)):
            place = Path(folder) / name.partition(",")[0].replace(" ", "-")
            place.mkdir()
            walked = measure(place)
            figures.append(Figure(f"claim, {name}: files", len(walked), "", goal="≤ 35"))
            figures.append(Figure(f"claim, {name}: functions", sum(map(len, walked.values())), ""))
            if options.list:
                print(*(f"{len(walked[file]):>4}  {file}" for file in sorted(walked)), "", sep="\n")
    show(figures, as_json=options.json)
    return 0


# --- the command line ---------------------------------------------------------------------------------------


def _command_line(place: Path) -> Walked:
    for verb in ("init", "add One"):
        subprocess.run([sys.executable, "-m", "tenure", *verb.split()], cwd=place, check=True, capture_output=True)
    run = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path[:] = {sys.path!r}; from bench.walk import claim; claim()"],
        cwd=place, check=True, capture_output=True, text=True,
    )  # fmt: skip
    return {file: set(names) for file, names in json.loads(run.stderr.splitlines()[-1]).items()}


def claim() -> None:
    """`tenure claim` in this process; prints what it walked as JSON to stderr."""
    import tenure.__main__

    walk = Walk(is_on=True)
    leave: Callable[[int], Any] = os._exit

    def leave_with_walk(code: int) -> None:
        sys.setprofile(None)
        print(json.dumps({file: sorted(names) for file, names in walk.walked.items()}), file=sys.stderr, flush=True)
        leave(code)

    os._exit = leave_with_walk  # type: ignore[assignment]  # how the command line ends
    sys.argv = ["tenure", "claim", "--json"]
    sys.setprofile(walk)
    tenure.__main__.main()


# --- HTTP ---------------------------------------------------------------------------------------------------


def _http(place: Path) -> Walked:
    """Client and server in one process, so that one profiler sees both."""
    import tenure

    url = str(place / "tenure.db")
    with tenure.Client(url, "walk", create=True) as local:
        local.init()
        local.add("One")
        local.add("Two")
        walk = Walk(is_on=False)
        threading.setprofile(walk)
        sys.setprofile(walk)
        try:
            with _serving(local.engine) as address, tenure.Client(address, "walk", agent="ann") as client:
                assert client.claim().ok  # imports, connects, prepares
                walk.is_on = True
                assert client.claim().ok
                walk.is_on = False
        finally:
            sys.setprofile(None)
            threading.setprofile(None)  # type: ignore[arg-type]  # typeshed does not know that it ends it
    return walk.walked


@contextlib.contextmanager
def _serving(engine: Any) -> Any:
    import uvicorn

    from tenure.config import read_settings
    from tenure.server.assembly import Assembly
    from tenure.server.auth.policy import policy_of
    from tenure.server.logs import ServerLog

    settings = read_settings("/", {}, {"serve.auth": "open"})
    log = ServerLog("error", "/dev/null")
    assembly = Assembly(engine, policy_of(settings), log, None)
    assembly.service.parts.clear()  # coordinator and counters: their threads are not a claim's
    listening = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(assembly.app, log_config=None, lifespan="on"))
    thread = threading.Thread(target=server.run, args=([listening],))
    thread.start()
    try:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"  # it listens: the first request waits for the start
    finally:
        server.should_exit = True
        thread.join()
        log.close()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
