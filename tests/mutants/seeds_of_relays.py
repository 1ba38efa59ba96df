"""Seeded bugs in relays: events lost, sent out of order, or sent by a relay that was deposed."""

from __future__ import annotations

from tests.mutants.mutant import Mutant, on

RELAY = "engine/relay/relay.py"
PAGE = "engine/relay/page.py"
ANNOUNCE = "engine/relay/announce.py"
READERS = "engine/archive/log_readers.py"
LAG = "engine/relay/lag.py"
FACTS = "engine/verbs/facts.py"

RELAYS = (
    Mutant(
        "relay: the place moves without the term",
        RELAY,
        "                )\n            )  # fmt: skip\n\n        led.transact((), decide)",
        '                )\n            )  # fmt: skip\n\n        self.engine.transact(("",), decide)',
        "test_a_relay_whose_term_is_over_in_the_store_moves_nothing",
    ),
    Mutant(
        "relay: sends on when the lease may be over",
        RELAY,
        "while sent < len(messages) and self.leading() is not None:",
        "while sent < len(messages):",
        "test_a_relay_sends_nothing_more_once_its_lease_may_be_over",
    ),
    Mutant(
        "relay: a rewind is undone by the page under way",
        RELAY,
        "if current is None or current.sequence != row.sequence:",
        "if current is None:",
        "test_a_rewind_while_a_page_is_sent_is_not_undone_by_that_page",
    ),
    Mutant(
        "relay: a page acknowledged in part counts as sent",
        RELAY,
        "end = page.end if sent == len(batch) else",
        "end = page.end if True else",
        "test_a_sink_that_fails_in_the_middle_of_a_page_gets_the_rest_again",
    ),
    Mutant(
        "relay: a paused one sends",
        RELAY,
        "if page.row.paused_at is not None:",
        "if False:",
        "test_a_paused_relay_sends_nothing_until_it_is_resumed",
    ),
    Mutant(
        "relay: a wiped sink is not noticed",
        RELAY,
        "        if identity == row.identity:",
        "        if True:",
        "test_a_wiped_sink_gets_all_ready_tasks_at_once",
    ),
    Mutant(
        "relay: reads past the log's safe end",
        PAGE,
        "engine.read(ask, follows=True)",
        "engine.read(ask)",
        on("postgres", "test_a_page_ends_before_an_event_that_is_not_yet_committed"),
    ),
    Mutant(
        "relay: a sink does not hold the archive back",
        READERS,
        "for row in sinks if row.holds_back(project)}",
        "for row in sinks if False}",
        "test_the_archive_keeps_every_event_that_a_sink_has_not_got",
    ),
    Mutant(
        "relay: a sink is never cut off",
        LAG,
        "first.time + row.max_lag < now",
        "False",
        "test_a_sink_too_far_behind_is_cut_off_and_told_first_when_it_is_back",
    ),
    Mutant(
        "relay: tasks are not announced again",
        ANNOUNCE,
        "(task.ready_at is not None and task.ready_at + READY_FOR <= now)",
        "False",
        "test_a_task_that_stays_ready_is_announced_again_with_growing_pauses",
    ),
    Mutant(
        "facts: one may pass for a real event of agents",
        FACTS,
        "    if cmd.name in _TAKEN:",
        "    if False:",
        "test_a_fact_cannot_pass_for_an_event_of_agents",
    ),
    Mutant(
        "facts: a pattern of one folder covers another",
        "core/path_patterns.py",
        "if fnmatchcase(part, wanted[at])}",
        "}",
        "test_changed_files_fire_the_triggers_on_their_paths",
    ),
    Mutant(
        "relays: a key for some projects pauses one",
        "core/roles.py",
        "check_all_projects(principal, str(type(command).__struct_config__.tag))",
        "return",
        "test_a_key_for_some_projects_neither_sees_nor_touches_relays",
    ),
    Mutant(
        "relays: a key for some projects lists them",
        "core/roles.py",
        "check_all_projects(principal, str(type(query).__struct_config__.tag))",
        "return",
        "test_a_key_for_some_projects_neither_sees_nor_touches_relays",
    ),
    Mutant(
        "facts: no rate limit",
        FACTS,
        "    _check_rate(work, cmd.project, agent, session)\n",
        "",
        "test_facts_have_a_valid_name_a_size_and_a_rate",
    ),
    Mutant(
        "relays: tasks of projects that the sink does not read are announced",
        ANNOUNCE,
        "if not row.reads(project.id):",
        "if False:",
        "test_nothing_is_announced_of_projects_that_the_sink_does_not_read",
    ),
    Mutant(
        "relays: the pause between two announcements grows without end",
        ANNOUNCE,
        "min(before.pause * 2, limits.ANNOUNCED_AGAIN)",
        "before.pause * 2",
        "test_a_task_is_announced_again_however_often_it_was_before",
    ),
)
