"""Verbs for people: they act on any task, by name or by filter. `undo` reverts them.

Agents may use them only where the project allows it; the engine checks that.
"""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tenure.cli import task_reads
from tenure.cli.answers import OF_ERROR, exit_of, outcome_text
from tenure.cli.create import FIELDS, fields_of, with_secrets
from tenure.cli.main import Answer, Option, Run, Usage, Verb, answered, arg, argument_of, options, verb_of
from tenure.cli.option_kinds import contents, json_value, seconds, secret
from tenure.cli.task_reads import TASK
from tenure.client.wire import outcome_value
from tenure.core import commands as c
from tenure.core.errors import TenureError
from tenure.core.inputs import MOST_COMMANDS
from tenure.core.outcomes import Outcome
from tenure.core.safe_text import shell_word

if TYPE_CHECKING:
    from tenure.core.views import EventView

TASKS = arg("tasks", nargs="*", metavar="TASK", help="tasks; or use a filter")
REASON = arg("-m", "--reason", default="", metavar="TEXT", help="the reason, for the log")
DRY_RUN = arg("--dry-run", action="store_true", help="show the outcome for each task without writing")
BULK = (TASKS, *task_reads.FILTERS, DRY_RUN)


# --- many at once -------------------------------------------------------------------------------------------


def in_bulk(run: Run, given: Namespace, make: Callable[[str], c.Command]) -> Answer:
    """Run the same command for every named or filtered task: a list with one answer each, whatever their number.

    The exit code is the first that is not 0.
    """
    names = _chosen(run, given)
    batch = [make(name) for name in names]
    ask = run.client.preview if given.dry_run else run.client.batch
    answers: list[Outcome | TenureError] = []
    for start in range(0, len(batch), MOST_COMMANDS):
        answers += ask(batch[start : start + MOST_COMMANDS])
    if len(names) == 1 and given.tasks and not given.dry_run and isinstance(answers[0], TenureError):
        raise answers[0]
    values = [{"name": name, **_value(answer)} for name, answer in zip(names, answers, strict=True)]
    code = next((code for answer in answers if (code := _code(answer))), 0)
    return Answer(values, lambda: _lines(names, answers, given.dry_run), code)


def _chosen(run: Run, given: Namespace) -> list[str]:
    filters = task_reads.filters_of(given)
    if given.tasks and filters:
        raise Usage(f"{run.verb}: name tasks, or give a filter, not both")
    if given.tasks:
        return list(given.tasks)
    if not filters:
        raise Usage(f"{run.verb}: which tasks?", f"as in `tenure {run.verb} B-003`, or a filter with --dry-run first")
    return [task["key"] for task in task_reads.every_task(run.client, fields="key", **filters)]


def _value(answer: Outcome | TenureError) -> dict[str, Any]:
    if isinstance(answer, TenureError):
        return {"error": {"code": answer.code, "message": answer.message}}
    return outcome_value(answer)


def _code(answer: Outcome | TenureError) -> int:
    return OF_ERROR[answer.code] if isinstance(answer, TenureError) else exit_of(answer.outcome)


def _lines(names: list[str], answers: list[Outcome | TenureError], is_dry: bool) -> str:
    if not names:
        return "no task matches"
    if len(names) == 1 and not is_dry and isinstance(answers[0], Outcome):
        return _one_text(answers[0])
    lines = ["would be:"] if is_dry else []
    for name, answer in zip(names, answers, strict=True):
        code = answer.code if isinstance(answer, TenureError) else answer.outcome
        lines += [f"{name}: {code}{': ' + answer.message if answer.message else ''}"]
    undoable = [a.command_id for a in answers if isinstance(a, Outcome) and a.command_id]
    if undoable and not is_dry:
        several = " ".join(map(shell_word, undoable[:20]))
        lines += [f"to undo: tenure undo {several}{' …' if len(undoable) > 20 else ''}"]
    return "\n".join(lines)


def _one_text(outcome: Outcome) -> str:
    """One outcome, with the command that takes it back."""
    undo = f"\n  to undo: tenure undo {shell_word(outcome.command_id)}" if outcome.command_id and outcome.ok else ""
    return outcome_text(outcome) + undo


def bulk(command: Callable[..., c.Command], text: str, *more: Option) -> Verb:
    """A verb that sends the same command for every named or filtered task; its own options are fields of it."""
    fields = [argument_of(option) for option in more]

    @options(*BULK, *more)
    def verb(run: Run, given: Namespace) -> Answer:
        values = {name: getattr(given, name) for name in fields}
        return in_bulk(run, given, lambda task: command(project=run.project, task=task, **values))

    verb.__doc__ = text
    return verb


pause = bulk(
    c.Pause,
    "Pause tasks. A holder's claim ends at once, unless you --drain; its result is still accepted (late submit).",
    REASON,
    arg("--drain", action="store_true", help="only ask the holder to stop; its claim stays"),
)
resume = bulk(
    c.Resume,
    "Resume paused tasks. A pause by a budget, a question or a review stays, and the answer says so.",
    arg("--budget", action="store_true", help="also lift a budget's pause, whatever is left of it"),
)
cancel = bulk(c.Cancel, "Cancel tasks. Holders get the directive to stop; `undo` restores the tasks.", REASON)
reset = bulk(
    c.Reset,
    "Start completed tasks over. The old result stays in the history.",
    arg("--cascade", action="store_true", help="also reset dependents that used its result"),
)
archive = bulk(c.Archive, "Hide finished tasks from lists. This deletes nothing.")
TERM = arg("--term", type=int, metavar="N", help="as the project's leader: your term; a stale one is refused")
recover = bulk(c.Recover, "End claims whose receipt is lost, so that the tasks can be claimed again.", REASON, TERM)


@options(*BULK, arg("-m", "--note", default="", metavar="TEXT", help="what you found"), *FIELDS[:2], FIELDS[6])
def retry(run: Run, given: Namespace) -> Answer:
    """Retry dead letters and cancelled tasks in a new run, with your changes, if any; or end the delay of a retry.

    The note is in the next holder's briefing.
    """
    names = ("description", "priority", "spec")
    changes = {name: value for name in names if (value := getattr(given, name)) is not None}
    return in_bulk(run, given, lambda t: c.Retry(project=run.project, task=t, note=given.note, changes=changes or None))


# --- one at a time ------------------------------------------------------------------------------------------

OFFER = (
    TASK,
    arg("agent_name", metavar="AGENT", help="to whom"),
    arg("--for", dest="seconds", type=seconds, default=60.0, metavar="SECONDS", help="how long the offer lasts (60 s)"),
    TERM,
)

abort = verb_of(c.Abort, "End a claim that hangs. It counts as an attempt that timed out.", TASK, REASON)
assign = verb_of(c.Assign, "Offer a ready task to one agent; its next claim gets it first.", *OFFER, agent="agent_name")
reassign = verb_of(c.Reassign, "Take a task from its holder and offer it to another agent.", *OFFER, agent="agent_name")
adopt = verb_of(
    c.Adopt,
    "Accept a result that was refused and kept.",
    TASK,
    arg("--kept", metavar="RESULT", help="the id of a kept result (else the newest); `results` shows them"),
    arg("--supersede", action="store_true", help="also while it is held"),
    arg("-m", "--note", default="", metavar="TEXT", help="why"),
    result="kept",
)
note = verb_of(
    c.Note, "Add a note to a task. The next holder reads it.", TASK, arg("text", type=contents, help="the note")
)
answer = verb_of(
    c.Answer,
    "Answer a holder's question; the task is ready again, with the answer in its briefing.",
    TASK,
    arg("text", type=contents, help="the answer"),
)


@options(
    TASK,
    arg("--title", metavar="TEXT", help="the new title"),
    arg("--set", action="append", default=[], metavar="FIELD=JSON", help="any other field, as in --set boost=0.5"),
    arg(
        "--secret",
        action="append",
        default=[],
        type=secret,
        metavar="NAME=VALUE",
        help="a secret of its context: VALUE, @FILE, - for stdin, or env:VARIABLE (may be repeated)",
    ),
    arg("--version", type=int, metavar="N", help="only if nobody has changed it since this version"),
    arg("--supersede", action="store_true", help="also while it is held: the claim ends"),
    *FIELDS,
)
def edit(run: Run, given: Namespace) -> Answer:
    """Change a task. Spec, constraints and touches of a held task change only with --supersede."""
    changes = fields_of(given)
    if "deadline_in" in changes:
        changes["deadline"] = run.client.now() + round(changes.pop("deadline_in") * 1e6)
    if given.title is not None:
        changes["title"] = given.title
    for pair in given.set:
        name, _, value = pair.partition("=")
        changes[name] = json_value(value)
    if given.secret:
        spec = changes.get("spec") or run.client.show(given.task).get("spec", {})  # «secret» stands for the present one
        changes["spec"] = with_secrets(spec, given.secret)
    outcome = run.client.update(given.task, given.version, supersede=given.supersede, **changes)
    return answered(outcome, lambda: _one_text(outcome))


@options(arg("commands", nargs="*", metavar="COMMAND", help="ids that earlier commands printed (none: list them)"))
def undo(run: Run, given: Namespace) -> Answer:
    """Undo earlier commands, if their tasks have not changed since."""
    if not given.commands:
        return _undoable(run)
    answers = [run.client.undo(command) for command in given.commands]
    if len(answers) == 1:
        return answered(answers[0])
    code = next((code for one in answers if (code := _code(one))), 0)
    return Answer([_value(one) for one in answers], lambda: _lines(given.commands, list(answers), True), code)


UNDOABLE = ("task.cancelled", "task.archived", "task.reset", "task.retried", "task.edited", "task.created")


def _undoable(run: Run) -> Answer:
    from tenure.cli.text_format import counted, moment

    found: dict[str, list[EventView]] = {}
    for event in run.client.log(kind=UNDOABLE, limit=200):
        if event.get("causation_id"):
            found.setdefault(event["causation_id"], []).append(event)
    latest = list(found.items())[-20:]
    value = [{"command": id, "what": events[0]["kind"], "tasks": [e["key"] for e in events]} for id, events in latest]
    lines = [
        f"{id}  {moment(events[0]['time'])}  {events[0]['kind']}  {events[0]['key']}"
        + (f" and {counted(len(events) - 1, 'other')}" if len(events) > 1 else "")
        for id, events in latest
    ]
    return Answer(value, "\n".join(lines) or "nothing to undo")


# --- stopped scopes -------------------------------------------------------------------------------------------

SCOPE = (
    arg("--track", metavar="CODE", help="only of this track"),
    arg("--dag", metavar="ID", help="only of this dag"),
    arg("--type", metavar="NAME", help="only of this type"),
    arg("--by", metavar="AGENT", help="only by this agent"),
)


def _scope(given: Namespace, verb: str) -> str:
    if given.agent:
        raise Usage(
            f"{verb}: --agent is who acts; it does not choose whose claiming is meant",
            f"one agent: `tenure {verb} --by {shell_word(given.agent)}`; the whole project: `tenure {verb}`",
        )
    chosen = [
        f"{name}:{value}"
        for name, value in (("track", given.track), ("dag", given.dag), ("type", given.type), ("agent", given.by))
        if value
    ]
    if len(chosen) > 1:
        raise Usage("one scope at a time")
    return chosen[0] if chosen else "project:"


@options(*SCOPE, REASON)
def stop(run: Run, given: Namespace) -> Answer:
    """Stop all claiming in the project, or in one part of it. Held tasks continue."""
    return answered(run.client.stop_line(_scope(given, "stop"), given.reason))


@options(*SCOPE)
def go(run: Run, given: Namespace) -> Answer:
    """Allow claiming again."""
    return answered(run.client.start_line(_scope(given, "go")))
