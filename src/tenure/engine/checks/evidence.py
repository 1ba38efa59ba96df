"""What a decision needs to know and a transaction must not find out: whether an output is good, by a quick validator.

A handler asks for what it needs (`of_output`, `check_contracts`). Where the command came without the answer it ends
with `Lacking`, and nothing of it is done; the engine, or the gatherer, finds out in between (`find_out`: outside of
every transaction, in a process that can be ended) and runs the command again with the answer. An answer is known by the
digest of its question, contract and output included: one that was found for another contract does not count.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from tenure.core import limits
from tenure.core.errors import TenureError
from tenure.core.validation import NONE, REVIEW, validator_of

if TYPE_CHECKING:
    from tenure.engine.runtime.unit_of_work import UnitOfWork

MOST_PROVEN = limits.CHECKS_CACHED


class Question(NamedTuple):
    """`output` is data and summary; None asks whether outputs can be judged by these settings at all."""

    key: str
    validator: str
    settings: Mapping[str, Any]
    output: tuple[Any, str] | None = None


class Finding(NamedTuple):
    """`ok` is None where nothing can be said; `error` is what is wrong with the settings."""

    ok: bool | None
    reasons: tuple[str, ...] = ()
    error: TenureError | None = None


Evidence = Mapping[str, Finding]
NOTHING: Evidence = {}


class NeedsEvidence(Exception):
    """Ends a command that cannot be decided yet; it changes nothing. Without questions: it waits for one before it."""

    def __init__(self, questions: Sequence[Question] = ()) -> None:
        super().__init__(f"{len(questions)} questions")
        self.questions = questions


def raise_needs(answers: Iterable[Any]) -> None:
    """One Lacking for all that is lacking among these answers, if anything is."""
    lacking = [answer for answer in answers if isinstance(answer, NeedsEvidence)]
    if lacking:
        raise NeedsEvidence(tuple({q.key: q for one in lacking for q in one.questions}.values()))


# Contracts that were found good in this process. What is bad is asked again: its reason goes to whoever gave it.
_proven: dict[str, None] = {}


def of_output(work: UnitOfWork, contract: Mapping[str, Any], data: Any, summary: str) -> Finding:
    """The verdict of the contract's validator on this output; raises Lacking where it is not known."""
    question = _question(contract, (data, summary))
    found = work.evidence.get(question.key)
    if found is None:
        raise NeedsEvidence((question,))
    return found


def check_contracts(work: UnitOfWork, contracts: Iterable[Mapping[str, Any]]) -> None:
    """Raise what is wrong with one of them; Lacking where that is not known."""
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
    import hashlib  # a fifth of what a bare start costs: only for those whose output is checked

    name, settings = validator_of(contract), contract.get("settings") or {}
    asked = msgspec.json.encode((name, settings, output), order="sorted")
    return Question(hashlib.sha256(asked).hexdigest(), name, settings, output)


def find_out(questions: Iterable[Question]) -> dict[str, Finding]:
    """The answers. Takes its time, a second a question at most: never inside a transaction."""
    found = {}
    for question in questions:
        finding = found[question.key] = _found(question)
        if question.output is None and finding.ok:
            while len(_proven) >= MOST_PROVEN:
                _proven.pop(next(iter(_proven)), None)
            _proven[question.key] = None
    return found


def _found(question: Question) -> Finding:
    from tenure.validators.known import validator
    from tenure.validators.port import Output, Undecided

    try:
        asked = validator(question.validator)
        if question.output is None:
            asked.check_settings(question.settings)
            return Finding(True)
        verdict = asked.judge(question.settings, Output(*question.output))
    except Undecided as error:
        return Finding(None, (error.message,), error if question.output is None else None)
    except TenureError as error:
        # The contract was good when the task got it: what is wrong by now is no reason to send the work back.
        return Finding(None, (error.message,), error)
    except Exception as error:  # noqa: BLE001 a plug-in's fault is nobody's output's
        return _broken(question, error)
    return Finding(verdict.ok, verdict.reasons)


def too_many(questions: Iterable[Question]) -> dict[str, Finding]:
    """What can be said where nobody can look now: an output waits for its verdict, a contract is to be sent again."""
    from tenure.validators.port import Undecided

    busy = Undecided("too many outputs are being checked just now", "Send it again in a moment.", again=True)
    return {q.key: Finding(None, (busy.message,), busy if q.output is None else None) for q in questions}


def _broken(question: Question, error: Exception) -> Finding:
    from tenure.validators.port import Undecided

    broken = Undecided(f"the validator {question.validator} failed: {type(error).__name__}: {error}"[:500])
    return Finding(None, (broken.message,), broken if question.output is None else None)
