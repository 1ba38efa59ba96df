"""The seeded bugs. Each is one small edit of the source; `old` must occur exactly once, or the seed is out of date."""

from __future__ import annotations

from tests.mutants.mutant import ENGINE, Mutant
from tests.mutants.seeds_of_artifacts import ARTIFACTS
from tests.mutants.seeds_of_budgets import BUDGETS
from tests.mutants.seeds_of_disks import DISKS
from tests.mutants.seeds_of_identity import IDENTITY
from tests.mutants.seeds_of_models import MODELS
from tests.mutants.seeds_of_moves import MOVES
from tests.mutants.seeds_of_moving import MOVING
from tests.mutants.seeds_of_place import PLACE
from tests.mutants.seeds_of_processes import PROCESSES
from tests.mutants.seeds_of_repeats import REPEATS
from tests.mutants.seeds_of_sharing import SHARING
from tests.mutants.seeds_of_signing_in import SIGNING_IN
from tests.mutants.seeds_of_sources import SOURCES
from tests.mutants.seeds_of_the_server import THE_SERVER
from tests.mutants.seeds_of_trust import TRUST
from tests.mutants.seeds_of_validation import VALIDATION

__all__ = ["ENGINE", "MUTANTS", "ON_POSTGRES", "Mutant"]

SQLITE = ("tests/stores",)
ON_POSTGRES = "tests/engine/test_on_postgres.py"  # with --postgres, wherever ENGINE must notice
SHORT_WAY = (ON_POSTGRES,)
SERVER = ("tests/stores/test_postgres_server.py",)
ON_SERVER = ("tests/stores/test_postgres.py",)
BLOCKS = ("tests/stores/test_postgres_blocks.py",)
MODEL = ("tests/stateful/test_model.py",)
INPUT = ("tests/engine/test_bad_input.py",)
GATHERING = ("tests/engine/test_gathering.py",)
ENDS = ("tests/engine/test_gathering_ends.py",)


MUTANTS = (
    Mutant(
        "no generation check",
        "core/claims.py",
        "if receipt.generation < task.generation:",
        "if False:",
    ),
    Mutant(
        "no nonce check",
        "core/receipts.py",
        "hmac.compare_digest(claim.nonce, receipt.nonce)",
        "True",
    ),
    Mutant("no epoch check", "core/claims.py", "if receipt.epoch != epoch:", "if False:"),
    Mutant(
        "owner-only guard",
        "core/claims.py",
        "if receipt.generation < task.generation:",
        "if receipt.generation < task.generation and (claim is None or claim.agent != task.agent):",
    ),
    Mutant("deferred BEGIN", "stores/sqlite/transaction.py", "BEGIN IMMEDIATE", "BEGIN DEFERRED", SQLITE),
    Mutant("synchronous NORMAL", "stores/sqlite/connections.py", "synchronous = FULL", "synchronous = NORMAL", SQLITE),
    Mutant(
        "caller's clock in a lease",
        "engine/runtime/unit_of_work.py",
        "self.now = tx.now",
        "self.now = __import__('time').time_ns() // 1000",
    ),
    Mutant(
        "attempts counted at failure",
        "core/moves.py",
        "attempts=task.attempts + counts",
        "attempts=task.attempts",
    ),
    Mutant(
        "attempt given back twice",
        "core/claims.py",
        "attempts=task.attempts - back,",
        "attempts=task.attempts - 2 * back,",
    ),
    Mutant(
        "attempts given back without end",
        "core/claims.py",
        "(ending.attempt == GIVEN_BACK and task.given_back < MOST_GIVEN_BACK)",
        "ending.attempt == GIVEN_BACK",
    ),
    Mutant(
        "a re-claim by the same session is a new attempt",
        "core/claims.py",
        "counts=not continues",
        "counts=True",
    ),
    Mutant(
        "late result after modify_and_retry",
        "core/moves.py",
        "cool_offs={}, answerable=False,",
        "cool_offs={},",
    ),
    Mutant(
        "late result after the next claim",
        "core/claims.py",
        "return task.answerable and task.generation == claim.generation and task.state in ANSWERABLE",
        "return task.state in ANSWERABLE",
    ),
    Mutant(
        "late result after an edit of the spec",
        "engine/verbs/edit.py",
        'in_task["answerable"] = False',
        "pass",
    ),
    Mutant(
        "event outside the transaction",
        "engine/runtime/engine.py",
        "                    answer = decide(work)\n                    work.save(last=True)\n",
        "                    answer = decide(work)\n                    late, work.events = work.events, []\n"
        "                    work.save(last=True)\n"
        "                with self.store.begin(self.tenant, write=True) as later:\n"
        "                    later.append(late)\n",
        ("tests/engine/test_transactions.py",),
    ),
    Mutant(
        "dependents not counted",
        "engine/runtime/effects.py",
        "updated = replace(task, unmet=task.unmet + change)",
        "updated = replace(task, unmet=task.unmet if task.unmet > 1 else task.unmet + change)",
    ),
    Mutant("spawn not keyed", "engine/verbs/graph.py", "if n.name not in existing]", "]"),
    Mutant(
        "project predicate missing",
        "engine/runtime/references.py",
        'found = work.find(Task, {"project": project, "ref": ref}, limit=1)',
        'found = work.find(Task, {"ref": ref}, limit=1)',
    ),
    Mutant(
        "a sweep changes an answer",
        "core/settle.py",
        "return _expired(task, claim, brief, first, fraction)",
        "return _expired(task, claim, brief, now, fraction)",
    ),
    Mutant(
        "commands do not settle first",
        "engine/runtime/engine.py",
        "settle_due(work, projects, report, limit=PAGE)",
        "pass",
    ),
    Mutant(
        "reads do not settle",
        "engine/runtime/engine.py",
        "settle_due(work, projects, Report())\n            yield work",
        "yield work",
    ),
    Mutant(
        "a lease outlives its end",
        "core/settle.py",
        "if first is None or first > now:",
        "if first is None or first + 1_000_000 > now:",
    ),
    Mutant("parked tasks stay parked", "engine/runtime/effects.py", "work.put(replace(parked, parked=None))", "pass"),
    Mutant(
        "a refused command leaves its traces",
        "engine/runtime/engine.py",
        "        except TenureError as error:\n            work.undo_to(bookmark)\n",
        "        except TenureError as error:\n",
    ),
    Mutant(
        "the term is not checked",
        "engine/verbs/lead.py",
        "(leader.holder, leader.term) == (holder, term)",
        "leader.holder == holder",
    ),
    Mutant(
        "a deposed leader writes",
        "engine/duties/election.py",
        "            raise Refused(refusal)\n        return work",
        "            pass\n        return work",
    ),
    Mutant(
        "a leader that cannot renew goes on",
        "engine/duties/coordinator.py",
        "if self._monotonic() >= self._good_until:",
        "if False:",
    ),
    Mutant(
        "a tick is begun twice",
        "core/team.py",
        "return not tick <= leader.ticks.get(duty, 0) <= now",
        "return True",
    ),
    Mutant("ticks end with their leader", "core/team.py", "ticks=leader.ticks if leader else {}", "ticks={}"),
    Mutant(
        "undo over later changes",
        "engine/verbs/undo.py",
        "if t.version != last[t.id]",
        "if False",
    ),
    Mutant(
        "the nonce is told in events",
        "core/records.py",
        'Claim: Kind("claim", frozenset({"nonce", "process",',
        'Claim: Kind("claim", frozenset({"process",',
    ),
    Mutant(
        "the process is told in events",
        "core/records.py",
        'Claim: Kind("claim", frozenset({"nonce", "process",',
        'Claim: Kind("claim", frozenset({"nonce",',
    ),
    Mutant("agents may do a person's work", "core/roles.py", "< _LEVEL[needed]", "< 0"),
    Mutant("a cycle is let in", "engine/verbs/create.py", "if path is not None:", "if False:"),
    Mutant(
        "usage is added up anew with each report",
        "core/usage.py",
        "name: max(getattr(row, name), getattr(spent, name) -",
        "name: getattr(row, name) + max(0, getattr(spent, name) -",
    ),
    Mutant(
        "an older report of usage lowers the total",
        "core/usage.py",
        "max(so_far, spent.cost - (other.cost or 0 if other else 0))",
        "spent.cost - (other.cost or 0 if other else 0)",
    ),
    Mutant(
        "late usage counts twice",
        "core/usage.py",
        "spent.cost - (other.cost or 0 if other else 0)",
        "spent.cost",
    ),
    Mutant(
        "stale usage counts against the task",
        "engine/verbs/usage.py",
        "claim, late = hold.claim, hold.refusal is not None",
        "claim, late = hold.claim, False",
    ),
    Mutant(
        "stale usage is thrown away",
        "engine/verbs/usage.py",
        "if refusal is not None and not hold.verdict.genuine:",
        "if refusal is not None:",
    ),
    Mutant(
        "a forged receipt books usage",
        "engine/verbs/usage.py",
        "    if not hold.verdict.genuine:\n        return answer\n",
        "",
    ),
    Mutant(
        "a lapsed holder may land",
        "engine/verbs/land.py",
        "hold = held(work, cmd.project, cmd.receipt)",
        "hold = held(work, cmd.project, cmd.receipt, late=True)",
    ),
    Mutant(
        "a stale holder may land",
        "engine/verbs/land.py",
        "hold = held(work, cmd.project, cmd.receipt)",
        "hold = __import__('tenure.engine.verbs.holder_verbs').engine.holding.judged(work, cmd.project, cmd.receipt)",
    ),
    Mutant(
        "a pid that comes again is taken for the old one",
        "core/processes.py",
        "{process.pid}|{process.start}",
        "{process.pid}|0",
    ),
    Mutant(
        "a process is said to be gone from elsewhere",
        "core/roles.py",
        "and principal.address is not None",
        "and False",
    ),
    Mutant(
        "an ended claim is found by its process",
        "core/claims.py",
        "        process=None,\n        counted",
        "        counted",
    ),
    Mutant(
        "a process proven gone closes the window",
        "core/settle.py",
        "free, over = _lost(task, claim, brief, at, fraction, PROCESS_GONE)",
        "free, over = _lost(task, claim, brief, at, fraction, PROCESS_GONE)\n"
        "    free = replace(free, answerable=False)",
    ),
    Mutant(
        "a request sent again stays with the process that sent it first",
        "engine/verbs/claim.py",
        "claim = work.put(replace(claim, process=process))",
        "pass",
    ),
    Mutant(
        "rows that cannot be settled starve the rest",
        "engine/runtime/settle.py",
        "if limit is not None and report.settled >= limit:",
        "if limit is not None and report.settled + len(report.failed) >= limit:",
    ),
    Mutant(
        "missing tenant predicate",
        "stores/sql/statements.py",
        '"tenant" = ?\', *clauses',
        '"tenant" <= ?\', *clauses',
        SERVER,
    ),
    Mutant(
        "a standby that was not waited for counts",
        "stores/postgres/pipeline.py",
        "        if warnings:\n",
        "        if False:\n",
        SERVER,
    ),
    Mutant(
        "a role that is shown no warnings",
        "stores/postgres/statement_texts.py",
        "set_config('client_min_messages', 'warning', true)",
        "set_config('client_min_messages', current_setting('client_min_messages'), true)",
        SERVER,
    ),
    Mutant(
        "a role that does not wait for the standby",
        "stores/postgres/statement_texts.py",
        "ELSE 'on' END, true)",
        "WHEN 'off' THEN 'on' ELSE current_setting('synchronous_commit') END, true)",
        SERVER,
    ),
    Mutant(
        "a lost answer to a commit counts as nothing done",
        "stores/postgres/pipeline.py",
        'raise unknown(f"the connection was lost at the commit ({error})", url) from error',
        "raise lost(error, url) from error",
        SERVER,
    ),
    Mutant(
        "a request id used twice",
        "engine/verbs/claim.py",
        '        check_same(found[0].request_hash, _without_process(cmd), work.principal.owner, "claim")',
        "        pass",
    ),
    Mutant("fused, no nonce check", "stores/postgres/hot_statements.py", "AND c.nonce = g.nonce", "", SHORT_WAY),
    Mutant(
        "fused, no generation check",
        "stores/postgres/hot_statements.py",
        "AND t.generation = g.generation",
        "",
        SHORT_WAY,
    ),
    Mutant(
        "fused, a request granted twice in one batch",
        "engine/runtime/fast_path/next_claims.py",
        " or sent.id in self._requests",
        "",
        SHORT_WAY,
    ),
    Mutant(
        "fused, a request that has come before",
        "stores/postgres/hot_statements.py",
        "AND request_id = g.request LIMIT 1) IS NULL",
        "AND request_id = g.request LIMIT 0) IS NULL",
        SHORT_WAY,
    ),
    Mutant(
        "fused, an agent that was offered something",
        "stores/postgres/hot_statements.py",
        "AND offer_to = g.agent LIMIT 1) IS NULL",
        "AND offer_to = g.agent LIMIT 0) IS NULL",
        SHORT_WAY,
    ),
    Mutant(
        "fused, an agent that takes nothing more", "stores/postgres/hot_statements.py", " OR a.draining", "", SHORT_WAY
    ),
    Mutant(
        "fused, signs of life forgotten",
        "engine/runtime/fast_path/next_claims.py",
        "if not self._is_fresh(number):",
        "if False:",
        SHORT_WAY,
    ),
    Mutant(
        "fused, an answer without what other rows hold",
        "stores/postgres/transaction.py",
        'is_usual=last or all(answer.first()[-3] == b"f" for answer in answers)',
        "is_usual=True",
        SHORT_WAY,
    ),
    Mutant(
        "events that go with those that were dropped",
        "stores/postgres/event_blocks.py",
        "CASE WHEN gone.at IS NULL THEN e.",
        "CASE WHEN false THEN e.",
        BLOCKS,
    ),
    Mutant(
        "events that a batch told, in no order",
        "stores/postgres/hot_statements.py",
        " ORDER BY n) AS told",
        " ORDER BY -n) AS told",
        BLOCKS,
    ),
    Mutant("a change that touches no row", "stores/sql/statements.py", "1 / count(*)", "count(*)", ON_SERVER),
    Mutant(
        "fused, tasks that are not plain",
        "core/plain_tasks.py",
        "if task.guarded or task.models",
        "if task.models",
        SHORT_WAY,
    ),
    Mutant(
        "fused, what was asked ahead is never void",
        "stores/postgres/pipeline.py",
        "        self._ahead.clear()\n",
        "",
        SHORT_WAY,
    ),
    Mutant(
        "fused, effects on others forgotten",
        "engine/runtime/fast_path/held_claims.py",
        "if d.dependents or d.children or d.dag != graph.lone_dag(d.task):",
        "if False:",
        SHORT_WAY,
    ),
    Mutant(
        "gathered out of a caller's order",
        "engine/runtime/batcher.py",
        "line.append(place)",
        "line.appendleft(place)",
        GATHERING,
    ),
    Mutant(
        "gathered into two batches of one caller at once",
        "engine/runtime/batcher.py",
        "if line is None:\n                line = self._lines",
        "if not line:\n                line = self._lines",
        GATHERING,
    ),
    Mutant(
        "gathered without turns",
        "engine/runtime/batcher.py",
        "callers := self._turns or behind",
        "callers := behind or self._turns",
        GATHERING,
    ),
    Mutant(
        "gathered into two batches of one project at once",
        "engine/runtime/batcher.py",
        "(place.project in projects or place.project not in self._aside)",
        "True",
        GATHERING,
    ),
    Mutant(
        "gathered answers to the wrong callers",
        "engine/runtime/batcher.py",
        "zip(batch, answers, strict=True):\n        place.answer",
        "zip(batch, reversed(answers), strict=True):\n        place.answer",
        GATHERING,
    ),
    Mutant(
        "gathered without bounds",
        "engine/runtime/batcher.py",
        "self._waiting >= self._most_waiting or self._bytes + place.size > self._most_bytes",
        "False",
        GATHERING,
    ),
    Mutant(
        "gathered for one principal",
        "engine/runtime/batcher.py",
        "_Promised(asked(command, principal), ",
        "_Promised(asked(command), ",
        GATHERING,
    ),
    Mutant(
        "gathered although its caller has gone",
        "engine/runtime/batcher.py",
        "            line.remove(place)\n",
        "",
        ENDS,
    ),
    Mutant(
        "a gatherer that is closed takes more in",
        "engine/runtime/batcher.py",
        "            if self._is_closed:\n                raise self._closed()",
        "            pass",
        ENDS,
    ),
    Mutant(
        "an unknown outcome is split and done again",
        "engine/runtime/engine.py",
        "len(batch) == 1 or not error.definite or not has_begun",
        "len(batch) == 1 or not has_begun",
        GATHERING,
    ),
    Mutant(
        "a store that is away is asked for every command",
        "engine/runtime/engine.py",
        "len(batch) == 1 or not error.definite or not has_begun",
        "len(batch) == 1 or not error.definite",
        GATHERING,
    ),
    *BUDGETS,
    *DISKS,
    *MODELS,
    *MOVES,
    *IDENTITY,
    *MOVING,
    *REPEATS,
    *PLACE,
    *PROCESSES,
    *SHARING,
    *SIGNING_IN,
    *THE_SERVER,
    *SOURCES,
    *TRUST,
    *ARTIFACTS,
    *VALIDATION,
)
