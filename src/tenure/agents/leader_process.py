"""What one process runs while it leads: the coordinator, relays, webhooks, local hooks, notices, file watch,
pools, and the claims of processes that have ended.

`serve`, `daemon` and `run` start it and stop it; all of it waits while another process leads. Each part has its
own thread: a sink that hangs delays neither a lease nor another part, and the stop only up to its timeout.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeVar

from tenure.agents.tenant_parts import Leading, TenantParts
from tenure.config import BadConfig, Settings
from tenure.core import limits
from tenure.core.errors import InvalidInput, spelled
from tenure.core.target_urls import checked_url
from tenure.engine.duties.coordinator import Coordinator
from tenure.engine.relay.leader_thread import LeaderThread
from tenure.engine.relay.relay import Progress, Relay
from tenure.engine.relay.relay import Settings as RelaySettings
from tenure.engine.runtime.engine import Engine
from tenure.sinks.open_sink import open_sink, prefixed
from tenure.sinks.port import NoticeChannel, Sink
from tenure.sinks.settings import ChannelSettings, Messaging, SinkSettings, read_messaging
from tenure.stores.open_store import path_of
from tenure.trust.grants import Untrusted

if TYPE_CHECKING:
    from tenure.engine.fleet.offers import Address
    from tenure.engine.relay.webhook_relay import WebhookRelay
    from tenure.spawners.port import Spawner

STOP = limits.RELAY_SEND + 2.0  # seconds for all parts together

T = TypeVar("T")
Stepped = Callable[[str, Progress], None]


class LeaderPart(Protocol):
    def start(self) -> None: ...

    def stop(self) -> None: ...


class Place(NamedTuple):
    """Where the process works: for hooks and watched files."""

    folder: str  # the repository's root
    project: str
    environ: Mapping[str, str]


def messaging_here(settings: Settings, say: Callable[[str], object]) -> Messaging:
    """The settings of sinks, hooks and notices; none where the user has not allowed the file, and `say` gets why."""
    try:
        return read_messaging(settings)
    except Untrusted as error:
        say(f"no sinks, hooks and notices: {error.message}; `tenure trust` allows it, then start again")
        return Messaging({})


class FleetSettings(NamedTuple):
    """What starts the agents of pools, and where they find the store."""

    spawners: Mapping[str, Callable[[], Spawner]]
    address: Callable[[], Address | None]  # None: not known yet


def fleet_here(
    settings: Settings, place: Place, address: Callable[[], Address | None], say: Callable[[str], object]
) -> FleetSettings:
    from tenure.spawners.settings import spawners_here

    return FleetSettings(spawners_here(settings, place.folder, say), address)


class LedParts:
    """A coordinator, and the parts that work while its process leads."""

    def __init__(self, coordinator: Coordinator, parts: Sequence[LeaderPart], say: Callable[[str], object]) -> None:
        """`say` receives errors of parts."""
        self.coordinator, self._say = coordinator, say
        self._parts = [*parts]

    def start(self) -> None:
        self.coordinator.start()
        for part in self._parts:
            part.start()

    def stop(self) -> None:
        """Stop the parts together, then step down: acknowledgements that come meanwhile are still written."""
        stopping = [threading.Thread(target=self._stop, args=(part,), daemon=True) for part in self._parts]
        try:
            for thread in stopping:
                thread.start()
            until = time.monotonic() + STOP
            for thread in stopping:
                thread.join(max(0.0, until - time.monotonic()))
        finally:
            self.coordinator.stop()

    def _stop(self, part: LeaderPart) -> None:
        try:
            part.stop()
        except Exception as error:  # noqa: BLE001 - the others stop, and the lease is given back
            self._say(f"{type(part).__name__} did not stop in order: {spelled(error)}")


def of_own_store(
    coordinator: Coordinator,
    messaging: Messaging,
    *,
    say: Callable[[str], object] = lambda _: None,
    stepped: Stepped = lambda *_: None,
) -> LedParts:
    """What a server runs for a tenant that has its own store: webhooks and relays, and no program of the deployment."""
    return LedParts(coordinator, _of_tenant(coordinator.engine, coordinator.led, messaging, say, stepped), say)


class LeaderProcess(LedParts):
    """Nothing is sent before `start`; every sink and channel is checked before that. Raises BadConfig."""

    def __init__(
        self,
        coordinator: Coordinator,
        messaging: Messaging,
        place: Place,
        fleet: FleetSettings | None = None,
        *,
        say: Callable[[str], object] = lambda _: None,
        stepped: Stepped = lambda *_: None,
        copies: float = 0.0,
    ) -> None:
        """`say` receives errors of parts; `stepped` what each relay has done. Without `fleet` pools are not filled.

        `copies`: seconds between two copies of an embedded store; 0: none.
        """
        super().__init__(coordinator, (), say)
        self._messaging, self._place = messaging, place
        self._engine: Engine = coordinator.engine
        for sink in messaging.sinks:
            _named("sinks", sink.name, partial(opened, sink, self._engine)).close()
        self._parts += [relay_of(sink, self._engine, coordinator.led, stepped) for sink in messaging.sinks]
        self._parts += [self._webhooks(), self._files(), self._processes()]
        self._parts += [self._commands(sink) for sink in messaging.sinks if sink.commands]
        if messaging.hooks:
            self._parts.append(self._hooks())
        if messaging.channels:
            self._parts.append(self._notices())
        if fleet is not None:
            self._parts.append(self._fleet(fleet))
        if copies > 0 and path_of(self._engine.store.url) is not None:
            self._parts.append(self._copies(copies))
        if coordinator.tenants is not None:
            make = partial(_of_tenant, messaging=messaging, say=say, stepped=stepped)
            self._parts.append(TenantParts(coordinator, make, is_for_all=bool(messaging.sinks)))

    # --- parts ---

    def _commands(self, sink: SinkSettings) -> LeaderPart:
        from tenure.engine.relay.channel_commands import ChannelCommands
        from tenure.sinks.redis_commands import RedisCommandChannel

        url, engine = prefixed(sink.url, sink.prefix), self._engine
        opened = partial(RedisCommandChannel, url, engine.tenant)
        return ChannelCommands(engine, sink.name, sink.projects, opened, self.coordinator.led, failed=self._say)

    def _webhooks(self) -> LeaderPart:
        return WebhookPart(self._engine, self._messaging, self.coordinator, self._say)

    def _hooks(self) -> LeaderPart:
        from tenure.engine.relay.hook_reader import HookReader
        from tenure.sinks.command import CommandRunner

        runner = CommandRunner(self._place.folder, self._place.environ, ended=self._hook_ended)
        return HookReader(self._engine, self._messaging.hooks, runner, self.coordinator.led, failed=self._say)

    def _hook_ended(self, job: object, result: object) -> None:
        from tenure.processes.bounded_run import NotRun
        from tenure.sinks.command import Job

        assert isinstance(job, Job)
        if isinstance(result, NotRun):
            self._say(f"hook {job.argv[0]} did not run: {result.message}")
        elif getattr(result, "limit", None) is not None:
            self._say(f"hook {job.argv[0]} did not end in time and was ended")
        elif getattr(result, "exit", 0) != 0:
            self._say(f"hook {job.argv[0]} ended with {getattr(result, 'exit', None)}")

    def _notices(self) -> LeaderPart:
        from tenure.engine.relay.notice_reader import NoticeReader, Target

        channels = {
            one.name: Target(channel_of(one, self._messaging, self._place), one.kinds)
            for one in self._messaging.channels
        }
        return NoticeReader(self._engine, channels, self.coordinator.led, time.monotonic, failed=self._say)

    def _fleet(self, settings: FleetSettings) -> LeaderPart:
        from tenure.engine.fleet.fleet import Fleet
        from tenure.engine.fleet.spawner_threads import SpawnerThreads

        calls = SpawnerThreads(settings.spawners)
        return Fleet(self._engine, calls, settings.address, self.coordinator.led, failed=self._say)

    def _files(self) -> LeaderPart:
        from tenure.agents.file_watch import FileWatch

        place = self._place
        return FileWatch(self._engine, place.project, place.folder, self.coordinator.led, failed=self._say)

    def _copies(self, seconds: float) -> LeaderPart:
        from tenure.agents.store_copies import StoreCopies

        place = self._place
        return StoreCopies(
            self._engine, self.coordinator.led, place.environ, seconds, project=place.project, say=self._say
        )

    def _processes(self) -> LeaderPart:
        from tenure.agents.ended_processes import EndedProcesses

        return EndedProcesses(self._engine, self.coordinator.led, failed=self._say)


def relay_of(sink: SinkSettings, engine: Engine, leading: Leading, stepped: Stepped) -> Relay:
    settings = RelaySettings(
        sink.name, sink.shown, sink.kinds, sink.projects, sink.max_lag, short_names=sink.short_names
    )
    return Relay(engine, settings, partial(opened, sink, engine), leading, time.monotonic, stepped=stepped)


def _of_tenant(
    led: Engine, leading: Leading, messaging: Messaging, say: Callable[[str], object], stepped: Stepped
) -> list[LeaderThread]:
    """What runs for another tenant than the home tenant, on its own engine."""
    engine = Engine(led.store, led.random, led.context)
    say_once = _once(lambda text: say(f"tenant {engine.tenant}: {text}"))
    webhooks = webhook_relay(engine, messaging, leading, say_once)
    return [webhooks, *(relay_of(sink, engine, leading, stepped) for sink in messaging.sinks)]


class WebhookPart:
    """The relay of webhooks, with the connections that it keeps."""

    def __init__(
        self, engine: Engine, messaging: Messaging, coordinator: Coordinator, say: Callable[[str], object]
    ) -> None:
        self._relay = webhook_relay(engine, messaging, coordinator.led, _once(say))

    def start(self) -> None:
        self._relay.start()

    def stop(self) -> None:
        self._relay.stop()


def webhook_relay(
    engine: Engine, messaging: Messaging, leading: Leading, failed: Callable[[str], None]
) -> WebhookRelay:
    """The relay of a tenant's webhooks; the connections that it keeps are closed with it."""
    from tenure.engine.relay.webhook_relay import WebhookRelay
    from tenure.sinks.http_sender import HttpSender
    from tenure.sinks.webhook import WebhookSender

    http = HttpSender(allow_http=messaging.allow_http, networks=messaging.networks)
    sender = WebhookSender(http, lambda: time.time_ns() // 1000)
    return WebhookRelay(engine, sender, leading, failed=failed, closing=http.close)


def opened(settings: SinkSettings, engine: Engine, monotonic: Callable[[], float] = time.monotonic) -> Sink:
    """The sink; it connects when it is first used. Raises InvalidInput."""
    sink = open_sink(settings.url, prefix=settings.prefix)
    if not settings.keys:
        return sink
    from tenure.engine.relay.runtime_keys import KeyedSink
    from tenure.sinks.redis_keys import RuntimeKeys

    return KeyedSink(sink, RuntimeKeys(prefixed(settings.url, settings.prefix)), engine, monotonic)


def channel_of(settings: ChannelSettings, messaging: Messaging, place: Place) -> NoticeChannel:
    """The channel for notices; it connects for each message. Raises BadConfig."""
    return _named("notify", settings.name, partial(_channel, settings, messaging, place))


def _channel(settings: ChannelSettings, messaging: Messaging, place: Place) -> NoticeChannel:
    if settings.command:
        from tenure.sinks.command import CommandChannel, CommandRunner

        return CommandChannel(settings.command, CommandRunner(place.folder, place.environ))
    assert settings.url is not None
    if settings.is_mail:
        from tenure.sinks.smtp import MailChannel

        return MailChannel(settings.url)
    from tenure.sinks.http_sender import HttpSender
    from tenure.sinks.slack import SlackChannel

    checked_url(settings.url, allow_http=messaging.allow_http)
    http = HttpSender(allow_http=messaging.allow_http, networks=messaging.networks)
    return SlackChannel(settings.url, http, allow_http=messaging.allow_http)


def _named(section: str, name: str, make: Callable[[], T]) -> T:
    try:
        return make()
    except InvalidInput as error:
        raise BadConfig(f"{section}.{name}: {error.message}", error.hint) from None


def _once(say: Callable[[str], object]) -> Callable[[str], None]:
    """Reports each text once in a row: a missing key is found with every step."""
    last: list[str] = []

    def say_once(text: str) -> None:
        if last != [text]:
            last[:] = [text]
            say(f"webhooks: {text}")

    return say_once
