"""Seeded bugs in what child processes get, what git may start for us, and who is a person: `seeds.py` takes them in."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

TESTS = "tests/processes/test_supervisor.py"
HOSTILE = "tests/worktrees/test_hostile_settings.py"
ANY_PLACE = f"{HOSTILE}::test_no_program_of_a_repository_starts"
BELOW = "tests/cli/test_below_a_runner.py"
SETTINGS = "agents/git_settings.py"
PRIVATE = "tests/processes/test_private_memory.py"
LOOPBACK = "tests/server/test_on_loopback.py"
MEMORY = "tests/engine/test_on_memory.py::TestOnMemory"

CHILDREN = (
    Mutant(
        "children: variables of ours that no list names are kept",
        "core/child_environments.py",
        "if not name.startswith(OURS) or name in kind.value}",
        "if True}",
        f"{TESTS}::test_every_variable_of_ours_is_for_named_kinds_of_children_or_for_none",
    ),
    Mutant(
        "children: a hook gets the password of the store",
        "core/child_environments.py",
        'if kind is not ChildKind.AGENT and _WITH_PASSWORD.match(kept.get("TENURE_URL", "")):',
        "if False:",
        f"{TESTS}::test_a_password_of_the_store_is_for_who_opens_the_store",
    ),
    Mutant(
        "children: a pool's agent gets the passwords of the server's stores",
        "core/child_environments.py",
        "for name in kept if name not in _STORES}",
        "for name in kept}",
        f"{TESTS}::test_a_password_of_the_store_is_for_who_opens_the_store",
    ),
    Mutant(
        "children: a program inherits the whole environment",
        "agents/recipes/codex.py",
        "env=for_child(ChildKind.PROGRAM, os.environ),",
        "",
        f"{TESTS}::test_every_child_gets_its_environment_from_the_one_list",
    ),
    Mutant(
        "children: a word with NUL kills the supervisor",
        "processes/supervisor_script.py",
        "except ValueError as error:  # the character",
        "except KeyError as error:  # the character",
        f"{TESTS}::test_a_word_with_nul_is_reported",
    ),
    Mutant(
        "private: memory stays readable",
        "processes/private_memory.py",
        "PR_SET_DUMPABLE, 0, 0, 0, 0)",
        "PR_SET_DUMPABLE, 1, 0, 0, 0)",
        f"{PRIVATE}::test_another_process_of_the_user_reads_neither_environment_nor_memory",
    ),
    Mutant(
        "private: the runner is not closed",
        "cli/main.py",
        'LONG_LIVED = ("daemon", "gateway", "run", "serve")',
        'LONG_LIVED = ("daemon", "gateway", "serve")',
        f"{PRIVATE}::test_what_lives_long_is_closed_from_its_start",
    ),
    Mutant(
        "private: a command with a secret in its environment is not closed",
        "cli/main.py",
        "or any(run.environ.get(secret) for secret in SECRET_VARIABLES)",
        "",
        f"{PRIVATE}::test_whoever_was_given_a_secret_of_ours_is_closed",
    ),
    Mutant(
        "private: a program that opens a store with the key is not closed",
        "client/transports/local.py",
        "if any(os.environ.get(name) for name in SECRET_VARIABLES):",
        "if False:",
        f"{PRIVATE}::test_whoever_was_given_a_secret_of_ours_is_closed",
    ),
    Mutant(
        "git: hooks of the repository run",
        SETTINGS,
        "own_hooks(folder, read) or _NO_HOOKS",
        'repositorys_hooks(folder, os.path.join(top(folder), ".git"), read)',
        ANY_PLACE,
    ),
    Mutant(
        "git: the user's relative folder of hooks is an agent's",
        SETTINGS,
        "if not os.path.isabs(place) or",
        "if not place or",
        ANY_PLACE,
    ),
    Mutant(
        "git: programs with a free name run",
        SETTINGS,
        "*_programs(read), *overridden(read)]",
        "*_programs(read)]",
        ANY_PLACE,
    ),
    Mutant(
        "git: settings of a worktree are trusted",
        SETTINGS,
        '_THEIRS = ("local", "worktree")',
        '_THEIRS = ("local",)',
        ANY_PLACE,
    ),
    Mutant(
        "git: the monitor of the repository runs",
        SETTINGS,
        '"core.fsmonitor": "false", ',
        "",
        ANY_PLACE,
    ),
    Mutant(
        "git: a repository's driver stands in for the user's",
        SETTINGS,
        "yield key, users.get(key, harmless)",
        "yield key, harmless",
        f"{HOSTILE}::test_filters_of_the_user_run_and_their_definition_is_the_users",
    ),
    Mutant(
        "git: a submodule is asked with its own programs",
        "agents/git.py",
        '"--ignore-submodules=dirty")',
        '"--ignore-submodules=none")',
        f"{HOSTILE}::test_a_submodule_is_asked_without_its_own_programs",
    ),
    Mutant(
        "git: a submodule's programs run where all is staged",
        "agents/git.py",
        '*(f":(exclude,top,literal){path}" for path in within)',
        "*()",
        f"{HOSTILE}::test_a_submodule_is_asked_without_its_own_programs",
    ),
    Mutant(
        "git: the commit of a submodule is not staged",
        "agents/git.py",
        '        ask(top, "update-index", "--remove", "--", *within)',
        "        pass",
        f"{HOSTILE}::test_the_commit_of_a_submodule_is_staged",
    ),
    Mutant(
        "git: what a submodule has not committed is not seen",
        "agents/git.py",
        "            found.append(path)\n    return found",
        "            pass\n    return found",
        f"{HOSTILE}::test_a_submodule_is_asked_without_its_own_programs",
    ),
    Mutant(
        "git: a working tree elsewhere is written",
        SETTINGS,
        "                raise ForeignTree(one.value)",
        "                pass",
        f"{HOSTILE}::test_a_working_tree_elsewhere_is_refused",
    ),
    Mutant(
        "persons: one speaks below a supervisor",
        "agents/identity.py",
        "if SUPERVISOR in process.programs:",
        "if False:",
        f"{BELOW}::test_no_verdict_and_no_key_is_given_below_a_supervisor",
    ),
    Mutant(
        "persons: an agent CLI is forgotten without its variables",
        "agents/identity.py",
        "        _record_agent(environ, process, inside)\n",
        "        pass\n",
        f"{BELOW}::test_an_agent_cli_is_known_once_one_of_its_commands_was_seen",
    ),
    Mutant(
        "evidence: a holder puts a transcript",
        "engine/artifacts/artifact_verbs.py",
        "    if not is_same and (denial",
        "    if False and (denial",
        f"{MEMORY}::test_evidence_is_put_by_the_runner_alone",
    ),
    Mutant(
        "evidence: its bytes are uploaded before they are refused",
        "engine/artifacts/artifact_verbs.py",
        "            if (denial := runners.denied_evidence(hold.task, hold.claim, name, word)) is not None:\n"
        "                return denial\n",
        "",
        f"{MEMORY}::test_evidence_is_put_by_the_runner_alone",
    ),
    Mutant(
        "evidence: any word will do",
        "core/runners.py",
        'if kept is not None and kept == _digest(word or ""):',
        "if kept is not None:",
        f"{MEMORY}::test_evidence_is_put_by_the_runner_alone",
    ),
    Mutant(
        "evidence: another case is another name",
        "core/artifacts.py",
        "return name.casefold() == TRANSCRIPT",
        "return name == TRANSCRIPT",
        f"{MEMORY}::test_evidence_is_put_by_the_runner_alone",
    ),
    Mutant(
        "landings: what a holder reports is shown as seen",
        "engine/verbs/land.py",
        "reported = not by_a_runner and not _is_of_taker(work, row)",
        "reported = False",
        f"{MEMORY}::test_what_a_holder_says_of_a_branch_is_shown_as_said",
    ),
    Mutant(
        "gateway: a secret that others can read",
        "spawners/settings.py",
        "            if mode & 0o077:",
        "            if False:",
        "tests/spawners/test_settings.py::test_a_secret_that_others_can_read_or_write_is_refused",
    ),
    Mutant(
        "token: of a process that has ended",
        "client/local_token.py",
        "return found is not None and found.start == int(start)",
        "return True",
        f"{LOOPBACK}::test_a_token_without_its_process_is_not_sent",
    ),
    Mutant(
        "token: of another boot or container",
        "client/local_token.py",
        " or boot != process_table.boot_id():",
        ":",
        f"{LOOPBACK}::test_a_token_without_its_process_is_not_sent",
    ),
    Mutant(
        "models: an option is one",
        "core/inputs.py",
        'return name.isprintable() and not name.startswith("-")',
        "return True",
        "tests/runner/test_models.py::test_no_task_agent_or_pool_names_an_option_as_its_model",
    ),
    Mutant(
        "models: a stored option reaches the agent's program",
        "agents/runner/clis/cli.py",
        "return is_model(model) and self.takes(model)",
        "return self.takes(model)",
        "tests/runner/test_models.py::test_no_option_is_taken_for_a_model",
    ),
    Mutant(
        "spawns: a value of a spawn is an option",
        "spawners/programs.py",
        'f"--name={request.agent}"',
        '"--name", request.agent',
        "tests/spawners/test_local.py::test_no_value_of_a_spawn_is_an_option_of_its_command",
    ),
    Mutant(
        "spawns: an id is enough",
        "core/pools.py",
        "if principal.is_served and spawn.api_key is not None and principal.key != spawn.api_key:",
        "if False:",
        f"{MEMORY}::test_the_id_of_a_spawn_is_of_no_use_without_its_key",
    ),
    Mutant(
        "hints: a branch in a command is not quoted",
        "cli/worktrees.py",
        "tenure land {shell_word(one['key'])}",
        "tenure land {one['key']}",
        "tests/test_hints.py::test_every_value_in_a_command_to_be_copied_is_quoted",
    ),
)
