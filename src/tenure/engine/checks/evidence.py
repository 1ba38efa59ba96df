"""Evidence: what a decision needs to know and a transaction must not compute, such as a quick validator's verdict.

What it is. A task's contract may name a quick validator (JSON Schema, a pattern). It must judge the output before the
submit is answered, so that the holder can fix it at once. But it runs foreign patterns and schemas: it may take a
second, and it runs in a process that can be killed. Inside of a transaction it would hold the project's lock for that
long. So it runs before.

How it works.
1. A handler asks for what it needs: `of_output` for a verdict, `check_contracts` for the settings of a new contract.
2. If the command came without the answer, the handler raises `NeedsEvidence` with its questions. The command ends and
   nothing of it is kept.
3. The engine (for a batch of one caller) or the batcher (for many callers, with `evidence_threads.py`) collects the
   findings by `collect`, outside of every transaction, and runs the command again with them.
4. Each round may need something else, since rows may change in between. After a few rounds the command ends with
   CONFLICT, and nothing was done.
In a batch of many callers, a command that needs evidence is left out together with the later commands of its caller
(`Engine.commit_checked`). Nobody else waits for it, and each caller's order is kept.

Why it is safe.
- A finding is identified by the digest of its question: validator, settings and output. If the contract or the output
  has changed since, the digest differs and the finding does not count. There is no other link between the two runs.
- The second run decides everything again, on rows read in its own transaction: the receipt, the state, the contract. A
  finding only spares it the computation.
- `Finding.ok` is None where the validator could not decide: it crashed, timed out, or its settings are no longer
  valid. The submit is then kept and waits for a verdict; a fault of a validator never costs an attempt.
- `_proven` remembers settings that were found valid in this process, at most MOST_PROVEN of them. It holds no verdicts
  and no invalid settings, so a stale entry cannot accept an output.
- When all checkers are busy, `too_many` answers at once: outputs wait for a verdict, contracts must be sent again.

Which tests prove it.
- `testing/engine/validations.py`: a finding for an older contract does not count; a validator that cannot decide costs
  no attempt; the third refused output ends the attempt.
- `tests/engine/test_gathering*.py`: no caller of a batch waits for another's evidence, and each keeps its order.

What a new question must do. Put everything that the answer depends on into the `Question`, so that its digest covers
it. Raise all questions of a command in one `NeedsEvidence`. Give `_found` a way to answer that ends within a second,
and a finding for "cannot decide" that neither accepts nor refuses.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from tenure.core import limits
from tenure.core.errors import InvalidInput, TenureError
from tenure.core.validation import NONE, REVIEW, validator_of

if TYPE_CHECKING:
    from tenure.engine.runtime.unit_of_work import UnitOfWork

MOST_PROVEN = limits.CHECKS_CACHED


class Question(msgspec.Struct, frozen=True):
    """`output` is data and summary; None asks whether these settings are valid at all. `ask` asks something else than a
    validator, and raises an error where the answer is no.
    """

    key: str
    validator: str
    settings: Mapping[str, Any]
    output: tuple[Any, str] | None = None
    ask: Callable[[], object] | None = None


class Finding(msgspec.Struct, frozen=True):
    """`ok` is None where it could not be decided; `error` is the fault of the settings."""

    ok: bool | None
    reasons: tuple[str, ...] = ()
    error: TenureError | None = None


Evidence = Mapping[str, Finding]
NOTHING: Evidence = {}


class NeedsEvidence(Exception):
    """Ends a command that cannot be decided yet; it changes nothing."""

    def __init__(self, questions: Sequence[Question]) -> None:
        super().__init__(f"{len(questions)} questions")
        self.questions = questions


# Contracts found valid in this process. Invalid ones are checked again: the caller gets the reason.
_proven: dict[str, None] = {}


def of_output(work: UnitOfWork, contract: Mapping[str, Any], data: Any, summary: str) -> Finding:
    """The verdict of the contract's validator on this output; raises NeedsEvidence where it is not known."""
    question = _question(contract, (data, summary))
    found = work.evidence.get(question.key)
    if found is None:
        raise NeedsEvidence((question,))
    return found


SIGNATURE = "signature"  # in place of a validator


def of_signature(work: UnitOfWork, public_key: str, signature: str, message: bytes) -> bool:
    """Whether the signature is the key's, over this message; raises NeedsEvidence where it is not known."""
    import hashlib

    asked = {"key": public_key, "signature": signature, "message": message.decode()}
    key = hashlib.sha256(msgspec.json.encode((SIGNATURE, asked), order="sorted")).hexdigest()
    found = work.evidence.get(key)
    if found is None:
        raise NeedsEvidence((Question(key, SIGNATURE, asked, (None, "")),))
    if found.error is not None:
        raise found.error
    return found.ok is True


def check_found(work: UnitOfWork, about: Sequence[Any], ask: Callable[[], object]) -> None:
    """Raise what `ask` raises; NeedsEvidence where it was not asked yet. `about`: what its answer depends on."""
    import hashlib

    key = hashlib.sha256(msgspec.json.encode(about)).hexdigest()
    found = work.evidence.get(key)
    if found is None:
        raise NeedsEvidence((Question(key, STORE, {}, ask=ask),))
    if found.error is not None:
        raise found.error


STORE = "store"


def check_store(work: UnitOfWork, url: str) -> None:
    """Raise InvalidInput where the store at the URL cannot be opened; NeedsEvidence where that is not known."""
    open_store = work.context.open_store
    if open_store is None:
        return
    import hashlib

    key = hashlib.sha256(msgspec.json.encode((STORE, url))).hexdigest()
    found = work.evidence.get(key)
    if found is None:
        raise NeedsEvidence((Question(key, STORE, {}, (None, ""), lambda: open_store(url).close()),))
    if found.error is not None:
        hint = "correct the URL, or send it again once that store is there"
        raise InvalidInput(f"the tenant's store cannot be opened: {found.error.message}", hint) from found.error


def check_contracts(work: UnitOfWork, contracts: Iterable[Mapping[str, Any]]) -> None:
    """Raise the error of the first invalid one; NeedsEvidence where that is not known."""
    unknown: dict[str, Question] = {}
    for contract in contracts:
        if validator_of(contract) in (NONE, REVIEW):
            continue
        question = _question(contract, None)
        if question.key in _proven:
            continue
        found = work.evidence.get(question.key)
        if found is None:
            unknown[question.key] = question
        elif found.error is not None:
            raise found.error
    if unknown:
        raise NeedsEvidence(tuple(unknown.values()))


def _question(contract: Mapping[str, Any], output: tuple[Any, str] | None) -> Question:
    import hashlib  # a fifth of the startup time: only for validated outputs

    name, settings = validator_of(contract), contract.get("settings") or {}
    asked = msgspec.json.encode((name, settings, output), order="sorted")
    return Question(hashlib.sha256(asked).hexdigest(), name, settings, output)


def collect(questions: Iterable[Question]) -> dict[str, Finding]:
    """The findings. Takes up to a second per question, a store longer: never call it inside a transaction."""
    found = {}
    for question in questions:
        finding = found[question.key] = _found(question)
        if question.output is None and finding.ok:
            while len(_proven) >= MOST_PROVEN:
                _proven.pop(next(iter(_proven)), None)
            _proven[question.key] = None
    return found


def _found(question: Question) -> Finding:
    if question.validator == SIGNATURE:
        from tenure.sealing.signing import is_signed

        settings = question.settings
        return Finding(is_signed(settings["key"], settings["signature"], settings["message"].encode()))
    from tenure.validators.known import validator
    from tenure.validators.port import Output, Undecided

    try:
        if question.ask is not None:
            question.ask()
            return Finding(True)
        asked = validator(question.validator)
        if question.output is None:
            asked.check_settings(question.settings)
            return Finding(True)
        verdict = asked.judge(question.settings, Output(*question.output))
    except Undecided as error:
        return Finding(None, (error.message,), error if question.output is None else None)
    except TenureError as error:
        # The contract was valid when the task got it: a fault since then does not reject the work.
        return Finding(None, (error.message,), error)
    except Exception as error:  # noqa: BLE001 a plug-in's fault is nobody's output's
        return _broken(question, error)
    return Finding(verdict.ok, verdict.reasons)


def too_many(questions: Iterable[Question]) -> dict[str, Finding]:
    """The findings while all checkers are busy: an output waits for its verdict, a contract must be sent again."""
    from tenure.validators.port import Undecided

    busy = Undecided("too many outputs are being checked", "send it again in a moment", again=True)
    return {
        q.key: Finding(None, (busy.message,), busy if q.output is None or q.validator in (SIGNATURE, STORE) else None)
        for q in questions
    }


def _broken(question: Question, error: Exception) -> Finding:
    from tenure.validators.port import Undecided

    broken = Undecided(f"the validator {question.validator} failed: {type(error).__name__}: {error}"[:500])
    return Finding(None, (broken.message,), broken if question.output is None else None)
