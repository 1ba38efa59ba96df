"""Seeded bugs of the supervisor of child processes: `seeds.py` takes them in."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

SCRIPT = "processes/supervisor_script.py"
SUPERVISOR = "processes/supervisor.py"
TESTS = "tests/processes/test_supervisor.py"

PROCESSES = (
    Mutant(
        "processes: one that does not lead ends the claims of ended processes",
        "engine/relay/leader_thread.py",
        "            if led is None:\n",
        "            if False:\n",
        "tests/runner/test_ended_processes.py::test_the_leader_frees_the_task_of_a_process_that_has_ended",
    ),
    Mutant(
        "processes: the watching process does not kill the tree",
        SCRIPT,
        "        list(Tree().kill())\n    return how",
        "        pass\n    return how",
        f"{TESTS}::test_nothing_is_left_where_the_supervisor_is_killed",
    ),
    Mutant(
        "processes: the death of the watching process is not seen",
        SCRIPT,
        "[self.wake, self.guard, *control.handles()]",
        "[self.wake, *control.handles()]",
        f"{TESTS}::test_nothing_is_left_where_the_supervisor_is_killed",
    ),
    Mutant(
        "processes: the fork is not a subreaper",
        SCRIPT,
        "PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)  # a fork",
        "4, 1)  # a",
        f"{TESTS}::test_nothing_is_left_where_the_supervisor_is_killed",
    ),
    Mutant(
        "processes: the command outlives its supervisor",
        SCRIPT,
        "LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)",
        "pass",
        f"{TESTS}::test_the_kernel_kills_the_command_where_both_are_killed",
    ),
    Mutant(
        "processes: one look is enough to kill",
        SCRIPT,
        "            if not self.strike():\n",
        "            self.is_gone = self.strike()\n            if not self.is_gone:\n",
        f"{TESTS}::test_the_time_limit_ends_a_command",
    ),
    Mutant(
        "processes: only the command's own group is killed",
        SCRIPT,
        "            yield from descendants(older)",
        "            yield from ((pid, e) for pid, e in descendants(older) if self.main and e.group == self.main.pid)",
        f"{TESTS}::test_daemons_that_a_command_leaves_behind_are_killed",
    ),
    Mutant(
        "processes: what is left behind stays",
        SCRIPT,
        "if self.kill_at is None and self.tree.code is not None:",
        "if False:",
        f"{TESTS}::test_daemons_that_a_command_leaves_behind_are_killed",
    ),
    Mutant(
        "processes: no time limit",
        SCRIPT,
        "self.limit[0] <= now",
        "False",
        f"{TESTS}::test_the_time_limit_ends_a_command",
    ),
    Mutant(
        "processes: the last end counts",
        SCRIPT,
        "if self.limit is None or at < self.limit[0]:",
        "if True:",
        f"{TESTS}::test_the_earliest_end_counts",
    ),
    Mutant(
        "processes: an end without SIGTERM",
        SCRIPT,
        "        elif grace > 0:\n            self.tree.ask_to_end()\n",
        "",
        f"{TESTS}::test_a_command_gets_sigterm_and_its_grace",
    ),
    Mutant(
        "processes: a stopped process is not woken",
        SCRIPT,
        "send(pid, signal.SIGCONT)",
        "pass",
        f"{TESTS}::test_a_stopped_command_gets_its_sigterm_too",
    ),
    Mutant(
        "processes: no memory limit",
        SCRIPT,
        "resource.setrlimit(resource.RLIMIT_AS, (memory, memory))",
        "pass",
        f"{TESTS}::test_a_process_may_not_take_more_memory_than_its_limit",
    ),
    Mutant(
        "processes: the caller's end is not seen",
        SCRIPT,
        "if 0 in ready and not control.read():",
        "if 0 in ready and control.read() and False:",
        f"{TESTS}::test_nothing_is_left_where_the_caller_is_killed",
    ),
    Mutant(
        "processes: the supervisor does not wait to be closed",
        SCRIPT,
        "while self.is_wanted or not self.tree.is_gone:",
        "while not self.tree.is_gone or not is_reported:",
        f"{TESTS}::test_the_supervisor_stays_until_it_is_closed",
    ),
    Mutant(
        "processes: the supervisor has the caller's environment",
        SUPERVISOR,
        "env={},",
        "env=None,",
        f"{TESTS}::test_the_environment_of_the_caller_is_not_readable_in_the_supervisor",
    ),
    Mutant(
        "processes: a killed supervisor is taken for an end",
        SUPERVISOR,
        "return Ended(None, is_lost=True)",
        "return Ended(0)",
        f"{TESTS}::test_nothing_is_left_where_the_supervisor_is_killed",
    ),
    Mutant(
        "processes: the last output is not read",
        SUPERVISOR,
        'while key.data != "status" and',
        "while False and",
        f"{TESTS}::test_output_that_is_left_in_the_pipe_at_the_end_is_read",
    ),
)
