"""Seeded bugs of spawners, of the gateway and of runners that a pool has started: `seeds.py` takes them in."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

COMMAND = "tests/spawners/test_command.py"
LOCAL = "tests/spawners/test_local.py"
GATEWAY = "tests/spawners/test_gateway.py"
SPAWNED = "tests/runner/test_spawned.py"

SPAWNERS = (
    Mutant(
        "spawners: a second call replaces the record of the first",
        "spawners/children.py",
        "os.link(new, path)",
        "os.replace(new, path)",
        f"{COMMAND}::TestPrintedHandle::test_of_concurrent_calls_for_one_spawn_one_starts_it",
    ),
    Mutant(
        "spawners: a process has no record",
        "processes/detached.py",
        "        record(process)\n",
        "",
        f"{LOCAL}::TestLocal::test_the_same_spawn_again_gives_the_same_process",
    ),
    Mutant(
        "spawners: a reused pid is taken for the child",
        "processes/detached.py",
        "_start(process.pid) == process.start",
        "_start(process.pid) is not None",
        f"{LOCAL}::test_a_process_of_another_host_is_unknown_and_one_of_another_boot_has_ended",
    ),
    Mutant(
        "spawners: a child ends with its spawner",
        "processes/supervisor_script.py",
        "                if self.is_detached:\n                    self.is_wanted = False",
        "                if not self.order:\n                    self.is_wanted = False",
        f"{COMMAND}::TestProcess::test_agents_outlive_the_spawner",
    ),
    Mutant(
        "spawners: a kill of the group takes both supervisors",
        "processes/supervisor_script.py",
        "        os.setsid()  # a kill",
        "        pass  # a kill",
        f"{COMMAND}::TestProcess::test_killing_the_process_group_leaves_nothing",
    ),
    Mutant(
        "spawners: a child gets the server's own key",
        "spawners/programs.py",
        "kept = for_child(ChildKind.SPAWNED, environ)",
        "kept = for_child(ChildKind.AGENT, environ)",
        f"{LOCAL}::test_a_child_gets_neither_the_identity_nor_the_access_of_the_server",
    ),
    Mutant(
        "gateway: a request need not be signed",
        "server/gateway.py",
        "(self._key,), headers, body, now) is None",
        "(self._key,), headers, body, now) == ()",
        f"{GATEWAY}::TestGateway::test_a_request_without_a_valid_signature_starts_nothing",
    ),
    Mutant(
        "spawners: a file that cannot be read proves that there is no process",
        "spawners/children.py",
        "if child is not None or self._is_missing(spawn):",
        "if True:",
        f"{LOCAL}::TestLocal::test_a_spawn_that_cannot_be_read_is_left_out",
    ),
    Mutant(
        "spawners: a command without a handle has started nothing",
        "spawners/command.py",
        "if child is None or child.handle\n",
        "\n",
        f"{COMMAND}::TestPrintedHandle::test_a_call_without_an_answer_is_unknown_and_bounded",
    ),
    Mutant(
        "spawners: each folder of files has the same id",
        "spawners/children.py",
        "uuid.uuid4().hex.encode()",
        'b"home"',
        f"{LOCAL}::test_two_folders_have_two_homes",
    ),
    Mutant(
        "gateway: a status may be replayed as a deletion",
        "server/gateway.py",
        "if wanted.session != request.path_params",
        "if not wanted.session and request.path_params",
        f"{GATEWAY}::TestGateway::test_a_recorded_request_cannot_be_replayed_as_another",
    ),
    Mutant(
        "gateway: it starts agents that its configuration does not name",
        "spawners/settings.py",
        "programs = read_programs(settings, folder, ())",
        "programs = read_programs(settings, folder, AGENTS)",
        f"{GATEWAY}::TestGateway::test_a_program_that_the_gateway_does_not_name_is_refused_with_those_that_it_does",
    ),
    Mutant(
        "gateway: an error of the server is taken for a refusal",
        "spawners/gateway.py",
        "if 400 <= answer.status < 500:",
        "if 400 <= answer.status < 600:",
        f"{GATEWAY}::test_an_answer_is_definite_only_where_the_gateway_refused",
    ),
    Mutant(
        "runner: a claim does not carry its spawn",
        "agents/runner/slot.py",
        "                        spawn=self.options.spawn,\n",
        "",
        f"{SPAWNED}::test_a_runner_whose_spawn_is_over_ends_without_a_claim",
    ),
    Mutant(
        "runner: a lost claim is taken again without the spawn",
        "agents/runner/held_claim.py",
        "process=process, spawn=self._spawn, metadata",
        "process=process, metadata",
        f"{SPAWNED}::test_a_lost_claim_is_not_taken_again_once_the_spawn_is_over",
    ),
)
