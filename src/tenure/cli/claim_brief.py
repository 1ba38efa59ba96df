"""The text that an agent reads after a claim: the task, its inputs, how to submit. Kept short."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tenure.agents.quotations import QUOTED, as_json, quoted, written_by
from tenure.cli.text_format import plain
from tenure.core import limits
from tenure.core.outcomes import Outcome

MOST_SHOWN = limits.INPUT_SHOWN


def briefing(outcome: Outcome, editor: str | None = None, *, is_only: bool = False) -> str:
    """`editor`: who last changed the task's text, if anybody did.

    `is_only`: the one claim of this command, which TENURE_TASK may name.
    """
    task = outcome.task or {}
    claim = f"{task.get('ref', '')}@{outcome.generation}"
    lines = [f"{task.get('key')} is yours: generation {outcome.generation}, attempt {outcome.attempt}."]
    lines += [f"claim    {claim}", f"receipt  {outcome.receipt}"]
    if outcome.lease is not None:
        lines += [f"lease    {outcome.lease:.0f} s; every command on this task renews it"]
    if outcome.model:
        lines += [f"model    {outcome.model} ({outcome.why})"]
    lines += ["", plain(task.get("title", "")), f"({written_by(task, editor)})"]
    if task.get("description"):
        lines += ["", quoted(str(task["description"]))]
    for name in ("spec", "constraints", "output", "touches"):
        if task.get(name):
            lines += [f"{name}: {_short(task[name])}"]
    for answer in task.get("answers", ()):
        lines += [f"asked: {_short(answer['question'])}", f"answer: {_short(answer['answer'])}"]
    if outcome.inputs or outcome.checkpoint:
        lines += ["", QUOTED]
    for key, handed in (outcome.inputs or {}).items():
        lines += [f"from {key} ({handed['state']}): {_short(handed.get('data', handed.get('summary', '')))}"]
    if outcome.checkpoint:
        left = outcome.checkpoint
        lines += [f"left by {plain(left['agent'])} (generation {left['generation']}): {_short(left['data'])}"]
    if outcome.unfinished:
        lines += ["", f"You also hold: {', '.join(outcome.unfinished)}"]
    lines += ["", f'Then: tenure done {claim} -s "what you did"   (or: fail {claim} -m "why", release {claim})']
    if is_only:
        lines += [f"export TENURE_TASK={claim}"]
    return "\n".join(lines)


def summary(task: Mapping[str, Any]) -> str:
    return f"{task['key']}  {task['tier']}  {plain(task['title'])}"


def nothing(outcome: Outcome) -> str:
    lines = [f"{outcome.outcome}: {outcome.message}" if outcome.message else outcome.outcome]
    if outcome.counts:
        lines += ["  " + ", ".join(f"{n} {name.replace('_', ' ')}" for name, n in outcome.counts.items() if n)]
    if outcome.unfinished:
        lines += [f"  you hold: {', '.join(outcome.unfinished)}"]
    if outcome.hint:
        lines += [f"  {outcome.hint}"]
    return "\n".join(line for line in lines if line.strip())


def _short(value: Any) -> str:
    text = as_json(value)  # on one line: nothing in it can pass for a line of ours
    return (
        text
        if len(text) <= MOST_SHOWN
        else text[:MOST_SHOWN] + f" … ({len(text)} characters; `tenure show` prints all)"
    )
