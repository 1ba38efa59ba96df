"""The verbs of a holder, also `checkpoint …`: each presents the receipt that this session keeps, or --receipt."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tenure.cli.main import Answer, Run, Usage, answered, arg, options
from tenure.cli.option_kinds import contents, json_value, percent, seconds
from tenure.cli.signing import key_of

if TYPE_CHECKING:
    from tenure.core.land_request import LandRequest
    from tenure.core.outcomes import Outcome

TASK = arg("task", nargs="?", help="the claim, as KEY@GENERATION; the key alone, or nothing, if it is unambiguous")
RECEIPT = arg("--receipt", metavar="R", help="the receipt to present (else the one this session keeps)")
SEEN = arg("--seen", type=int, metavar="N", help="you have read description N of the task (after CHANGED)")


@options(
    TASK,
    RECEIPT,
    arg("-s", "--summary", type=contents, default="", metavar="TEXT", help="a summary of the work, in a line or two"),
    arg("--result", type=json_value, metavar="JSON", help="the result: JSON, @FILE, or - for stdin"),
    arg("--commit", metavar="ID", help="the commit that holds the work; it must exist"),
    arg("--artifact", action="append", metavar="NAME", help="an artifact to submit (may be repeated; else all)"),
    arg("--no-wait", action="store_true", help="leave slow checks to `run`, `daemon` or `serve`"),
    SEEN,
    arg("--request-id", metavar="ID", help="a retry with the same id gets the same answer"),
)
def done(run: Run, given: Namespace) -> Answer:
    """Submit the result. It counts if you still hold the task; `history` shows refused results.

    If the task has a check (tests, a judge), it runs here and the verdict is printed.
    """

    def submit(receipt: str) -> Outcome:
        data = _checked(run, given)
        run.client.signing_key = key_of(run)

        def sent(data: Any, summary: str, land: LandRequest | None = None) -> Outcome:
            return run.client.submit(
                receipt, data, summary, given.request_id, artifacts=given.artifact, seen=given.seen, land=land
            )

        outcome = sent(data, given.summary)
        is_again = outcome.outcome == "NO_CLAIM" and "TENURE_PROMPT_FILE" in run.environ
        if outcome.outcome != "DENIED_RUNNER" and not is_again:
            return outcome
        from tenure.agents.runner_submits import with_its_commits  # git: only under a runner that lands

        return with_its_commits(run.client, receipt, run.folder, data, given.summary, outcome, sent)

    outcome = run.present(given, submit)
    if outcome.outcome == "VALIDATING" and not given.no_wait and (outcome.validation or {}).get("phase") != "land":
        from tenure.cli.validation_verbs import verdict_here  # most tasks have no check

        outcome = verdict_here(run, outcome)
    return answered(outcome)


def _checked(run: Run, given: Namespace) -> Any:
    """The data to submit, after the project's checks of the working tree."""
    wants_clean, wants_commit = run.setting("done.clean_tree"), run.setting("done.commit")
    if wants_commit and not given.commit:
        raise Usage("done: this project requires the commit that holds the work", "pass it with --commit")
    if not (wants_clean or given.commit):
        return given.result
    from tenure.agents.worktrees import check_done

    check_done(run.folder, clean_tree=wants_clean, commit=given.commit)
    if given.commit and given.result is None:
        return {"commit": given.commit}
    if given.commit and isinstance(given.result, dict):
        return {"commit": given.commit, **given.result}
    return given.result


@options(
    TASK,
    RECEIPT,
    arg("-m", "--reason", type=contents, default="", metavar="TEXT", help="what went wrong"),
    arg("--class", dest="error_class", default="task", metavar="CLASS",
        help="task, crash, timeout, invalid_output (count as an attempt); permanent (never retried); environment, "
        "auth_failure, rate_limit, upstream_timeout (do not count, unless the task's retry_on names them); "
        "budget_exceeded (pauses it until its budget is raised)"),
    arg("--retry-after", type=seconds, metavar="SECONDS", help="with rate_limit: when to try again"),
    arg("--model", metavar="NAME", help="with rate_limit: which model"),
    arg("--all", action="store_true", help="every task that you hold in this session"),
    arg("-y", "--yes", action="store_true", help="with --all: do not ask"),
)  # fmt: skip
def fail(run: Run, given: Namespace) -> Answer:
    """Report that this attempt failed. The task is retried, or becomes a dead letter."""

    def fail(receipt: str) -> Outcome:
        return run.client.fail(
            receipt, given.reason, given.error_class, retry_after=given.retry_after, model=given.model
        )

    if given.all:
        return _fail_all(run, given, fail)
    return answered(run.present(given, fail, ends=True))


def _fail_all(run: Run, given: Namespace, fail: Callable[[str], Outcome]) -> Answer:
    """Fail every claim that this agent keeps in this session: a list with one answer each."""
    from tenure.cli.answers import asked, exit_of, in_a_line
    from tenure.client.wire import outcome_value

    if given.task or given.receipt:
        raise Usage("fail: --all, or one task, not both")
    run.is_holder = True
    kept = run.receipts.live()
    names = ", ".join(one.key for one in kept)
    if kept and not given.yes:
        if not run.is_terminal or run.is_json:
            raise Usage(f"fail --all: fails {names}", "add -y to do it")
        if not asked(f"fail {names}?"):
            return Answer([], "nothing was done", 0)
    outcomes = [run.receipts.settle(one.receipt, fail(one.receipt), ends=True) for one in kept]
    code = next((code for one in outcomes if (code := exit_of(one.outcome))), 0)
    values = [{"name": one.key, **outcome_value(outcome)} for one, outcome in zip(kept, outcomes, strict=True)]
    return Answer(values, "\n".join(map(in_a_line, outcomes)) or "you hold nothing", code)


@options(TASK, RECEIPT, arg("-m", "--reason", default="", metavar="TEXT", help="why"))
def release(run: Run, given: Namespace) -> Answer:
    """Give the task back without a result. It costs no attempt; you cannot claim it again for five minutes."""
    return answered(run.present(given, lambda r: run.client.release(r, given.reason), ends=True))


@options(TASK, RECEIPT, arg("--lease", type=seconds, metavar="SECONDS", help="length of the lease from now"), SEEN)
def renew(run: Run, given: Namespace) -> Answer:
    """Extend the lease. Every command that presents a receipt does that too."""
    return answered(run.present(given, lambda r: run.client.renew(r, given.lease, seen=given.seen)))


@options(TASK, RECEIPT)
def start(run: Run, given: Namespace) -> Answer:
    """Report that work has begun."""
    return answered(run.present(given, run.client.start))


@options(
    arg("words", nargs="*", metavar="[TASK] TEXT", help="the current step; put the task before it if you hold several"),
    RECEIPT,
    arg("--percent", type=percent, metavar="N", help="how far, 0 to 100"),
    arg("--done-in", type=seconds, metavar="SECONDS", help="estimated time left"),
    SEEN,
)
def progress(run: Run, given: Namespace) -> Answer:
    """Report progress. Renews the lease; the answer carries directives and counts unread mail."""
    step = _text_of(given, "progress", "text")
    return answered(
        run.present(given, lambda r: run.client.progress(r, given.percent, step, given.done_in, seen=given.seen))
    )


def _text_of(given: Namespace, verb: str, what: str) -> str | None:
    """The last word; a task may stand before it."""
    if len(given.words) > 2:
        raise Usage(f"{verb}: at most a task and a {what}", f"put the {what} into quotes")
    given.task = given.words[0] if len(given.words) == 2 else None
    return given.words[-1] if given.words else None


@options(
    arg("words", nargs="+", metavar="[TASK] QUESTION", help="the question; put the task before it if you hold several"),
    RECEIPT,
)
def ask(run: Run, given: Namespace) -> Answer:
    """Ask a person. The task is paused and your claim ends; the answer makes it ready again."""
    question = _text_of(given, "ask", "question")
    return answered(run.present(given, lambda r: run.client.ask(r, question or ""), ends=True))


@options(
    arg("titles", nargs="*", metavar="TITLE", help="one subtask each; its title is its name"),
    arg("--of", dest="task", metavar="TASK", help="the task you hold, if you hold several"),
    RECEIPT,
    arg("--tasks", type=json_value, metavar="JSON", help="a list of tasks with all their fields, @FILE or -"),
    arg("--wait", action="store_true", help="release the task until the subtasks have ended"),
)
def spawn(run: Run, given: Namespace) -> Answer:
    """Create subtasks of the task you hold. A name that an earlier attempt spawned is not created twice."""
    from tenure.cli.create import tasks_of

    tasks = tasks_of(given.tasks or [], given.titles)
    if not tasks and not given.wait:
        raise Usage("spawn: no subtask given", "pass titles, or --tasks with a JSON list")

    def spawned(receipt: str) -> Outcome:
        if tasks:
            return run.client.spawn(receipt, tasks, wait=given.wait)
        return run.client.wait_for_subtasks(receipt)

    return answered(run.present(given, spawned, ends=given.wait))


@options(
    TASK,
    RECEIPT,
    arg("--next-action", type=contents, metavar="TEXT", help="what to do next"),
    arg("--file", action="append", default=[], metavar="F", help="a file concerned (may be repeated)"),
    arg("--tests", type=contents, metavar="TEXT", help="the state of the tests"),
    arg("--blocker", action="append", default=[], metavar="TEXT", help="an obstacle (may be repeated)"),
    arg("--notes", type=contents, metavar="TEXT", help="anything else"),
    arg("--data", type=json_value, metavar="JSON",
        help="all at once: next_action, files, tests, blockers, notes; JSON, @FILE or - for stdin"),
)  # fmt: skip
def save_checkpoint(run: Run, given: Namespace) -> Answer:
    """Save the state that you or the next holder needs. It replaces the last checkpoint, so save everything."""
    from tenure.agents.checkpoints import shaped

    options_ = {
        "next_action": given.next_action, "files": given.file, "tests": given.tests, "blockers": given.blocker,
        "notes": given.notes,
    }  # fmt: skip
    if given.data is not None and any(options_.values()):
        raise Usage("checkpoint save: either --data, or the other options", "--data takes all the fields")
    data = shaped(options_ if given.data is None else given.data)
    outcome = run.present(given, lambda r: run.client.checkpoint(r, data))
    return answered(outcome, "kept" if outcome.ok else "", **({"data": data} if outcome.ok else {}))


@options(TASK, arg("--budget", type=int, metavar="N", help="in at most N tokens, the most important first"))
def show_checkpoint(run: Run, given: Namespace) -> Answer:
    """Print the last checkpoint of a task."""
    from tenure.agents.checkpoints import fitted
    from tenure.core.instants import format_instant

    if given.budget is not None and given.budget < 1:
        raise Usage("checkpoint show: --budget must be at least 1")
    task = run.client.show(run.task_held(given.task))
    found = task.get("checkpoint")
    if found is None:
        return Answer({"task": task["key"], "checkpoint": None}, f"{task['key']}: no checkpoint yet")
    rendered = fitted(found["data"], given.budget)
    text = "\n".join(rendered.lines)
    value = {
        "task": task["key"], "agent": found["agent"], "generation": found["generation"],
        "at": format_instant(found["at"]),
    }  # fmt: skip
    whole = {"checkpoint": found["data"]} if given.budget is None else {"text": text, "left_out": rendered.left_out}
    return Answer({**value, **whole}, text)
