"""`emit`, `webhook …`, `relay …` and `notify …`: facts, and events sent to receivers, sinks and people."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable, Mapping
from typing import Any

from tenure.cli.answers import OF_ERROR
from tenure.cli.main import Answer, Run, Usage, answered, arg, options, shown
from tenure.cli.option_kinds import before, instant, json_value, seconds
from tenure.cli.sources import condition, condition_text, is_waiting, nobody_leads
from tenure.cli.text_format import Columns, ago, columns, lasting, moment, plain, shorten
from tenure.core.outcomes import Outcome
from tenure.core.safe_text import shell_word

NOT_SENT = nobody_leads("nothing is sent")
STATUS_CHANGED = "task.status_changed"


# --- facts --------------------------------------------------------------------------------------------------


@options(
    arg("name", help="what has happened, as in build_passed"),
    arg("--data", type=json_value, metavar="JSON", help="details: JSON, @FILE, or - for stdin (8 kB)"),
)
def emit(run: Run, given: Namespace) -> Answer:
    """Append a fact to the log. Sinks and triggers get it; it changes no task.

    tenure emit build_passed --data '{"commit": "4f2a"}'
    tenure trigger add fix --on emitted:build_failed 'Fix {event.details.data.commit}'
    """
    return answered(run.client.emit(given.name, given.data))


# --- webhooks -----------------------------------------------------------------------------------------------

WEBHOOK = arg("name", help="the webhook")


@options(
    arg("name", help="its name, as in ci"),
    arg("url", help="where messages are sent, as in https://ci.example.org/hook"),
    arg("--on", action="append", default=[], metavar="KIND",
        help="an event, as in task.completed or dag.* (task.status_changed; may be repeated)"),
    arg("--where", action="append", default=[], type=condition, metavar="PATH=VALUE",
        help="a condition, as triggers have it (may be repeated)"),
    arg("--secret", metavar="TEXT", help="the receiver's secret, whsec_… (else one is created and shown once)"),
)  # fmt: skip
def set_webhook(run: Run, given: Namespace) -> Answer:
    """Create or change a webhook: events of this project are sent to a URL, signed."""
    kinds = tuple(given.on) or (STATUS_CHANGED,)
    fields = {"kinds": kinds, "where": dict(given.where), "secret": given.secret}
    return _answer(run, run.client.set_webhook(given.name, given.url, **fields))


def _answer(run: Run, outcome: Outcome) -> Answer:
    """The answer to a command about one webhook; a new secret is in this answer alone."""
    row = outcome.webhook
    if not outcome.ok or row is None:
        return answered(outcome)

    def text() -> str:
        done = "" if outcome.outcome == "OK" else f"{outcome.outcome.lower()}, "
        lines = [f"{row['name']}  {done}{row['state']}, to {plain(row['url'])}"]
        lines += [f"  {plain(outcome.message)}"] if outcome.message else []
        lines += [f"  secret {outcome.secret}", f"  {outcome.hint}"] if outcome.secret is not None else []
        lines += [f"  {NOT_SENT}"] if row["enabled"] and is_waiting(run) else []
        return "\n".join(lines)

    return answered(outcome, text)


@options()
def list_webhooks(run: Run, given: Namespace) -> Answer:
    """List the project's webhooks, and how each fares."""

    def text(found: list[dict[str, Any]]) -> str:
        now = run.client.now()
        wanted: Columns = {
            "webhook": "name",
            "": "state",
            "url": lambda row: shorten(plain(row["url"]), 50),
            "delivered": lambda row: str(row["delivered"]),
            "waiting": lambda row: str(row["parked"]),
            "failed": lambda row: str(row["failed"]),
            "last": lambda row: row["success_at"] and ago(row["success_at"], now),
        }
        note = f"\n{NOT_SENT}" if any(row["enabled"] for row in found) and is_waiting(run) else ""
        return columns(found, wanted, "no webhooks") + note

    return shown(run.client.webhooks(), text)


@options(WEBHOOK)
def show_webhook(run: Run, given: Namespace) -> Answer:
    """Show one webhook: what it gets, and its last answer. Its secret is never shown again."""

    def text(row: Mapping[str, Any]) -> str:
        now = run.client.now()
        lines = [
            f"{row['name']}  {row['state']}  {plain(row['url'])}",
            f"  gets {', '.join(row['kinds'])}",
            *(f"  where {plain(path)} {condition_text(wanted)}" for path, wanted in row["filter"].items()),
            f"  delivered {row['delivered']}, waiting {row['parked']}, failed {row['failed']}",
        ]
        if row["disabled_for"]:
            lines.append(
                f"  {plain(row['disabled_for'])}; `tenure webhook resume {shell_word(row['name'])}` sends what waits"
            )
        if row["error"]:
            lines.append(f"  last error {ago(row['failure_at'], now)}: {plain(row['error'])}")
        if row["previous_until"]:
            lines.append(f"  signed with both secrets until {moment(row['previous_until'], now)}")
        return "\n".join(lines)

    return shown(run.client.webhook(given.name), text)


@options(WEBHOOK)
def test_webhook(run: Run, given: Namespace) -> Answer:
    """Send a message of the kind webhook.test. `tenure webhook log` shows the answer."""
    return _answer(run, run.client.test_webhook(given.name))


@options(
    WEBHOOK,
    arg("message", nargs="?", help="the message's id, from the log (else those that failed)"),
    arg("--since", type=instant, metavar="WHEN", help="all events since then, as in 2h or 2026-03-01T12:00Z"),
)
def replay_webhook(run: Run, given: Namespace) -> Answer:
    """Send deliveries again: one, those that failed, or all since a time.

    Receivers see the same webhook-id as before, so they can skip what they have.

    tenure webhook replay ci
    tenure webhook replay ci --since 2h
    """
    if given.message is not None and given.since is not None:
        raise Usage("webhook replay: name a message, or give --since, not both")
    return _answer(run, run.client.replay_webhook(given.name, given.message, since=before(given.since, run.client.now)))


@options(
    WEBHOOK,
    arg("--state", choices=("parked", "delivered", "failed"), help="only these; parked ones wait for their next try"),
    arg("-n", "--limit", type=int, default=20, metavar="N", help="how many (20)"),
)
def webhook_log(run: Run, given: Namespace) -> Answer:
    """Show a webhook's last deliveries, the newest first."""

    def text(found: list[dict[str, Any]]) -> str:
        now = run.client.now()
        wanted: Columns = {
            "message": lambda one: plain(one["message"]),
            "kind": "kind",
            "": "state",
            "tries": lambda one: str(one["tries"]),
            "last try": lambda one: one["tried_at"] and ago(one["tried_at"], now),
            "next": lambda one: one["next_at"] and f"in {lasting(max(0, one['next_at'] - now) / 1e6)}",
            "answer": lambda one: shorten(plain(str(one["error"] or one["status"] or "")), 40),
        }
        return columns(found, wanted, "no deliveries")

    return shown(run.client.deliveries(given.name, state=given.state, limit=given.limit), text)


@options(WEBHOOK, arg("-m", "--reason", default="", metavar="TEXT", help="why"))
def pause_webhook(run: Run, given: Namespace) -> Answer:
    """Pause the webhook. Its deliveries are kept."""
    return _answer(run, run.client.pause_webhook(given.name, given.reason))


@options(WEBHOOK)
def resume_webhook(run: Run, given: Namespace) -> Answer:
    """Resume the webhook. What waits is sent at once."""
    return _answer(run, run.client.resume_webhook(given.name))


@options(WEBHOOK)
def remove_webhook(run: Run, given: Namespace) -> Answer:
    """Remove the webhook with its delivery log. What waits is not sent."""
    return _answer(run, run.client.remove_webhook(given.name))


@options(
    WEBHOOK,
    arg("--secret", metavar="TEXT", help="the receiver's secret (else one is created)"),
    arg("--grace", type=seconds, default=24 * 3600.0, metavar="DURATION", help="sign with both for so long (1d)"),
)
def rotate_webhook(run: Run, given: Namespace) -> Answer:
    """Give the webhook a new secret. After a leak: --grace 0."""
    return _answer(run, run.client.rotate_webhook(given.name, given.secret, grace=given.grace))


# --- relays -------------------------------------------------------------------------------------------------

SINK = arg("name", help="the sink, as `tenure relay list` shows it")


@options()
def list_relays(run: Run, given: Namespace) -> Answer:
    """List the sinks of the store, how far behind each is, and its last error."""

    def text(found: list[dict[str, Any]]) -> str:
        now = run.client.now()
        wanted: Columns = {
            "sink": lambda row: plain(row["name"]),
            "": "state",
            "behind": lambda row: lasting(row["lag"]) if row["lag"] else None,
            "sent": lambda row: str(row["sent"]),
            "last": lambda row: row["sent_at"] and ago(row["sent_at"], now),
            "sequence": lambda row: str(row["sequence"]),
            "url": lambda row: shorten(plain(row["url"]), 50),
            "error": lambda row: row["error"] and shorten(plain(row["error"]), 60),
        }
        none = "no sinks: set [sinks.NAME] url, then start `tenure daemon` or `tenure serve`"
        return columns(found, wanted, none)

    return shown(run.client.relays(), text)


def _verb(name: str, text: str) -> Callable[[Run, Namespace], Answer | int]:
    @options(SINK)
    def verb(run: Run, given: Namespace) -> Answer:
        return answered(getattr(run.client, name)(given.name))

    verb.__doc__ = text
    return verb


pause_relay = _verb("pause_relay", "Send nothing more to a sink. Events are kept for it, up to its max_lag.")
resume_relay = _verb("resume_relay", "Resume a paused relay where it stopped.")
remove_relay = _verb(
    "remove_relay",
    "Forget a sink that has left the settings. It no longer holds the archive back.\n\n"
    "A sink that is still in the settings begins again, with the events from then on.",
)


@options(
    SINK,
    arg("--to", type=int, metavar="SEQ", help="after this sequence; 0: all events that are kept"),
    arg("--since", type=instant, metavar="WHEN", help="or those since then, as in 2h or 2026-03-01T12:00Z"),
)
def rewind_relay(run: Run, given: Namespace) -> Answer:
    """Send events to a sink again.

    Consumers see the same message ids as before, so those that note them skip what they have.

    tenure relay rewind nats --since 2h
    tenure relay rewind nats --to 1200
    """
    if (given.to is None) == (given.since is None):
        raise Usage("relay rewind: pass either --to SEQ or --since WHEN", "as in --since 2h")
    outcome = run.client.rewind_relay(given.name, given.to, since=before(given.since, run.client.now))
    note = "  consumers see the same message ids as before"
    return answered(outcome, f"{plain(outcome.message)}\n{note}" if outcome.ok else "")


# --- notices ------------------------------------------------------------------------------------------------


@options(arg("name", nargs="?", help="one channel, as in [notify.NAME] (else all)"))
def test_notices(run: Run, given: Namespace) -> Answer:
    """Send a test notice to the channels of the settings, and show how each answers."""
    from tenure.agents.leader_process import channel_of
    from tenure.cli.leading import place_of
    from tenure.core.errors import NotFound, TenureError
    from tenure.core.inputs import suggestion
    from tenure.core.notices import Notice, Summary
    from tenure.sinks.settings import read_messaging

    messaging = read_messaging(run.settings)
    channels = [one for one in messaging.channels if given.name in (None, one.name)]
    if not channels:
        known = [one.name for one in messaging.channels]
        what = f"channel {given.name[:80]!r}{suggestion(given.name, known)}" if given.name else "channel for notices"
        raise NotFound(f"no {what} in the settings", f"set url or command in [notify.NAME] of {run.settings.own_file}")
    now = run.client.now()
    notice = Notice(kind="test", at=now, text="a test: notices arrive here", project=run.project)
    answers: dict[str, str | None] = {}
    for one in channels:
        channel = channel_of(one, messaging, place_of(run))
        try:
            channel.send(Summary(kind="test", count=1, first=(notice,), since=now))
            answers[one.name] = None
        except TenureError as error:
            answers[one.name] = error.message
        finally:
            channel.close()
    lines = (f"{name}  {'sent' if error is None else 'failed: ' + plain(error)}" for name, error in answers.items())
    value = [{"channel": name, "sent": error is None, "error": error} for name, error in answers.items()]
    code = OF_ERROR["SINK_UNAVAILABLE"] if any(answers.values()) else 0
    return Answer(value, "\n".join(lines), code)
