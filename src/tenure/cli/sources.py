"""`schedule …` and `trigger …`: tasks created on a schedule, by events and by webhooks."""

from __future__ import annotations

from argparse import ArgumentTypeError, Namespace
from collections.abc import Mapping
from typing import Any

from tenure.cli.create import FIELDS, fields_of
from tenure.cli.main import Answer, Option, Run, Usage, answered, arg, options, shown, verb_of
from tenure.cli.option_kinds import json_value, seconds
from tenure.cli.text_format import Columns, ago, columns, counted, lasting, moment, plain, shorten
from tenure.core import commands as c
from tenure.core.commands import NewTask, Template
from tenure.core.outcomes import Outcome
from tenure.core.records import Watch

WEBHOOK = "webhook"


def nobody_leads(so: str) -> str:
    """True also right after a start: a process is elected a moment after it says that it serves."""
    return f"nobody leads now, so {so}: `tenure serve` or `tenure daemon` does, a moment after its start"


WAITS = nobody_leads("nothing fires")

# --- templates ----------------------------------------------------------------------------------------------

# Without options for an instant: the task is created again and again.
TEMPLATE: tuple[Option, ...] = (
    arg("title", nargs="?", help="title of the task; may have placeholders, as in 'Triage of {tick.date}'"),
    arg("--plan", metavar="FILE", help="or the tasks of a plan file, as a dag each time; - reads stdin"),
    arg("--track", metavar="CODE", help="the track, as B or C (else the project's default)"),
    arg("--type", metavar="NAME", help="what kind of work: code, research, review …"),
    arg("--deadline-in", type=seconds, metavar="DURATION", help="deadline after its creation, as in 6h"),
    *(option for option in FIELDS if option[0][0] != "--deadline"),
)


def template_of(run: Run, given: Namespace) -> Template:
    """The tasks to create: a title with options, or a plan file."""
    if (given.title is None) == (given.plan is None):
        raise Usage(f"{run.verb}: pass either a title or --plan FILE")
    if given.plan is None:
        given.deadline = None
        fields = fields_of(given) | {n: v for n in ("track", "type") if (v := getattr(given, n)) is not None}
        return Template(tasks=(NewTask(title=given.title, **fields),), deadline_in=given.deadline_in)
    from tenure.cli.plan import source_of
    from tenure.plans import check, files

    source, path = source_of(run, given.plan)
    plans = check.plans_of(files.read(source, path, 0))
    if len(plans) != 1:
        raise Usage(f"{run.verb}: --plan: the file must hold one plan (it holds {len(plans)})")
    return Template(tasks=plans[0].tasks, title=plans[0].title, deadline_in=given.deadline_in)


def is_waiting(run: Run) -> bool:
    return run.client.status()["coordinator"] is None


def _last(row: Mapping[str, Any]) -> str | None:
    return f"failed: {shorten(plain(row['last_error']), 40)}" if row["last_error"] else row["last_made"]


def _created(row: Mapping[str, Any]) -> list[str]:
    """The last lines about a schedule or trigger: its error, and the tasks that it creates."""
    tasks = row["template"]["tasks"]
    error = [f"  last error: {plain(row['last_error'])}"] if row["last_error"] else []
    titles = [f"  {shorten(plain(task['title']), 80)}" for task in tasks]
    return [*error, f"creates {counted(len(tasks), 'task')}:", *titles]


# --- schedules ----------------------------------------------------------------------------------------------

SCHEDULE = arg("name", help="the schedule")


@options(
    arg("name", help="its name, as in nightly"),
    arg("cron", help="when: minute, hour, day of month, month, day of week, as in '30 6 * * mon-fri', or @daily"),
    *TEMPLATE,
    arg("--zone", default="UTC", metavar="ZONE", help="the time zone, as in Europe/Berlin (UTC)"),
    arg("--misfire", choices=("skip", "once", "all"), default="once",
        help="for missed ticks, fire: none, the last one, or all (once)"),
)  # fmt: skip
def add_schedule(run: Run, given: Namespace) -> Answer:
    """Create or change a schedule. The store's coordinator fires it: a daemon or server.

    Daylight saving loses nothing: a tick skipped in spring fires right after the gap, a repeated one in
    autumn fires once. `{tick.date}`, `{tick.time}` and `{tick.at}` in texts are the time of the tick.
    """
    command = c.SetSchedule(
        project=run.project, schedule=given.name, cron=given.cron, zone=given.zone, misfire=given.misfire,
        template=template_of(run, given),
    )  # fmt: skip
    return _scheduled(run, run.client.do(command))


def _scheduled(run: Run, outcome: Outcome) -> Answer:
    row = outcome.schedule
    if not outcome.ok or row is None:
        return answered(outcome)

    def text() -> str:
        line = f"{row['name']}  {outcome.outcome.lower()}, {_when(row, run.client.status()['now'])}"
        return f"{line}\n  {WAITS}" if row["enabled"] and is_waiting(run) else line

    return answered(outcome, text)


def _when(row: Mapping[str, Any], now: int, prefix: str = "next ") -> str:
    if not row["enabled"]:
        return f"paused{row['reason'] and ': ' + plain(row['reason'])}"
    return f"{prefix}{moment(row['next_at'], now)}, in {lasting(row['next_in'])}"


@options()
def list_schedules(run: Run, given: Namespace) -> Answer:
    """List the project's schedules, and when each fires next."""

    def text(found: list[dict[str, Any]]) -> str:
        now = run.client.status()["now"]
        note = f"\n{WAITS}" if any(row["enabled"] for row in found) and is_waiting(run) else ""
        wanted: Columns = {
            "schedule": "name",
            "cron": lambda row: plain(row["cron"]),
            "zone": "zone",
            "next": lambda row: _when(row, now, ""),
            "last made": _last,
            "fired": lambda row: str(row["fired"]),
            "title": lambda row: shorten(plain(row["title"]), 40),
        }
        return columns(found, wanted, "no schedules") + note

    return shown(run.client.schedules(), text)


@options(SCHEDULE, arg("--ticks", type=int, default=5, metavar="N", help="how many of its next ticks (5)"))
def show_schedule(run: Run, given: Namespace) -> Answer:
    """Show one schedule: its next ticks in its time zone, and its tasks."""

    def text(row: Mapping[str, Any]) -> str:
        made = f", last made {row['last_made']}" if row["last_made"] else ""
        lines = [
            f"{row['name']}  {plain(row['cron'])}  {row['zone']}  misfire {row['misfire']}",
            f"  {_when(row, run.client.status()['now'])}",
            f"  fired {row['fired']}, missed {row['missed']}, failed {row['failed']}{made}",
            *(f"  {tick['local']}" for tick in row["ticks"]),
            *_created(row),
        ]
        return "\n".join(lines)

    return shown(run.client.schedule(given.name, given.ticks), text)


@options(SCHEDULE, arg("-m", "--reason", default="", metavar="TEXT", help="why"))
def pause_schedule(run: Run, given: Namespace) -> Answer:
    """Pause the schedule: its ticks create nothing."""
    return _scheduled(run, run.client.pause_schedule(given.name, given.reason))


@options(SCHEDULE)
def resume_schedule(run: Run, given: Namespace) -> Answer:
    """Resume the schedule with its next tick. Ticks in between are skipped."""
    return _scheduled(run, run.client.resume_schedule(given.name))


remove_schedule = verb_of(c.RemoveSchedule, "Remove the schedule; its tasks stay.", SCHEDULE, schedule="name")


@options(SCHEDULE)
def run_schedule(run: Run, given: Namespace) -> Answer:
    """Create its tasks now, in addition to its ticks."""
    outcome = run.client.run_schedule(given.name)
    return answered(outcome, lambda: "\n".join(f"{task['key']}  {task['state']}" for task in outcome.tasks or ()))


# --- triggers -----------------------------------------------------------------------------------------------

TRIGGER = arg("name", help="the trigger")
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
    except (msgspec.DecodeError, RecursionError):
        return text
    return text if isinstance(value, (list, dict)) else value


@options(
    arg("name", help="its name, as in post-mortem"),
    arg("--on", metavar="KIND", help="an event such as task.dead_lettered or dag.*, emitted:NAME, or webhook"),
    arg("--on-files", action="append", default=[], metavar="PATTERN",
        help="or changes of files, as in 'src/**' (may be repeated)"),
    *TEMPLATE,
    arg("--where", action="append", default=[], type=condition, metavar="PATH=VALUE",
        help="a condition; also ^= (begins with), ~= (like), |= (one of), != (may be repeated)"),
    arg("--most", type=int, default=100, metavar="N", help="at most this often in an hour (100)"),
    arg("--github", action="store_true", help="webhook: signed as GitHub does, not as Standard Webhooks"),
    arg("--secret", metavar="TEXT", help="webhook: the sender's secret (else one is created and shown once)"),
)  # fmt: skip
def add_trigger(run: Run, given: Namespace) -> Answer:
    """Create or change a trigger: tasks for each matching event or signed delivery.

    `--on emitted:NAME` waits for `tenure emit NAME`. `--on-files` needs a daemon or server in the repository.
    Texts may have placeholders: `{event.key}`, `{task.title}`, `{dag.title}`, `{body.pull_request.title}`. Others
    write their values, so agents read them between « and ».
    """
    on, where = _cause(given)
    command = c.SetTrigger(
        project=run.project, trigger=given.name, on=on, where=where, most=given.most,
        signature="github" if given.github else "standard", secret=given.secret, template=template_of(run, given),
    )  # fmt: skip
    return _triggered(run, run.client.do(command))


def _cause(given: Namespace) -> tuple[str, dict[str, Any]]:
    """The kind of event and the filter: emitted facts and changed files are kinds with a filter."""
    if (given.on is None) != bool(given.on_files):
        raise Usage("trigger add: pass either --on KIND or --on-files PATTERN")
    where = dict(given.where)
    if given.on is None:
        return "source.files_changed", {"event.details.paths": {"paths": given.on_files}} | where
    fact = given.on.removeprefix("emitted:")
    if fact == given.on:
        return given.on, where
    return "agent.emitted", {"event.details.name": fact} | where


def _triggered(run: Run, outcome: Outcome) -> Answer:
    row = outcome.trigger
    if not outcome.ok or row is None:
        return answered(outcome)
    lines = [f"{row['name']}  {outcome.outcome.lower()}, {'on ' + row['on'] if row['enabled'] else 'paused'}"]
    if row["on"] == WEBHOOK:
        lines.append(f"  deliveries go to /api/v1/projects/{run.project}/triggers/{row['name']}/deliveries of a server")
    elif row["enabled"] and is_waiting(run):
        lines.append(f"  {WAITS}")
    if outcome.secret is not None:
        lines += [f"  secret {outcome.secret}", f"  {outcome.hint}"]
    return answered(outcome, "\n".join(lines))


@options()
def list_triggers(run: Run, given: Namespace) -> Answer:
    """List the project's triggers, and how often each has fired."""

    def text(found: list[dict[str, Any]]) -> str:
        now = run.client.status()["now"]
        is_needed = any(row["enabled"] and row["on"] != WEBHOOK for row in found)
        wanted: Columns = {
            "trigger": "name",
            "on": "on",
            "": lambda row: "on" if row["enabled"] else "paused",
            "fired": lambda row: str(row["fired"]),
            "last": lambda row: row["last_at"] and ago(row["last_at"], now),
            "made": _last,
            "title": lambda row: shorten(plain(row["title"]), 40),
        }
        return columns(found, wanted, "no triggers") + (f"\n{WAITS}" if is_needed and is_waiting(run) else "")

    return shown(run.client.triggers(), text)


@options(TRIGGER)
def show_trigger(run: Run, given: Namespace) -> Answer:
    """Show one trigger: its filter, its tasks, its counts. Its secret is never shown again."""
    return shown(run.client.trigger(given.name), _trigger_text)


def _trigger_text(row: Mapping[str, Any]) -> str:
    signed = f"  signed: {row['signature']}" if row["signature"] else ""
    lines = [
        f"{row['name']}  on {row['on']}{'' if row['enabled'] else '  paused'}{signed}",
        *(f"  where {plain(path)} {condition_text(wanted)}" for path, wanted in row["filter"].items()),
        f"  fired {row['fired']}, failed {row['failed']}, held back {row['held_back']} (at most {row['most']}/h)",
        *_created(row),
    ]
    return "\n".join(lines)


def condition_text(wanted: Any) -> str:
    import msgspec

    ((operator, value),) = wanted.items() if isinstance(wanted, dict) else [("is", wanted)]
    return f"{operator} {msgspec.json.encode(value).decode()}"


@options(
    TRIGGER,
    arg("--event", type=json_value, metavar="JSON", help="an event to try it with: JSON, @FILE, or - for stdin"),
    arg("--body", type=json_value, metavar="JSON", help="of a webhook: a body to try it with"),
)
def try_trigger(run: Run, given: Namespace) -> Answer:
    """Show what a sample, or the last matching event, would create. Nothing is stored."""
    if given.event is not None and given.body is not None:
        raise Usage("trigger test: pass either --event or --body")
    sample = {name: value for name in ("event", "body") if (value := getattr(given, name)) is not None} or None
    outcome = run.client.try_trigger(given.name, sample)

    def text() -> str:
        tasks = (f"  {shorten(plain(t['title']), 100)}  (track {t['track']}, {t['tier']})" for t in outcome.tasks or ())
        return "\n".join([plain(outcome.message), *tasks])

    return answered(outcome, text)


@options(TRIGGER)
def pause_trigger(run: Run, given: Namespace) -> Answer:
    """Pause the trigger: it creates nothing."""
    return _triggered(run, run.client.pause_trigger(given.name))


@options(TRIGGER)
def resume_trigger(run: Run, given: Namespace) -> Answer:
    """Resume the trigger, from now on."""
    return _triggered(run, run.client.resume_trigger(given.name))


remove_trigger = verb_of(c.RemoveTrigger, "Remove the trigger; its tasks stay.", TRIGGER, trigger="name")


@options(
    TRIGGER,
    arg("--secret", metavar="TEXT", help="the sender's secret (else one is created)"),
    arg("--grace", type=seconds, default=24 * 3600.0, metavar="DURATION", help="how long the old one stays valid (1d)"),
)
def rotate_secret(run: Run, given: Namespace) -> Answer:
    """Give a webhook a new secret. After a leak: --grace 0."""
    return _triggered(run, run.client.rotate_secret(given.name, given.secret, grace=given.grace))


# --- the failure watch --------------------------------------------------------------------------------------


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
    if "by" in wanted:
        wanted["by"] = tuple(wanted["by"])
    if wanted or given.off:
        return answered(run.client.set_watch(None if given.off else Watch(**wanted)))
    return shown(run.client.watched(), lambda seen: _watched(run, seen))


def _watched(run: Run, seen: Mapping[str, Any]) -> str:
    rule = f"{seen['threshold']:.0%} of at least {seen['least']} attempts in {lasting(seen['window'])}"
    lines = [f"on: a task is created where {rule} fail" if seen["on"] else f"off; its rule would be {rule}"]
    lines += [WAITS] if seen["on"] and is_waiting(run) else []
    wanted: Columns = {
        "subject": lambda s: plain(s["subject"]),
        "failed": lambda s: f"{s['rate']:.0%}",
        "attempts": lambda s: f"{s['failed']} of {s['attempts']}",
        "task": "task",
    }
    return "\n".join(filter(None, [*lines, columns(seen["subjects"], wanted)]))
