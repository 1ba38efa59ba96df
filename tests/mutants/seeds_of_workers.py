"""Seeded bugs in who may claim a task by agent type, and in workers that get their work from a broker."""

from __future__ import annotations

from tests.mutants.mutant import Mutant, on

SOURCE = "tests/sinks/test_worker_source.py"
WATCHES = "tests/client/test_worker_watches.py"

TROUBLES = "tests/runner/test_troubles.py"

WORKERS = (
    Mutant(
        "runner: it ends by counts of two moments",
        "agents/runner/slot.py",
        "            return False  # others have changed something",
        "            pass  # others have changed something",
        TROUBLES + "::test_a_task_that_becomes_ready_while_a_runner_looks_whether_all_is_done_is_not_left",
    ),
    Mutant(
        "runner: a busy server ends it",
        "agents/runner/slot.py",
        "                except PASSING as error:\n",
        "                except OSError as error:\n",
        TROUBLES + "::test_a_busy_server_ends_no_runner_and_no_claim",
    ),
    Mutant(
        "runner: a refused check ends it",
        "agents/runner/runner.py",
        "        except TenureError as error:\n            if self._refusals",
        "        except ZeroDivisionError as error:\n            if self._refusals",
        TROUBLES + "::test_the_checks_of_a_runner_go_on_after_any_refusal",
    ),
    Mutant(
        "outbox: a busy server sets an entry aside",
        "client/outbox.py",
        "            except PASSING:\n",
        "            except ZeroDivisionError:\n",
        TROUBLES + "::test_a_busy_server_leaves_the_outbox_as_it_is",
    ),
    Mutant(
        "mcp: a client gets two replies to its handshake",
        "mcp/stdio_server.py",
        "        if is_reply and self.greeted is not None:\n",
        "        if False:\n",
        "tests/mcp/test_early.py::test_a_request_that_was_answered_early_gets_one_reply",
    ),
    Mutant(
        "workers: any agent claims work for one agent type",
        "core/priority.py",
        "    if lane.agent_type and lane.agent_type != profile.agent_type:\n",
        "    if False:\n",
        "test_work_for_one_agent_type_is_claimed_by_agents_of_that_type",
    ),
    Mutant(
        "workers: the queue forgets the agent type",
        "core/priority.py",
        'return "|".join(parts if task.agent_type is None else (*parts, task.agent_type))',
        'return "|".join(parts)',
        "test_many_claims_at_once_keep_to_the_agent_type",
    ),
    Mutant(
        "workers: the fast path takes every agent for one of no type",
        "engine/runtime/fast_path/next_claims.py",
        "        agent_type,\n    )",
        '        "",\n    )',
        on("postgres", "test_a_claim_that_chooses_among_plain_tasks_gets_the_same[eager]"),
    ),
    Mutant(
        "workers: an edit keeps the former agent type",
        "core/inputs.py",
        'agent_type=wanted.get("agent_type"),',
        'agent_type=task.agent_type or wanted.get("agent_type"),',
        "test_an_edit_changes_which_agent_type_may_claim",
    ),
    Mutant(
        "workers: the name of mailboxes is an agent type",
        "core/inputs.py",
        "    if value == team.INSTANCE:\n",
        "    if False:\n",
        "test_the_name_of_mailboxes_is_refused_as_an_agent_type",
    ),
    Mutant(
        "workers: a message for a task that may be claimed later is acknowledged",
        "client/worker/message_source.py",
        "            if answer == ACKNOWLEDGE:\n",
        "            if True:\n",
        f"{SOURCE}::test_a_message_for_a_task_that_may_not_be_claimed_now_is_deferred_and_given_up_after_five_times",
    ),
    Mutant(
        "workers: a message is deferred for ever",
        "client/worker/message_source.py",
        "        if received.tries >= limits.DEFERRALS:\n",
        "        if False:\n",
        f"{SOURCE}::test_a_message_for_a_task_that_may_not_be_claimed_now_is_deferred_and_given_up_after_five_times",
    ),
    Mutant(
        "workers: a message is acknowledged before its claim",
        "client/worker/message_source.py",
        "                wake_ups.append(received)\n",
        "                wake_ups.append(received)\n                self.acknowledge(received)\n",
        f"{SOURCE}::test_messages_of_a_worker_that_may_not_work_are_given_back",
    ),
    Mutant(
        "workers: a message of a worker that was terminated is acknowledged",
        "client/worker/worker.py",
        '            if outcome.outcome == "DENIED_AGENT":\n',
        "            self._settle(claim, Outcome(outcome='NO_TASK'))\n"
        '            if outcome.outcome == "DENIED_AGENT":\n',
        f"{SOURCE}::test_messages_of_a_worker_that_may_not_work_are_given_back",
    ),
    Mutant(
        "workers: a command whose mail was read is run again",
        "client/worker/mail_commands.py",
        "        if is_read and not is_repeated:\n",
        "        if False:\n",
        f"{SOURCE}::test_a_command_is_taken_once_however_many_processes_see_it",
    ),
    Mutant(
        "workers: a command is lost with the answer that its mail was read",
        "client/worker/mail_commands.py",
        "        if is_read and not is_repeated:\n",
        "        if is_read:\n",
        f"{SOURCE}::test_a_command_is_not_lost_with_the_answer_of_the_store",
    ),
    Mutant(
        "workers: an expired command is run",
        "client/worker/mail_commands.py",
        "        if self._is_over(expires_at):\n",
        "        if False:\n",
        f"{SOURCE}::test_a_command_is_taken_once_however_many_processes_see_it",
    ),
    Mutant(
        "workers: a pool of NATS keeps the queues of its first worker",
        "sinks/nats_source.py",
        """asked.pool if number == 0 else f"{asked.pool}-{queue.rpartition('.')[2]}\"""",
        "asked.pool",
        "tests/sinks/test_nats.py::TestNatsSource::test_a_worker_with_commands_may_join_a_pool_that_had_none",
    ),
    Mutant(
        "workers: nobody watches the tasks at work",
        "client/worker/watcher.py",
        '            if not is_held or line["version"] > claim.version:\n',
        "            if False:\n",
        f"{WATCHES}::test_a_function_in_another_process_stops_before_its_renewal[sqlite-cancel-blocking]",
    ),
    Mutant(
        "workers: a drain is not seen, since the claim is still held",
        "client/worker/watcher.py",
        '            if not is_held or line["version"] > claim.version:\n',
        "            if not is_held:\n",
        f"{WATCHES}::test_a_function_in_another_process_stops_before_its_renewal[sqlite-drain-blocking]",
    ),
    Mutant(
        "workers: the versions are read for each event",
        "client/worker/watcher.py",
        "                self._is_over.wait(max(0.0, began + EVERY - time.monotonic()))\n",
        "",
        f"{WATCHES}::test_versions_are_read_in_one_query_and_at_most_twice_a_second",
    ),
    Mutant(
        "workers: only the store's clock ends a function",
        "client/worker/attempt.py",
        "        timer.start()\n",
        "",
        f"{WATCHES}::test_max_duration_is_enforced_by_the_worker_s_own_clock",
    ),
    Mutant(
        "workers: a task is claimed again beside its running function",
        "client/worker/worker.py",
        "        if self._runs_here(granted):\n",
        "        if False:\n",
        f"{WATCHES}::test_one_worker_never_runs_two_copies_of_a_task[sqlite]",
    ),
    Mutant(
        "workers: a claim gets a task that it excludes",
        "core/priority.py",
        "    if task.id in profile.without:\n",
        "    if False:\n",
        "test_a_claim_gets_no_task_that_it_excludes",
    ),
    Mutant(
        "workers: the fast path does not know what a claim excludes",
        "engine/runtime/fast_path/next_claims.py",
        " or command.without or command.like:",
        " or command.like:",
        on("postgres", "test_a_claim_that_chooses_among_plain_tasks_gets_the_same[eager]"),
    ),
    Mutant(
        "workers: a server wakes a worker for no event of its tasks",
        "server/feed.py",
        "            for future in self._by_task.get(of, ()):\n",
        "            for future in ():\n",
        "tests/server/test_feed.py::test_a_worker_is_woken_for_its_own_tasks_only",
    ),
    Mutant(
        "workers: a worker that waits for the last tasks does not wait for retries",
        "client/worker/last_tasks.py",
        "        if tasks(state=UNDERWAY, limit=1, **self._own):\n",
        "        if False:\n",
        "tests/client/test_worker_ends.py::test_until_idle_ends_while_a_retry_is_due_later[store]",
    ),
    Mutant(
        "workers: a stack trace is kept with its secrets",
        "core/redaction.py",
        "    trace = without_secrets(trace)\n",
        "",
        "test_a_failed_attempt_keeps_its_trace_without_secrets",
    ),
    Mutant(
        "workers: a batch of tasks may be of any size",
        "engine/verbs/graph.py",
        "    if not 1 <= len(cmd.tasks) <= limits.ADDED_AT_ONCE:\n",
        "    if False:\n",
        "test_a_batch_has_from_one_to_a_thousand_tasks",
    ),
    # --- opening a store
    Mutant(
        "client: a missing store is created",
        "client/client.py",
        "LocalTransport(url, random=random, create=create, gather=gather, **how)",
        "LocalTransport(url, random=random, create=True, gather=gather, **how)",
        "tests/client/test_opening.py::test_a_missing_store_is_not_created",
    ),
    Mutant(
        "client: a missing store is created, awaited",
        "client/async_client.py",
        "url, random=random, create=create, clock=clock",
        "url, random=random, create=True, clock=clock",
        "tests/client/test_opening.py::test_a_missing_store_is_not_created",
    ),
    Mutant(
        "client: types of a query are not checked",
        "client/caller.py",
        "self.transport.query(_checked(with_plain_times(query)), self.principal)",
        "self.transport.query(with_plain_times(query), self.principal)",
        "tests/client/test_opening.py::test_a_value_of_another_type_is_refused_by_name",
    ),
)
