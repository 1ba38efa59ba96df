"""Seeded bugs in who takes what: the track router, the order by length, automatic leases, the leader among agents."""

from __future__ import annotations

from tests.mutants.mutant import Mutant, on

CLAIM = "engine/verbs/claim.py"
FAST_PATH = "engine/runtime/fast_path/command_run.py"
LEAD = "engine/verbs/lead.py"
LEASE = "engine/verbs/lease_length.py"
OPERATORS = "engine/verbs/operator_verbs.py"
PRIORITY = "core/priority.py"
ROLES = "core/roles.py"
ROUTER = "engine/verbs/track_router.py"
SETTLE = "core/settle.py"
TRACKS = "core/tracks.py"
BOTH_WAYS = on("postgres", "test_a_project_that_assigns_orders_or_leads_leaves_the_same")

ASSIGNMENT = (
    # --- tracks ---
    Mutant(
        "router: a claim by name does not ask for the track",
        "engine/verbs/claim_rules.py",
        "    _denied_by_skill,\n    _denied_by_track,\n",
        "    _denied_by_skill,\n",
        "test_a_track_belongs_to_the_first_agent_that_claims_there",
    ),
    Mutant(
        "router: the next task may be of any track",
        PRIORITY,
        "    if lane.track in profile.taken:\n",
        "    if False:\n",
        "test_the_next_task_is_one_of_a_track_that_is_free",
    ),
    Mutant(
        "router: a claim does not assign the track",
        CLAIM,
        "        claimed_on_track(work, held, claimant.agent.id)\n",
        "        pass\n",
        "test_a_track_belongs_to_the_first_agent_that_claims_there",
    ),
    Mutant(
        "router: one agent more than the track allows",
        TRACKS,
        "len(there) >= track.max_agents",
        "len(there) > track.max_agents",
        "test_a_track_takes_as_many_agents_as_it_allows",
    ),
    Mutant(
        "router: an idle agent keeps its track",
        TRACKS,
        "if (end := ends_at(track, agent)) is None or end > now)",
        "if True)",
        "test_it_stays_assigned_for_ten_minutes_after_the_last_claim",
    ),
    Mutant(
        "router: the idle time counts from when somebody looked",
        ROUTER,
        "agent: work.instant}",
        "agent: work.now}",
        "test_the_ten_minutes_count_from_the_end_of_a_lease_whoever_looked",
    ),
    Mutant(
        "router: idle though it holds another task there",
        ROUTER,
        "agent not in track.assigned or _holds(work, track, agent)",
        "agent not in track.assigned",
        "test_an_agent_with_two_tasks_is_idle_after_both",
    ),
    Mutant(
        "router: a claim does not end the idle time",
        ROUTER,
        "    elif agent in track.idle_since:\n",
        "    elif False:\n",
        "test_another_claim_there_ends_the_idle_time",
    ),
    Mutant(
        "router: an agent that left keeps its tracks",
        "engine/verbs/agents.py",
        '        free_places(work, agent, "it has left")\n',
        "",
        "test_the_track_of_an_agent_that_leaves_is_free_at_once",
    ),
    Mutant(
        "an agent that is gone keeps its leadership",
        "engine/runtime/effects.py",
        "    lost_by(work, agent, why)\n",
        "",
        "test_the_end_of_the_agent_ends_its_term[False-leave]",
    ),
    Mutant(
        "an agent that may finish what it holds keeps its leadership",
        "engine/verbs/agents.py",
        '    lost_by(work, agent, "it was terminated")  # though it may finish what it holds\n',
        "",
        "test_who_is_asked_to_finish_leads_no_more_though_it_holds_a_task",
    ),
    Mutant(
        "another agent that leaves ends the leadership",
        LEAD,
        "leader is not None and leader.holder == agent.id and leader.until > work.now",
        "leader is not None and leader.until > work.now",
        "test_the_end_of_another_agent_ends_no_term[leave]",
    ),
    Mutant(
        "router: an offer does not ask for the track",
        ROUTER,
        "    if refusal is not None:\n        raise Refused(refusal)\n    track",
        "    track",
        "test_an_offer_needs_the_track_and_takes_it",
    ),
    Mutant(
        "router: the fast path takes a routed project",
        "engine/runtime/fast_path/command_run.py",
        "not self.project.router and not leads_agents(context, self.project)",
        "not leads_agents(context, self.project)",
        on("postgres", "test_a_claim_of_a_plain_task_assigns_its_track[eager]"),
    ),
    # --- order ---
    Mutant(
        "order: a long estimate counts in full",
        PRIORITY,
        "min(estimate, limits.ORDER_LONGEST)",
        "estimate",
        "test_estimates_count_up_to_four_hours",
    ),
    Mutant(
        "order: the length follows an edit",
        PRIORITY,
        "        return task.created_at + task.length\n",
        "        return task.created_at + (task.estimate or task.length)\n",
        "test_the_length_is_fixed_when_the_task_is_created",
    ),
    Mutant(
        "order: tasks of an earlier order wait for newer ones",
        PRIORITY,
        "    return _TIER_BANDS * task.order_turn + tier\n",
        "    return tier\n",
        "test_back_in_the_order_of_priority_no_task_by_length_is_overtaken",
    ),
    Mutant(
        "order: a reordered page ends the reordering",
        "engine/verbs/projects.py",
        "page[-1].id if len(page) == PAGE else None",
        "None",
        "test_reorder_goes_page_by_page",
    ),
    # --- like tasks, leases, hung work ---
    Mutant(
        "like: any type and track",
        CLAIM,
        "replace(cmd, types=(first.type,), tracks=(first.track,))",
        "cmd",
        "test_like_tasks_are_of_the_type_and_track_of_the_first",
    ),
    Mutant(
        "lease: automatic beyond the limits",
        LEASE,
        "    if length > high:\n",
        "    if False:\n",
        "test_an_automatic_lease_stays_within_the_limits",
    ),
    Mutant(
        "lease: automatic by too few samples",
        LEASE,
        "len(lengths) < SAMPLES",
        "not lengths",
        "test_an_automatic_lease_is_what_nearly_all_tasks_of_the_type_took",
    ),
    Mutant(
        "hung: a task with an estimate is plain",
        SETTLE,
        "task.max_duration is task.estimate is task.done_by",
        "task.max_duration is task.done_by",
        on("postgres", "test_a_holder_that_only_renews_is_warned_too"),
    ),
    Mutant(
        "hung: the end that a holder announced is no due time",
        SETTLE,
        "if task.done_by is task.deadline is",
        "if task.deadline is",
        "tests/core/test_settle.py::test_any_time_of_a_held_task_makes_it_due_before_its_lease_ends",
    ),
    Mutant(
        "deadline: of a held task it is no due time",
        SETTLE,
        "task.done_by is task.deadline is",
        "task.done_by is",
        "tests/core/test_settle.py::test_any_time_of_a_held_task_makes_it_due_before_its_lease_ends",
    ),
    Mutant(
        "hung: the estimate is not asked",
        SETTLE,
        "    if task.estimate is None or task.claimed_at is None:\n",
        "    if True:\n",
        "test_a_holder_is_warned_at_three_times_the_estimate_and_aborted_later",
    ),
    # --- the leader among agents ---
    Mutant(
        "leader: an offer without a check of the term",
        OPERATORS,
        "def assign(work: UnitOfWork, cmd: commands.Assign) -> Outcome:\n    check_led(work, cmd)\n",
        "def assign(work: UnitOfWork, cmd: commands.Assign) -> Outcome:\n",
        ("test_another_term_is_refused", "test_a_deposed_leader_may_not"),
    ),
    Mutant(
        "leader: a reassignment without a check of the term",
        OPERATORS,
        '''offer the task to another agent."""
    check_led(work, cmd)
''',
        '''offer the task to another agent."""
''',
        "test_another_term_is_refused",
    ),
    Mutant(
        "leader: a recovery without a check of the term",
        OPERATORS,
        "def recover(work: UnitOfWork, cmd: commands.Recover) -> Outcome:\n    check_led(work, cmd)\n",
        "def recover(work: UnitOfWork, cmd: commands.Recover) -> Outcome:\n",
        "test_another_term_is_refused",
    ),
    Mutant(
        "leader: an agent without a name passes for the leader",
        LEAD,
        'work.principal.agent or ("" if work.principal.role == "agent" or leader is None else leader.holder)',
        'work.principal.agent or ("" if leader is None else leader.holder)',
        "test_another_agent_may_not_use_the_leaders_term",
    ),
    Mutant(
        "leader: the project's setting is not asked",
        ROLES,
        "    if not agents_lead(setting, elects=elects):\n",
        "    if False:\n",
        (
            "test_no_key_leads_where_the_project_does_not_let_agents_lead",
            "test_in_a_store_without_a_server_no_agent_leads_where_the_project_says_off",
        ),
    ),
    Mutant(
        "leader: without the capability",
        ROLES,
        "    if not can_lead(principal):\n",
        "    if False:\n",
        "test_over_http_no_key_leads_without_the_capability",
    ),
    Mutant(
        "leader: elected by its commands without the capability",
        LEAD,
        "isinstance(command, ELECTING) and roles.can_lead(work.principal)",
        "isinstance(command, ELECTING)",
        "test_over_http_no_key_leads_without_the_capability",
    ),
    Mutant(
        "leader: by its term where agents lead no more",
        LEAD,
        "        return\n    _check_leads(work, cmd)\n",
        "        return\n",
        "test_a_leader_by_setting_and_capability_does_its_work",
    ),
    Mutant(
        "leave: a session with claims of another key",
        ROLES,
        "principal.is_served and claim.key not in (None, principal.key)",
        "False",
        "test_a_key_for_any_agent_ends_no_session_with_claims_of_another_key",
    ),
    Mutant(
        "leader: an agent operates without a term",
        ROLES,
        "(isinstance(command, _LED) and command.term is not None)",
        "isinstance(command, _LED)",
        "test_without_a_term_an_agent_may_not",
    ),
    Mutant(
        "leader: elected while another leads",
        LEAD,
        """process=leader.process or process))
        return
""",
        """process=leader.process or process))
        leader = replace(leader, until=work.now)
""",
        "test_the_first_agent_that_joins_or_claims_leads",
    ),
    Mutant(
        "leader: renewed by the commands of others",
        LEAD,
        "leader.is_auto and leader.holder == agent and",
        "leader.is_auto and",
        "test_commands_of_others_do_not_renew",
    ),
    Mutant(
        "leader: the renewal is written with each command",
        LEAD,
        " and leader.until - work.now <= leader.lease - written",
        "",
        "test_a_renewal_is_written_at_most_every_ten_seconds",
    ),
    Mutant(
        "leader: lost twice",
        LEAD,
        "    if leader.until > work.now or leader.is_lost:\n",
        "    if leader.until > work.now:\n",
        "test_a_lost_leader_is_announced_once",
    ),
    Mutant(
        "leader: leads on without its process",
        "engine/verbs/agents.py",
        "    led = lost_with(work, cmd.project, wanted)\n",
        "    led = False\n",
        "test_the_end_of_its_process_ends_its_term",
    ),
    Mutant(
        "leader: the fast path renews nothing",
        "engine/runtime/fast_path/command_run.py",
        "not self.project.router and not leads_agents(context, self.project)",
        "not self.project.router",
        on("postgres", "test_its_commands_renew_and_the_lease_is_thirty_seconds"),
    ),
    Mutant(
        "leader: an offer forgets its term",
        OPERATORS,
        "offer_until=work.now + until, offer_term=cmd.term)",
        "offer_until=work.now + until)",
        "test_an_offer_records_the_term_and_the_claim_shows_it",
    ),
    Mutant(
        "router: an agent that left stays pinned",
        TRACKS,
        "pinned=tuple(name for name in track.pinned if name not in gone),",
        "pinned=track.pinned,",
        "tests/core/test_tracks.py::test_a_pinned_agent_is_assigned_until_it_leaves_and_no_other_is_pinned",
    ),
)
