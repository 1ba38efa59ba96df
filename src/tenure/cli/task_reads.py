"""`ready`, `list`, `show`, `why`, `dlq`, `history`: queries about tasks. They write nothing."""

from __future__ import annotations

import os
import sys
from argparse import Namespace
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from tenure.agents.briefing import asked_of, parts_of, text_of
from tenure.agents.quotations import QUOTED, as_json, fenced
from tenure.cli.main import Answer, Run, arg, options, shown
from tenure.cli.status import AT, landing_of, moment_of, paid, stops, tally, unlanded_work
from tenure.cli.text_format import (
    MARKS,
    NOTHING,
    ago,
    clock,
    counted,
    day,
    in_words,
    lasting,
    moment,
    money,
    plain,
    shorten,
    style,
    table,
    width_of,
)
from tenure.client.wire import plain as wire
from tenure.core import limits
from tenure.core.errors import InvalidInput
from tenure.core.ids import parse_receipt
from tenure.core.land_request import JUDGE
from tenure.core.lifecycle import COMPLETED, OPEN, VALIDATING, spoken
from tenure.core.query import Page
from tenure.core.safe_text import shell_word

if TYPE_CHECKING:
    from tenure.client import Client
    from tenure.core.views import TaskView

TITLE = 60
WHY = 200
PAGE = limits.LISTED
TASK = arg("task", help="id, key, short key (B-003) or an unambiguous prefix")


def listed(tasks: Iterable[Mapping[str, Any]], phases: Mapping[str, str] = MappingProxyType({})) -> str:
    """`phases`: what to show beside the state, by task."""
    name = "ref" if sys.stdout.isatty() else "key"  # short for people, whole in a pipe
    rows = [
        (
            task[name],
            style(in_words(task["state"]) + phases.get(task["id"], ""), MARKS[task["state"]].colour),
            task["tier"],
            task.get("agent") or task.get("completed_by"),
            plain(task["title"]),
        )
        for task in tasks
    ]
    return table(rows, ("task", "state", "priority", "agent", "title")) or "no tasks"


@options(
    arg("--track", metavar="CODE", help="only of this track"),
    arg("--limit", type=int, default=20, metavar="N", help="at most N (20)"),
)
def ready(run: Run, given: Namespace) -> Answer:
    """List tasks that can be claimed now, in the order in which `claim` takes them."""
    found = run.client.ready(track=given.track, limit=given.limit)
    return shown(found, lambda tasks: listed(tasks) if tasks else _nothing_ready(run))


def _to_land(run: Run, tasks: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """Of the tasks whose result has passed: the branch that it waits for."""
    if not any(task["state"] == VALIDATING for task in tasks):
        return {}
    waiting = run.client.validations(limits.LISTED)
    return {
        one["task"]: f" (to land on {plain(land['onto'])})"
        for one in waiting
        if one["phase"] != JUDGE and (land := one["land"])
    }


def _nothing_ready(run: Run) -> str:
    """Why: a stopped line is not an empty queue."""
    status = run.client.status()
    stopped = [f"claiming is stopped for {line}; `tenure go` allows it again" for line in stops(status)]
    waiting = tally({state: n for state, n in status["tasks"].items() if state in OPEN})
    return "\n".join(
        ["nothing is ready", *stopped, *([f"open tasks: {waiting}"] if any(status["tasks"].values()) else [])]
    )


FILTERS = (
    arg(
        "-s",
        "--state",
        "--status",
        dest="state",
        action="append",
        metavar="STATE",
        help="in this state (may be repeated)",
    ),
    arg("-t", "--tag", metavar="TAG", help="with this tag"),
    arg("--track", metavar="CODE", help="of this track"),
    arg("--type", metavar="NAME", help="of this type"),
    arg("--holder", metavar="AGENT", help="held by this agent"),
    arg("--dag", metavar="ID", help="of this dag"),
    arg("--idempotency-key", metavar="TEXT", help="created with this key"),
)


def filters_of(given: Namespace) -> dict[str, Any]:
    chosen = {
        "state": tuple(given.state) if given.state else None, "tag": given.tag, "track": given.track,
        "type": given.type, "agent": given.holder, "dag": given.dag,
        "idempotency_key": given.idempotency_key,
    }  # fmt: skip
    return {name: value for name, value in chosen.items() if value is not None}


def every_task(client: Client, **filters: Any) -> Iterator[TaskView]:
    """All tasks that the filters fit, page by page."""
    page = client.tasks(limit=PAGE, **filters)
    yield from page
    while page.next is not None:
        page = client.tasks(limit=PAGE, after=page.next, **filters)
        yield from page


@options(
    *FILTERS,
    arg("--archived", action="store_true", help="archived ones too"),
    arg("--order", default="created_at", metavar="FIELD",
        help="created_at, updated_at, priority, key, deadline or completed_at; a leading - reverses"),
    arg("--limit", type=int, default=50, metavar="N", help="at most N (50)"),
    arg("--after", metavar="TASK", help="continue after this task, the last of the previous page"),
    AT,
)  # fmt: skip
def list_(run: Run, given: Namespace) -> Answer:
    """List tasks, by filter. With --json an array of tasks.

    With --at as they were: at an instant (2026-03-01T12:00Z), some time ago (2h), or after the event with a sequence.
    """
    filters = filters_of(given)
    at = moment_of(run, given)
    if given.agent:  # `list --agent ann`: what ann holds
        filters.setdefault("agent", given.agent)
    after = None
    if given.after:
        last = run.client.show(given.after, at=at)
        after = (last.get(given.order.lstrip("-")), last["id"])
    page = {"archived": given.archived, "order": given.order, "limit": given.limit, "after": after, "at": at}
    tasks = run.client.tasks(**page, **filters)
    then = f" --at {shell_word(at)}" if at else ""  # the same moment, also where it was named from now
    more = f"--after {tasks[-1]['ref']}{then}" if tasks else ""
    return shown(tasks, lambda found: listed(found, {} if at else _to_land(run, found)), more)


@options(TASK, AT, arg("--receipt", metavar="RECEIPT", help="of your live claim: show the task's secrets too"))
def show(run: Run, given: Namespace) -> Answer:
    """Show everything about one task, except its log; with --at as it was. Only the holder's receipt shows secrets."""
    at = moment_of(run, given)
    found = run.client.show(given.task, at=at)
    brief: Mapping[str, Any] = run.client.briefing(found["id"], at=at)
    more = {name: wire(brief[name]) for name in BRIEFED if name in brief}
    if given.receipt is None:
        return Answer({**wire(found), **more}, lambda: task_text(found, brief))
    held = parse_receipt(given.receipt).name
    if held != found["ref"]:
        raise InvalidInput(
            f"this is a receipt of {held}, not of {found['key']}", f"tenure show {shell_word(held)} --receipt …"
        )
    opened = run.client.open_secrets(given.receipt).check()
    secrets = opened.secrets or {}
    lines = [f"{plain(name)}  {plain(value)}" for name, value in secrets.items()] or ["no secrets"]
    return Answer({**wire(found), **more, "secrets": secrets}, lambda: "\n".join((task_text(found, brief), "", *lines)))


# Of the briefing, in `show --json`: what `show` has not.
BRIEFED = ("inputs", "missing", "edited_by", "failure", "review", "notes", "retries", "releases")


def task_text(task: Mapping[str, Any], brief: Mapping[str, Any]) -> str:
    lines = [style(task["key"], "bold"), plain(task["title"]), ""]
    state = style(task["state"], MARKS[task["state"]].colour)
    facts: list[tuple[str, Any]] = [
        ("state", f"{state}{', ' + plain(task['reason']) if task.get('reason') else ''}"),
        ("dead letter", plain(task.get("dead_letter") or "")),
        ("priority", f"{task['tier']} ({task['priority']})"),
        ("when lost", task["on_lost"] if task["on_lost"] != "retry" else ""),
        ("retries", ", ".join(f"{name} {value}" for name, value in wire(task["retry"]).items())),
        ("generation", f"{task['generation']}, attempt {task['attempts']} of {task['max_attempts']}"),
        ("held by", task.get("agent") and f"{task['agent']} in session {task['session']}"),
        ("progress", _progress(task)),
        ("waits for", ", ".join(task["blocked_by"])),
        ("depends on", ", ".join(f"{part['key']} ({part['state']})" for part in task["depends_on"])),
        ("blocks", ", ".join(task["blocks"])),
        ("subtasks", ", ".join(task["subtasks"])),
        ("tags", ", ".join(task.get("tags", ()))),
        ("touches", ", ".join(task.get("touches", ()))),
        ("verdict", "validation" in task and verdict_line(task["validation"])),
        ("done by", _done_by(task)),
        ("work product", task.get("work_product")),
        ("artifacts", ", ".join(dict.fromkeys(plain(one["name"]) for one in task.get("artifacts", ())))),
        ("cost", paid(task.get("usage"))),
        ("archived", task.get("archived_at") and moment(task["archived_at"], 0)),
        ("version", task["version"]),
    ]
    width = max(len(name) for name, value in facts if value) + 2
    lines += [f"{name:<{width}}{value}" for name, value in facts if value]
    lines += ["", *asked_of(brief)]
    for name in ("constraints", "output", "metadata"):
        if task.get(name):
            lines += ["", f"{name}: {as_json(task[name], indent=2)}"]
    for block in text_of(parts_of(brief, rest=f"tenure show {shell_word(task['ref'])} --json"), ""):
        lines += ["", block]
    if "result" in task:
        result = task["result"]
        by = plain(result["agent"])
        lines += ["", QUOTED, f"result of generation {result['generation']} by {by}: {plain(result['summary'])}"]
        if result.get("data") is not None:
            lines += [fenced(result["data"], f"tenure show {shell_word(task['ref'])} --json")]
    return "\n".join(lines)


def _done_by(task: Mapping[str, Any]) -> str:
    """Whose result was accepted, and when."""
    if "result" not in task:
        return ""
    return f"{plain(task['result']['agent'])}, {moment(task['result']['submitted_at'], 0)}"


def _progress(task: Mapping[str, Any]) -> str:
    parts = [f"{task['percent']} %" if task.get("percent") is not None else "", plain(task.get("step") or "")]
    parts += [f"expected {moment(task['expected_at'], 0)}" if "expected_at" in task else ""]
    return ", ".join(part for part in parts if part)


@options(TASK)
def why(run: Run, given: Namespace) -> Answer:
    """Explain a task's state: its order, what it waits for, which agents could take it."""
    return shown(run.client.why(given.task), explained)


def _order(parts: Mapping[str, Any]) -> str:
    """The parts of the effective priority that count, and their sum; lower goes first."""
    age, tier = parts["age_minutes"], parts["tier"]
    if "length" in parts:
        return f"{tier}, shortest first: {lasting(parts['length'])} expected, {age:g} min old"
    for_ = {"its age": age * parts["boost"], "its deadline": parts["urgency"], "what waits for it": parts["weight"]}
    less = "".join(f" - {points:.1f} for {what}" for what, points in for_.items() if points >= 0.05)
    return f"{parts['base']} ({tier}){less}" + (f" = {parts['effective']:g}" if less else "")


def explained(view: Mapping[str, Any]) -> str:
    lines = [f"{view['key']} is {spoken(view['state'])}"]
    lines += [f"  {plain(reason)}" for reason in view["reasons"]]
    lines += [f"  order: {_order(view['priority'])}"]
    for agent in view.get("agents", ()):
        lines += [f"  {agent['agent']}: {'; '.join(agent['why_not']) or 'can take it'}"]
    return "\n".join(lines)


@options(arg("-n", "--limit", type=int, default=50, metavar="N", help="at most N (50)"))
def todo(run: Run, given: Namespace) -> Answer:
    """List everything that waits for a person: questions, reviews, dead letters, budgets, doubtful costs, lost
    claims, landings.

    The longest wait comes first, with the commands that end it. Accepted work that is on no branch but its own is
    listed where its repository is.
    """
    now = run.client.now()
    page = run.client.todo(given.limit)
    found = sorted([*page, *_unlanded(run)], key=lambda one: one["since"])
    more = page.more or len(found) > given.limit
    both = Page(found[: given.limit], more=more, largest=page.largest)
    return shown(both, lambda found: _todo_text(found, now))


def _unlanded(run: Run) -> Iterator[dict[str, Any]]:
    for one in unlanded_work(run):
        if one.state == COMPLETED:
            task = run.client.show(one.key)
            names = {"task": task["id"]} | {name: task[name] for name in ("key", "ref", "title")}
            about = {"since": task.get("completed_at") or task["updated_at"], "text": one.text, "blocks": 0}
            yield {"what": "landing", **names, **about, "do": (one.way,)}


def _todo_text(found: Sequence[Mapping[str, Any]], now: int) -> str:
    lines = []
    for one in found:
        behind = f", {counted(one['blocks'], 'task')} behind it" if one["blocks"] else ""
        by = f" by {plain(one['by'])}" if one.get("by") else ""
        head = f"{style(one['what'], 'bold')}  {one['ref']}  {shorten(one['title'], TITLE)}"
        lines += [
            head,
            f"  {ago(one['since'], now)}{by}{behind}: {shorten(one['text'], WHY if one['what'] == 'landing' else 90)}",
        ]
        lines += ["  " + " | ".join(_remedy(verb, one["ref"]) for verb in one["do"])]
    return "\n".join(lines) or "nothing waits for a person"


def _remedy(verb: str, ref: str) -> str:
    if verb.startswith("git "):
        return verb
    if verb == "budget set":
        return "tenure budget set --usd AMOUNT"
    if verb.startswith("usage "):
        return f"tenure {verb} {ref}"
    noun, _, option = verb.partition(" ")
    more = {"answer": ' "…"', "reject": ' -m "…"'}.get(noun, f" {option}" if option else "")
    return f"tenure {noun} {ref}{more}"


@options(arg("--resolved", action="store_true", help="also reviewed ones"))
def dlq(run: Run, given: Namespace) -> Answer:
    """List dead letters: tasks that are not tried again and wait for a person (`retry`, `edit`, `adopt`, `cancel`)."""
    return shown(run.client.dead_letters(resolved=given.resolved), _letters)


def _letters(letters: Sequence[Mapping[str, Any]]) -> str:
    lines = []
    for letter in letters:
        poison = ", at least two agents failed it" if letter["poison_pill"] else ""
        cost = f", {paid(letter['usage'])}" if letter["usage"] else ""
        lines += [f"{letter['key']}  since {moment(letter['dead_lettered_at'])}{poison}{cost}"]
        lines += [f"  {shorten(plain(letter.get('why') or letter['error']), WHY)}"]
        for failure in letter["history"]:
            took = f" after {lasting(failure['duration'])}" if failure.get("duration") else ""
            took += f" and {money(failure['usage']['cost_usd'])}" if (failure["usage"] or {}).get("cost_usd") else ""
            error = shorten(str(failure.get("error") or ""), TITLE)
            lines += [f"  attempt {failure['attempt']}: {failure['agent']}, {failure['error_class']}{took}: {error}"]
    return "\n".join(lines) or "no dead letters"


HOW = {
    "COMPLETED": "green", "SUBMITTED": "blue", "FAILED": "red", "EXPIRED": "red", "VOLUNTARY": "cyan",
    "STOPPED": "cyan", "PAUSED": "magenta", "WAITING": "cyan", "CANCELLED": "grey", "SUPERSEDED": "yellow",
    "ERROR": "red",
}  # fmt: skip
HEADERS = ("gen", "agent", "session", "held", "ended by", "result", "work product")


@options(TASK, AT)
def history(run: Run, given: Namespace) -> Answer:
    """Show the lineage of a task: one line a generation, and below it every refused submission.

    With --json an array, one object a generation: generation, session, agent, acquired_at, released_at,
    release_reason, result_accepted, work_product_ref, refused …
    """
    at = moment_of(run, given)
    claims = run.client.history(given.task, at=at)
    if run.is_json:
        return Answer(wire(claims))
    task = run.client.show(given.task, at=at)
    return Answer(None, f"{headline(task, len(claims))}\n\n{fitted(claims, run.client.status(at=at)['now'])}")


@options(TASK, arg("--kept", action="store_true", help="only refused results, which `adopt` can accept"))
def results(run: Run, given: Namespace) -> Answer:
    """Show every result that was submitted for a task, with its data; oldest first.

    A refused result is kept: read it here, then `tenure adopt TASK --kept RESULT` accepts it.
    """
    found = [one for one in run.client.results(given.task) if not (given.kept and one["accepted"])]
    return shown(found, lambda found: "\n\n".join(_result_text(one, given.task) for one in found) or "no results")


def _result_text(result: Mapping[str, Any], task: str) -> str:
    fate = "accepted" if result["accepted"] else f"refused ({result['reason']}), kept"
    by = f"generation {result['generation']} of {plain(result['agent'])} in session {plain(result['session'])}"
    lines = [f"{style(result['id'], 'bold')}  {fate}", f"{by}, {moment(result['submitted_at'], 0)}", QUOTED]
    lines += [plain(result["summary"])] if result["summary"] else []
    return "\n".join([*lines, fenced(result["data"], f"tenure results {shell_word(task)} --json")])


def headline(task: Mapping[str, Any], generations: int) -> str:
    mark = MARKS[task["state"]]
    state = style(f"{mark.sign} {in_words(task['state'])}", mark.colour)
    run = f", run {task['run']}" if task["run"] > 1 else ""
    name = f"{style(task['key'], 'bold')}  {shorten(task['title'], 60)}"
    return f"{name}\n{state}{run}, {counted(generations, 'generation')}"


def fitted(claims: Sequence[Mapping[str, Any]], now: int) -> str:
    """The timeline; narrow if the terminal is narrow, complete in a pipe."""
    text = drawn(claims, now)
    if not sys.stdout.isatty():
        return text
    room = os.get_terminal_size(sys.stdout.fileno()).columns
    return text if max(width_of(line) for line in text.split("\n")) <= room else drawn(claims, now, is_narrow=True)


def drawn(claims: Sequence[Mapping[str, Any]], now: int, *, is_narrow: bool = False) -> str:
    """The timeline, with refused submissions below the generation of their receipt.

    A narrow one has neither session nor work product.
    """
    if not claims:
        return "not claimed yet"
    kept = [n for n, header in enumerate(HEADERS) if not is_narrow or header not in ("session", "work product")]
    rows = [_row(claim, now) for claim in claims]
    lines = table([[row[n] for n in kept] for row in rows], [HEADERS[n] for n in kept]).split("\n")
    drawing, run = [lines[0]], claims[0]["run"]
    for claim, line in zip(claims, lines[1:], strict=True):
        if claim["run"] != run:
            run = claim["run"]
            drawing.append(style(f"     run {run}: a person started it over", "dim"))
        drawing.append(line)
        drawing += [f"     {part}" for part in _under(claim, now, is_narrow=is_narrow)]
    return "\n".join(drawing)


def _row(claim: Mapping[str, Any], now: int) -> tuple[object, ...]:
    reason = claim["release_reason"]
    ended = style(reason, HOW.get(reason, "dim")) if reason else style("holds it", "yellow")
    return (
        claim["generation"], shorten(_who(claim), 28), shorten(claim["session"], 24), _held(claim, now), ended,
        _fate(claim), claim["work_product_ref"],
    )  # fmt: skip


def _who(claim: Mapping[str, Any]) -> str:
    return f"{claim['agent']} ({claim['user']})" if claim.get("user") else str(claim["agent"])


def _held(claim: Mapping[str, Any], now: int) -> str:
    began, ended = claim["acquired_at"], claim["released_at"]
    until = clock(ended) if ended is not None else "…"
    return f"{day(began)} {clock(began)} – {until} ({lasting(((now if ended is None else ended) - began) / 1e6)})"


def _fate(claim: Mapping[str, Any]) -> str:
    """The fate of its results: an accepted one wins over refused ones of the same generation."""
    if claim["result_accepted"]:
        return style("accepted", "green")
    if claim["refused"]:
        return style("refused, kept", "red")
    return NOTHING


def verdict_line(verdict: Mapping[str, Any]) -> str:
    """A validator's verdict, or that there is none yet; of a result that has passed, its landing."""
    if verdict["state"] == "landing":
        passed = f"passed by {plain(verdict['decided_by'])}; " if verdict["decided_by"] else ""
        return f"{passed}{plain(landing_of(verdict))}"
    text = f"{verdict['validator']}: {verdict['state']}"
    if verdict["decided_by"]:
        text += f" by {plain(verdict['decided_by'])}"
    if verdict["holder"]:
        text += f", {plain(verdict['holder'])} checks it"
    if verdict["state"] in ("waiting", "running") and verdict["tries"]:
        text += f", try {verdict['tries']}"
    why = "; ".join(verdict["reasons"]) or (verdict["note"] if verdict["state"] == "waiting" else "")
    return f"{text}: {shorten(why, 90)}" if why else text


REPORTED = " (reported by its holder)"


def _landings(claim: Mapping[str, Any]) -> list[str]:
    """A landing is recorded before its branch moves: that it moved is certain of the last ones of an accepted claim."""
    last = {landing["branch"]: landing["new"] for landing in reversed(claim.get("landings") or ())}
    is_done = claim["release_reason"] in ("COMPLETED", "SUBMITTED")
    return [
        f"└ {'landed' if is_done and last[landing['branch']] == landing['new'] else 'began to land'}"
        f" {landing['new'][:12]} on {plain(landing['branch'])}{REPORTED if landing.get('reported', True) else ''}"
        for landing in reversed(claim.get("landings") or ())
    ]


def _under(claim: Mapping[str, Any], now: int, *, is_narrow: bool) -> list[str]:
    lines = []
    if claim.get("error"):
        kind = f"{claim['error_class']}: " if claim.get("error_class") else ""
        lines.append(f"└ {kind}{shorten(claim['error'], 90)}")
    verdict = claim.get("validation")
    if verdict:
        lines.append(f"└ {verdict_line(verdict)}")
    for did, what in (("opened_by", "claimed for it by"), ("submitted_by", "submitted by")):
        if claim.get(did):
            lines.append(f"└ {what} {plain(claim[did])}")
    lines += [f"└ signed by the key {key}" for key in {one["fingerprint"]: 1 for one in claim.get("signatures") or ()}]
    lines += _landings(claim)
    for result in claim["refused"]:
        why = style(f"refused: {result['reason']}", "red")
        who = f"from {plain(result['agent'])} with generation {result['generation']}"
        lines.append(f"└ {moment(result['submitted_at'], now)} {why}, {who}")
        if result["summary"]:
            lines.append(f"    {shorten(result['summary'], 90)}")
    usage = claim.get("usage")
    if usage and not is_narrow:
        lines.append(style(f"└ {paid(usage)}", "dim"))
    return lines
