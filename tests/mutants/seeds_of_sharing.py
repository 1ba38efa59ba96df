"""Seeded bugs where writers of one project run side by side, and in their log: `seeds.py` takes them in."""

from __future__ import annotations

from tests.mutants.mutant import Mutant, on_each

SHARED = ("tests/stores/test_postgres_sharing.py",)
SERVER = ("tests/stores/test_postgres_server.py",)
RACES = ("tests/stores/test_postgres_races.py",)
SHORT_WAY = ("tests/engine/test_on_postgres.py",)
JOURNEYS = "stores/postgres/pipeline.py"
HOT = "stores/postgres/hot_statements.py"

GUARDS = ("tests/stores/test_postgres_guards.py",)

SHARING = (
    # --- locks
    Mutant("unordered locks", JOURNEYS, "keys = sorted(locks)", "keys = list(locks)", SERVER),
    Mutant("dependents counted without lock", JOURNEYS, "keys = sorted(locks)", "keys = []", RACES),
    Mutant("claims side by side", JOURNEYS, 'self._locks("claim", self._to_claim), False', "(), False", SHARED),
    Mutant("who decides shares", JOURNEYS, 'self._locks("project", self._to_hold), self._shares',
           'self._locks("project", self._to_hold), True', SHARED),
    # --- what has to be decided alone
    Mutant("shared, what has to be decided", "engine/runtime/engine.py", "        work.be_alone()\n        command =",
           "        command =", SHARED),
    Mutant("shared, rows written by the rules", "engine/runtime/unit_of_work.py", "        self.be_alone()\n", "",
           SHARED),
    Mutant("shared, two at one row", "stores/postgres/transaction.py", "int(answer.first()[-3] or 0) != answer.count",
           "False", SHARED),
    # --- what goes with the commit
    Mutant("bold, tasks with more to tell", HOT, '"usual": "NOT is_unusual"', '"usual": "true"', SHORT_WAY),
    Mutant("bold, what follows for dependents", HOT, "dependents = 0 AND ", "", SHORT_WAY),
    Mutant("bold, what follows for a parent", HOT, "children = 0 AND ", "", SHORT_WAY),
    Mutant("bold, what follows for a dag", HOT, " AND dag = 'dag_' || regexp_replace(id, '^task_', '')", "", SHORT_WAY),
    Mutant("bold, signs of life", "engine/runtime/fast_path/held_claims.py",
           "tx.complete(given, work.now - team.PRESENCE", "tx.complete(given, 0", SHORT_WAY),
    Mutant("bold, troubles that are over", HOT, "agent_is_odd OR ", "", SHORT_WAY),
    Mutant("bold, some receipts are stale", HOT, "(SELECT count(*) FROM {written}) = cardinality($5::text[])\n",
           "true\n", SHARED),
    Mutant("bold, no receipt is good", JOURNEYS, "if self._along[0].count != self._count:", "if False:", SHORT_WAY),
    Mutant("bold, another's claim", "engine/runtime/fast_path/held_claims.py",
           "not any(principal.is_proven for _, (principal, _, _) in asking) and ", "", SHORT_WAY),
    # --- the log
    Mutant("seq > last", "stores/postgres/transaction.py", "event.sequence <= self._settled", "True", SERVER),
    Mutant("a writer without a floor", "stores/postgres/log_cursor.py",
           "end - max((0, *((end - floor + half) % (2 * half) - half for floor in floors)))", "end", SHARED),
    Mutant("a floor where the writer ends", "stores/postgres/statement_texts.py", "({_DRAWN} & 2147483647)",
           "(({_DRAWN} + 1000) & 2147483647)", SHARED),
    # --- guards that a second one hides
    Mutant("fast path: no epoch check in the task", HOT, "t.generation = g.generation AND t.claim_epoch = $3\n",
           "t.generation = g.generation\n", GUARDS),
    Mutant("fast path: no epoch check in the claim", HOT, " AND c.epoch = $3\n", "\n", GUARDS),
    Mutant("fast path: a grant without a lane", HOT, "t.plain AND t.lane IS NOT NULL", "t.plain", GUARDS),
    Mutant("fast path: short renewals in funded projects", "engine/runtime/fast_path/held_claims.py",
           "if project is None or project.funded:", "if project is None:", SHORT_WAY,
           on_each("test_a_holder_from_before_the_budget_is_paused_too")),
    Mutant("writers skip the shared lock of the epoch", "stores/postgres/statement_texts.py",
           "    pg_advisory_xact_lock_shared(?)\n", "    (?)::bigint\n", GUARDS),
)  # fmt: skip
