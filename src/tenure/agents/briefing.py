"""The briefing: what the holder of a task must know, as text. `claim`, `show`, MCP and the runner's prompt have it.

Others wrote almost all of it. Each part names its author and is quoted (`quotations`), so that no text in it can pass
for ours. A part that is empty is left out.

News (unread mail, directives) come with the answer to each command of an agent. The hot answers (claim, submit) are
made without them, so that their statements stay short; the interfaces that agents use ask after the command.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from tenure.agents.quotations import QUOTED, as_json, fenced, quoted, written_by
from tenure.core.errors import TenureError
from tenure.core.outcomes import Outcome
from tenure.core.safe_text import one_line, shell_word

if TYPE_CHECKING:
    from tenure.client import Client

MAIL_SHOWN = 20
# The version of a task that was created and claimed, and not changed: its log has no note and no edit.
UNTOUCHED = 2
# What only the log has; the claim's own answer has the rest.
FROM_LOG = ("edited_by", "failure", "review", "notes", "retries", "releases")
WRITTEN_NOTES = {
    "releases": "Notes of those who released it", "retries": "Notes of those who retried it", "notes": "Notes",
}  # fmt: skip
# What a refused command asks of its sender.
REFUSED = {
    "abort": "you no longer hold this task; stop, and change nothing more for it",
    "cancel": "stop, and discard your work on this task",
    "pause": "stop and save a checkpoint",
    "terminated": "claim nothing more: an operator has terminated this agent",
}


class Part(msgspec.Struct, frozen=True):
    """One part of a briefing; `title` is a line of ours, `lines` are quoted."""

    title: str
    lines: Sequence[str]


def from_claim(granted: Outcome) -> dict[str, Any]:
    """The briefing as far as the claim's own answer has it."""
    task = granted.task or {}
    parts = {
        "task": task, "written_by": task.get("created_by"), "inputs": granted.inputs, "missing": granted.missing,
        "artifacts": granted.artifacts, "checkpoint": granted.checkpoint, "failure": task.get("last_error"),
    }  # fmt: skip
    return {name: part for name, part in parts.items() if part}


def of_claim(client: Client, granted: Outcome) -> dict[str, Any]:
    """The whole briefing of a claimed task. The claim is granted: if the rest cannot be read, it is left out."""
    own = from_claim(granted)
    if int(own["task"].get("version") or 0) <= UNTOUCHED:
        return own
    try:
        found: Mapping[str, Any] = client.briefing(str(own["task"]["id"]))
    except TenureError:
        return own
    return {**own, **{name: found[name] for name in FROM_LOG if name in found}}


def parts_of(brief: Mapping[str, Any], *, most: int | None = None, rest: str = "tenure show") -> list[Part]:
    """Everything beside the task's own text. `most` bounds each quotation; `rest` prints the whole."""

    def block(value: Any) -> str:
        return fenced(value, rest, **({} if most is None else {"most": most}))

    parts = []
    if brief.get("inputs"):
        lines = [line for key, one in brief["inputs"].items() for line in _input(key, one, block)]
        parts.append(Part("Results of earlier tasks", lines))
    if brief.get("missing"):
        parts.append(Part("Requested inputs that are missing", [as_json(list(brief["missing"]))[:2000]]))
    review, failure = brief.get("review"), brief.get("failure")
    if review:
        title = f"The last result was refused by {one_line(review['by'])} ({one_line(review['validator'])})"
        parts.append(Part(title, [f"- {as_json(reason)}" for reason in review["reasons"]]))
    if failure and not (review and review.get("generation") == failure.get("generation")):
        parts.append(_failure(failure, block))
    for name, title in WRITTEN_NOTES.items():
        if brief.get(name):
            parts.append(Part(title, [f"- {one_line(one['by'])}: {as_json(one['text'])}" for one in brief[name]]))
    if brief.get("checkpoint"):
        left = brief["checkpoint"]
        title = f"Checkpoint of the previous agent ({one_line(left['agent'])}, generation {left['generation']})"
        parts.append(Part(title, [block(left["data"])]))
    if brief.get("artifacts"):
        parts.append(
            Part("Files kept by earlier attempts at this task", [block([_file(one) for one in brief["artifacts"]])])
        )
    return parts


def _file(entry: Mapping[str, Any]) -> dict[str, Any]:
    """What an agent needs of a file: what it is, and where; no digests, no instants."""
    wanted = ("name", "type", "size", "generation", "agent", "path", "ref")
    return {name: entry[name] for name in wanted if name in entry}


def _input(key: str, one: Mapping[str, Any], block: Any) -> list[str]:
    by = f", by agent {one_line(one['agent'])}" if one.get("agent") else ""
    summary = f": {as_json(one['summary'])}" if one.get("summary") else ""
    more = {
        name: one[name]
        for name in ("data", "data_ref", "artifacts", "artifacts_left_out", "error", "work_product")
        if one.get(name) is not None
    }
    if "artifacts" in more:
        more["artifacts"] = [_file(entry) for entry in more["artifacts"]]
    if set(more) <= {"work_product"}:
        return [f"- from {one_line(key)} ({one['state']}{by}){summary}"]
    return [f"- from {one_line(key)} ({one['state']}{by}){summary}", block(more)]


def _failure(error: Mapping[str, Any], block: Any) -> Part:
    by = f" of agent {one_line(str(error['agent']))}" if error.get("agent") else ""
    shown = {name: error.get(name) for name in ("error_class", "message", "generation")}
    return Part(f"How the last attempt{by} failed", [block(shown)])


def mail_part(mail: Sequence[Mapping[str, Any]]) -> Part | None:
    if not mail:
        return None
    shown = [{"from": message.get("from"), "text": message.get("text")} for message in mail[-MAIL_SHOWN:]]
    return Part("Your mail", [fenced(shown)])


def asked_of(brief: Mapping[str, Any]) -> list[str]:
    """The task's own text: its author, its description, its prompt, what a person answered, what must come out."""
    task = brief["task"]
    spec = dict(task.get("spec") or {})
    lines = [f"Title and description were {written_by(task, brief.get('edited_by'))}."]
    lines += [quoted(str(text)) for text in (task.get("description"), spec.pop("prompt", None)) if text]
    spec.pop("context_refs", None)  # the inputs have them
    if spec:
        lines += ["Details:", fenced(spec)]
    for answer in task.get("answers") or ():
        who = f" ({one_line(str(answer['by']))})" if answer.get("by") else ""
        question, text = (one_line(str(answer.get(name) or "")) for name in ("question", "answer"))
        lines.append(f"A person answered{who}: {as_json(question)} → {as_json(text)}")
    return lines


def text_of(parts: Sequence[Part], heading: str = "## ") -> list[str]:
    """Each part as a block of text, below the sentence that says whose words follow."""
    return [f"{heading}{part.title}\n{QUOTED}\n" + "\n".join(part.lines) for part in parts]


def news_of(client: Client, outcome: Outcome | None = None) -> dict[str, Any]:
    """`mail` and `directives` for an agent; what `outcome` asks comes first. Empty where they cannot be read."""
    try:
        found = client.agent_news()
    except TenureError:  # the command had its effect; a server of another version may not have this query
        return {}
    asked = [dict(one) for one in found["directives"]]
    directive = outcome.directive if outcome is not None else None
    if outcome is not None and directive and directive not in {"continue", *(one["directive"] for one in asked)}:
        text = outcome.directive_text if outcome.ok else None
        asked.insert(0, {"directive": directive, "text": text or REFUSED.get(directive, "")})
    return {"mail": found["mail"], **({"directives": asked} if asked else {})}


def news_lines(news: Mapping[str, Any], *, is_diff_shown: bool = False) -> list[str]:
    """The news for a terminal; nothing where there is none."""
    lines = []
    for one in news.get("directives", ()):
        is_change = one["directive"] == "changed"
        if one["directive"] == "continue" or (is_change and is_diff_shown):
            continue
        about = f" {one['task']}" if one.get("task") else ""
        where = f"; `tenure renew {shell_word(one['task'])}` shows it" if is_change else ""
        lines.append(f"directive{about}: {one['directive']}: {one_line(one['text'])}{where}")
    if news.get("mail"):
        count = news["mail"]
        lines.append(f"mail: {count} unread {'message' if count == 1 else 'messages'}; `tenure inbox` shows them")
    return lines
