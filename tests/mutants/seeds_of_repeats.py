"""Seeded bugs of what is sent again, of modes, readers of the log, and agents that an operator has stopped."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

SHARED_ROWS = ("tests/stores/test_postgres_sharing.py",)

REPEATS = (
    Mutant(
        "a waiting write of a holder does not ask the newer row for its epoch and state",
        "stores/postgres/hot_statements.py",
        """t.generation = f.generation AND t.claim_epoch = $3
        AND t.state = f.was AND t.renewals = f.renewals AND t.plain\"\"\"""",
        """t.generation = f.generation\"\"\"""",
        SHARED_ROWS,
    ),
    Mutant(
        "a waiting submission goes by the address alone",
        "stores/postgres/hot_statements.py",
        """plain = false
    FROM found AS f WHERE {still_held}""",
        """plain = false
    FROM found AS f WHERE t.ctid = f.held_at AND t.id = f.id""",
        SHARED_ROWS,
    ),
    Mutant(
        "a waiting renewal goes by the address alone",
        "stores/postgres/hot_statements.py",
        """ELSE t.version END
    FROM found AS f WHERE {still_held}""",
        """ELSE t.version END
    FROM found AS f WHERE t.ctid = f.held_at AND t.id = f.id""",
        SHARED_ROWS,
    ),
    Mutant(
        "a waiting submission ends a claim by its address alone",
        "stores/postgres/hot_statements.py",
        "FROM found AS f WHERE {still_claimed}",
        "FROM found AS f WHERE c.ctid = f.claimed_at AND c.id = f.id || '@' || f.generation",
        SHARED_ROWS,
    ),
    Mutant(
        "a reservation keeps its mode",
        "engine/verbs/reserve.py",
        "[replace(mine[p], mode=mode) for p",
        "[mine[p] for p",
    ),
    Mutant(
        "a mode is raised without a look at others",
        "engine/verbs/reserve.py",
        "    if other is not None:",
        "    if other is not None and not (cmd.receipt and cmd.mode == 'exclusive' and other.mode == 'shared'):",
    ),
    Mutant(
        "a class whose attempt is given back is retried whatever the policy says",
        "core/claims.py",
        "if error_class is not None and retry is not None and not is_retried(retry, error_class):",
        "if False:",
    ),
    Mutant(
        "a link that is there keeps what its failure means",
        "engine/verbs/graph.py",
        "    if there is not None and there.on_failure == cmd.on_failure:",
        "    if there is not None:",
    ),
    Mutant(
        "a changed link is not judged at once",
        "engine/verbs/create.py",
        "    if graph.cascades(edge, needs.state):\n        task = cancel_task",
        "    if False:\n        task = cancel_task",
    ),
    Mutant(
        "a landing takes the place of the one before",
        "engine/verbs/land.py",
        "landing_id(claim.id, len(recorded) + 1)",
        "claim.id",
    ),
    Mutant(
        "a holder's request is not kept with its claim",
        "engine/runtime/repeats.py",
        "            work.put(_with_answer(claim, command, outcome))",
        "            pass",
    ),
    Mutant(
        "a zombie's reservation is granted again",
        "engine/runtime/repeats.py",
        "    if isinstance(command, c.Reserve):\n        from tenure.engine.verbs.holder_verbs import held",
        "    if False:\n        from tenure.engine.verbs.holder_verbs import held",
    ),
    Mutant(
        "a reservation that ran out is granted again",
        "engine/runtime/repeats.py",
        "    if isinstance(command, c.Reserve):\n        from tenure.engine.verbs.reserve",
        "    if False:\n        from tenure.engine.verbs.reserve",
    ),
    Mutant(
        "a request id serves any content",
        "engine/runtime/repeats.py",
        "    if not is_same(kept, command, owner):",
        "    if False:",
    ),
    Mutant(
        "an answer is told to whoever knows the request id",
        "engine/runtime/repeats.py",
        "return claim if is_genuine(receipt, claim) else None",
        "return claim",
    ),
    Mutant(
        "a claim remembers all its requests",
        "engine/runtime/repeats.py",
        "if len(kept) == MOST_ANSWERED or size > LARGEST_ANSWERED:",
        "if False:",
    ),
    Mutant(
        "digests of an earlier version never match",
        "core/digests.py",
        "kept == (digest_of(command, owner) if kept.startswith(FORM) else _first_form(command))",
        "kept == digest_of(command, owner)",
    ),
    Mutant(
        "defaults count in a digest",
        "core/digests.py",
        "            if item is not default and item != default",
        "            if True",
        ("tests/core/test_digests.py",),
    ),
    Mutant(
        "the archive takes events that nobody has read",
        "engine/archive/log_readers.py",
        "    if not cursors or not tasks:",
        "    if True:",
    ),
    Mutant(
        "the quickest reader decides what goes",
        "engine/archive/log_readers.py",
        "min(cursor.sequence for cursor in cursors)",
        "max(cursor.sequence for cursor in cursors)",
    ),
    Mutant(
        "a terminated agent claims by name",
        "engine/verbs/claim.py",
        "        _denied_by_agent(asker)\n        or _denied_by_state",
        "        None\n        or _denied_by_state",
    ),
    Mutant(
        "a terminated agent claims the next best",
        "engine/verbs/claim.py",
        "denial = _denied_by_agent(asker) or _denied_by_limit(work, asker)",
        "denial = _denied_by_limit(work, asker)",
    ),
    Mutant(
        "the short way knows no terminated agents",
        "stores/postgres/hot_statements.py",
        "OR a.terminated_at IS NOT NULL ",
        "",
        ("tests/engine/test_on_postgres.py",),
    ),
    Mutant(
        "an agent's own word lifts what an operator said",
        "engine/verbs/agents.py",
        "last_seen=work.now, **_said_by_operators(before),",
        "last_seen=work.now,",
    ),
    Mutant(
        "a sign of life brings a terminated agent back",
        "engine/verbs/agents.py",
        "    is_ended = agent.terminated_at is not None and agent.left_at is not None",
        "    is_ended = False",
    ),
    Mutant(
        "a terminated agent stays when its last claim ends",
        "engine/runtime/effects.py",
        "            _let_agent_go(work, before)",
        "            pass",
    ),
    Mutant(
        "a terminated agent ends before its last claim",
        "engine/runtime/effects.py",
        '    if work.find(Task, {"project": agent.project, "agent": agent.id}, limit=1):\n        return agent',
        "    pass",
    ),
    Mutant(
        "a renewal does not say that the agent was terminated",
        "engine/verbs/brief.py",
        "agent is not None and agent.terminated_at is not None:",
        "False:",
    ),
    Mutant(
        "the short way renews for a terminated agent and does not say so",
        "stores/postgres/hot_statements.py",
        "        AND a.terminated_at IS NULL\n",
        "",
        ("tests/engine/test_on_postgres.py",),
    ),
    Mutant(
        "who waits for work does not hear that its agent was terminated",
        "server/waiting_room.py",
        "            if event.kind in _ENDS_WAITING:",
        "            if False:",
        ("tests/server/test_waiting_room.py",),
    ),
)
