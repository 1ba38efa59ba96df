"""Seeded bugs of what is sent again, of modes, readers of the log, and agents that an operator has stopped."""

from __future__ import annotations

from tests.mutants.mutant import Mutant, on

TEST_POSTGRES_SHARING = "tests/stores/test_postgres_sharing.py"


REPEATS = (
    Mutant(
        "commands run in a project that does not exist",
        "engine/runtime/decision.py",
        "if project is None and type(command) not in _WITHOUT_PROJECT:",
        "if False:",
        "test_an_unknown_project_is_not_found_by_any_command",
    ),
    Mutant(
        "queries are answered in a project that does not exist",
        "engine/reads/query_table.py",
        "if type(query) not in _WITHOUT_PROJECT:",
        "if False:",
        "test_an_unknown_project_is_not_found_by_any_query",
    ),
    Mutant(
        "a waiting write of a holder does not ask the newer row for its epoch and state",
        "stores/postgres/hot_statements.py",
        """t.generation = f.generation AND t.claim_epoch = $3
        AND t.state = f.was AND t.renewals = f.renewals AND t.plain\"\"\"""",
        """t.generation = f.generation\"\"\"""",
        f"{TEST_POSTGRES_SHARING}::test_every_write_of_a_holder_asks_its_own_row_for_all_that_makes_it_the_holders",
    ),
    Mutant(
        "a waiting submission goes by the address alone",
        "stores/postgres/hot_statements.py",
        """plain = false
    FROM found AS f WHERE {still_held}""",
        """plain = false
    FROM found AS f WHERE t.ctid = f.held_at AND t.id = f.id""",
        f"{TEST_POSTGRES_SHARING}::test_who_comes_second_to_a_row_begins_anew",
    ),
    Mutant(
        "a waiting renewal goes by the address alone",
        "stores/postgres/hot_statements.py",
        """ELSE t.version END
    FROM found AS f WHERE {still_held}""",
        """ELSE t.version END
    FROM found AS f WHERE t.ctid = f.held_at AND t.id = f.id""",
        f"{TEST_POSTGRES_SHARING}::test_who_comes_second_to_a_row_begins_anew",
    ),
    Mutant(
        "a waiting submission ends a claim by its address alone",
        "stores/postgres/hot_statements.py",
        "FROM found AS f WHERE {still_claimed}",
        "FROM found AS f WHERE c.ctid = f.claimed_at AND c.id = f.id || '@' || f.generation",
        f"{TEST_POSTGRES_SHARING}::test_every_write_of_a_holder_asks_its_own_row_for_all_that_makes_it_the_holders",
    ),
    Mutant(
        "a reservation keeps its mode",
        "engine/verbs/reserve.py",
        "[replace(mine[p], mode=mode) for p",
        "[mine[p] for p",
        "test_a_reservation_that_stands_alone_changes_its_mode_by_its_own_receipt",
    ),
    Mutant(
        "a mode is raised without a check of others",
        "engine/verbs/reserve.py",
        "    if other is not None:",
        "    if other is not None and not (cmd.receipt and cmd.mode == 'exclusive' and other.mode == 'shared'):",
        "test_a_reservation_that_stands_alone_changes_its_mode_by_its_own_receipt",
    ),
    Mutant(
        "a class whose attempt is given back is retried whatever the policy says",
        "core/claims.py",
        "if error_class is not None and retry is not None and not is_retried(retry, error_class):",
        "if False:",
        "test_a_policy_speaks_for_every_class_also_where_the_attempt_is_given_back[environment]",
    ),
    Mutant(
        "a link that is there keeps what its failure means",
        "engine/verbs/graph.py",
        "    if there is not None and there.on_failure == cmd.on_failure:",
        "    if there is not None:",
        "test_what_a_failure_means_can_be_changed_on_a_link_that_is_there",
    ),
    Mutant(
        "a changed link is not judged at once",
        "engine/verbs/create.py",
        "    if graph.cascades(edge, needs.state):\n        task = cancel_task",
        "    if False:\n        task = cancel_task",
        "test_a_link_changed_after_the_failure_is_judged_at_once[cancel-cancelled]",
    ),
    Mutant(
        "a retry restores what others had cancelled",
        "engine/runtime/effects.py",
        "    return why.origin == letter if why.origin is not None else why.source == near.id",
        "    return why.source == near.id",
        "test_a_retry_restores_what_its_failure_cancelled_and_nothing_else",
    ),
    Mutant(
        "a landing takes the place of the one before",
        "engine/verbs/land.py",
        "landing_id(claim.id, len(recorded) + 1)",
        "claim.id",
        "test_every_landing_under_one_claim_keeps_its_own_record",
    ),
    Mutant(
        "a holder's request is not kept with its claim",
        "engine/runtime/decision.py",
        "            work.put(_with_answer(claim, command, outcome))",
        "            pass",
        "test_another_verb_with_the_same_request_id_is_refused",
    ),
    Mutant(
        "a zombie's reservation is granted again",
        "engine/runtime/decision.py",
        "    if isinstance(command, c.Reserve):\n        from tenure.engine.verbs.holder_verbs import held",
        "    if False:\n        from tenure.engine.verbs.holder_verbs import held",
        "test_a_zombies_repeated_reserve_is_refused",
    ),
    Mutant(
        "a reservation that ran out is granted again",
        "engine/runtime/decision.py",
        "    if isinstance(command, c.Reserve):\n        from tenure.engine.verbs.reserve",
        "    if False:\n        from tenure.engine.verbs.reserve",
        "test_a_reservation_that_ran_out_is_not_granted_again_by_its_request",
    ),
    Mutant(
        "a request id serves any content",
        "engine/runtime/decision.py",
        "    if not is_same(kept, command, owner):",
        "    if False:",
        "test_a_request_id_is_good_for_one_content_only",
    ),
    Mutant(
        "an answer goes to any caller with the request id",
        "engine/runtime/decision.py",
        "return claim if is_genuine(receipt, claim) else None",
        "return claim",
        "test_a_forged_receipt_is_told_nothing",
    ),
    Mutant(
        "a claim remembers all its requests",
        "engine/runtime/decision.py",
        "if len(kept) == MOST_ANSWERED or size > LARGEST_ANSWERED:",
        "if False:",
        "test_a_claim_remembers_its_last_requests_and_no_more",
    ),
    Mutant(
        "digests of an earlier version never match",
        "core/commands/command.py",
        "kept == (digest_of(command, owner) if kept.startswith(FORM) else first_form(command))",
        "kept == digest_of(command, owner)",
        "test_a_claim_of_an_earlier_version_is_still_known_by_its_request",
    ),
    Mutant(
        "defaults count in a digest",
        "core/commands/command.py",
        "            if item is not default and item != default and item != former.get(name, default)",
        "            if True",
        "tests/core/test_digests.py::test_a_field_that_has_its_default_does_not_count",
    ),
    Mutant(
        "the archive takes events that no reader has passed",
        "engine/archive/log_readers.py",
        "    if not places or not tasks:",
        "    if True:",
        "test_the_slowest_of_several_readers_holds_back_what_it_has_not_passed",
    ),
    Mutant(
        "the quickest reader decides what goes",
        "engine/archive/log_readers.py",
        "min(places.values())",
        "max(places.values())",
        "test_the_slowest_of_several_readers_holds_back_what_it_has_not_passed",
    ),
    Mutant(
        "a terminated agent claims by name",
        "engine/verbs/claim.py",
        "        denied_by_agent(claimant)\n        or _denied_by_state",
        "        None\n        or _denied_by_state",
        "test_a_terminated_agent_claims_nothing_until_it_is_resumed[True]",
    ),
    Mutant(
        "a terminated agent claims the next task",
        "engine/verbs/claim.py",
        "denial = denied_by_agent(claimant) or denied_by_limit(work, claimant)",
        "denial = denied_by_limit(work, claimant)",
        "test_a_terminated_agent_claims_nothing_until_it_is_resumed[True]",
    ),
    Mutant(
        "the fast path knows no terminated agents",
        "stores/postgres/hot_statements.py",
        "OR a.terminated_at IS NOT NULL ",
        "",
        on("postgres", "test_graceful_lets_the_current_task_finish_and_then_it_is_offline"),
    ),
    Mutant(
        "an agent's own word lifts what an operator said",
        "engine/verbs/agents.py",
        "        **_said_by_operators(before),\n",
        "",
        "test_its_own_word_lifts_neither_a_drain_nor_an_end",
    ),
    Mutant(
        "a sign of life brings a terminated agent back",
        "engine/verbs/agents.py",
        "    is_ended = agent.terminated_at is not None and agent.left_at is not None",
        "    is_ended = False",
        "test_a_terminated_agent_claims_nothing_until_it_is_resumed[True]",
    ),
    Mutant(
        "a terminated agent stays when its last claim ends",
        "engine/runtime/effects.py",
        "            _let_agent_go(work, before)",
        "            pass",
        "test_however_the_last_claim_ends_the_agent_ends_with_it[fail]",
    ),
    Mutant(
        "a terminated agent ends before its last claim",
        "engine/runtime/effects.py",
        '    if work.find(Task, {"project": agent.project, "agent": agent.id}, limit=1):\n        return agent',
        "    pass",
        "test_graceful_lets_the_current_task_finish_and_then_it_is_offline",
    ),
    Mutant(
        "a renewal does not say that the agent was terminated",
        "engine/verbs/brief.py",
        "agent is not None and agent.terminated_at is not None:",
        "False:",
        "test_the_renewals_of_a_terminated_agent_say_so_alone_and_in_a_batch",
    ),
    Mutant(
        "fast path: a renewal does not say that the agent was terminated",
        "stores/postgres/hot_statements.py",
        "        AND a.terminated_at IS NULL\n",
        "",
        on("postgres", "test_the_renewals_of_a_terminated_agent_say_so_alone_and_in_a_batch"),
    ),
    Mutant(
        "waiting: a claim is not woken when its agent is terminated",
        "server/waiting_claims.py",
        "            if event.kind in _ENDS_WAITING:",
        "            if False:",
        "tests/server/test_waiting_claims.py::test_who_waits_as_an_agent_that_an_operator_ends_hears_it_at_once",
    ),
)
