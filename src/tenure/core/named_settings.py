"""Settings of which there may be several: NAME is any name. Files alone have them; see `sinks/settings.py`."""

from __future__ import annotations

from tenure.core import limits
from tenure.core.setting_values import Seconds, Setting

NAMED: dict[str, Setting] = {
    "sinks.NAME.url": Setting(
        str, None, "where events are sent: `tls://…` (NATS), `amqps://…`, `rediss+stream://…`, or a plug-in's scheme"
    ),
    "sinks.NAME.url_env": Setting(str, None, "or the environment variable that has the URL"),
    "sinks.NAME.url_file": Setting(str, None, "or the file that has the URL"),
    "sinks.NAME.kinds": Setting(
        list, [], "kinds of events, or patterns such as `task.*`; none: all, with commands and dead letters"
    ),
    "sinks.NAME.projects": Setting(list, [], "projects whose events are sent; none: all"),
    "sinks.NAME.prefix": Setting(str, "", "the prefix of the names of streams, exchanges and messages"),
    "sinks.NAME.enabled": Setting(bool, True, "false: nothing is sent"),
    "sinks.NAME.max_lag": Setting(
        Seconds, limits.RELAY_LAG / 1e6, "seconds that the sink may be behind; then it is cut off, with an event"
    ),
    "sinks.NAME.short_names": Setting(bool, False, "also send `evt.task.dead.v1`"),
    "sinks.NAME.keys": Setting(bool, False, "of Redis: also mirror the state of agents and tasks to keys"),
    "sinks.NAME.commands": Setting(
        bool, False, "of Redis: also run `recover` and `reassign_task` from the channel `coordinator:commands`"
    ),
    "notify.NAME.url": Setting(
        str, None, "where notices to people go: `https://…` compatible with Slack, `smtps://…` or `smtp://…`"
    ),
    "notify.NAME.url_env": Setting(str, None, "or the environment variable that has the URL"),
    "notify.NAME.url_file": Setting(str, None, "or the file that has the URL"),
    "notify.NAME.command": Setting(list, None, "or a command that gets each message as JSON; no shell reads it"),
    "notify.NAME.from": Setting(str, None, "of mail: the sender"),
    "notify.NAME.to": Setting(list, None, "of mail: the recipients"),
    "notify.NAME.kinds": Setting(list, [], "kinds of notices, such as `dead letter`; none: all"),
    "notify.NAME.enabled": Setting(bool, True, "false: nothing is sent"),
    "spawners.NAME.kind": Setting(
        str, "", "what starts agents: `local`, `gateway` or `command`; by default its name, if that is one of them"
    ),
    "spawners.NAME.url": Setting(str, "", "of a gateway: where it listens, as in `https://host:7430`"),
    "spawners.NAME.secret_env": Setting(str, "", "of a gateway: the environment variable that has the shared secret"),
    "spawners.NAME.secret_file": Setting(str, "", "or the file that has it"),
    "spawners.NAME.allow_http": Setting(bool, False, "of a gateway beyond loopback: its URL may be without TLS"),
    "spawners.NAME.authorities": Setting(str, "", "of a gateway: a file of CAs in place of the system's"),
    "spawners.NAME.start": Setting(
        list, [], "of a command: its words, with `{spawn}`, `{key}`, `{agent}` and others; no shell reads it"
    ),
    "spawners.NAME.status": Setting(list, [], "of a command that prints a handle: exit 0 if `{handle}` runs, 1 if not"),
    "spawners.NAME.end": Setting(list, [], "of such a command: ends `{handle}`; `{graceful}` is `true` or `false`"),
    "spawners.NAME.log": Setting(str, "", "of `local` and `command`: a file that the output is appended to"),
    "programs.NAME.agent": Setting(str, "", "what a pool or gateway may start: an agent with its words, or a command"),
    "programs.NAME.folder": Setting(str, "", "where it works; by default the folder of the server or gateway"),
    "programs.NAME.options": Setting(list, [], "more words for `tenure run`, as in `--land` or `--timeout`"),
    "hooks.on_KIND": Setting(
        list,
        None,
        "a command that runs after each event of a kind, as in `on_task_completed`, or a list of such; "
        "the event is JSON on its stdin, no shell reads it",
    ),
}
