"""The seeded bugs. Each is one small edit of the source; `old` must occur exactly once, or the seed is out of date."""

from __future__ import annotations

from typing import NamedTuple

ENGINE = ("tests/engine/test_on_memory.py", "tests/engine/test_on_sqlite.py")  # every store must notice
SQLITE = ("tests/stores",)
MODEL = ("tests/stateful/test_model.py",)
INPUT = ("tests/engine/test_bad_input.py",)


class Mutant(NamedTuple):
    name: str
    file: str
    old: str
    new: str
    noticed_by: tuple[str, ...] = ENGINE


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
        "engine/work.py",
        "self.now = tx.now",
        "self.now = __import__('time').time_ns() // 1000",
    ),
    Mutant(
        "attempts counted at failure",
        "core/claims.py",
        "attempts = task.attempts + (0 if continues else 1)",
        "attempts = task.attempts",
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
        "not ending.counts and task.given_back < MOST_GIVEN_BACK",
        "not ending.counts",
    ),
    Mutant(
        "a re-claim by the same session is a new attempt",
        "core/claims.py",
        "(0 if continues else 1)",
        "1",
    ),
    Mutant(
        "late result after modify_and_retry",
        "core/claims.py",
        "        retry_at=None,\n        answerable=False,\n        work_product=None,",
        "        retry_at=None,\n        work_product=None,",
    ),
    Mutant(
        "late result after the next claim",
        "core/claims.py",
        "return task.answerable and task.generation == claim.generation and task.state in ANSWERABLE",
        "return task.state in ANSWERABLE",
    ),
    Mutant(
        "late result after an edit of the spec",
        "engine/editing.py",
        'in_task["answerable"] = False',
        "pass",
    ),
    Mutant(
        "event outside the transaction",
        "engine/engine.py",
        "                    answer = decide(work)\n                    work.save()\n",
        "                    answer = decide(work)\n                    late, work.events = work.events, []\n"
        "                    work.save()\n"
        "                with self.store.begin(self.tenant, write=True) as later:\n"
        "                    later.append(late)\n",
        ("tests/engine/test_transactions.py",),
    ),
    Mutant(
        "dependents not counted",
        "engine/effects.py",
        "updated = replace(task, unmet=task.unmet + change)",
        "updated = replace(task, unmet=task.unmet if task.unmet > 1 else task.unmet + change)",
    ),
    Mutant("spawn not keyed", "engine/graphs.py", "if n.name not in existing]", "]"),
    Mutant(
        "project predicate missing",
        "engine/naming.py",
        'found = work.find(Task, {"project": project, "ref": ref}, limit=1)',
        'found = work.find(Task, {"ref": ref}, limit=1)',
    ),
    Mutant(
        "a sweep changes an answer",
        "core/settle.py",
        "claims.retried_later(free, at + delay(brief.retry, free.attempts, fraction))",
        "claims.retried_later(free, now + delay(brief.retry, free.attempts, fraction))",
    ),
    Mutant(
        "commands do not settle first",
        "engine/engine.py",
        "settle_due(work, projects, report, limit=PAGE)",
        "pass",
    ),
    Mutant(
        "reads do not settle",
        "engine/engine.py",
        "settle_due(work, projects, Report())\n            yield work",
        "yield work",
    ),
    Mutant(
        "a lease outlives its end",
        "core/settle.py",
        "if first is None or first > now:",
        "if first is None or first + 1_000_000 > now:",
    ),
    Mutant("parked tasks stay parked", "engine/effects.py", "work.put(replace(parked, parked=None))", "pass"),
    Mutant(
        "a refused command leaves its traces",
        "engine/engine.py",
        "        except TenureError as error:\n            work.undo_to(bookmark)\n",
        "        except TenureError as error:\n",
    ),
    Mutant(
        "the term is not checked",
        "engine/leading.py",
        "(leader.holder, leader.term) == (holder, term)",
        "leader.holder == holder",
    ),
    Mutant(
        "undo over later changes",
        "engine/undoing.py",
        "if t.version != last[t.id]",
        "if False",
    ),
    Mutant(
        "the nonce is told in events",
        "core/records.py",
        'Claim: Kind("claim", frozenset({"nonce"}))',
        'Claim: Kind("claim")',
    ),
    Mutant("agents may do a person's work", "core/roles.py", "< _LEVEL[needed]", "< 0"),
    Mutant("a cycle is let in", "engine/making.py", "if path is not None:", "if False:"),
    Mutant(
        "a request id used twice",
        "engine/claiming.py",
        "found[0].request_hash != digest",
        "False",
    ),
)
