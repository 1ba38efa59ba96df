"""Seeded bugs in who speaks, which receipt is presented, and what is told after a commit."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

TEST_COMPLETION = "tests/cli/test_completion.py"
TEST_AFTER_THE_COMMIT = "tests/cli/test_after_the_commit.py"
TEST_IDENTITY = "tests/cli/test_identity.py"
TEST_WHO_AM_I = "tests/cli/test_who_am_i.py"

RECEIPTS = "agents/receipts.py"
RECORDED = "agents/identity.py"
PENDING = "agents/receipts.py"

IDENTITY = (
    # --- whose receipt
    Mutant(
        "identity: receipt of another agent used",
        RECEIPTS,
        "return [safe_name(self.agent)] if self.agent is not None else listed(place)",
        "return listed(place)",
        f"{TEST_IDENTITY}::test_receipts_are_found_by_session_agent_and_task",
    ),
    Mutant(
        "identity: receipt of an older generation used",
        RECEIPTS,
        "is_it = wanted.generation in (kept.generation, *kept.instead_of) and kept.ended",
        "is_it = kept.ended",
        f"{TEST_IDENTITY}::test_two_generations_of_one_task_are_two_claims",
    ),
    Mutant(
        "identity: after a loss no claim is named",
        RECEIPTS,
        "        if lost:\n",
        "        if False:\n",
        f"{TEST_IDENTITY}::test_after_a_loss_the_claim_must_be_named_with_its_generation",
    ),
    Mutant(
        "identity: own claims of every agent",
        "engine/reads/claim_reads.py",
        '"session": session} | ({} if agent is None else {"agent": agent})',
        '"session": session}',
        "test_a_live_claim_is_its_agents_in_its_session_alone",
    ),
    Mutant(
        "identity: own claims for every agent",
        "core/roles.py",
        "principal.agent not in (None, query.agent):",
        "False:",
        "test_an_agent_asks_for_its_own_claims_alone",
    ),
    Mutant(
        "identity: no claim was ever lost",
        "core/claims.py",
        "return reason in _OWN_WORDS or (",
        "return True or (",
        "test_a_claim_that_was_lost_is_among_them_for_a_day[expired]",
    ),
    Mutant(
        "identity: every ended claim was lost",
        "core/claims.py",
        "return reason in _OWN_WORDS or (",
        "return False and (",
        "test_a_claim_that_its_holder_ended_is_not_among_them[submit]",
    ),
    # --- who speaks
    Mutant(
        "identity: joined process ignored",
        "agents/identity.py",
        "return _recognised(environ, agent, session, nearest_joined(environ))",
        "return _recognised(environ, agent, session, None)",
        f"{TEST_WHO_AM_I}::test_whoever_a_script_joined_as_its_later_commands_are",
    ),
    Mutant(
        "identity: background process bound to its shell",
        RECORDED,
        "return os.getppid() == leader.pid and process_table.is_in_foreground() and not process_table.is_nohup()",
        "return True",
        f"{TEST_WHO_AM_I}::test_what_runs_in_the_background_or_by_a_script_does_not",
    ),
    Mutant(
        "identity: session named after its living leader alone",
        RECORDED,
        "if record is None or (leader is not None and leader.start != record.start):",
        "if True:",
        f"{TEST_WHO_AM_I}::test_a_session_is_named_when_it_is_first_seen_and_a_new_leader_is_a_new_session",
    ),
    Mutant(
        "identity: new leader takes the old session's name",
        RECORDED,
        "if record is None or (leader is not None and leader.start != record.start):",
        "if record is None:",
        f"{TEST_WHO_AM_I}::test_a_session_is_named_when_it_is_first_seen_and_a_new_leader_is_a_new_session",
    ),
    # --- after the commit
    Mutant(
        "identity: pending claim request not sent again",
        PENDING,
        "left = _left_behind(environ, home, words, within)",
        "left = None",
        f"{TEST_AFTER_THE_COMMIT}::test_a_claim_whose_answer_could_not_be_written_is_given_again",
    ),
    Mutant(
        "identity: request of a living process sent again",
        PENDING,
        " and process_table.has_ended(sent.pid, sent.start)",
        "",
        f"{TEST_AFTER_THE_COMMIT}::test_two_who_ask_at_the_same_time_are_given_two_claims",
    ),
    Mutant(
        "identity: an error after the effect says that nothing happened",
        "cli/main.py",
        "    error.definite = False\n",
        "",
        f"{TEST_AFTER_THE_COMMIT}::test_an_error_after_the_effect_is_not_definite",
    ),
    Mutant(
        "identity: a claim that was not printed is forgotten",
        "cli/claim.py",
        "        run.unwritten.append(request.unanswered)\n",
        "",
        f"{TEST_AFTER_THE_COMMIT}::test_a_claim_whose_answer_could_not_be_written_is_given_again",
    ),
    Mutant(
        "what a joined script reads is no sign of life",
        "cli/main.py",
        'not (self.who.role == "agent" or self.who.has_joined)',
        'self.who.role != "agent"',
        "tests/cli/test_who_am_i.py::test_what_a_joined_script_reads_is_a_sign_of_life",
    ),
    Mutant(
        "a read after leaving joins again",
        "cli/main.py",
        "                return  # it left: who looks afterwards does not join again\n",
        "                pass\n",
        "tests/cli/test_who_am_i.py::test_what_is_read_after_leaving_brings_no_agent_back",
    ),
    Mutant(
        "a claim does not look for dead holders while others are ready",
        "client/transports/local.py",
        "        self._end_ended((command,), principal)\n",
        "",
        "tests/cli/test_who_am_i.py::test_the_urgent_task_of_a_killed_script_is_taken_over_though_others_are_ready",
    ),
    Mutant(
        "each claim looks for dead holders",
        "client/transports/local.py",
        "if now - self._looked.get(project, -SEEN_EVERY) < SEEN_EVERY:",
        "if False:",
        "test_it_looks_at_most_once_a_second",
    ),
    Mutant(
        "a claim looks at every holder of this host",
        "client/transports/local.py",
        "limit=MOST_SEEN - len(rows))",
        "limit=None)",
        "test_it_looks_at_no_more_than_sixteen_and_at_each_in_its_turn",
    ),
    Mutant(
        "a claim looks at the same holders each time",
        "client/transports/local.py",
        '            self._next[project] = f"{texts[-1]}!"  # behind it, and before any other\n',
        "            pass\n",
        "test_it_looks_at_no_more_than_sixteen_and_at_each_in_its_turn",
    ),
    Mutant(
        "an agent whose process is gone is called active",
        "engine/verbs/agents.py",
        "    status = team.status(agent, len(living), work.now, is_gone=is_gone)",
        "    status = team.status(agent, len(held), work.now)",
        "test_an_agent_whose_process_is_gone_is_not_called_active",
    ),
    Mutant(
        "an agent that lives in another session is called offline",
        "engine/verbs/agents.py",
        "return all(other.id in sessions or is_over(work, other) for other in others)",
        "return True",
        "test_an_agent_with_another_open_session_is_idle_at_most",
    ),
    Mutant(
        "a script that took over what join printed has no process",
        "agents/identity.py",
        'own = joined.process if joined is not None and joined.session == environ["TENURE_SESSION"] else None',
        "own = None",
        "tests/cli/test_who_am_i.py::test_the_urgent_task_of_a_killed_script_is_taken_over_though_others_are_ready",
    ),
    # --- names, and the shells that complete them
    Mutant(
        "completion: bash expands the names",
        "cli/completion.py",
        '      printf -v line %q "$line"\n      COMPREPLY+=("$line")\n',
        '      COMPREPLY+=($(compgen -W "$line" -- "$word"))\n',
        f"{TEST_COMPLETION}::test_no_name_is_run_at_any_place_where_tab_is_pressed[bash]",
    ),
    Mutant(
        "completion: names are inserted without quotes",
        "cli/completion.py",
        '      printf -v line %q "$line"\n',
        "",
        f"{TEST_COMPLETION}::test_a_name_that_is_inserted_is_one_word_of_the_command[bash]",
    ),
    Mutant(
        "completion: inside of quotes every name is offered",
        "cli/completion.py",
        " && $line != *[!A-Za-z0-9._@%+:,=-]* ]]",
        " ]]",
        f"{TEST_COMPLETION}::test_inside_of_quotes_that_the_user_has_opened_only_plain_names_are_offered",
    ),
    Mutant(
        "completion: the names of members are offered",
        "cli/completion.py",
        '    "TENANT": lambda run:',
        '    "USER": lambda run: [member["user"] for member in run.client.members()],\n    "TENANT": lambda run:',
        f"{TEST_COMPLETION}::test_names_of_members_are_not_offered_to_a_shell",
    ),
    Mutant(
        "names: a new agent may have any",
        "engine/runtime/rows.py",
        "    if not ids.is_new_name(name) and not is_known_agent(work, project, name):",
        "    if False:",
        "test_a_new_name_is_one_that_no_shell_reads",
    ),
    Mutant(
        "names: a new session may have any",
        "engine/verbs/agents.py",
        '        ids.check_new_name(id, "session")',
        "        pass",
        "test_a_new_name_is_one_that_no_shell_reads",
    ),
    Mutant(
        "names: a new project may have any",
        "engine/verbs/projects.py",
        '    ids.check_new_name(name, "project")\n',
        "",
        "test_a_new_name_is_one_that_no_shell_reads",
    ),
    Mutant(
        "names: a key may name any agent",
        "engine/verbs/api_keys.py",
        '            ids.check_new_name(cmd.agent, "agent")',
        "            pass",
        "test_a_new_name_is_one_that_no_shell_reads",
    ),
    Mutant(
        "names: an agent that is stored under an old name cannot go on",
        "engine/runtime/rows.py",
        "    if not ids.is_new_name(name) and not is_known_agent(work, project, name):",
        "    if not ids.is_new_name(name):",
        "tests/engine/test_old_names.py::test_what_is_stored_under_an_old_name_goes_on",
    ),
    Mutant(
        "hints: names are not quoted",
        "core/safe_text.py",
        "    return shlex.quote(text)",
        "    return text",
        "tests/engine/test_old_names.py::test_a_name_in_a_hint_is_one_word_for_a_shell",
    ),
)
