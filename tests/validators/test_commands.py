"""test-pass: named commands of the configuration, ended with all they started, in a sandbox where there is one."""

import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

import pytest

from tenure.core.errors import InvalidInput
from tenure.processes.bounded_run import HEAD, TAIL
from tenure.testing.suites.validators import ValidatorSuite
from tenure.validators import sandbox
from tenure.validators.commands import Command, TestPass, read_commands
from tenure.validators.port import About, Output, Undecided, Validator, Verdict

PYTHON = sys.executable
# Not that of a venv: in the sandbox /tmp, where it may lie, is empty.
BASE_PYTHON = str(Path(sys.executable).resolve())
has_bwrap = pytest.mark.usefixtures("bwrap")
on_linux = pytest.mark.skipif(sys.platform != "linux", reason="only a subreaper finds what left its group")


def python(code: str, **more: object) -> dict[str, Command]:
    return read_commands({"it": {"argv": [PYTHON, "-c", code], "sandbox": "never", **more}})


def ran(code: str, folder: Path, data: object = None, **more: object) -> Verdict:
    return TestPass(python(code, **more)).judge({"command": "it"}, Output(data, folder=str(folder)))


@pytest.fixture
def marked() -> Iterator[str]:
    """A mark in the environment of whatever a test starts; nothing that has it may be left."""
    mark = f"TENURE_TEST_MARK={os.getpid()}-{time.monotonic_ns()}"
    yield mark
    left = with_mark(mark)
    for pid in left:
        os.kill(pid, signal.SIGKILL)
    assert left == []


def with_mark(mark: str) -> list[int]:
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                if mark.encode() in (entry / "environ").read_bytes():
                    found.append(int(entry.name))
            except OSError:
                continue
    return found


def marking(mark: str) -> dict[str, str]:
    name, _, value = mark.partition("=")
    return {name: value}


class TestCommands(ValidatorSuite):
    settings: ClassVar = {"command": "check"}
    broken = ({}, {"command": 1}, {"command": "unknown"}, {"command": "chek"}, {"command": ["rm", "-rf", "/"]})

    def make(self, tmp_path: Path) -> Validator:
        for name in ("good", "bad"):
            (tmp_path / name).mkdir()
        (tmp_path / "good" / "passes").touch()
        type(self).good = (Output({"a": 1}, folder=str(tmp_path / "good")),)
        type(self).bad = (Output({"a": 1}, folder=str(tmp_path / "bad")),)
        return TestPass(read_commands({"check": {"argv": ["/bin/sh", "-c", "test -e passes || { echo no; exit 3; }"]}}))


# --- what it runs ---


def test_it_gets_the_output_on_stdin_and_the_task_in_its_environment(tmp_path: Path) -> None:
    commands = python("import json,os,sys; print(json.load(sys.stdin), os.environ['TENURE_TASK'], os.getcwd())")
    output = Output({"x": 1}, folder=str(tmp_path), about=About("B-003"))
    verdict = TestPass(commands).judge({"command": "it"}, output)
    assert verdict.ok
    assert verdict.details["output"] == f"{{'x': 1}} B-003 {tmp_path}\n"
    assert verdict.details["sandbox"] == "none: not wanted"


def test_no_shell_looks_at_its_words(tmp_path: Path) -> None:
    commands = read_commands({"it": {"argv": ["/bin/echo", "$HOME; touch x", "`id`", "*"], "sandbox": "never"}})
    verdict = TestPass(commands).judge({"command": "it"}, Output(None, folder=str(tmp_path)))
    assert verdict.details["output"] == "$HOME; touch x `id` *\n"
    assert list(tmp_path.iterdir()) == []


def test_it_sees_only_what_it_was_given_of_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET_KEY", "secret")
    monkeypatch.setenv("DATABASE", "given")
    verdict = ran("import os; print(sorted(os.environ))", tmp_path, env=["DATABASE"], set={"CI": "1"})
    assert "SECRET_KEY" not in verdict.details["output"]
    assert {"DATABASE", "CI", "PATH"} <= set(eval(verdict.details["output"]))


def test_a_failure_shows_the_last_lines_of_output(tmp_path: Path) -> None:
    verdict = ran("import sys; print('\\n'.join(map(str, range(100))), flush=True); sys.exit('it broke')", tmp_path)
    assert verdict.reasons == ("it ended with 1", "97", "98", "99", "it broke")
    assert verdict.details["exit"] == 1


def test_a_signal_is_reported(tmp_path: Path) -> None:
    assert ran("import os; os.kill(os.getpid(), 9)", tmp_path).reasons == ("it was ended by signal 9",)


def test_a_flood_of_output_is_capped_and_its_ends_are_kept(tmp_path: Path) -> None:
    code = "import sys; print('first'); [sys.stdout.write('x' * 65536) for _ in range(800)]; print('last')"
    verdict = ran(code, tmp_path)
    assert verdict.ok
    assert verdict.details["output"].startswith("first\n")
    assert verdict.details["output"].endswith("last\n")
    assert len(verdict.details["output"]) < HEAD + TAIL + 100
    assert verdict.details["left_out"] > 50_000_000


# --- how it ends ---

IGNORES = """
import os, signal, sys, time
for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
    signal.signal(number, signal.SIG_IGN)
for n in range(4):
    if os.fork() == 0:
        if n == 1: os.setsid()
        if n == 2:
            os.setsid()
            if os.fork(): os._exit(0)
            os.chdir('/'); os.close(0); os.close(1); os.close(2)
        if n == 3: os.setpgid(0, 0)
        break
else:
    print('all are there', flush=True)
while True: time.sleep(60)
"""


@on_linux
def test_what_forks_and_ignores_sigterm_is_gone_in_time(
    tmp_path: Path, marked: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    began = time.monotonic()
    verdict = ran(IGNORES, tmp_path, timeout=1.0, set=marking(marked))
    assert time.monotonic() - began < 1 + 2 + 5
    assert not verdict.ok
    assert "did not end within 1 s" in verdict.reasons[0]
    assert verdict.details["limit"] == "time"
    assert "all are there" in verdict.details["output"]
    assert with_mark(marked) == []


@on_linux
def test_a_daemon_that_it_leaves_behind_is_ended_too(tmp_path: Path, marked: str) -> None:
    code = (
        "import os,time\nif os.fork() == 0:\n os.setsid()\n if os.fork() == 0: time.sleep(600)\n os._exit(0)\nos.wait()"
    )
    verdict = ran(code, tmp_path, set=marking(marked))
    assert verdict.ok
    assert verdict.details["left_behind"] == 1
    assert with_mark(marked) == []


@on_linux
def test_what_forks_all_the_time_is_ended(tmp_path: Path, marked: str) -> None:
    code = """if True:
        import os, time
        for _ in range(3):
            os.fork()
        while True:
            if os.fork():
                os._exit(0)
            time.sleep(0.001)
    """
    verdict = ran(code, tmp_path, timeout=0.5, set=marking(marked))
    assert with_mark(marked) == []
    assert verdict.details["left_behind"] or verdict.details["limit"] == "time"


def test_one_that_ends_politely_is_not_killed(tmp_path: Path) -> None:
    code = (
        "import signal,sys,time\nsignal.signal(15, lambda *_: (print('bye', flush=True), sys.exit(0)))\ntime.sleep(60)"
    )
    verdict = ran(code, tmp_path, timeout=0.5)
    assert not verdict.ok
    assert verdict.reasons[1] == "bye"


@on_linux
def test_one_that_is_not_wanted_any_more_is_ended(tmp_path: Path, marked: str) -> None:
    stop = threading.Event()
    validator = TestPass(python("import time; time.sleep(600)", set=marking(marked)), lambda: not stop.is_set())
    threading.Timer(0.2, stop.set).start()
    began = time.monotonic()
    with pytest.raises(Undecided, match="not needed"):
        validator.judge({"command": "it"}, Output(None, folder=str(tmp_path)))
    assert time.monotonic() - began < 5
    assert with_mark(marked) == []


@on_linux
def test_nothing_is_left_where_the_one_who_waits_is_killed(tmp_path: Path, marked: str) -> None:
    code = (
        "import sys\nfrom tenure.validators.commands import run\n"
        f"run([sys.executable, '-c', {IGNORES!r}], cwd={str(tmp_path)!r}, env={marking(marked)!r}, seconds=600)"
    )
    with subprocess.Popen([PYTHON, "-c", code]) as waiting:
        until = time.monotonic() + 20
        while len(with_mark(marked)) < 4 and time.monotonic() < until:
            os.sched_yield()
        assert len(with_mark(marked)) >= 4
        waiting.kill()
    while with_mark(marked) and time.monotonic() < until:
        os.sched_yield()
    assert with_mark(marked) == []


def test_no_descriptor_is_left_open(tmp_path: Path) -> None:
    opened = Path("/proc/self/fd" if Path("/proc/self/fd").is_dir() else "/dev/fd")
    ran("pass", tmp_path)
    before = len(list(opened.iterdir()))
    for _ in range(3):
        ran("pass", tmp_path)
    assert len(list(opened.iterdir())) == before


# --- what cannot be decided ---


@pytest.mark.parametrize(
    ("command", "folder", "why"),
    [
        ({"argv": ["no-such-program"]}, ".", "not found"),
        ({"argv": ["./no-such-program"], "sandbox": "never"}, ".", "No such file"),
        ({"argv": ["/etc/passwd"], "sandbox": "never"}, ".", "Permission denied"),
        ({"argv": ["true"], "folder": "../.."}, ".", "not a folder below"),
        ({"argv": ["true"], "folder": "/etc"}, ".", "not a folder below"),
        ({"argv": ["true"], "folder": "missing"}, ".", "not a folder below"),
        ({"argv": ["true"]}, None, "no folder to run in"),
    ],
)
def test_trouble_of_the_configuration_is_not_the_outputs_fault(
    tmp_path: Path, command: dict[str, object], folder: str | None, why: str
) -> None:
    validator = TestPass(read_commands({"it": command}))
    output = Output(None, folder=None if folder is None else str(tmp_path / folder))
    with pytest.raises(Undecided, match=why):
        validator.judge({"command": "it"}, output)


def test_a_command_that_is_not_trusted_here_is_not_run(tmp_path: Path) -> None:
    with pytest.raises(Undecided, match="configured and trusted"):
        TestPass({}).judge({"command": "it"}, Output(None, folder=str(tmp_path)))


@pytest.mark.parametrize(
    "given",
    [
        {}, "pytest", {"argv": "rm -rf /"}, {"argv": []}, {"argv": [""]}, {"argv": ["\0"]}, {"argv": ["a"], "shell": 1},
        {"argv": ["a"], "timeout": 0}, {"argv": ["a"], "sandbox": "no"}, {"argv": ["a"], "env": "PATH"},
    ],
)  # fmt: skip
def test_a_section_that_cannot_be_read_names_the_place(given: object) -> None:
    with pytest.raises(InvalidInput, match=r"commands\.it"):
        read_commands({"it": given})


# --- the sandbox ---


def boxed(code: str, folder: Path, **more: object) -> Verdict:
    commands = read_commands({"it": {"argv": ["/bin/sh", "-c", code], "sandbox": "always", **more}})
    return TestPass(commands).judge({"command": "it"}, Output(None, folder=str(folder)))


@has_bwrap
def test_only_the_folder_can_be_written_to(tmp_path: Path) -> None:
    folder = tmp_path / "work"
    (folder / ".git").mkdir(parents=True)
    (tmp_path / "beside").write_text("untouched")
    verdict = boxed(
        f"touch made && ! touch /etc/made && ! touch {folder}/.git/made && touch /tmp/made && ! cat {tmp_path}/beside",
        folder,
    )
    assert verdict.ok, verdict
    assert verdict.details["sandbox"] == "bwrap"
    assert (folder / "made").exists()
    assert not Path("/tmp/made").exists()
    assert list((folder / ".git").iterdir()) == []


@has_bwrap
def test_there_is_a_network_only_where_it_is_allowed(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
        knock = f"{BASE_PYTHON} -c 'import socket; socket.create_connection((\"127.0.0.1\", {port}), 5)'"
        assert not boxed(knock, tmp_path).ok
        assert boxed(knock, tmp_path, network=True).ok


@has_bwrap
def test_keys_in_the_home_are_not_seen(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    folder = tempfile.TemporaryDirectory(dir="/tmp")  # /dev, where folders of tests may lie, is the sandbox's own
    request.addfinalizer(folder.cleanup)
    home = Path(folder.name)
    (home / ".ssh").mkdir(parents=True)
    (home / ".ssh" / "id").write_text("secret")
    (home / ".netrc").write_text("secret")
    (home / "tool").write_text("seen")
    (home / "work").mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setattr(sandbox, "PRIVATE", ())  # the home of this test lies in /tmp
    verdict = boxed("cat ~/tool ~/.netrc; ls ~/.ssh", home / "work")
    assert "seen" in verdict.details["output"]
    assert "secret" not in verdict.details["output"]
    assert "id\n" not in verdict.details["output"]


@has_bwrap
def test_what_hides_in_the_sandbox_is_ended_with_it(tmp_path: Path, marked: str) -> None:
    name, _, value = marked.partition("=")
    commands = read_commands(
        {"it": {"argv": [BASE_PYTHON, "-c", IGNORES], "sandbox": "always", "timeout": 1.0, "set": {name: value}}}
    )
    verdict = TestPass(commands).judge({"command": "it"}, Output(None, folder=str(tmp_path)))
    assert verdict.details["limit"] == "time"
    assert "all are there" in verdict.details["output"]
    assert with_mark(marked) == []


@has_bwrap
def test_a_sandbox_that_cannot_begin_is_not_the_outputs_fault(tmp_path: Path) -> None:
    validator = TestPass(read_commands({"it": {"argv": ["./missing"], "sandbox": "always"}}))
    with pytest.raises(Undecided, match="bwrap: "):
        validator.judge({"command": "it"}, Output(None, folder=str(tmp_path)))


def test_without_a_sandbox_it_says_so_or_refuses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sandbox, "trouble", lambda: "bwrap is not installed")
    verdict = ran("pass", tmp_path, sandbox="auto")
    assert verdict.ok
    assert verdict.details["sandbox"] == "none: bwrap is not installed"
    with pytest.raises(Undecided, match="run only in a sandbox"):
        ran("pass", tmp_path, sandbox="always")
