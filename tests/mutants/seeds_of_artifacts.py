"""Seeded bugs in artifacts."""

from __future__ import annotations

from tests.mutants.mutant import Mutant, on

TEST_WORKER_GOES_ON = "tests/client/test_worker_goes_on.py"
CORE_TEST_ARTIFACTS = "tests/core/test_artifacts.py"

CORE, PUT = "core/artifacts.py", "engine/artifacts/artifact_verbs.py"

ARTIFACTS = (
    # --- the fence
    Mutant(
        "artifact: a zombie's is named",
        PUT,
        "if hold.refusal is not None and not is_same and not rules.may_put_late(name, hold.verdict.code):",
        "if hold.refusal is not None and not hold.verdict.genuine:",
        "test_what_a_zombie_has_put_is_taken_away",
    ),
    Mutant(
        "artifact: anything may come late",
        CORE,
        "return name == TRANSCRIPT and code in",
        "return code in",
        "test_whether_it_could_be_put_is_told_before_the_bytes_come",
    ),
    Mutant(
        "artifact: a transcript may come after the next claim",
        CORE,
        '_NOT_OVERTAKEN = ("NO_CLAIM",',
        '_NOT_OVERTAKEN = ("STALE_GENERATION", "NO_CLAIM",',
        "test_a_transcript_may_come_after_the_last_word_until_another_has_the_task",
    ),
    Mutant(
        "artifact: not asked before the bytes come",
        PUT,
        "                return hold.refusal\n            if (denial",
        "                pass\n            if (denial",
        "test_whether_it_could_be_put_is_told_before_the_bytes_come",
    ),
    # --- what is handed on
    Mutant(
        "artifact: earlier runs are passed on",
        CORE,
        "if run is None or row.run == run:",
        "if True:",
        "test_a_task_that_was_started_over_brings_only_its_new_run",
    ),
    Mutant(
        "artifact: transcripts are passed on",
        CORE,
        " if row.name != TRANSCRIPT)",
        ")",
        "test_the_next_task_gets_what_the_result_brought",
    ),
    Mutant(
        "artifact: the first of a name wins",
        CORE,
        "key=lambda row: row.generation):",
        "key=lambda row: -row.generation):",
        "test_a_later_generation_wins_and_earlier_names_go_along",
    ),
    Mutant(
        "artifact: tasks with some are plain",
        "core/settle.py",
        " or task.artifacts:",
        ":",
        on("postgres", "test_the_next_task_gets_what_the_result_brought"),
    ),
    # --- the bytes
    Mutant(
        "artifact: bytes go at once",
        CORE,
        "KEPT_IDLE = limits.ARTIFACT_IDLE",
        "KEPT_IDLE = 0",
        "test_an_artifact_is_named_shown_and_told",
    ),
    Mutant(
        "artifact: a sweep's word is not heeded",
        CORE,
        "content.dropped_at + GOING >= since",
        "False",
        "test_a_put_that_a_sweep_may_have_undone_is_refused_and_sent_again",
    ),
    Mutant(
        "artifact: a sweep takes its time",
        CORE,
        "content.dropped_at + GOING >= since",
        "content.dropped_at >= since",
        f"{CORE_TEST_ARTIFACTS}::test_a_sweep_may_be_on_its_way_for_a_while_after_it_said_so",
    ),
    Mutant(
        "artifact: a put may take days",
        CORE,
        "    if now - since >= KEPT_IDLE:\n        return True\n",
        "",
        f"{CORE_TEST_ARTIFACTS}::test_a_put_that_took_days_is_not_believed",
    ),
    Mutant(
        "artifact: forgotten too soon",
        CORE,
        "content.dropped_at + GOING + KEPT_IDLE <= now",
        "True",
        f"{CORE_TEST_ARTIFACTS}::test_what_was_deleted_is_remembered_for_as_long_as_a_put_may_take",
    ),
    Mutant(
        "artifact: replaced bytes are still counted",
        PUT,
        "        let_go(work, cmd.project, {mine.digest: 1})",
        "        pass",
        "test_another_content_takes_the_place_of_the_first_in_its_generation",
    ),
    Mutant(
        "artifact: pruned ones are still counted",
        "engine/archive/mover.py",
        "            _let_go(work, row)\n",
        "",
        "test_bytes_of_pruned_tasks_are_deleted_a_day_later",
    ),
    Mutant(
        "artifact: names that no folder could hold",
        PUT,
        "    rules.check_beside(",
        "    0 and rules.check_beside(",
        "test_names_that_no_folder_could_hold_together_are_refused[Report.md-report.md]",
    ),
    Mutant(
        "artifact: no bound on their size",
        PUT,
        "    rules.check_size(work.limits_of(hold.project), cmd.size)\n",
        "",
        "test_sizes_are_bounded_by_the_limit_of_results",
    ),
    # --- on the way
    Mutant(
        "artifact: served to be shown",
        "server/artifact_routes.py",
        'f"attachment; filename',
        'f"inline; filename',
        "tests/server/test_artifacts.py::test_what_is_handed_out_is_for_saving_not_for_showing",
    ),
    Mutant(
        "artifact: the end of a wrong content is served",
        "artifacts/port.py",
        "self._hash is not None and self._hash.hexdigest() != self._digest",
        "False",
        "tests/client/test_artifacts.py::TestServed::test_nobody_gets_all_of_a_wrong_content",
    ),
    # --- hung work
    Mutant(
        "hung: the runner takes it again",
        "agents/runner/held_claim.py",
        '== "SUPERSEDED" and ending.get("error_class") == "timeout"',
        '== "NEVER"',
        "tests/runner/test_continuation.py::test_a_hung_agent_is_warned_then_ended_and_no_second_is_begun",
    ),
    Mutant(
        "worker: an unanswered claim asks for more when it is sent again",
        "client/worker/worker.py",
        "claim = unanswered = unanswered or self._asked_for(free, is_last)",
        "claim = unanswered = self._asked_for(self.concurrency, is_last)",
        f"{TEST_WORKER_GOES_ON}::test_a_claim_whose_answer_was_lost_is_sent_again_unchanged",
    ),
    Mutant(
        "worker: a message is worth one claim alone",
        "client/worker/message_source.py",
        "        return ClaimRequest(()) if self._may_have_more else None",
        "        return None",
        "tests/sinks/test_worker_source.py::test_one_message_is_enough_to_work_until_no_task_is_left",
    ),
    Mutant(
        "hung: the worker takes it again",
        "client/worker/held_claim.py",
        'return "another" if is_hung or ',
        'return "another" if ',
        f"{TEST_WORKER_GOES_ON}::test_a_hung_function_is_warned_then_cancelled_and_its_task_not_taken_again",
    ),
)
