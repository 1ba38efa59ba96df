"""`ready`, `list`, `show`, `why`, `dlq`: queries about tasks. They write nothing."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterable
from typing import Any

from tenure.agents.quotations import QUOTED, as_json, editor_of, fenced, quoted, written_by
from tenure.cli.main import Answer, Run, arg, options
from tenure.cli.state_marks import MARKS
from tenure.cli.status import paid
from tenure.cli.text_format import clock, lasting, moment, plain, shorten, style, table
from tenure.client.wire import plain as wire

TITLE = 60


def listed(tasks: Iterable[dict[str, Any]]) -> str:
    """Tasks as a table, without columns that are equal in all rows."""
    rows = [
        (
            task["key"], style(task["state"], MARKS[task["state"]].colour), task["tier"], task.get("agent"),
            shorten(task["title"], TITLE),
        )
        for task in tasks
    ]  # fmt: skip
    return table(rows, ("key", "state", "priority", "agent", "title")) or "no tasks"


@options(
    arg("--track", metavar="CODE", help="only of this track"),
    arg("--limit", type=int, default=20, metavar="N", help="at most N (20)"),
)
def ready(run: Run, given: Namespace) -> Answer:
    """List tasks that can be claimed now, in the order in which `claim` takes them."""
    tasks = run.client.ready(track=given.track, limit=given.limit)
    return Answer(wire(tasks), lambda: listed(tasks) if tasks else "nothing is ready")


FILTERS = (
    arg("-s", "--state", action="append", metavar="STATE", help="in this state (may be repeated)"),
    arg("-t", "--tag", metavar="TAG", help="with this tag"),
    arg("--track", metavar="CODE", help="of this track"),
    arg("--type", metavar="NAME", help="of this type"),
    arg("--holder", metavar="AGENT", help="held by this agent"),
    arg("--dag", metavar="ID", help="of this dag"),
)


def filters_of(given: Namespace) -> dict[str, Any]:
    chosen = {
        "state": tuple(given.state) if given.state else None, "tag": given.tag, "track": given.track,
        "type": given.type, "agent": given.holder, "dag": given.dag,
    }  # fmt: skip
    return {name: value for name, value in chosen.items() if value is not None}


@options(
    *FILTERS,
    arg("--archived", action="store_true", help="archived ones too"),
    arg("--order", default="created_at", metavar="FIELD",
        help="created_at, updated_at, priority, key, deadline or completed_at; a leading - reverses"),
    arg("--limit", type=int, default=50, metavar="N", help="at most N (50)"),
    arg("--after", metavar="TASK", help="continue after this task, the last of the previous page"),
)  # fmt: skip
def list_(run: Run, given: Namespace) -> Answer:
    """List tasks, by filter. With --json an array of tasks."""
    filters = filters_of(given)
    if given.agent:  # `list --agent ann`: what ann holds
        filters.setdefault("agent", given.agent)
    after = None
    if given.after:
        last = run.client.show(given.after)
        after = (last.get(given.order.lstrip("-")), last["id"])
    tasks = run.client.tasks(archived=given.archived, order=given.order, limit=given.limit, after=after, **filters)
    more = f"\n… more: tenure list --after {tasks[-1]['ref']}" if len(tasks) == given.limit else ""
    return Answer(wire(tasks), lambda: listed(tasks) + more)


@options(arg("task", help="id, key, short key (B-003) or an unambiguous prefix"))
def show(run: Run, given: Namespace) -> Answer:
    """Show everything about one task, except its log."""
    task = run.client.show(given.task)
    return Answer(wire(task), lambda: shown(task, editor_of(run.client, task)))


def shown(task: dict[str, Any], editor: str | None = None) -> str:
    lines = [style(task["key"], "bold"), plain(task["title"]), ""]
    state = style(task["state"], MARKS[task["state"]].colour)
    facts: list[tuple[str, Any]] = [
        ("state", f"{state}{', ' + plain(task['reason']) if task.get('reason') else ''}"),
        ("priority", f"{task['tier']} ({task['priority']})"),
        ("generation", f"{task['generation']}, attempt {task['attempts']} of {task['max_attempts']}"),
        ("held by", task.get("agent") and f"{task['agent']} in session {task['session']}"),
        ("progress", _progress(task)),
        ("waits for", ", ".join(task["blocked_by"])),
        ("depends on", ", ".join(f"{part['key']} ({part['state']})" for part in task["depends_on"])),
        ("blocks", ", ".join(task["blocks"])),
        ("subtasks", ", ".join(task["subtasks"])),
        ("tags", ", ".join(task.get("tags", ()))),
        ("touches", ", ".join(task.get("touches", ()))),
        ("last error", task.get("last_error") and plain(str(task["last_error"]["message"]))),
        ("verdict", "validation" in task and _verdict(task["validation"])),
        ("work product", task.get("work_product")),
        ("artifacts", ", ".join(dict.fromkeys(plain(one["name"]) for one in task.get("artifacts", ())))),
        ("archived", task.get("archived_at") and moment(task["archived_at"], 0)),
        ("version", task["version"]),
        ("words", written_by(task, editor)),
    ]
    width = max(len(name) for name, value in facts if value) + 2
    lines += [f"{name:<{width}}{value}" for name, value in facts if value]
    if task.get("description"):
        lines += ["", quoted(str(task["description"]))]
    for name in ("spec", "constraints", "output", "metadata"):
        if task.get(name):
            lines += ["", f"{name}: {as_json(task[name], indent=2)}"]
    if "result" in task or "checkpoint" in task:
        lines += ["", QUOTED]
    if "result" in task:
        result = task["result"]
        by = plain(result["agent"])
        lines += [f"result of generation {result['generation']} by {by}: {plain(result['summary'])}"]
        if result.get("data") is not None:
            lines += [fenced(result["data"], "tenure show --json")]
    if "checkpoint" in task:
        left = task["checkpoint"]
        lines += [f"checkpoint by {plain(left['agent'])}:", fenced(left["data"], "tenure show --json")]
    return "\n".join(lines)


def _verdict(validation: dict[str, Any]) -> str:
    from tenure.cli.lineage import verdict_line

    return verdict_line(validation)


def _progress(task: dict[str, Any]) -> str:
    parts = [f"{task['percent']} %" if task.get("percent") is not None else "", plain(task.get("step") or "")]
    return ", ".join(part for part in parts if part)


@options(arg("task", help="which one"))
def why(run: Run, given: Namespace) -> Answer:
    """Explain a task's state: its order, what it waits for, which agents could take it."""
    said = run.client.why(given.task)
    return Answer(wire(said), lambda: explained(said))


def explained(said: dict[str, Any]) -> str:
    lines = [f"{said['key']} is {said['state']}"]
    lines += [f"  {plain(reason)}" for reason in said["reasons"]]
    order = ", ".join(f"{name} {value}" for name, value in said["priority"].items())
    lines += [f"  order: {order}"]
    for agent in said.get("agents", ()):
        lines += [f"  {agent['agent']}: {'; '.join(agent['why_not']) or 'can take it'}"]
    return "\n".join(lines)


@options(arg("--resolved", action="store_true", help="also reviewed ones"))
def dlq(run: Run, given: Namespace) -> Answer:
    """List dead letters: tasks that ran out of attempts and wait for a person (`retry`, `edit`, `adopt`, `cancel`)."""
    letters = run.client.dead_letters(resolved=given.resolved)
    return Answer(wire(letters), lambda: _letters(letters))


def _letters(letters: list[dict[str, Any]]) -> str:
    lines = []
    for letter in letters:
        poison = ", at least two agents failed it" if letter["poison_pill"] else ""
        cost = f", {paid(letter['usage'])}" if letter["usage"] else ""
        lines += [f"{letter['key']}  since {clock(letter['dead_lettered_at'])}{poison}{cost}"]
        for failure in letter["history"]:
            took = f" after {lasting(failure['duration'])}" if failure.get("duration") else ""
            took += f" and ${failure['usage']['cost_usd']}" if (failure["usage"] or {}).get("cost_usd") else ""
            error = shorten(str(failure.get("error") or ""), TITLE)
            lines += [f"  attempt {failure['attempt']}: {failure['agent']}, {failure['error_class']}{took}: {error}"]
    return "\n".join(lines) or "no dead letters"
