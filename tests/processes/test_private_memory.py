"""What other processes of one user can read of a process that holds a key."""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tenure import process_table
from tenure.cli.main import main
from tenure.client.transports.local import LazySealer
from tenure.config import SECRET_VARIABLES
from tenure.processes.private_memory import keep_private

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux lets a process refuse it")

NOBODY = 65534
PR_GET_DUMPABLE, PR_SET_DUMPABLE = 3, 4


def prctl(option: int, value: int = 0) -> int:
    return int(ctypes.CDLL(None).prctl(option, value, 0, 0, 0))


def in_a_process(
    job: Callable[[], object], *, stays_until: int | None = None, is_root: bool = False
) -> tuple[int, str]:
    """The pid of another process of an ordinary user, and what the job returned in it or raised.

    `is_root`: it may stay root, which can read every file that it has to import.
    """
    output, theirs = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            if os.getuid() == 0 and not is_root:
                os.setgroups([])
                os.setgid(NOBODY)
                os.setuid(NOBODY)
            prctl(PR_SET_DUMPABLE, 1)  # as after the start of a program
            text = str(job())
        except BaseException as error:  # noqa: BLE001 the test compares it
            text = type(error).__name__
        os.write(theirs, text.encode())
        if stays_until is not None:
            os.read(stays_until, 1)
        os._exit(0)
    os.close(theirs)
    answer = os.read(output, 1 << 10).decode()
    os.close(output)
    return pid, answer


def read_by_another(begin: Callable[[], object], look: Callable[[int], object]) -> str:
    """What a second process of the user gets by a look at a first one, which began so."""
    wait, end = os.pipe()
    held, _ = in_a_process(begin, stays_until=wait)
    reader, answer = in_a_process(lambda: look(held))
    os.close(wait)
    os.close(end)
    os.kill(held, 9)
    for pid in (held, reader):
        os.waitpid(pid, 0)
    return answer


def environ(pid: int) -> bool:
    return b"PATH=" in Path(f"/proc/{pid}/environ").read_bytes()


def memory(pid: int) -> bool:
    return Path(f"/proc/{pid}/maps").read_bytes() != b""


def files(pid: int) -> bool:
    return any(Path(f"/proc/{pid}/fd").iterdir())


@pytest.mark.parametrize("look", [environ, memory, files])
def test_another_process_of_the_user_reads_neither_environment_nor_memory(look: Callable[[int], bool]) -> None:
    assert read_by_another(bool, look) == "True", "without it the same process reads them"
    assert read_by_another(keep_private, look) == "PermissionError"


def test_the_process_table_still_knows_such_a_process() -> None:
    """Whether a holder runs, and since when, is judged by its pid and start."""

    def known(pid: int) -> bool:
        found = process_table.look_up(pid)
        return found is not None and bool(found.programs) and not process_table.has_ended(pid, found.start)

    assert read_by_another(keep_private, known) == "True"


def is_private_after(begin: Callable[[], object]) -> str:
    def job() -> bool:
        sys.stdout = sys.stderr = open(os.devnull, "w")  # noqa: SIM115, PTH123 the process ends with it
        begin()
        return prctl(PR_GET_DUMPABLE) == 0

    pid, answer = in_a_process(job, is_root=True)
    os.waitpid(pid, 0)
    return answer


@pytest.mark.parametrize(
    "words", [("daemon",), ("run", "--once"), ("gateway", "--new-secret"), ("serve", "--workers", "0")]
)
def test_what_lives_long_is_closed_from_its_start(words: tuple[str, ...], tmp_path: Path) -> None:
    assert is_private_after(lambda: main(["-C", str(tmp_path), *words])) == "True"


def test_whoever_was_given_a_secret_of_ours_is_closed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in SECRET_VARIABLES:
        monkeypatch.delenv(name, raising=False)
    whoami = ["-C", str(tmp_path), "whoami"]
    assert is_private_after(lambda: main(whoami)) == "False"
    assert is_private_after(lambda: LazySealer("x.db")) == "False"
    assert is_private_after(lambda: LazySealer("x.db").seal) == "True", "it may read the key now"
    for name in SECRET_VARIABLES:
        monkeypatch.setenv(name, "x")
        assert is_private_after(lambda: main(whoami)) == "True", name
        assert is_private_after(lambda: LazySealer("x.db")) == "True", name
        monkeypatch.delenv(name)
