"""`checkpoint save`, `checkpoint show`: what the next holder must know."""

from __future__ import annotations

from argparse import Namespace

from tenure.cli.holder_verbs import RECEIPT, TASK
from tenure.cli.main import Answer, Run, Usage, answered, arg, options
from tenure.cli.option_kinds import contents, json_value


@options(
    TASK,
    RECEIPT,
    arg("--next-action", type=contents, metavar="TEXT", help="what to do next"),
    arg("--file", action="append", default=[], metavar="F", help="a file that it is about (may be repeated)"),
    arg("--tests", type=contents, metavar="TEXT", help="the state of the tests"),
    arg("--blocker", action="append", default=[], metavar="TEXT", help="what is in the way (may be repeated)"),
    arg("--notes", type=contents, metavar="TEXT", help="anything else"),
    arg("--data", type=json_value, metavar="JSON",
        help="all at once: next_action, files, tests, blockers, notes; JSON, @FILE or - for stdin"),
)  # fmt: skip
def save(run: Run, given: Namespace) -> Answer:
    """Save the state that you or the next holder needs. It replaces the last checkpoint, so save everything."""
    from tenure.agents.checkpoints import shaped

    options_ = {
        "next_action": given.next_action, "files": given.file, "tests": given.tests, "blockers": given.blocker,
        "notes": given.notes,
    }  # fmt: skip
    if given.data is not None and any(options_.values()):
        raise Usage("checkpoint save: either --data, or the other options", "--data takes all the fields")
    data = shaped(options_ if given.data is None else given.data)
    receipt = run.receipt(given)
    outcome = run.client.checkpoint(receipt, data)
    run.receipts.settle(receipt, outcome)
    return answered(outcome, "kept" if outcome.ok else "", **({"data": data} if outcome.ok else {}))


@options(
    TASK,
    arg("--budget", type=int, metavar="N", help="in at most N tokens, the most important first"),
)
def show(run: Run, given: Namespace) -> Answer:
    """Print the last checkpoint of a task."""
    from tenure.agents.checkpoints import fitted
    from tenure.core.instants import format_instant

    if given.budget is not None and given.budget < 1:
        raise Usage("checkpoint show: --budget must be at least 1")
    task = run.client.show(run.task_held(given.task))
    found = task.get("checkpoint")
    if found is None:
        return Answer({"task": task["key"], "checkpoint": None}, f"{task['key']}: no checkpoint yet")
    said = fitted(found["data"], given.budget)
    text = "\n".join(said.lines)
    value = {
        "task": task["key"], "agent": found["agent"], "generation": found["generation"],
        "at": format_instant(found["at"]),
    }  # fmt: skip
    whole = {"checkpoint": found["data"]} if given.budget is None else {"text": text, "left_out": said.left_out}
    return Answer({**value, **whole}, text)
