"""`trigger add|list|show|test|pause|resume|remove|rotate|watch`: tasks created by events and webhooks."""

from __future__ import annotations

from argparse import ArgumentTypeError, Namespace
from collections.abc import Mapping
from typing import Any

from tenure.cli.main import Answer, Run, Usage, answered, arg, options
from tenure.cli.option_kinds import json_value, seconds
from tenure.cli.schedules import WAITS, is_waiting
from tenure.cli.templates import TEMPLATE, template_of
from tenure.cli.text_format import ago, counted, lasting, plain, shorten, table
from tenure.client.wire import plain as wire
from tenure.core import commands as c
from tenure.core.outcomes import Outcome
from tenure.core.records import Watch

NAME = arg("name", help="the trigger")
WEBHOOK = "webhook"
_SIGNS = {"^=": "prefix", "~=": "glob", "|=": "in", "!=": "not"}


def condition(text: str) -> tuple[str, Any]:
    """`path=value`, `path!=value`, `path^=beginning`, `path~=pat*tern`, `path|=one,other`."""
    path, equals, value = text.partition("=")
    if not equals or not path:
        raise ArgumentTypeError(
            f"{text!r}: as in event.details.error_class=timeout, or ^= (begins), ~= (like), |= (in)"
        )
    operator = _SIGNS.get(f"{path[-1]}=")
    if operator is None:
        return path, _value(value)
    path = path[:-1]
    if operator == "in":
        return path, {"in": [_value(part) for part in value.split(",")]}
    return path, {operator: _value(value) if operator == "not" else value}


def _value(text: str) -> Any:
    """A number, true, false or null as JSON has it; anything else is text."""
    import msgspec

    try:
        value = msgspec.json.decode(text)
    except msgspec.DecodeError:
        return text
    return text if isinstance(value, (list, dict)) else value


@options(
    arg("name", help="its name, as in post-mortem"),
    arg("--on", required=True, metavar="KIND", help="an event such as task.dead_lettered or dag.*, or webhook"),
    *TEMPLATE,
    arg("--where", action="append", default=[], type=condition, metavar="PATH=VALUE",
        help="a condition; also ^= (begins with), ~= (like), |= (one of), != (may be repeated)"),
    arg("--most", type=int, default=100, metavar="N", help="at most this often in an hour (100)"),
    arg("--github", action="store_true", help="webhook: signed as GitHub does, not as Standard Webhooks"),
    arg("--secret", metavar="TEXT", help="webhook: the sender's secret (else one is created and shown once)"),
)  # fmt: skip
def add(run: Run, given: Namespace) -> Answer:
    """Create or change a trigger: tasks for each matching event or signed delivery.

    Texts may have placeholders: `{event.key}`, `{task.title}`, `{dag.title}`, `{body.pull_request.title}`. Others
    write their values, so agents read them between « and ».
    """
    outcome = run.client.do(
        c.SetTrigger(
            project=run.project, trigger=given.name, on=given.on, where=dict(given.where), most=given.most,
            signature="github" if given.github else "standard", secret=given.secret, template=template_of(run, given),
        )
    )  # fmt: skip
    return _told(run, outcome)


def _told(run: Run, outcome: Outcome) -> Answer:
    row = outcome.trigger
    if not outcome.ok or row is None:
        return answered(outcome)
    lines = [f"{row['name']}  {outcome.outcome.lower()}, {'on ' + row['on'] if row['enabled'] else 'paused'}"]
    if row["on"] == WEBHOOK:
        lines.append(f"  deliveries go to /api/v1/projects/{run.project}/triggers/{row['name']}/deliveries of a server")
    elif row["enabled"] and is_waiting(run):
        lines.append(f"  {WAITS}")
    if outcome.secret is not None:
        lines.append(f"  secret {outcome.secret}")
        lines.append(f"  {outcome.hint}")
    return answered(outcome, "\n".join(lines))


@options()
def list_(run: Run, given: Namespace) -> Answer:
    """List the project's triggers, and how often each has fired."""
    found = run.client.triggers()

    def text() -> str:
        now = run.client.status()["now"]
        rows = [
            (
                row["name"], row["on"], "on" if row["enabled"] else "paused", str(row["fired"]),
                row["last_at"] and ago(row["last_at"], now), _last(row), shorten(plain(row["title"]), 40),
            )
            for row in found
        ]  # fmt: skip
        listed = table(rows, ("trigger", "on", "", "fired", "last", "made", "title"))
        hearing = any(row["enabled"] and row["on"] != WEBHOOK for row in found)
        return (listed + (f"\n{WAITS}" if hearing and is_waiting(run) else "")) if listed else "no triggers"

    return Answer(wire(found), text)


def _last(row: Mapping[str, Any]) -> str | None:
    return f"failed: {shorten(plain(row['last_error']), 40)}" if row["last_error"] else row["last_made"]


@options(NAME)
def show(run: Run, given: Namespace) -> Answer:
    """Show one trigger: its filter, its tasks, its counts. Its secret is never shown again."""
    row = run.client.trigger(given.name)

    def text() -> str:
        lines = [
            f"{row['name']}  on {row['on']}{'' if row['enabled'] else '  paused'}"
            + (f"  signed: {row['signature']}" if row["signature"] else ""),
            *(f"  where {plain(path)} {_condition(wanted)}" for path, wanted in row["filter"].items()),
            f"  fired {row['fired']}, failed {row['failed']}, held back {row['held_back']} (at most {row['most']}/h)",
            *([f"  last error: {plain(row['last_error'])}"] if row["last_error"] else []),
            f"creates {counted(len(row['template']['tasks']), 'task')}:",
            *(f"  {shorten(plain(task['title']), 80)}" for task in row["template"]["tasks"]),
        ]
        return "\n".join(lines)

    return Answer(wire(row), text)


def _condition(wanted: Any) -> str:
    import msgspec

    if not isinstance(wanted, dict):
        return f"is {msgspec.json.encode(wanted).decode()}"
    ((operator, value),) = wanted.items()
    return f"{operator} {msgspec.json.encode(value).decode()}"


@options(
    NAME,
    arg("--event", type=json_value, metavar="JSON", help="an event to try it with: JSON, @FILE, or - for stdin"),
    arg("--body", type=json_value, metavar="JSON", help="of a webhook: a body to try it with"),
)
def test(run: Run, given: Namespace) -> Answer:
    """Show what a sample, or the last matching event, would create. Nothing is stored."""
    if given.event is not None and given.body is not None:
        raise Usage("trigger test: pass either --event or --body")
    sample = {name: value for name in ("event", "body") if (value := getattr(given, name)) is not None} or None
    outcome = run.client.try_trigger(given.name, sample)

    def text() -> str:
        tasks = (f"  {shorten(plain(t['title']), 100)}  (track {t['track']}, {t['tier']})" for t in outcome.tasks or ())
        return "\n".join([plain(outcome.message), *tasks])

    return answered(outcome, text)


@options(NAME)
def pause(run: Run, given: Namespace) -> Answer:
    """Pause the trigger: it creates nothing."""
    return _told(run, run.client.pause_trigger(given.name))


@options(NAME)
def resume(run: Run, given: Namespace) -> Answer:
    """Resume the trigger, from now on."""
    return _told(run, run.client.resume_trigger(given.name))


@options(NAME)
def remove(run: Run, given: Namespace) -> Answer:
    """Remove the trigger; its tasks stay."""
    return answered(run.client.remove_trigger(given.name))


@options(
    NAME,
    arg("--secret", metavar="TEXT", help="the sender's secret (else one is created)"),
    arg("--grace", type=seconds, default=24 * 3600.0, metavar="DURATION", help="how long the old one stays valid (1d)"),
)
def rotate(run: Run, given: Namespace) -> Answer:
    """Give a webhook a new secret. After a leak: --grace 0."""
    return _told(run, run.client.rotate_secret(given.name, given.secret, grace=given.grace))


@options(
    arg("--window", type=seconds, metavar="DURATION", help="how far back attempts count (1d)"),
    arg("--threshold", type=float, metavar="RATE", help="of attempts that failed, as in 0.5 for half of them"),
    arg("--least", type=int, metavar="N", help="attempts before a rate counts (10)"),
    arg("--by", action="append", choices=("tag", "type", "track"), help="group by (all; may be repeated)"),
    arg("--track", metavar="CODE", help="where its tasks go (else the project's default)"),
    arg("--off", action="store_true", help="stop watching"),
)
def watch(run: Run, given: Namespace) -> Answer:
    """Create a task that investigates when failures of a tag, type or track cluster.

    Without options: show its rule and the failure rates. Any option but --off turns it on.
    """
    names = ("window", "threshold", "least", "by", "track")
    wanted = {name: value for name in names if (value := getattr(given, name)) is not None}
    if wanted and given.off:
        raise Usage("trigger watch: --off takes no other option")
    if wanted or given.off:
        return answered(run.client.set_watch(None if given.off else Watch(**_tupled(wanted))))
    seen = run.client.watched()
    return Answer(wire(seen), lambda: _watched(run, seen))


def _tupled(wanted: dict[str, Any]) -> dict[str, Any]:
    return {name: tuple(value) if isinstance(value, list) else value for name, value in wanted.items()}


def _watched(run: Run, seen: Mapping[str, Any]) -> str:
    rule = f"{seen['threshold']:.0%} of at least {seen['least']} attempts in {lasting(seen['window'])}"
    head = f"on: a task is created where {rule} fail" if seen["on"] else f"off; its rule would be {rule}"
    if seen["on"] and is_waiting(run):
        head += f"\n{WAITS}"
    rows = [
        (plain(s["subject"]), f"{s['rate']:.0%}", f"{s['failed']} of {s['attempts']}", s["task"])
        for s in seen["subjects"]
    ]
    return "\n".join(part for part in (head, table(rows, ("subject", "failed", "attempts", "task"))) if part)
