"""What a runner keeps to itself while its agent works: evidence, the submit of the task, what its session may claim.

The claim of a runner has a mark in its metadata, so that every interface obeys. The mark has the digest of a secret
word. Only who knows it may put evidence (`core/artifacts.py`); where the runner lands the work, only a request whose id
begins with it may land, or submit a result that asks for no landing. The agent has the receipt too, but not the word.
The agent's session, whose first claim is the marked one, may claim that task again and subtasks of it.

Who claims may call itself a runner. The word proves that what it did was not done by the agent below.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tenure.core.artifacts import is_evidence
from tenure.core.outcomes import Outcome
from tenure.core.records import Claim, Task

MARK = "$runner"  # in a claim's metadata
_SUBMITS = "submits"
_EVIDENCE = "evidence"


def mark(word: str, *, submits: bool) -> dict[str, Any]:
    """The metadata of a runner's claim. `word`: known to the runner alone; `submits`: it alone lands and submits."""
    return {MARK: {_EVIDENCE: _digest(word)} | ({_SUBMITS: _digest(word)} if submits else {})}


def is_marked(metadata: Mapping[str, Any]) -> bool:
    return isinstance(metadata.get(MARK), Mapping)


def has_word(metadata: Mapping[str, Any]) -> bool:
    """Whether only the runner may land and submit."""
    return is_marked(metadata) and isinstance(metadata[MARK].get(_SUBMITS), str)


def denied_result(task: Task, claim: Claim, request_id: str | None) -> Outcome | None:
    """The refusal of a result, or of a landing, that is not the runner's own."""
    if not has_word(claim.metadata) or _digest((request_id or "").partition(".")[0]) == claim.metadata[MARK][_SUBMITS]:
        return None
    return Outcome(
        outcome="DENIED_RUNNER",
        message=f"{task.key}: the runner lands your commits, so a result without them is refused",
        hint="run `tenure done` in your worktree, which submits them; or end, and your last message is the result",
        directive="continue",
        state=task.state,
        generation=claim.generation,
        current_generation=task.generation,
        work_lost=False,
    )


def denied_evidence(task: Task, claim: Claim, name: str, word: str | None) -> Outcome | None:
    """The refusal of an artifact under a name that shows what a runner saw, from somebody else."""
    if not is_evidence(name):
        return None
    kept = claim.metadata[MARK].get(_EVIDENCE) if is_marked(claim.metadata) else None
    if kept is not None and kept == _digest(word or ""):
        return None
    return Outcome(
        outcome="DENIED_RUNNER",
        message=f"{task.key}: {name} is for what a runner recorded of its agent, so only the runner may put it",
        hint="put it under another name",
        directive="continue",
        state=task.state,
        generation=claim.generation,
        current_generation=task.generation,
        work_lost=False,
    )


def denied_claim(own: Task) -> Outcome:
    """The refusal of a claim by a session that works on `own` for a runner."""
    return Outcome(
        outcome="DENIED_RUNNER",
        message=f"this session works on {own.key} for a runner, which claims the other tasks",
        hint=f"go on with {own.key}, and end when it is done; its subtasks can be claimed by name",
        state=own.state,
    )


def _digest(word: str) -> str:
    import hashlib  # as in ids.is_genuine

    return hashlib.sha256(f"tenure runner {word}".encode()).hexdigest()[:32]
