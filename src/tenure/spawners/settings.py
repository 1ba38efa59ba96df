"""Spawners and programs as the settings have them: `[spawners.NAME]`, `[programs.NAME]`, `[gateway]`.

Reading them raises Untrusted where they come from a file that the user has not allowed, and BadConfig, which names the
setting, where a value is not valid. A spawner with the name `local` is there without a setting.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

from tenure.config import BadConfig, Settings
from tenure.core import limits, signatures
from tenure.core.errors import InvalidInput, TenureError
from tenure.core.loopback import is_loopback
from tenure.core.named_settings import NAMED
from tenure.core.safe_text import shell_word
from tenure.spawners.children import Children
from tenure.spawners.port import Spawner
from tenure.spawners.programs import AGENTS, Program, Programs
from tenure.trust.grants import Untrusted
from tenure.user_state import user_state

LOCAL, GATEWAY, COMMAND = KINDS = ("local", "gateway", "command")
FOLDER = "spawned"  # of the user's state: the files of the children
MOST_CHILDREN = limits.GATEWAY_CHILDREN_MAX


def spawners_here(settings: Settings, folder: str, say: Callable[[str], object]) -> dict[str, Callable[[], Spawner]]:
    """What opens each spawner, by name; `local` alone where the user has not allowed the file, and `say` gets why."""
    try:
        found = read_spawners(settings, folder)
    except Untrusted as error:
        say(f"no spawner but local: {error.message}; `tenure trust` allows it, then start again")
        found = {LOCAL: _local(LOCAL, Programs({}, AGENTS, folder, settings.environ), None)}
    return {name: partial(_same, spawner) for name, spawner in found.items()}


def _same(spawner: Spawner) -> Spawner:
    """These spawners hold nothing that two threads could spoil."""
    return spawner


def read_spawners(settings: Settings, folder: str) -> dict[str, Spawner]:
    """Each spawner by its name. `folder` is where agents work unless their program names another."""
    programs = read_programs(settings, folder, AGENTS)
    found = {name: _spawner(settings, name, programs) for name in settings.named("spawners")}
    return {LOCAL: _local(LOCAL, programs, None), **found}


def read_programs(settings: Settings, folder: str, known: tuple[str, ...]) -> Programs:
    """The programs of the settings; `known`: agents that need none."""
    named = {}
    for name in settings.named("programs"):
        table = _Table(settings, "programs", name)
        if not table["agent"].strip():
            raise table.wrong("agent", "is missing", 'as in agent = "claude", or a command')
        works_in = os.path.join(folder, os.path.expanduser(table["folder"]))
        named[name] = Program(table["agent"], works_in, table.texts("options"))
    return Programs(named, known, folder, settings.environ)


def _spawner(settings: Settings, name: str, programs: Programs) -> Spawner:
    table = _Table(settings, "spawners", name)
    kind = table["kind"] or (name if name in KINDS else "")
    if kind not in KINDS:
        raise table.wrong("kind", f"must be one of {', '.join(KINDS)} (got {kind[:40]!r})")
    for field in table.given:
        if field not in ("kind", *_FIELDS[kind]):
            raise table.wrong(field, f"is not a setting of the kind {kind}")
    try:
        return {LOCAL: _local_of, GATEWAY: _gateway_of, COMMAND: _command_of}[kind](table, programs)
    except InvalidInput as error:
        raise BadConfig(f"{table.origin}: spawners.{name}: {error.message}", error.hint) from None


_FIELDS = {
    LOCAL: ("log",),
    GATEWAY: ("url", "secret_env", "secret_file", "allow_http", "authorities"),
    COMMAND: ("start", "status", "end", "log"),
}


def _local_of(table: _Table, programs: Programs) -> Spawner:
    return _local(table.name, programs, table.path("log"))


def _local(name: str, programs: Programs, log: str | None) -> Spawner:
    from tenure.spawners.local import LocalSpawner

    return LocalSpawner(programs, children_of(programs.environ, name, log))


def _gateway_of(table: _Table, _: Programs) -> Spawner:
    from tenure.core.target_urls import checked_url
    from tenure.spawners.gateway import GatewaySpawner

    url = table["url"]
    if not url:
        raise table.wrong("url", "is missing", "as in https://host:7430")
    target = checked_url(url, allow_http=True)
    is_here = is_loopback(target.host)
    if target.scheme == "http" and not is_here and not table["allow_http"]:
        raise table.wrong(
            "url",
            "must begin with https://: a spawn carries a key",
            f"spawners.{table.name}.allow_http = true allows http in a network that you trust",
        )
    return GatewaySpawner(url, secret_key(table, table.key("secret")), authorities=table.path("authorities"))


def _command_of(table: _Table, programs: Programs) -> Spawner:
    from tenure.spawners.command import CommandSpawner, Templates

    templates = Templates(table.texts("start"), table.texts("status"), table.texts("end"))
    if not templates.start:
        raise table.wrong("start", "is missing", 'as in start = ["ssh", "host", "tenure", "run", …]')
    if bool(templates.status) != bool(templates.end):
        raise table.wrong("status", "and end must be set together, or neither")
    children = children_of(programs.environ, table.name, table.path("log"))
    return CommandSpawner(templates, children, folder=programs.folder, environ=programs.environ)


def children_of(environ: Mapping[str, str], name: str, log: str | None) -> Children:
    return Children(os.path.join(user_state(environ), FOLDER, name), log)


# --- the gateway of this machine ------------------------------------------------------------------------------


class GatewaySettings(NamedTuple):
    host: str
    port: int
    key: bytes
    programs: Programs
    children: Children
    size: int
    tls_cert: str | None = None
    tls_key: str | None = None


def read_gateway(settings: Settings, folder: str) -> GatewaySettings:
    """The settings of `tenure gateway`. It starts nothing that `[programs]` does not name."""
    setting = settings["gateway.listen"]
    listen, origin = setting.value, setting.origin
    host, colon, port = listen.rpartition(":")
    host = host.strip("[]")
    if not colon or not host or not port.isdecimal() or int(port) > 65535:
        where = f"{origin}: " if os.path.isfile(origin) else ""
        raise BadConfig(f"{where}gateway.listen must be HOST:PORT (got {listen[:60]!r})")
    cert, key = settings["gateway.tls_cert"].value, settings["gateway.tls_key"].value
    if (cert is None) != (key is None):
        raise BadConfig("gateway.tls_cert and gateway.tls_key must be set together: one is missing")
    if not is_loopback(host) and cert is None and not settings["gateway.allow_http"].value:
        raise BadConfig(
            f"gateway.listen is {listen}: a spawn carries a key, which others could read without TLS",
            "set gateway.tls_cert and gateway.tls_key; gateway.allow_http = true is for a network that you trust",
        )
    size = settings["gateway.size"].value
    if not 1 <= size <= MOST_CHILDREN:
        raise BadConfig(f"gateway.size must be from 1 to {MOST_CHILDREN} (got {size})")
    programs = read_programs(settings, folder, ())
    if not programs.named:
        raise BadConfig(
            "no program is configured, so the gateway would start nothing",
            'name one in tenure.toml, as in [programs.claude] with agent = "claude"; then `tenure trust`',
        )
    children = children_of(settings.environ, "gateway", settings["gateway.log"].value)
    return GatewaySettings(host, int(port), _gateway_key(settings), programs, children, size, cert, key)


def _gateway_key(settings: Settings) -> bytes:
    text, path = settings["gateway.secret"].value, settings["gateway.secret_file"].value
    if (text is None) == (path is None):
        raise BadConfig(
            "the gateway needs a secret: set TENURE_GATEWAY_SECRET or gateway.secret_file, one of them",
            "`tenure gateway --new-secret` prints one; the server has the same in [spawners.NAME]",
        )
    origin = settings.seen("gateway.secret_file").origin
    return _key(text if text is not None else _from_file(path, origin), "gateway.secret")


# --- values ---------------------------------------------------------------------------------------------------


class _Table:
    """The settings of one name, with defaults; each is read and so checked for trust."""

    def __init__(self, settings: Settings, section: str, name: str) -> None:
        self._settings, self._section, self.name = settings, section, name
        keys = settings.named(section)[name]
        self.given = [key.rpartition(".")[2] for key in keys]
        self.origin = settings.seen(keys[0]).origin
        self.environ = settings.environ

    def key(self, field: str) -> str:
        return f"{self._section}.{self.name}.{field}"

    def __getitem__(self, field: str) -> Any:
        if field in self.given:
            return self._settings[self.key(field)].value
        return NAMED[f"{self._section}.NAME.{field}"].default

    def wrong(self, field: str, why: str, hint: str | None = None) -> TenureError:
        return BadConfig(f"{self.origin}: {self.key(field)} {why}", hint)

    def texts(self, field: str) -> tuple[str, ...]:
        value = self[field]
        if not all(isinstance(one, str) and one for one in value):
            raise self.wrong(field, "must be a list of texts")
        return tuple(value)

    def path(self, field: str) -> str | None:
        """A path; one in a file is relative to that file."""
        value = self[field]
        return os.path.join(os.path.dirname(self.origin), os.path.expanduser(value)) if value else None


def secret_key(table: _Table, what: str) -> bytes:
    """The shared key, from the environment or a file."""
    variable, path = table["secret_env"], table["secret_file"]
    if bool(variable) == bool(path):
        raise table.wrong("secret_env", "or secret_file must be set, one of them")
    if path:
        return _key(_from_file(path, table.origin), what)
    if not table.environ.get(variable):
        raise table.wrong("secret_env", f"names the environment variable {variable}, which is not set")
    return _key(table.environ[variable], what)


def _key(secret: str, what: str) -> bytes:
    try:
        return signatures.key_of(signatures.STANDARD, secret.strip())
    except InvalidInput as error:
        raise BadConfig(f"{what}: {error.message}", "`tenure gateway --new-secret` prints one") from None


def _from_file(value: str, origin: str) -> str:
    path = os.path.join(os.path.dirname(origin) if os.path.isfile(origin) else "", os.path.expanduser(value))
    try:
        with open(path, encoding="utf-8") as file:
            mode = stat.S_IMODE(os.fstat(file.fileno()).st_mode)
            if mode & 0o077:
                raise BadConfig(
                    f"the secret {path} can be read or written by others (mode {mode:04o})",
                    f"`chmod 600 {shell_word(path)}`, and replace the secret if others may have read it",
                )
            return file.read(10_000)
    except (OSError, UnicodeDecodeError) as error:
        raise BadConfig(f"{path}: {getattr(error, 'strerror', None) or 'it is not text'}") from None
