"""The prompt of an agent: the task, its inputs, its mail, how to report.

Outputs of other tasks, mail and checkpoints were written by others and may contain anything: `quotations` formats them
so that they are never read as part of the task. The task's own text is marked, and its author is named.
"""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tenure.agents.briefing import asked_of, mail_part, parts_of, text_of
from tenure.agents.quotations import fenced
from tenure.core.safe_text import neutral
from tenure.core.validation import validator_of

if TYPE_CHECKING:
    from tenure.agents.runner.claim_worktree import ClaimWorktree

KEPT = "It is claimed for you, and its lease is renewed while you work."
ENDING = (
    "Nobody can answer you. Your last message is submitted as the result when you end: {}."
    " If you cannot do it, say why with the command `fail` below. The runner lands your commits: `tenure land` and"
    " claims of other tasks are not for you."
)


def prompt_for(
    brief: Mapping[str, Any],
    *,
    generation: int | None,
    attempt: int | None,
    mail: Sequence[Mapping[str, Any]] = (),
    folder: str,
    tree: ClaimWorktree | None = None,
    extra: str = "",
    transcripts: Sequence[str] = (),
    secrets: Sequence[str] = (),
) -> str:
    task = brief["task"]
    read = mail_part(mail)
    parts = [
        f"# {' '.join(neutral(str(task.get('title', ''))).split())}",
        f"This is task {task['key']} (generation {generation}, attempt {attempt}). {KEPT}",
        *_asked(brief),
        *text_of([*parts_of(brief), *([read] if read else [])]),
        _earlier(transcripts),
        _secrets(secrets),
        *_rules(task, folder, tree),
        extra.strip(),
    ]
    return neutral("\n\n".join(part for part in parts if part)) + "\n"  # whatever a part forgot


def _asked(brief: Mapping[str, Any]) -> list[str]:
    task = brief["task"]
    parts = ["## What to do", *asked_of(brief)]
    if task.get("touches"):
        parts.append(f"Change only these paths: {neutral(', '.join(task['touches']))}")
    output = task.get("output") or {}
    if output:
        parts += ["The result must be of this kind:", fenced(output)]
    if len(parts) == 2:
        parts.append("There is no description beyond the title.")
    return parts


def _earlier(transcripts: Sequence[str]) -> str:
    if not transcripts:
        return ""
    listed = "\n".join(f"- {path}" for path in transcripts)
    return f"Transcripts of earlier attempts, newest first; read them before you repeat work:\n{listed}"


def _secrets(variables: Sequence[str]) -> str:
    """Where the secrets are; they themselves are in no prompt."""
    if not variables:
        return ""
    listed = ", ".join(f"`{name}`" for name in variables)
    return f"Secrets of this task are in environment variables: {listed}. Use them; never print or store them."


def _rules(task: Mapping[str, Any], folder: str, tree: ClaimWorktree | None) -> list[str]:
    tenure, ref = tenure_command(), task.get("ref") or task["key"]
    where = f"You work in {folder}."
    if tree is not None:
        where += f" It is in your own git worktree, on branch {tree.branch}: commit your work there."
        for name, count in tree.earlier:
            where += f" An earlier attempt left {count} commits on branch {name}: check whether they are useful."
        for path in tree.unsaved:
            where += f" An earlier attempt left uncommitted changes in {path}: use them if they are useful."
    commands = (
        f'- `{tenure} progress {ref} "TEXT" --percent N`: how far you are',
        f"- `{tenure} checkpoint save {ref} --next-action TEXT`: what the next agent must know if you are stopped",
        f"- `{tenure} artifact put {ref} FILE`: a file that is part of the result (`artifact get TASK NAME` gets one)",
        f'- `{tenure} ask {ref} "QUESTION"`: a person must decide; then end, the task waits for the answer',
        f'- `{tenure} fail {ref} --reason "WHY"`: it cannot be done',
    )
    allowed = "\n".join(("You may use these commands:", *commands))
    return ["## How to work", f"{where} {ENDING.format(_ending(task))}", allowed]


def _ending(task: Mapping[str, Any]) -> str:
    name = validator_of(task.get("output") or {})
    if name == "json-schema":
        return "it must be JSON of the kind described above, and nothing else"
    if name == "regex":
        return "it is checked as described above"
    return "say what you did, and what the next agent must know"


def tenure_command() -> str:
    """The command that runs tenure from any shell: some agents' shells have another PATH."""
    beside = os.path.join(os.path.dirname(sys.executable), "tenure")
    found = beside if os.access(beside, os.X_OK) else shutil.which("tenure")
    return shlex.quote(found) if found else f"{shlex.quote(sys.executable)} -m tenure"
