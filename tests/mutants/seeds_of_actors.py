"""Seeded bugs in who an event names, what it says to readers outside, and what a policy or a budget obeys."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

MEMORY = "tests/engine/test_on_memory.py::TestOnMemory"
KEYS = "tests/sinks/test_redis_keys.py"
KEYED = "tests/sinks/test_keyed_sink.py"
ACCESS = "tests/server/observability/test_access_log.py"
WHO = f"{MEMORY}::test_an_event_names_who_acted_and_not_who_holds_the_task"

ACTORS = (
    Mutant(
        "actors: what a person does on a held task is the holder's",
        "core/commands/command.py",
        "agent = holder if is_time else principal.agent or spoken",
        "agent = holder if is_time else principal.agent or spoken or holder",
        WHO,
    ),
    Mutant(
        "actors: whose claim it is goes missing",
        "core/commands/command.py",
        "return agent, {} if holder in (None, agent) else {HOLDER: holder}",
        "return agent, {}",
        f"{MEMORY}::test_a_claim_that_ends_by_another_keeps_its_session_and_holder",
    ),
    Mutant(
        "actors: a receipt acts for its holder, whoever presents it",
        "core/commands/command.py",
        "agent = holder if is_time else principal.agent or spoken",
        "agent = holder if is_time else spoken or principal.agent",
        WHO,
    ),
    Mutant(
        "actors: time acts for nobody",
        "core/commands/command.py",
        "agent = holder if is_time else principal.agent or spoken",
        "agent = principal.agent or spoken",
        f"{MEMORY}::test_what_time_does_names_the_holder_alone",
    ),
    Mutant(
        "actors: an event about an agent hides who acted",
        "core/commands/command.py",
        "return {BY: principal.name} if is_other else {}",
        "return {}",
        f"{MEMORY}::test_an_event_about_another_agent_says_who_acted",
    ),
    Mutant(
        "actors: the lineage names the holder alone",
        "core/actors.py",
        "return event.agent in (None, claim.agent) and is_user",
        "return True",
        f"{MEMORY}::test_the_lineage_says_who_claimed_or_submitted_for_another",
    ),
    Mutant(
        "actors: a verdict is taken for a submission",
        "engine/reads/tasks.py",
        "if claim is None or is_verdict:",
        "if claim is None:",
        f"{MEMORY}::test_a_refused_result_and_a_verdict_say_whose_they_are",
    ),
    Mutant(
        "actors: details show raw microseconds",
        "sinks/fields.py",
        "return format_instant(value) if type(value) is int else value",
        "return value",
        "tests/sinks/test_envelope.py::test_details_are_shown_by_the_types_of_their_fields",
    ),
    Mutant(
        "actors: what an author wrote is read as fields of rows",
        "sinks/fields.py",
        '        case "any":\n            return value\n',
        "",
        "tests/sinks/test_envelope.py::test_details_are_shown_by_the_types_of_their_fields",
    ),
    Mutant(
        "actors: what is given back is announced as a retry",
        "sinks/envelope.py",
        'if event.kind == "task.failed" and event.details.get("given_back"):',
        "if False:",
        f"{MEMORY}::test_a_command_says_why_its_task_is_ready",
    ),
    Mutant(
        "actors: a claim hides the message that asked for it",
        "sinks/envelope.py",
        'cause = event.details.get("caused_by") or event.causation_id',
        "cause = event.causation_id",
        f"{MEMORY}::test_a_claim_that_a_message_asked_for_names_that_message",
    ),
    Mutant(
        "actors: a dead letter was one before",
        "sinks/envelope.py",
        "payload.pop(STATE_BEFORE, event.previous_state)",
        "event.previous_state",
        f"{MEMORY}::test_dead_letters_and_retries_name_the_state_before_them",
    ),
    Mutant(
        "actors: a person's fact has the subject of every fact",
        "sinks/envelope.py",
        'payload.get("agent_type") or facts.agent_type',
        "facts.agent_type",
        f"{MEMORY}::test_a_person_s_fact_has_the_subject_of_people",
    ),
    Mutant(
        "actors: a class that a policy names is given back all the same",
        "core/claims.py",
        "counts = not trouble or error_class in policy.retry_on or",
        "counts = not trouble or",
        f"{MEMORY}::test_a_class_that_the_policy_names_is_retried_as_it_says_and_not_given_back",
    ),
    Mutant(
        "actors: a lost lease obeys no policy",
        "core/claims.py",
        "is_last = is_last or LEASE_EXPIRED in policy.no_retry_on",
        "pass",
        f"{MEMORY}::test_a_policy_may_forbid_the_retry_of_a_lost_lease",
    ),
    Mutant(
        "actors: a budget that a holder found exceeded resumes nothing",
        "engine/budgets/budget_verbs.py",
        'return id in counts_in(work, project_of(work, task.project), task, (pause.by or "").removeprefix("agent:"))',
        "return False",
        f"{MEMORY}::test_a_budget_that_its_holder_found_exceeded_resumes_it_when_it_is_set_or_raised",
    ),
    Mutant(
        "actors: any budget resumes what a holder found exceeded",
        "engine/budgets/budget_verbs.py",
        'return id in counts_in(work, project_of(work, task.project), task, (pause.by or "").removeprefix("agent:"))',
        "return True",
        f"{MEMORY}::test_a_budget_that_its_holder_found_exceeded_resumes_it_when_it_is_set_or_raised",
    ),
    Mutant(
        "actors: what was spent before a budget counts in its past",
        "engine/past/past_budgets.py",
        "elif before is not None and begun.since == since:",
        "elif False:",
        f"{MEMORY}::test_usage_from_before_a_budget_never_counts_in_it",
    ),
    Mutant(
        "actors: two projects share the keys of an agent",
        "sinks/redis_keys.py",
        'self._project(together, f"{start}:{_part(project)}", state, snapshot.now)',
        'self._project(together, f"{start}:p", state, snapshot.now)',
        f"{KEYS}::test_agents_and_sessions_of_one_name_in_two_projects_stay_apart",
    ),
    Mutant(
        "actors: a held task in Redis is who edits it",
        "sinks/redis_keys.py",
        'payload.get("holder") or payload["agent_id"]',
        'payload["agent_id"]',
        f"{KEYS}::test_a_task_moves_from_ready_to_active_and_away",
    ),
    Mutant(
        "actors: a snapshot deletes the keys of another sink",
        "sinks/redis_keys.py",
        '_LASTING.fullmatch(key.removeprefix(f"{start}:"))',
        '"agent:status" in key',
        f"{KEYS}::test_a_snapshot_leaves_the_keys_of_a_tenant_whose_prefix_is_this_tenants_name",
    ),
    Mutant(
        "actors: one queue of all boosts",
        "engine/relay/runtime_keys.py",
        "heads.setdefault(priority.parse_lane(lane).boost, [])",
        "heads.setdefault(0, [])",
        f"{KEYED}::test_each_queue_is_in_the_order_of_claims",
    ),
    Mutant(
        "actors: alerts in Redis outlive their cause",
        "sinks/redis_keys.py",
        'any(body["kind"].startswith("evt.budget.") for body in bodies)',
        'any(body["kind"] == "evt.budget.alert" for body in bodies)',
        f"{KEYED}::test_alerts_name_project_and_task_and_end_when_the_budget_is_raised",
    ),
    Mutant(
        "actors: the access log hides whose credential was refused",
        "server/auth/request_source.py",
        "            scope[CALLER] = callers[-1]\n",
        "            pass\n",
        f"{ACCESS}::test_a_line_names_who_is_refused_and_in_whose_name_an_agents_key_was_made",
    ),
    Mutant(
        "actors: lines that were lost are nothing to say",
        "core/access_chain.py",
        "        if line.lost:\n",
        "        if False:\n",
        f"{ACCESS}::test_a_line_that_cannot_be_written_is_counted_in_the_next",
    ),
    Mutant(
        "actors: a workspace is a project",
        "sinks/webhook.py",
        'msgspec.json.decode(envelope["tenant"])',
        "event.project",
        "tests/sinks/test_webhook.py::test_a_change_of_status_has_its_seven_fields_beside_the_envelope",
    ),
    Mutant(
        "actors: the input context is one level too deep",
        "spawners/gateway_wire.py",
        "return inner if isinstance(inner, dict) else given",
        "return given",
        "tests/spawners/test_gateway.py::test_the_input_context_is_what_the_task_has_as_context",
    ),
)
