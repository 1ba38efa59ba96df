"""Shell scripts as people run them: in a terminal, in the background, or where there is no terminal at all."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from tests.cli.conftest import Tenure
from tests.cli.terminal import Terminal

PATIENCE = 60.0
# Waits for a file that the test, or another script, makes.
UNTIL = 'until_there() { until [ -e "$1" ]; do read -r -t 0.02 _ <> <(:) || true; done; }\n'


def script(tenure: Tenure, name: str, text: str) -> Path:
    path = tenure.folder / name
    path.write_text(f'tenure() {{ {sys.executable} -P -m tenure "$@"; }}\n{UNTIL}{text}')
    return path


def said(tenure: Tenure, name: str) -> Any:
    """What a script has written into a file, as JSON."""
    until(lambda: (tenure.folder / name).exists() and (tenure.folder / name).read_text().endswith("\n"), name)
    return json.loads((tenure.folder / name).read_text())


def until(is_so: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + PATIENCE
    while not is_so():
        assert time.monotonic() < deadline, f"never came: {what}"
        os.sched_yield()


@contextmanager
def terminal(tenure: Tenure, *words: str) -> Iterator[Terminal]:
    with Terminal(["/bin/bash", *words], environ=tenure.environ, cwd=tenure.folder) as made:
        yield made


@contextmanager
def without_terminal(tenure: Tenure, *words: str, **environ: str) -> Iterator[subprocess.Popen[bytes]]:
    """A job as a CI system starts one: a session of its own, no terminal."""
    job = subprocess.Popen(
        ["/bin/bash", *words], cwd=tenure.folder, env=tenure.environ | environ, start_new_session=True,
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        yield job
    finally:
        with suppress(ProcessLookupError):
            os.killpg(job.pid, signal.SIGKILL)
        job.wait()
