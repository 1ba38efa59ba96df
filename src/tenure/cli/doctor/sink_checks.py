"""Checks of sinks and their brokers, webhooks, hooks, notices."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from tenure.cli.doctor.findings import Finding, error, note, ok, warning
from tenure.cli.text_format import lasting
from tenure.core import queries as q
from tenure.core.errors import InvalidInput
from tenure.core.safe_text import shell_word
from tenure.sinks.port import SinkUnavailable
from tenure.trust.grants import Untrusted

if TYPE_CHECKING:
    from tenure.cli.doctor.doctor import Patient
    from tenure.sinks.settings import Messaging, SinkSettings

LONG_BEHIND = 600.0  # seconds


def sinks(patient: Patient) -> Iterator[Finding]:
    """Sinks of the settings and those that the store knows."""
    if patient.client is None:
        return
    from tenure.sinks.settings import read_messaging

    rows = {row["name"]: row for row in patient.client.query(q.Relays())}
    messaging: Messaging | None = None
    if not patient.client.is_remote:
        try:
            messaging = read_messaging(patient.run.settings)
        except Untrusted as why:
            yield warning("sinks", f"no sink, hook or notice of the settings is used: {why.message}", "`tenure trust`")
    found = [finding for row in rows.values() for finding in _behind(row)]
    if messaging is not None and messaging.allow_http:
        found.append(
            warning(
                "sinks",
                "webhooks.allow_http: others may read, and change, what goes to webhooks and channels at http://",
                "use https:// for all of them, and remove the setting",
            )
        )
    for sink in messaging.sinks if messaging is not None else ():
        found += [*_broker(sink), *_unknown(sink, rows)]
    yield from found or [ok("sinks", f"{len(rows)} readers of the log, none of them far behind")]


def _behind(row: dict[str, Any]) -> Iterator[Finding]:
    name = row["name"]
    if row["state"] == "cut off":
        yield error(
            "sinks",
            f"{name} was cut off: it is further behind than its max_lag of {lasting(row['max_lag'])}",
            "bring it back: it continues by itself and gets `sink.gap` first; `tenure relay list` shows it",
        )
    elif row["state"] == "paused" and row["lag"] > LONG_BEHIND:
        yield warning(
            "sinks", f"{name} is paused and {lasting(row['lag'])} behind: it holds the archive back",
            f"`tenure relay resume {shell_word(name)}`",
        )  # fmt: skip
    elif row["lag"] > LONG_BEHIND:
        why = f": {row['error']}" if row["error"] else ""
        yield warning(
            "sinks", f"{name} is {lasting(row['lag'])} behind and holds the archive back{why}",
            "check that it is up, and that a process with its settings leads: `tenure serve` or `tenure daemon`",
        )  # fmt: skip
    elif row["error"]:
        yield note("sinks", f"{name}: {row['error']}", "the relay tries again by itself")


def _unknown(sink: SinkSettings, rows: dict[str, Any]) -> Iterator[Finding]:
    if sink.name not in rows:
        yield note(
            "sinks", f"{sink.name} is set, and no process that leads has its settings yet",
            "`tenure serve` or `tenure daemon` in this folder sends to it",
        )  # fmt: skip


def _broker(sink: SinkSettings) -> Iterator[Finding]:
    """Whether it proves who it is, and what it has set otherwise than the sink would; that is never changed."""
    from tenure.sinks.broker_urls import is_insecure
    from tenure.sinks.open_sink import open_sink

    try:
        opened = open_sink(sink.url, prefix=sink.prefix)
    except InvalidInput as why:
        yield error("sinks", f"sinks.{sink.name}: {why.message}", why.hint or "change its url in the settings")
        return
    if is_insecure(sink.url):
        yield warning(
            "sinks",
            f"{sink.name}: allow_insecure: nobody verifies who the broker is, and others may read the traffic",
            "give the broker a certificate, and take allow_insecure out of the sink's URL",
        )
    try:
        for sentence in getattr(opened, "differences", list)():
            yield warning("sinks", f"{sink.name}: {sentence}", "change it on the broker, if you did not mean it")
    except SinkUnavailable as why:
        yield warning("sinks", f"{sink.name} cannot be reached: {why.message}", "check that it is up, and its url")
    finally:
        opened.close()


def webhooks(patient: Patient) -> Iterator[Finding]:
    client = patient.client
    if client is None or patient.run.project not in client.projects():
        return
    rows = client.query(q.Webhooks(project=patient.run.project))
    found = 0
    for row in rows:
        name, why = row["name"], row["error"] or (f"it answered {row['status']}" if row["status"] else "")
        if not row["enabled"]:
            found += 1
            yield warning(
                "webhooks",
                f"{name} is disabled: {row['disabled_for']}",
                f"`tenure webhook resume {shell_word(name)}` enables it",
            )
        elif row["state"] == "down":
            found += 1
            yield warning(
                "webhooks", f"{name} is down, {row['parked']} deliveries wait: {why}",
                f"check its receiver; `tenure webhook log {shell_word(name)}` shows each try",
            )  # fmt: skip
    if rows and not found:
        yield ok("webhooks", f"{len(rows)} set, none of them down or disabled")
