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

from tenure.agents.quotations import QUOTED, as_json, fenced, quoted, written_by
from tenure.core.outcomes import Outcome
from tenure.core.safe_text import neutral
from tenure.core.validation import validator_of

if TYPE_CHECKING:
    from tenure.agents.runner.claim_worktree import ClaimWorktree

MAIL_SHOWN = 20
KEPT = "It is claimed for you, and its lease is renewed while you work."
ENDING = (
    "Nobody can answer you. Your last message is submitted as the result when you end: {}."
    " If you cannot do it, say why with the command `fail` below."
)


def prompt_for(
    granted: Outcome,
    *,
    mail: Sequence[Mapping[str, Any]] = (),
    folder: str,
    tree: ClaimWorktree | None = None,
    extra: str = "",
    transcripts: Sequence[str] = (),
    editor: str | None = None,
) -> str:
    task = granted.task or {}
    parts = [
        f"# {' '.join(neutral(str(task.get('title', ''))).split())}",
        f"This is task {task['key']} (generation {granted.generation}, attempt {granted.attempt}). {KEPT}",
        *_asked(task, editor),
        *_quotations(granted, mail),
        *_earlier(granted, transcripts),
        *_rules(task, folder, tree),
        extra.strip(),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _asked(task: Mapping[str, Any], editor: str | None) -> list[str]:
    spec = dict(task.get("spec") or {})
    parts = ["## What to do", f"Title and description were {written_by(task, editor)}."]
    parts += [quoted(str(text)) for text in (task.get("description"), spec.pop("prompt", None)) if text]
    spec.pop("context_refs", None)  # the inputs below have them
    if spec:
        parts += ["Details:", fenced(spec)]
    for answer in task.get("answers") or ():
        asked, said = (" ".join(neutral(str(answer.get(name, ""))).split()) for name in ("question", "text"))
        parts.append(f"A person answered: {asked} → {said}")
    if task.get("touches"):
        parts.append(f"Change only these paths: {neutral(', '.join(task['touches']))}")
    output = task.get("output") or {}
    if output:
        parts += ["The result must be of this kind:", fenced(output)]
    if len(parts) == 2:
        parts.append("There is no description beyond the title.")
    return parts


def _quotations(granted: Outcome, mail: Sequence[Mapping[str, Any]]) -> list[str]:
    parts = []
    task = granted.task or {}
    if granted.inputs:
        parts += ["## Results of earlier tasks", QUOTED, fenced(granted.inputs)]
    if granted.missing:
        parts.append(f"Requested inputs that are missing: {as_json(granted.missing)[:2000]}")
    if granted.checkpoint:
        kept = granted.checkpoint
        parts += [
            f"## Checkpoint of the previous agent ({neutral(kept['agent'])}, generation {kept['generation']})",
            QUOTED,
            fenced(kept["data"]),
        ]
    if task.get("last_error"):
        error = task["last_error"]
        shown = {name: error.get(name) for name in ("error_class", "message", "generation")}
        parts += ["## How the last attempt failed", QUOTED, fenced(shown)]
    if mail:
        shown_mail = [{"from": m.get("from"), "text": m.get("text")} for m in mail[-MAIL_SHOWN:]]
        parts += ["## Your mail", QUOTED, fenced(shown_mail)]
    return parts


def _earlier(granted: Outcome, transcripts: Sequence[str]) -> list[str]:
    parts = []
    if granted.artifacts:
        shown = [
            {name: entry[name] for name in ("name", "type", "size", "generation", "agent", "path") if name in entry}
            for entry in granted.artifacts
        ]
        parts += ["## Files kept by earlier attempts at this task", QUOTED, fenced(shown)]
    if transcripts:
        listed = "\n".join(f"- {path}" for path in transcripts)
        parts.append(f"Transcripts of earlier attempts, newest first; read them before you repeat work:\n{listed}")
    return parts


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
    allowed = "\n".join(("Do not claim other tasks. You may use these commands:", *commands))
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
