"""Seeded bugs in schedules, triggers, deliveries and the watch."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

TEST_COPYING = "tests/engine/test_copying.py"
TEST_DELIVERIES = "tests/server/test_deliveries.py"

SCHEDULES = "engine/sources/schedules.py"
FIRING = "engine/sources/trigger_duty.py"
PRODUCING = "engine/sources/template_tasks.py"
TRIGGERS = "core/triggers.py"
SIGNATURES = "core/signatures.py"
TRIGGERING = "engine/sources/triggers.py"
DELIVERING = "engine/sources/deliveries.py"
ROUTE = "server/delivery_routes.py"

SOURCES = (
    # --- one task a tick, and none lost
    Mutant(
        "schedule: a tick has no key",
        SCHEDULES,
        'key=f"cron:{row.id}:{tick}"',
        "key=None",
        "test_a_tick_makes_its_task_and_the_next_one_is_known",
    ),
    Mutant(
        "schedule: the next tick is not kept",
        SCHEDULES,
        "return replace(row, next_at=next_at)",
        "return row",
        "test_two_engines_that_both_believe_to_lead_make_one_task_a_tick",
    ),
    Mutant(
        "schedule: the turn's other ticks are lost",
        SCHEDULES,
        "(*due.ticks[1:], after)",
        "[after] * len(due.ticks)",
        "test_many_ticks_are_made_up_for_in_several_transactions",
    ),
    Mutant(
        "schedule: one that is broken keeps the others waiting",
        SCHEDULES,
        "except (TenureError, *OUR_FAULTS) as error:\n        work.undo_to(bookmark)\n        why",
        "except () as error:\n        why",
        "test_one_that_cannot_be_reckoned_is_paused_and_keeps_nobody_waiting",
    ),
    Mutant(
        "schedule: pauses are made up for",
        SCHEDULES,
        'at = _next(row.cron, row.zone, work.now)\n    return _kept(work, "schedule.resumed"',
        'at = _next(row.cron, row.zone, row.changed_at)\n    return _kept(work, "schedule.resumed"',
        "test_paused_it_makes_nothing_and_resumed_it_makes_up_for_nothing",
    ),
    Mutant(
        "schedule: fires with the next round only",
        "engine/duties/election.py",
        "schedules.fire, schedules.first_due)",
        "schedules.fire)",
        "test_it_fires_at_its_instant_and_not_with_the_next_round",
    ),
    Mutant(
        "schedule: a failed template leaves its rows",
        PRODUCING,
        "    except FAULTS as error:\n        work.undo_to(bookmark)\n",
        "    except FAULTS as error:\n",
        "test_a_template_that_cannot_be_made_is_told_and_the_others_go_on",
    ),
    # --- each event once, and none left out
    Mutant(
        "trigger: an event has no key",
        FIRING,
        'Cause(f"trigger:{name}:{event.id}"',
        "Cause(None",
        "test_an_event_makes_its_task_once",
    ),
    Mutant(
        "trigger: the cursor goes to the end of the log",
        FIRING,
        "work.put(replace(cursor, sequence=events[read - 1].sequence))",
        "work.put(replace(cursor, sequence=work.tx.events({}, limit=1, last=True)[0].sequence))",
        "test_many_firings_are_several_transactions",
    ),
    Mutant(
        "trigger: the cursor passes what was put off",
        FIRING,
        "sequence=events[read - 1].sequence",
        "sequence=events[-1].sequence",
        "test_many_firings_are_several_transactions",
    ),
    Mutant(
        "trigger: hears what was before it",
        FIRING,
        "event.sequence <= row.behind",
        "False",
        "test_paused_it_hears_nothing_and_resumed_what_comes_then",
    ),
    Mutant(
        "trigger: loops",
        FIRING,
        "if depth > rule.DEEPEST:",
        "if False:",
        "test_one_that_feeds_on_itself_ends_at_the_third",
    ),
    Mutant(
        "trigger: subtasks start a new chain",
        "engine/sources/triggers.py",
        "first = task if task.root is None else work.get(Task, task.project, task.root)",
        "first = task",
        "test_subtasks_of_what_it_made_count_as_its_own",
    ),
    Mutant(
        "trigger: fires without end",
        FIRING,
        "if rule.is_spent(row, work.now):",
        "if False:",
        "test_it_fires_so_often_in_an_hour_and_tells_of_the_rest_once",
    ),
    Mutant(
        "trigger: hears of itself",
        TRIGGERS,
        "not k.startswith(_NEVER_HEARD) and ",
        "",
        "test_a_pattern_means_several_kinds_and_never_those_of_triggers",
    ),
    Mutant(
        "trigger: a dag's end fires twice",
        FIRING,
        "key = f\"dag:{dag.id}:{event.details.get('run')}:{status}\"",
        "key = None",
        "test_the_end_of_a_dag_makes_what_its_plan_says_once_a_run",
    ),
    Mutant(
        "trigger: texts of others are not quoted",
        "core/templates.py",
        "if quotes is None or _PLAIN.fullmatch(found):",
        "if True:",
        "test_what_others_wrote_is_quoted",
    ),
    Mutant(
        "trigger: a cursor keeps its number in another store",
        "engine/project_copy.py",
        "        follow(work, old, (project,), where)\n",
        "",
        f"{TEST_COPYING}::test_schedules_and_triggers_go_on_there_and_not_here",
    ),
    Mutant(
        "schedule: fires where the project was, too",
        PRODUCING,
        'if not row.stopped.get(LINE, "").startswith(MOVED)',
        "if True",
        f"{TEST_COPYING}::test_schedules_and_triggers_go_on_there_and_not_here",
    ),
    # --- deliveries
    Mutant(
        "webhook: any signature",
        SIGNATURES,
        "found |= hmac.compare_digest(one, other)",
        "found = True",
        "test_what_the_secret_has_not_signed_is_refused_and_leaves_nothing[headers0]",
    ),
    Mutant(
        "webhook: a timestamp of any age",
        SIGNATURES,
        " or abs(int(time) * 1_000_000 - now) > limits.WEBHOOK_TOLERANCE",
        "",
        "test_what_is_older_or_newer_than_five_minutes_is_refused[-301]",
    ),
    Mutant(
        "webhook: the id is not signed",
        SIGNATURES,
        'signed = b"%b.%b.%b" % (id.encode(), time.encode(), body)',
        'signed = b"%b.%b" % (time.encode(), body)',
        "test_the_samples_of_the_two_standards_are_understood",
    ),
    Mutant(
        "webhook: the old secret never expires",
        SIGNATURES,
        "and now < row.previous_until and",
        "and",
        "test_a_rotated_secret_is_good_for_its_grace_and_no_longer",
    ),
    Mutant(
        "webhook: a delivery counts twice",
        DELIVERING,
        "if tasks_by_idempotency(work, project.id, key):",
        "if False:",
        "test_a_signed_delivery_makes_its_task_once[standard]",
    ),
    Mutant(
        "webhook: names can be told apart",
        DELIVERING,
        "if project is None or row is None or delivery is None:",
        "if row is None:\n        raise InvalidInput('no such trigger')\n    if project is None or delivery is None:",
        "test_what_the_secret_has_not_signed_is_refused_and_leaves_nothing[headers0]",
    ),
    Mutant(
        "webhook: the secret is in the log",
        "core/records.py",
        'frozenset({"secret", "previous", "held_back", "reported_at", "behind"})',
        'frozenset({"previous", "held_back", "reported_at", "behind"})',
        "test_a_senders_own_secret_is_taken",
    ),
    Mutant(
        "webhook: a repeat rotates again",
        TRIGGERING,
        "    if is_repeat(work, row, cmd):\n        key = trigger_secrets",
        "    if False:\n        key = trigger_secrets",
        "test_the_secret_is_shown_once_and_again_to_the_same_request_only",
    ),
    Mutant(
        "webhook: a body is read of anybody",
        ROUTE,
        "if not signatures.is_signed(headers):",
        "if False:",
        f"{TEST_DELIVERIES}::test_without_a_signature_no_body_is_waited_for",
    ),
    Mutant(
        "webhook: guessers are heard",
        ROUTE,
        "        self._failures.take(name)\n",
        "",
        f"{TEST_DELIVERIES}::test_what_is_not_genuine_is_told_nothing_and_keeps_nothing_genuine_out",
    ),
    # --- the watch
    Mutant(
        "watch: about itself",
        "engine/sources/failure_watch.py",
        " or first.created_by.startswith(failure_watch.CREATED_BY):",
        ":",
        "test_its_own_tasks_and_their_subtasks_do_not_count",
    ),
    Mutant(
        "watch: again while one is open",
        "engine/sources/failure_watch.py",
        "        and not _is_open(asked.get(subject.name))\n",
        "",
        "test_while_it_is_open_no_other_is_made_and_what_it_looked_into_counts_no_more",
    ),
    Mutant(
        "watch: what was looked into counts again",
        "core/failure_watch.py",
        "if attempt.at > investigated.get(name, -1):",
        "if True:",
        "test_while_it_is_open_no_other_is_made_and_what_it_looked_into_counts_no_more",
    ),
    Mutant(
        "watch: agents' troubles count",
        "core/failure_watch.py",
        "and error_class in retry.COUNTING",
        "",
        "test_what_is_no_fault_of_the_work_does_not_count",
    ),
)
