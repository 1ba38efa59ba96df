"""The supervisor with real processes: what it reports, its limits, and trees that try to outlive it."""

from __future__ import annotations

import ast
import fcntl
import os
import re
import select
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import tenure
from tenure.config import SETTINGS
from tenure.core.child_environments import ChildKind, for_child
from tenure.processes.supervisor import Ended, Supervisor
from tests.processes.conftest import Bench, pair, until
from tests.processes.marks import children

SLEEP = "import time; time.sleep(600)"

POLITE = """
import signal, sys, time
signal.signal(signal.SIGTERM, lambda *_: sys.exit(7))
print('ready', flush=True)
time.sleep(600)
"""

# A child, one in its own group, one in its own session, a daemon that has closed everything: all ignore signals.
FAMILY = """
import os, signal, time
for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
    signal.signal(number, signal.SIG_IGN)
for n in range(4):
    if os.fork() == 0:
        if n == 1: os.setpgid(0, 0)
        if n == 2: os.setsid()
        if n == 3:
            os.setsid()
            if os.fork(): os._exit(0)
            os.chdir('/'); os.closerange(0, 3)
        break
while True: time.sleep(60)
"""

# Each process forks and exits, in a new session each time: no process and no group lives for more than a moment.
STORM = """
import os
for _ in range(4):
    os.fork()
while True:
    if os.fork(): os._exit(0)
    os.setsid()
"""

# All in one group, and none exits: only a signal to the group reaches forks in progress.
GROUP_STORM = """
import os, time
for _ in range(6):
    os.fork()
while True:
    pid = os.fork()
    if pid == 0:
        if os.fork(): os._exit(0)
    else:
        os.waitpid(pid, 0)
        os._exit(0)
"""


# --- what is reported ---


def test_an_exit_code_and_the_output_are_reported(bench: Bench) -> None:
    ended = bench.follow(bench.start("import sys; print('out', flush=True); sys.exit('err')"))
    assert ended == Ended(1)
    assert sorted(bench.output.split()) == [b"err", b"out"]


def test_a_command_is_told_the_folder_that_it_starts_in(bench: Bench, tmp_path: Path) -> None:
    of_a_shell = {**os.environ, "PWD": str(Path.cwd()), "OLDPWD": "/tmp", "SHLVL": "1", "TERM": "xterm"}
    supervisor = Supervisor()
    bench.supervisors.append(supervisor)
    code = "import os; print([os.environ.get(name) for name in ('PWD', 'OLDPWD', 'SHLVL')])"
    supervisor.start(
        [sys.executable, "-c", code],
        cwd=str(tmp_path),
        env=of_a_shell,
        stdin="/dev/null",
        grace=0.0,
        leftover_grace=0.0,
    )
    assert bench.follow(supervisor) == Ended(0)
    assert bench.output.decode().strip() == str([str(tmp_path), None, "1"])


def test_no_module_starts_a_process_in_another_folder_but_the_supervisor() -> None:
    """So that the one function that names a child's folder to it is passed by nobody."""
    source = Path(tenure.__file__).parent
    own = {"processes/supervisor_script.py"}
    for path in source.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and ast.unparse(node.func).startswith("subprocess."):
                folder = next((ast.unparse(word.value) for word in node.keywords if word.arg == "cwd"), "'/'")
                assert folder == "'/'" or str(path.relative_to(source)) in own, f"{path}:{node.lineno} cwd={folder}"


# The environment of each child, by the file that starts it: made by the one list, given on (`env`), or empty.
ENVIRONMENTS = {
    "agents/git.py": {"_environ(folder, words, environ)", "_environ(folder, ('update-ref',))"},
    "agents/git_settings.py": {"dict(environ)"},  # of `environment`, which the test of hostile settings runs
    "agents/recipes/codex.py": {"for_child(ChildKind.PROGRAM, os.environ)"},
    "agents/runner/attempt.py": {"self._environment(start)"},
    "cli/demo/demo.py": {"for_child(ChildKind.PROGRAM, os.environ)"},
    "cli/run.py": {"env"},
    "process_table.py": {"{**for_child(ChildKind.PROGRAM, os.environ), 'LC_ALL': 'C'}", "{}"},
    "processes/bounded_run.py": {"env"},
    "processes/detached.py": {"{**for_child(ChildKind.PROGRAM, os.environ), 'LC_ALL': 'C'}", "{}"},
    "processes/supervisor.py": {"{}"},
    "processes/supervisor_script.py": {"environment_at(order['cwd'], order['env'])"},
    "processes/tree_usage.py": {"{'LC_ALL': 'C'}"},
    "sealing/master_key.py": {"for_child(ChildKind.PROGRAM, environ)"},
    "server/gateway.py": {"self._programs.environment(request)"},
    "sinks/command.py": {"self._env"},
    "spawners/children.py": {"env"},
    "spawners/command.py": {"env", "for_child(ChildKind.PROGRAM, self._environ)"},
    "spawners/local.py": {"self._programs.environment(request)"},
    "validators/commands.py": {"env"},
    "validators/judges/command.py": {"for_child(ChildKind.CHECK, passed)"},
    "validators/sandbox.py": {"{}"},
    "validators/workers.py": {"{'PYTHONPATH': os.pathsep.join(folders)}"},
}
STARTS = re.compile(r"(subprocess\.(run|Popen)|os\.(exec|spawn|posix_spawn|system|popen).*|.*create_subprocess.*)")


def test_every_child_gets_its_environment_from_the_one_list() -> None:
    """None inherits that of its caller, and none is given another without a line here that says which."""
    source = Path(tenure.__file__).parent
    found: dict[str, set[str]] = {}
    for path in source.rglob("*.py"):
        name = str(path.relative_to(source))
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and not name.startswith("testing/"):
                given = [ast.unparse(word.value) for word in node.keywords if word.arg == "env"]
                if given or STARTS.fullmatch(ast.unparse(node.func)):
                    assert given, f"{path}:{node.lineno} inherits the environment"
                    found.setdefault(name, set()).update(given)
    assert found == ENVIRONMENTS


def test_every_variable_of_ours_is_for_named_kinds_of_children_or_for_none() -> None:
    """A new one reaches nobody until a list names it."""
    source = Path(tenure.__file__).parent
    named = {word for path in source.rglob("*.py") for word in re.findall(r"TENURE_[A-Z_]*[A-Z]", path.read_text())}
    known = named | {"TENURE_" + key.upper().replace(".", "_") for key in SETTINGS}
    for kind in ChildKind:
        assert kind.value - {""} <= known, f"{kind}: names that nothing reads"
    never = {name for name in known if re.match(r"TENURE_(MASTER_KEY|OWNER_URL|SERVE_|GATEWAY_|WEBHOOKS_)", name)}
    everything = dict.fromkeys(known, "x") | {"PATH": "/bin"}
    assert never
    for kind in ChildKind:
        assert for_child(kind, everything).keys() == (kind.value - {""}) | {"PATH"}
        assert never.isdisjoint(for_child(kind, everything))
    assert "TENURE_KEY" in for_child(ChildKind.AGENT, everything)
    for kind in set(ChildKind) - {ChildKind.AGENT}:
        assert "TENURE_KEY" not in for_child(kind, everything)


def test_a_password_of_the_store_is_for_who_opens_the_store() -> None:
    given = {"TENURE_URL": "postgresql://tenure:hunter2@db/x", "PGPASSWORD": "x", "AWS_SECRET_ACCESS_KEY": "x"}
    assert for_child(ChildKind.AGENT, given) == given
    assert for_child(ChildKind.COMMAND, given) == {
        name: given[name] for name in ("PGPASSWORD", "AWS_SECRET_ACCESS_KEY")
    }
    assert for_child(ChildKind.SPAWNED, given) == {}
    assert "TENURE_URL" in for_child(ChildKind.COMMAND, {"TENURE_URL": "https://tenure.example.org"})


def test_a_signal_is_reported_as_a_negative_code(bench: Bench) -> None:
    assert bench.follow(bench.start("import os; os.kill(os.getpid(), 9)")) == Ended(-9)


def test_a_command_that_cannot_start_is_reported(bench: Bench) -> None:
    supervisor = Supervisor()
    bench.supervisors.append(supervisor)
    supervisor.start(["./missing"], cwd="/", env={}, stdin="/dev/null", grace=0.0, leftover_grace=0.0)
    ended = bench.follow(supervisor)
    assert ended.failed == "./missing: No such file or directory"


@pytest.mark.parametrize("order", [(["echo", "a\0b"], {}), (["echo"], {"NAME": "a\0b"})])
def test_a_word_with_nul_is_reported(bench: Bench, order: tuple[list[str], dict[str, str]]) -> None:
    supervisor = Supervisor()
    bench.supervisors.append(supervisor)
    supervisor.start(order[0], cwd="/", env=order[1], stdin="/dev/null", grace=0.0, leftover_grace=0.0)
    assert bench.follow(supervisor).failed == "'echo' cannot be started with these words: embedded null byte"


def test_the_supervisor_stays_until_it_is_closed(bench: Bench) -> None:
    supervisor = bench.start("")
    bench.follow(supervisor)
    with pytest.raises(subprocess.TimeoutExpired):
        supervisor.popen.wait(0.5)
    supervisor.close(10)
    assert supervisor.popen.returncode == 0


def test_output_that_is_left_in_the_pipe_at_the_end_is_read(bench: Bench) -> None:
    code = f"""if True:
        import fcntl, os
        fcntl.fcntl(1, {fcntl.F_SETPIPE_SZ}, 1 << 20)
        os.write(1, b"a" * 500_000)
    """
    supervisor = bench.start(code)
    received: list[bytes] = []

    def slowly(_: str, chunk: bytes) -> None:
        if not received:
            select.select([supervisor._status], [], [], 30)
        received.append(chunk)

    assert supervisor.follow(slowly) == Ended(0)
    assert sum(map(len, received)) == 500_000


def test_the_environment_of_the_caller_is_not_readable_in_the_supervisor(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECRET_KEY", "secret")
    for pid in pair(bench.start(SLEEP)):
        assert Path(f"/proc/{pid}/environ").read_bytes() == b""


# --- limits ---


def test_the_time_limit_ends_a_command(bench: Bench) -> None:
    supervisor = bench.start(SLEEP)
    supervisor.end("time", 0.0, after=0.1)
    assert bench.follow(supervisor) == Ended(-9, "time")


def test_the_earliest_end_counts(bench: Bench) -> None:
    supervisor = bench.start(SLEEP)
    supervisor.end("late", 0.0, after=600)
    supervisor.end("early", 0.0, after=0.1)
    supervisor.end("later", 0.0, after=600)
    assert bench.follow(supervisor).why == "early"


def test_an_end_that_comes_before_the_start_is_not_lost(bench: Bench) -> None:
    supervisor = Supervisor()
    bench.supervisors.append(supervisor)
    supervisor.end("stopped", 0.0)
    supervisor.start(["sleep", "600"], cwd="/", env={}, stdin="/dev/null", grace=0.0, leftover_grace=0.0)
    assert bench.follow(supervisor).why == "stopped"


def test_a_command_gets_sigterm_and_its_grace(bench: Bench) -> None:
    supervisor = bench.start(POLITE)
    result = bench.follow_in_a_thread(supervisor)
    until(lambda: b"ready" in bench.output, "the handler")
    supervisor.end("asked", 60.0)
    assert result() == Ended(7, "asked")


def test_a_stopped_command_gets_its_sigterm_too(bench: Bench) -> None:
    supervisor = bench.start(POLITE.replace("print('ready', flush=True)", "__import__('os').kill(0, signal.SIGSTOP)"))
    result = bench.follow_in_a_thread(supervisor)
    _, inner = pair(supervisor)
    until(lambda: _state_of_child(inner) == "T", "the command to stop itself")
    supervisor.end("asked", 60.0)
    assert result() == Ended(7, "asked")


def _state_of_child(parent: int) -> str:
    found = children(parent)
    return Path(f"/proc/{found[0]}/stat").read_text().rpartition(")")[2].split()[0] if found else ""


def test_a_command_that_ignores_sigterm_is_killed(bench: Bench) -> None:
    supervisor = bench.start(FAMILY)
    bench.running(5)
    supervisor.end("asked", 0.1)
    assert bench.follow(supervisor) == Ended(-9, "asked")
    assert bench.left() == []


def test_a_process_may_not_take_more_memory_than_its_limit(bench: Bench) -> None:
    ended = bench.follow(bench.start("x = bytearray(1 << 30)", memory=512 << 20))
    assert ended.code == 1
    assert b"MemoryError" in bench.output


# --- trees that try to stay ---


def test_daemons_that_a_command_leaves_behind_are_killed(bench: Bench) -> None:
    code = """if True:
        import os, time
        for _ in range(3):
            if os.fork() == 0:
                os.setsid()
                if os.fork() == 0:
                    time.sleep(600)
                os._exit(0)
            os.wait()
    """
    assert bench.follow(bench.start(code)) == Ended(0, left_behind=3)
    assert bench.left() == []


def test_what_is_left_behind_gets_a_grace_where_one_is_named(bench: Bench, tmp_path: Path) -> None:
    said = tmp_path / "said"
    code = f"""if True:
        import os, signal, sys, time
        ready, done = os.pipe()
        if os.fork() == 0:
            signal.signal(15, lambda *_: (open({str(said)!r}, 'w').write('bye'), os._exit(0)))
            os.write(done, b'x')
            time.sleep(600)
        os.read(ready, 1)
    """
    assert bench.follow(bench.start(code, leftover_grace=60.0)) == Ended(0)
    assert said.read_text() == "bye"


@pytest.mark.sampled  # a storm takes a core for seconds
@pytest.mark.parametrize("storm", [STORM, GROUP_STORM])
def test_a_fork_storm_is_killed(bench: Bench, storm: str) -> None:
    supervisor = bench.start(storm)
    supervisor.end("time", 0.0, after=0.3)
    ended = bench.follow(supervisor)
    assert bench.left() == []
    assert not ended.is_lost


def test_closing_ends_everything(bench: Bench) -> None:
    supervisor = bench.start(FAMILY)
    bench.running(5)
    supervisor.close(20)
    assert supervisor.popen.returncode == 0
    assert bench.left() == []


# --- who is killed ---


@pytest.mark.parametrize("who", ["the watching process", "the process above the command"])
@pytest.mark.parametrize(
    "code", [pytest.param(FAMILY, id="family"), pytest.param(STORM, id="storm", marks=pytest.mark.nightly)]
)
def test_nothing_is_left_where_the_supervisor_is_killed(bench: Bench, who: str, code: str) -> None:
    # The storm's first process lives on, so that the supervisor has no reason to act.
    code = code if code == FAMILY else f"import os, time\nif os.fork():\n    time.sleep(600)\n{code}"
    supervisor = bench.start(code)
    bench.running(5)
    watching, inner = pair(supervisor)
    os.kill(watching if who == "the watching process" else inner, signal.SIGKILL)
    assert bench.follow(supervisor) == Ended(None, is_lost=True)
    assert bench.nothing_left()
    until(lambda: not Path(f"/proc/{inner}").exists(), "the supervisor to end")


def test_the_kernel_kills_the_command_where_both_are_killed(bench: Bench) -> None:
    supervisor = bench.start(SLEEP)
    bench.running(1)
    watching, inner = pair(supervisor)
    os.kill(watching, signal.SIGSTOP)  # so that it cannot act
    os.kill(inner, signal.SIGKILL)
    assert bench.nothing_left()
    os.kill(watching, signal.SIGKILL)


def test_nothing_is_left_where_the_caller_is_killed(bench: Bench) -> None:
    name, _, value = bench.mark.partition("=")
    caller = f"""if True:
        import sys
        from tenure.processes.supervisor import Supervisor
        supervisor = Supervisor()
        supervisor.start([sys.executable, "-c", {FAMILY!r}], cwd="/", env={{{name!r}: {value!r}}}, stdin="/dev/null",
                         grace=0.1, leftover_grace=0.0)
        print(supervisor.pid, flush=True)
        supervisor.follow(print)
    """
    with subprocess.Popen([sys.executable, "-c", caller], stdout=subprocess.PIPE) as waiting:
        assert waiting.stdout is not None
        pid = int(waiting.stdout.readline())
        bench.running(5)
        waiting.kill()
    assert bench.nothing_left()
    until(lambda: not Path(f"/proc/{pid}/stat").exists(), "the supervisor to end")


def test_sigterm_to_the_watching_process_ends_the_command_with_its_grace(bench: Bench) -> None:
    supervisor = bench.start(POLITE, grace=60.0)
    result = bench.follow_in_a_thread(supervisor)
    until(lambda: b"ready" in bench.output, "the handler")
    os.kill(supervisor.pid, signal.SIGTERM)
    assert result() == Ended(7, "unwanted")
    assert supervisor.popen.wait(30) == 0
