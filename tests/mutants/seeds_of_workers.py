"""Seeded bugs in who may claim a task by agent type, and in workers that get their work from a broker."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

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
)
