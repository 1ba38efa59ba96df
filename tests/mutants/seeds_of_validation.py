"""Seeded bugs in validation: `seeds.py` takes them in."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

RULES = "core/validation.py"
DECIDING = "engine/checks/validation_verbs.py"
MEANWHILE = ("tests/validators/test_claims_during_checks.py",)
TRUSTING = ("tests/cli/test_validating.py",)

VALIDATION = (
    Mutant(
        "validation: a stale taker's verdict counts",
        RULES,
        "if receipt.generation != row.generation:",
        "if receipt.generation > row.generation:",
    ),
    Mutant(
        "validation: no nonce check",
        RULES,
        "if not hmac.compare_digest(receipt.nonce, row.nonce):",
        "if False:",
    ),
    Mutant("validation: no epoch check", RULES, "if receipt.epoch != epoch or row.epoch != epoch:", "if False:"),
    Mutant(
        "validation: a second verdict counts",
        RULES,
        "return row is not None and row.state == OPEN and",
        "return row is not None and",
    ),
    Mutant(
        "validation: a verdict on a paused task counts",
        RULES,
        'None if task.state == VALIDATING else "DENIED_PAUSED"',
        "None",
    ),
    Mutant(
        "validation: two takers at once",
        RULES,
        "return row.state == OPEN and row.holder is not None and",
        "return False and",
    ),
    Mutant("validation: tries without end", RULES, "return row.tries >= MOST_TRIES", "return False"),
    Mutant("validation: a dying taker does not count", RULES, "tries=row.tries + 1,", "tries=row.tries,"),
    Mutant(
        "validation: an older contract's verdict counts",
        "engine/checks/evidence.py",
        'asked = msgspec.json.encode((name, settings, output), order="sorted")',
        'asked = msgspec.json.encode((name, settings if output is None else {}, output), order="sorted")',
    ),
    Mutant(
        "validation: the maker reviews its own work",
        "core/roles.py",
        "if is_author(principal, claim):",
        "if False:",
    ),
    Mutant(
        "validation: an agent speaks for any validator",
        DECIDING,
        "        if row.validator != REVIEW:\n            raise",
        "        if False:\n            raise",
    ),
    Mutant(
        "validation: an agent's key judges by another's receipt",
        DECIDING,
        'roles.check_mine(work.principal, row.agent or "nobody", f"the validation of {task.key}")',
        "pass",
    ),
    Mutant("validation: checked tasks are plain", "core/plain_tasks.py", "task.checked or ", ""),
    Mutant(
        "validation: an edit changes what waits for its verdict",
        "engine/verbs/edit.py",
        "    if closing and _waits_for_verdict(work, task):",
        "    if False:",
    ),
    Mutant(
        "validation: a refused output is offered again though it was paused",
        "core/moves.py",
        "    if task.pauses:\n        return _moved(task, PAUSED, state_before=READY, **said)",
        "    if False:\n        return _moved(task, PAUSED, state_before=READY, **said)",
    ),
    Mutant(
        "validation: invalid outputs without end",
        "engine/checks/submission_checks.py",
        "is_last = marked.invalid >= MOST_INVALID",
        "is_last = False",
    ),
    Mutant(
        "validation: a batch waits for a check",
        "engine/runtime/engine.py",
        "return run_without(lambda some, check: self._run_part(some, TRIES, check), batch, callers)",
        "return run_without(lambda some, check: self._run_part(some, TRIES), batch, callers)",
        MEANWHILE,
    ),
    Mutant(
        "validation: commands run without trust",
        "agents/result_checker.py",
        "section = Trusted(user_state(environ)).checked(path)",
        "section = __import__('tenure.trust.grants').trust.allowing.read_section(path)",
        TRUSTING,
    ),
)
