"""Seeded bugs in who may claim a task by agent type, and in workers that get their work from a broker."""

from __future__ import annotations

from tests.mutants.mutant import Mutant, on

SOURCE = "tests/sinks/test_worker_source.py"

WORKERS = (
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
        "                agent_type,\n",
        '                "",\n',
        on("postgres", "test_many_claims_at_once_keep_to_the_agent_type"),
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
        f"{SOURCE}::test_a_message_is_not_acknowledged_while_the_store_does_not_answer",
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
)
