"""Seeded bugs of the supervisor of child processes: `seeds.py` takes them in."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

SCRIPT = "processes/supervisor_script.py"
SUPERVISOR = "processes/supervisor.py"
TESTS = ("tests/processes",)

PROCESSES = (
    Mutant(
        "processes: the watching process does not kill the tree",
        SCRIPT,
        "        list(Tree().kill())\n    return how",
        "        pass\n    return how",
        TESTS,
    ),
    Mutant(
        "processes: the death of the watching process is not seen",
        SCRIPT,
        "[self.wake, self.guard, *control.handles()]",
        "[self.wake, *control.handles()]",
        TESTS,
    ),
    Mutant(
        "processes: the fork is not a subreaper",
        SCRIPT,
        "PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)  # a fork",
        "4, 1)  # a",
        TESTS,
    ),
    Mutant(
        "processes: the command outlives its supervisor",
        SCRIPT,
        "LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)",
        "pass",
        TESTS,
    ),
    Mutant(
        "processes: one look is enough to kill",
        SCRIPT,
        "            if not self.strike():\n",
        "            self.is_gone = self.strike()\n            if not self.is_gone:\n",
        TESTS,
    ),
    Mutant(
        "processes: only the command's own group is killed",
        SCRIPT,
        "            yield from descendants(older)",
        "            yield from ((pid, e) for pid, e in descendants(older) if self.main and e.group == self.main.pid)",
        TESTS,
    ),
    Mutant(
        "processes: what is left behind stays",
        SCRIPT,
        "if self.kill_at is None and self.tree.code is not None:",
        "if False:",
        TESTS,
    ),
    Mutant("processes: no time limit", SCRIPT, "self.limit[0] <= now", "False", TESTS),
    Mutant("processes: the last end counts", SCRIPT, "if self.limit is None or at < self.limit[0]:", "if True:", TESTS),
    Mutant(
        "processes: an end without SIGTERM",
        SCRIPT,
        "        if grace > 0:\n            self.tree.ask_to_end()\n",
        "",
        TESTS,
    ),
    Mutant("processes: a stopped process is not woken", SCRIPT, "send(pid, signal.SIGCONT)", "pass", TESTS),
    Mutant(
        "processes: no memory limit", SCRIPT, "resource.setrlimit(resource.RLIMIT_AS, (memory, memory))", "pass", TESTS
    ),
    Mutant(
        "processes: the caller's end is not seen",
        SCRIPT,
        "if 0 in ready and not control.read():",
        "if 0 in ready and control.read() and False:",
        TESTS,
    ),
    Mutant(
        "processes: the supervisor does not wait to be closed",
        SCRIPT,
        "while self.is_wanted or not self.tree.is_gone:",
        "while not self.tree.is_gone or not is_reported:",
        TESTS,
    ),
    Mutant("processes: the supervisor has the caller's environment", SUPERVISOR, "env={},", "env=None,", TESTS),
    Mutant(
        "processes: a killed supervisor is taken for an end",
        SUPERVISOR,
        "return Ended(None, is_lost=True)",
        "return Ended(0)",
        TESTS,
    ),
    Mutant(
        "processes: the last output is not read", SUPERVISOR, 'while key.data != "status" and', "while False and", TESTS
    ),
)
