"""Sinks, local hooks and channels for notices as the settings have them: `[sinks.NAME]`, `[notify.NAME]`, `[hooks]`.

Reading them raises Untrusted where they come from a file that the user has not allowed, and BadConfig, which names the
setting, where a value is not valid.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import quote

from tenure.config import BadConfig, Settings
from tenure.core import local_hooks, notices, triggers
from tenure.core.errors import InvalidInput
from tenure.core.named_settings import NAMED
from tenure.sinks.open_sink import shown

if TYPE_CHECKING:
    from tenure.sinks.addresses import Network

RESERVED = ("hooks", "notices", "webhooks")  # rows of readers that are not configured as sinks
MAIL = ("smtp", "smtps")

Commands = Mapping[str, Sequence[Sequence[str]]]  # kind of event → commands


class SinkSettings(NamedTuple):
    name: str
    url: str  # with its password
    kinds: frozenset[str] = frozenset()  # none: all
    projects: tuple[str, ...] = ()
    prefix: str = ""
    max_lag: int = 0  # microseconds
    short_names: bool = False
    keys: bool = False
    commands: bool = False

    @property
    def shown(self) -> str:
        return shown(self.url)


class ChannelSettings(NamedTuple):
    """A channel for notices: a URL or a command."""

    name: str
    url: str | None = None  # with its secret
    command: tuple[str, ...] = ()
    kinds: frozenset[str] = frozenset()  # none: all

    @property
    def is_mail(self) -> bool:
        return self.url is not None and self.url.partition("://")[0] in MAIL


class Messaging(NamedTuple):
    """Everything that a process sends while it leads."""

    hooks: Commands
    sinks: tuple[SinkSettings, ...] = ()
    channels: tuple[ChannelSettings, ...] = ()
    allow_http: bool = False
    networks: tuple[Network, ...] = ()


def read_messaging(settings: Settings) -> Messaging:
    """All of them, without those that are not enabled."""
    allow_http, networks = sending_of(settings)
    return Messaging(
        sinks=tuple(filter(None, (_sink(settings, name) for name in settings.named("sinks")))),
        channels=tuple(filter(None, (_channel(settings, name) for name in settings.named("notify")))),
        hooks=read_hooks(settings),
        allow_http=allow_http,
        networks=networks,
    )


def read_hooks(settings: Settings) -> Commands:
    hooks: dict[str, list[Sequence[str]]] = {}
    for keys in settings.named("hooks").values():
        for key in keys:
            given = settings[key]
            setting = key.removeprefix("hooks.")
            try:
                hooks.setdefault(local_hooks.kind_of(setting), []).extend(local_hooks.commands_of(setting, given.value))
            except InvalidInput as error:
                raise BadConfig(f"{given.origin}: {error.message}", error.hint) from None
    return hooks


def sending_of(settings: Settings) -> tuple[bool, tuple[Network, ...]]:
    """Whether http is allowed, and which private networks."""
    given = settings["webhooks.networks"]
    networks: tuple[Network, ...] = ()
    if given.value:
        from tenure.sinks.addresses import networks_of

        try:
            networks = networks_of(part.strip() for part in given.value.split(","))
        except ValueError as error:
            raise BadConfig(f"{given.origin}: webhooks.networks: {error}", "as in 10.0.0.0/8, 192.168.1.0/24") from None
    return bool(settings["webhooks.allow_http"].value), networks


def _sink(settings: Settings, name: str) -> SinkSettings | None:
    table = _Table(settings, "sinks", name)
    if not table["enabled"]:
        return None
    if name in RESERVED:
        raise BadConfig(f"{table.origin}: a sink may not have the name {name!r}", "give it another name")
    url = table.url()
    if url is None:
        raise BadConfig(f"{table.origin}: sinks.{name} has no url", "set url, url_env or url_file")
    if table["max_lag"] <= 0:
        raise BadConfig(f"{table.origin}: sinks.{name}.max_lag must be greater than 0")
    for field in ("keys", "commands"):
        if table[field] and not url.startswith(("redis+stream://", "rediss+stream://")):
            raise BadConfig(f"{table.origin}: sinks.{name}.{field} is for Redis alone", "set it to false")
    return SinkSettings(
        name, url, kinds=table.kinds(triggers.kinds_of, "event, as in task.completed or task.*"),
        projects=tuple(table.texts("projects")), prefix=table["prefix"], max_lag=round(table["max_lag"] * 1e6),
        short_names=table["short_names"], keys=table["keys"], commands=table["commands"],
    )  # fmt: skip


def _channel(settings: Settings, name: str) -> ChannelSettings | None:
    table = _Table(settings, "notify", name)
    if not table["enabled"]:
        return None
    kinds = table.kinds(lambda kind: {kind} & set(notices.KINDS), f"notice: {', '.join(notices.KINDS)}")
    url, command = table.url(), tuple(table.texts("command"))
    if (url is None) == (not command):
        raise BadConfig(f"{table.origin}: notify.{name} must have either a url or a command")
    channel = ChannelSettings(name, url, command, kinds)
    if channel.is_mail and url is not None:
        return channel._replace(url=_with_addresses(url, table))
    if table["from"] or table["to"]:
        raise BadConfig(f"{table.origin}: notify.{name}: from and to are for mail alone", "remove them")
    if url is not None and not url.startswith(("https://", "http://")):
        hint = "use https:// for a channel that is compatible with Slack, smtps:// or smtp:// for mail"
        raise BadConfig(f"{table.origin}: notify.{name}.url has another scheme", hint)
    return channel


def _with_addresses(url: str, table: _Table) -> str:
    """The mail server's URL with the addresses of the settings; `smtp.py` checks it."""
    given = [f"from={quote(table['from'])}"] if table["from"] else []
    given += [f"to={quote(','.join(table.texts('to')), safe=',')}"] if table["to"] else []
    return url + ("&" if "?" in url else "/?" if url.count("/") < 3 else "?") * bool(given) + "&".join(given)


class _Table:
    """The settings of one name, with defaults; each is read and so checked for trust."""

    def __init__(self, settings: Settings, section: str, name: str) -> None:
        self._settings, self._section, self._name = settings, section, name
        self._given = settings.named(section)[name]
        self.origin = settings.seen(self._given[0]).origin

    def _key(self, field: str) -> str:
        return f"{self._section}.{self._name}.{field}"

    def __getitem__(self, field: str) -> Any:
        key = self._key(field)
        return self._settings[key].value if key in self._given else NAMED[f"{self._section}.NAME.{field}"].default

    def texts(self, field: str) -> list[str]:
        value = self[field] or []
        if not all(isinstance(one, str) and one for one in value):
            raise BadConfig(f"{self.origin}: {self._key(field)} must be a list of texts")
        return list(value)

    def kinds(self, found: Callable[[str], Any], what: str) -> frozenset[str]:
        kinds: set[str] = set()
        for pattern in self.texts("kinds"):
            matched = found(pattern)
            if not matched:
                raise BadConfig(f"{self.origin}: {self._key('kinds')}: {pattern[:60]!r} is not a kind of {what}")
            kinds |= set(matched)
        return frozenset(kinds)

    def url(self) -> str | None:
        """The URL, from the settings, the environment or a file; a shared file has no secret."""
        given = [field for field in ("url", "url_env", "url_file") if self[field]]
        if len(given) > 1:
            raise BadConfig(
                f"{self.origin}: {self._section}.{self._name} has {' and '.join(given)}", "keep one of them"
            )
        if not given:
            return None
        field, value = given[0], str(self[given[0]])
        origin = self._settings.seen(self._key(field)).origin
        if field == "url_env":
            if not self._settings.environ.get(value):
                raise BadConfig(f"{origin}: {self._key(field)}: the environment variable {value} is not set")
            return self._settings.environ[value]
        if field == "url_file":
            return self._from_file(value, origin)
        has_secret = "@" in value.partition("://")[2] or value.startswith("https://")
        if self._settings.is_shared(self._key(field)) and has_secret:
            hint = f"use url_env or url_file, or {self._settings.own_file}"
            raise BadConfig(f"{origin}: {self._key(field)}: a shared file must not contain a secret", hint)
        return value

    def _from_file(self, value: str, origin: str) -> str:
        path = os.path.join(os.path.dirname(origin), os.path.expanduser(value))  # noqa: PTH118, PTH120, PTH111
        try:
            with open(path, encoding="utf-8") as file:  # noqa: PTH123
                text = file.read(10_000).strip()
        except (OSError, UnicodeDecodeError) as error:
            why = getattr(error, "strerror", None) or "it is not text"
            raise BadConfig(f"{origin}: {self._key('url_file')}: {path}: {why}") from None
        if not text:
            raise BadConfig(f"{origin}: {self._key('url_file')}: {path} is empty")
        return text
