"""Where the store is, and the settings: `tenure.toml` < `.tenure/config.toml` < TENURE_CONFIG < environment < flags.

`SETTINGS` is the one table: key → (type, default, meaning); the reference page is made from it. `locations` finds the
files.

A file in the tree may have come with a cloned repository. Its risky settings (`url`, `run.agent`, `serve.*` …) count
only if the file is the user's own or they allowed it: `Settings` refuses the value otherwise.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from itertools import takewhile
from typing import TYPE_CHECKING, Any

import msgspec

from tenure.core import limits
from tenure.core.errors import NoStore, TenureError
from tenure.core.setting_values import Port, Priority, Seconds, Setting
from tenure.locations import (
    DATABASE,
    FOLDER,
    LOCAL,
    NAMED,
    SHARED,
    find_folder,
    folders,
    local_files,
    main_worktree,
    named_file,
    nearest_shared,
)
from tenure.user_state import store_states

if TYPE_CHECKING:
    from tenure.core.task_defaults import TaskDefaults

LONGEST_NAME = limits.PROJECT_NAME_FILE
PROJECT = "project"  # beside the store, the name that `init` gave: a line of text, since TOML costs each start 8 ms


class BadConfig(TenureError):
    code = "BAD_CONFIG"


LEVELS = ("debug", "info", "warning", "error")

SETTINGS: dict[str, Setting] = {
    "url": Setting(
        str,
        None,
        "the store: a path, `sqlite:///path`, `postgresql://…`, `mariadb://…`, `valkey://…`, "
        "or a scheme that a plug-in brings; or a server: `https://…`",
    ),
    "key": Setting(str, None, "the API key or token for a server; it is never printed"),
    "tenant": Setting(
        str, None, "which tenant: of a store with several, by default `local`; of a server, by default the key's own"
    ),
    "homes": Setting(
        str,
        None,
        "servers of other regions that requests may be sent to again, as in `eu=https://eu.example.org`, with commas "
        "between; your key goes to no other",
    ),
    "project": Setting(str, "default", "which project of the store; `init` names the first after its folder"),
    "artifacts": Setting(
        str,
        None,
        "where the bytes of artifacts are stored, for one store alone: a folder (from the repository's root) or "
        "`s3://bucket/prefix`; by default beside an embedded store",
    ),
    "lease": Setting(
        Seconds,
        limits.LEASE_IN_A_SHELL,
        "seconds that a claim in a shell lasts, unless renewed; `auto`: by the task's estimate, else by its type",
        ("auto",),
    ),
    "leader.lease": Setting(
        Seconds, limits.LEADER_LEASE, "seconds that `serve`, `daemon` or `run` leads unless renewed"
    ),
    "agents.leader_lease": Setting(
        Seconds,
        None,
        "seconds that an agent leads its project unless renewed; by default 30 where its commands elect and renew it, "
        "1800 with `lead`; for elections behind a server the server's counts",
    ),
    "agents.heartbeat": Setting(
        Seconds,
        limits.AGENT_HEARTBEAT,
        "seconds between an agent's signs of life: those that `run` sends, and what `join` registers and shows",
    ),
    "agents.stale_after": Setting(
        Seconds,
        None,
        "seconds without a sign of life after which an agent is stale; by default 1800 for agents at a shell",
    ),
    "agents.type": Setting(str, None, "the type of an agent that is not recognised by its environment"),
    "agents.auto_name": Setting(
        bool, True, "false: an agent must name itself (`join -n`, `--agent`, TENURE_AGENT) before it claims"
    ),
    "tasks.priority": Setting(
        Priority,
        None,
        "the priority of the project's new tasks that name none, however they are created; a server's counts",
    ),
    "tasks.max_attempts": Setting(int, None, "the attempts of such tasks"),
    "tasks.on_lost": Setting(
        str,
        None,
        "what a lost claim means for such tasks: `retry`, `back_off` or `hold`",
        ("retry", "back_off", "hold"),
    ),
    "signing_key": Setting(str, None, "the file of the key that signs this session's results: see `join --key`"),
    "copies.every": Setting(Seconds, limits.COPY_EVERY, "seconds between copies of an embedded store; 0: none"),
    "log.level": Setting(
        str, "info", "the lowest level in the log of commands: `debug`, `info`, `warning` or `error`", LEVELS
    ),
    "log.file": Setting(
        str, None, "the log of commands and of `daemon`, one JSON object a line, without arguments; by default none"
    ),
    "display.colour": Setting(
        str,
        "auto",
        "`auto`: on a terminal, unless NO_COLOR or TENURE_NO_COLOR is set; `always`; `never`",
        ("auto", "always", "never"),
    ),
    "display.unicode": Setting(bool, True, "false: signs, bars and dashes are ASCII"),
    "prices": Setting(str, None, "a TOML file with your prices; they override the shipped ones"),
    "tiers": Setting(str, None, "a TOML file with your tiers of models; they override the shipped ones"),
    "done.clean_tree": Setting(bool, False, "`done` refuses while the working tree has uncommitted changes"),
    "done.commit": Setting(bool, False, "`done` requires `--commit` with an existing commit"),
    "hooks.guard_edits": Setting(
        bool, False, "the hook denies edits when the lease is lost or the file is reserved by another"
    ),
    "hooks.keep_working": Setting(bool, False, "the hook asks an agent that stops while it holds a task to continue"),
    "run.agent": Setting(str, None, "the agent that `tenure run` starts without --agent"),
    "run.sign": Setting(bool, False, "whether `tenure run` signs results, with your key on this machine"),
    "run.route": Setting(bool, False, "whether `tenure run` starts agents with the model that a claim recommends"),
    "run.timeout": Setting(Seconds, limits.RUN_TIMEOUT, "seconds after which `tenure run` ends an agent's process"),
    "serve.host": Setting(str, "127.0.0.1", "the address that `tenure serve` listens on"),
    "serve.port": Setting(Port, 7420, "its port"),
    "serve.workers": Setting(int, 1, "how many processes serve, on the one port"),
    "serve.most_stores": Setting(
        int, limits.MOST_STORES, "how many stores of tenants with isolation `schema` or `instance` it has open at once"
    ),
    "serve.region": Setting(
        str, None, "the region of the server; it takes the writes of tenants of this region, and of those without one"
    ),
    "serve.homes": Setting(
        str,
        None,
        "the servers of other regions, as in `eu=https://eu.example.org`, with commas between; answers to requests for "
        "their tenants name them",
    ),
    "serve.log_level": Setting(
        str, "info", "the lowest level that its log has: `debug`, `info`, `warning` or `error`", LEVELS
    ),
    "serve.log_file": Setting(str, None, "the file of its log, one JSON object a line; by default stderr"),
    "serve.access_log": Setting(
        str, None, "the file of its access log, a chain of hashes; `-`: stdout; by default none"
    ),
    "serve.access_log_size": Setting(float, limits.ACCESS_LOG_SIZE, "megabytes after which that file is put aside"),
    "serve.access_log_days": Setting(float, limits.ACCESS_LOG_DAYS, "days that a file put aside is kept; 0: for ever"),
    "serve.auth": Setting(
        str,
        "auto",
        "`auto`: on loopback the user who started it is known by the token of the start, all others sign in; "
        "`required`: everybody signs in; `open`: on loopback every user of the machine is owner",
        ("auto", "required", "open"),
    ),
    "serve.url": Setting(str, None, "where agents of pools reach the server; by default where it listens"),
    "serve.hosts": Setting(str, None, "host names of the server besides loopback's, with commas between"),
    "serve.trusted_proxy": Setting(
        str, None, "addresses or networks of proxies whose X-Forwarded-… headers are trusted, with commas between"
    ),
    "serve.tls_cert": Setting(str, None, "the certificate's file, for HTTPS"),
    "serve.tls_key": Setting(str, None, "the file of its private key"),
    "serve.jwt_issuer": Setting(str, None, "the issuer of JWTs: their `iss`"),
    "serve.jwt_audience": Setting(str, None, "their audience: their `aud`"),
    "serve.jwt_jwks": Setting(str, None, "the URL of the issuer's public keys"),
    "serve.jwt_secret": Setting(str, None, "or the secret of HS256 tokens; at least 32 characters"),
    "serve.jwt_prefix": Setting(
        str, "", "the prefix of the claims `role`, `agent`, `projects` and `capabilities`, as in `https://example.org/`"
    ),
    "serve.jwt_tenant": Setting(
        str,
        None,
        "the claim that names the tenant or tenants of a JWT, without that prefix; a JWT that does not name the tenant "
        "is good for its members alone",
    ),
    "serve.metrics_token": Setting(
        str,
        None,
        "the file with a token for `/metrics` alone, of at least 32 characters: it needs no store, and the file is "
        "read at each use",
    ),
    "serve.store_wait": Setting(
        Seconds,
        limits.STORE_START_WAIT,
        "seconds that `tenure serve` waits at its start for a store whose server does not answer; 0: none",
    ),
    "serve.jwt_longest": Setting(
        Seconds, limits.JWT_LIFETIME, "seconds that a JWT may live, from its `iat` to its `exp`"
    ),
    "serve.rate": Setting(float, limits.REQUEST_RATE, "requests a second that each key or token may send; 0: no limit"),
    "gateway.listen": Setting(str, "127.0.0.1:7430", "where `tenure gateway` listens"),
    "gateway.secret": Setting(str, None, "the secret that its requests are signed with; `tenure gateway --new-secret`"),
    "gateway.secret_file": Setting(str, None, "or the file that has it"),
    "gateway.size": Setting(int, limits.GATEWAY_CHILDREN, "how many agents it runs at once, at most"),
    "gateway.tls_cert": Setting(str, None, "the certificate's file, for HTTPS"),
    "gateway.tls_key": Setting(str, None, "the file of its private key"),
    "gateway.allow_http": Setting(bool, False, "it may listen beyond loopback without TLS"),
    "gateway.log": Setting(str, None, "a file that the output of its agents' runners is appended to; by default none"),
    "webhooks.allow_http": Setting(bool, False, "webhooks and channels for notices may have URLs without TLS"),
    "webhooks.networks": Setting(
        str, None, "private networks that webhooks and notices may reach, with commas between"
    ),
}

# Of tenure.toml alone: the commands and judges of validators. Nothing here reads them; see `trust/grants.py`.
SECTIONS = ("commands", "judges")

_NOT_SHARED = {
    "key": "contain a key",
    "gateway.secret": "contain a secret",
    "artifacts": "set where artifacts are sent",
}

_PLACES = ("url", "artifacts")  # a path of a file is relative to the folder that has the file, or its `.tenure`

SECRETS = frozenset({"key", "serve.jwt_secret", "gateway.secret"})  # never shown
# With one of these a process is more than its user's agents may be: `processes/private_memory.py` closes it to them.
SECRET_VARIABLES = ("TENURE_MASTER_KEY", "TENURE_OWNER_URL", "TENURE_SERVE_JWT_SECRET", "TENURE_GATEWAY_SECRET")


def setting_of(key: str) -> Setting | None:
    """The description of a setting, also of one with a name; None where there is no such setting."""
    if key in SETTINGS:
        return SETTINGS[key]
    from tenure.core.named_settings import NAMED

    if key.startswith("hooks.on_") and "." not in key.removeprefix("hooks."):
        return NAMED["hooks.on_KIND"]
    section, *rest = key.split(".")
    return NAMED.get(f"{section}.NAME.{rest[1]}") if len(rest) == 2 and rest[0] else None


class Value(msgspec.Struct, frozen=True):
    value: Any
    origin: str  # default, a file's path, an environment variable, or a flag


class Source(msgspec.Struct, frozen=True):
    """One configuration file, as it was read: nothing reads it a second time."""

    path: str
    kind: str  # SHARED, LOCAL or NAMED
    found: os.stat_result
    risky: Mapping[str, Any]  # its risky part, in its own shape

    @property
    def root(self) -> str:
        """The folder that its paths of stores and artifacts are relative to: that which has `.tenure`, or the file."""
        folder = os.path.dirname(self.path)
        return os.path.dirname(folder) if self.kind == LOCAL else folder

    def check(self, environ: Mapping[str, str]) -> None:
        """Raise Untrusted unless the file is the user's own, or they allowed its risky part as it is."""
        from tenure.trust.grants import Trusted
        from tenure.trust.ownership import why_foreign
        from tenure.user_state import user_state

        if not self.risky or self.kind == NAMED:
            return
        why = why_foreign(self.path, self.found, environ) if self.kind == LOCAL else "it belongs to the repository"
        if why is not None:
            main = main_worktree(self.root)
            instead = os.path.join(main, os.path.relpath(self.path, self.root)) if main else None
            Trusted(user_state(environ)).check(self.path, self.risky, why, instead=instead)


class Settings(Mapping[str, Value]):
    """Every setting with its origin. Reading a risky one from a file that is not trusted raises Untrusted."""

    def __init__(self, values: Mapping[str, Value], sources: Mapping[str, Source], environ: Mapping[str, str]) -> None:
        self._values, self.sources, self.environ = values, sources, environ
        self._checked: set[str] = set()

    def __getitem__(self, key: str) -> Value:
        value = self._values[key]
        if value.origin in self.sources:
            self._check(key, value.origin)
        if key == "key":
            self._check_key(value)
        elif key == "homes":
            self._check_homes(value)
        return value

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def named(self, section: str) -> dict[str, list[str]]:
        """The names in a section such as `sinks`, each with the keys of its settings. Nothing is read."""
        found: dict[str, list[str]] = {}
        for key in self._values:
            if key.startswith(f"{section}.") and key not in SETTINGS:
                found.setdefault(key.split(".")[1], []).append(key)
        return found

    def seen(self, key: str) -> Value:
        """The value, only to be printed: it may be anybody's."""
        return self._values[key]

    def is_shared(self, key: str) -> bool:
        """Whether the value is that of a repository's `tenure.toml`."""
        return self._kind(self._values[key]) == SHARED

    @property
    def own_file(self) -> str:
        """The file that the user's own settings are read from, else the one where they would be."""
        own = [path for path, source in self.sources.items() if source.kind != SHARED]
        return own[-1] if own else f"{FOLDER}/{LOCAL}"

    def _kind(self, value: Value) -> str | None:
        source = self.sources.get(value.origin)
        return source.kind if source is not None else None

    def _is_in_tree(self, value: Value) -> bool:
        return self._kind(value) in (SHARED, LOCAL)

    def _check(self, key: str, origin: str) -> None:
        from tenure.trust.risky_settings import is_risky

        if origin not in self._checked and is_risky(key):
            self.sources[origin].check(self.environ)
            self._checked.add(origin)

    def _check_key(self, key: Value) -> None:
        """A server that a file in the tree names gets no key, except one from such a file."""
        url = self["url"]
        if key.value is None or self._is_in_tree(key) or not self._is_in_tree(url):
            return
        if str(url.value).startswith(("http://", "https://")):
            raise BadConfig(
                f"{url.origin} names the server {without_password(url.value)}; your key is not sent to a server that a "
                "file in the tree names",
                "set TENURE_URL too, or put the key into .tenure/config.toml of this repository",
            )

    def _check_homes(self, homes: Value) -> None:
        """As of the server: its other regions get no key either, except one from a file in the tree."""
        key = self._values["key"]
        if self._is_in_tree(homes) and key.value is not None and not self._is_in_tree(key):
            raise BadConfig(
                f"{homes.origin} names servers of other regions; your key is not sent to a server that a file in the "
                "tree names",
                "set TENURE_HOMES, or put the key into .tenure/config.toml of this repository",
            )


class Home(msgspec.Struct, frozen=True):
    """Where a store was found: `folder` holds its worktrees, transcripts and hook state."""

    folder: str
    url: str
    tenant: str | None = None  # None: `local` in a store, the key's own at a server

    @property
    def shown(self) -> str:
        return without_password(self.url)

    @property
    def root(self) -> str:
        """The folder that contains `.tenure`."""
        return os.path.dirname(self.folder)


def without_password(url: str) -> str:
    """A store's URL as it may be printed."""
    scheme, colon, rest = url.partition("://")
    user, at, host = rest.rpartition("@")
    if colon and at and ":" in user:
        url = f"{scheme}://{user.partition(':')[0]}:…@{host}"
    before, password, after = url.partition("password=")
    return f"{before}{password}…{''.join(after.partition('&')[1:])}" if password else url


# --- finding the store --------------------------------------------------------------------------------------


def find_home(start: str, settings: Settings) -> Home:
    """The store for commands run in `start`; NoStore where there is none."""
    folder = find_folder(start)
    url = settings["url"].value
    if url is not None:
        return home_at(url, folder, settings)
    nearer = list(takewhile(lambda one: one != folder, folders(start)))
    if folder is None or any(map(os.path.isdir, nearer)):
        from tenure.store_folder import unreadable_of, why_none  # here: nobody else needs it

        paths = [os.path.join(one, DATABASE) for one in nearer]
        why = why_none(paths, settings.environ) if folder is None else unreadable_of(nearer)
        if why is not None:
            raise why
    if folder is None:
        raise NoStore(f"there is no store in {start} or above", "`tenure init` creates one here")
    return home_at(os.path.join(folder, DATABASE), folder, settings)


def home_at(url: str, folder: str | None, settings: Settings) -> Home:
    """The store at `url`, with the `.tenure` that serves the working folder, if there is one."""
    return Home(folder or store_states(settings.environ, url)[0], url, settings["tenant"].value)


# --- settings -----------------------------------------------------------------------------------------------


def read_settings(
    start: str,
    environ: Mapping[str, str],
    flags: Mapping[str, Any] | None = None,
    *,
    problems: list[TenureError] | None = None,
) -> Settings:
    """Every setting with its origin. The environment variable of `run.timeout` is TENURE_RUN_TIMEOUT.

    A bad value raises BadConfig; with `problems` it is added there, and the rest is read.
    """
    merged = {key: Value(setting.default, "default") for key, setting in SETTINGS.items()}
    sources = {}
    if problems is not None:
        from tenure.store_folder import unreadable_of

        problems += filter(None, [unreadable_of(folders(start))])
    for path, kind in _files(start, environ):
        found, sources[path] = _from_file(path, kind, environ, problems)
        merged |= found
    for key in SETTINGS:
        name = "TENURE_" + key.upper().replace(".", "_")
        if environ.get(name):
            try:
                merged[key] = Value(_meant(name, key, environ[name], is_text=True), name)
            except BadConfig as error:
                _report(error, problems)
    for key, given in (flags or {}).items():
        if given is not None:
            merged[key] = Value(given, "flag")
    if merged["project"].origin == "default":
        url = merged["url"].value
        beside = find_folder(start) if url is None else os.path.dirname(url.removeprefix("sqlite://"))
        merged["project"] = _first_project(beside, problems) or merged["project"]
    return Settings(merged, sources, environ)


def task_defaults_of(settings: Mapping[str, Value]) -> TaskDefaults:
    """The settings `tasks.…`, for tasks of the settings' project."""
    from tenure.core.task_defaults import SHIPPED, TaskDefaults

    names = ("priority", "max_attempts", "on_lost")
    given = {name: value for name in names if (value := settings[f"tasks.{name}"].value) is not None}
    return TaskDefaults(project=str(settings["project"].value), **given) if given else SHIPPED


def leader_lease_of(settings: Mapping[str, Value]) -> float:
    """The setting `agents.leader_lease`, as agents that are elected by their commands have it."""
    given = settings["agents.leader_lease"]
    if given.value is None:
        return limits.AGENT_LEADER_LEASE / 1e6
    if not 1 <= given.value <= limits.LONGEST_LEADER_LEASE:
        raise BadConfig(
            f"{given.origin}: agents.leader_lease is {given.value:g}; it must be from 1 to "
            f"{limits.LONGEST_LEADER_LEASE:g} seconds"
        )
    return float(given.value)


def homes_of(settings: Mapping[str, Value]) -> dict[str, str] | None:
    """The setting `homes`, region → URL; None where it is not set."""
    homes = settings["homes"]
    if not homes.value:
        return None
    from tenure.core.errors import InvalidInput
    from tenure.core.regions import parse_homes

    try:
        return parse_homes(homes.value)
    except InvalidInput as error:
        raise BadConfig(f"{homes.origin}: {error.message}", error.hint) from None


def artifacts_of(settings: Settings, home: Home) -> str | None:
    """The setting `artifacts`; a path that no file gives is relative to the folder that contains `.tenure`."""
    url = settings["artifacts"].value
    return url if url is None or "://" in url else os.path.join(home.root, url)


def file_of(settings: Mapping[str, Value], key: str) -> str | None:
    """The path that a setting names; a path in a file is relative to that file."""
    value, origin = settings[key].value, settings[key].origin
    if value is None:
        return None
    if not os.path.isfile(origin):
        return str(value)
    return os.path.join(os.path.dirname(os.path.abspath(origin)), os.path.expanduser(value))


def _first_project(folder: str | None, problems: list[TenureError] | None) -> Value | None:
    """The project that `init` made with the store in this folder."""
    path = os.path.join(folder or "", PROJECT)
    try:
        with open(path, encoding="utf-8") as file:
            return Value(file.read(LONGEST_NAME).strip(), path)
    except OSError:
        return None
    except UnicodeDecodeError:
        hint = "write the project's name there as UTF-8, or name it with --project or TENURE_PROJECT"
        _report(BadConfig(f"{path}: the name of the project is not UTF-8 text", hint), problems)
        return None


def _report(error: TenureError, problems: list[TenureError] | None) -> None:
    if problems is None:
        raise error
    problems.append(error)


def _files(start: str, environ: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Each file of settings with its kind; of two that set the same the later counts."""
    if (shared := nearest_shared(start)) is not None:
        yield shared, SHARED
    for path in local_files(start):
        yield path, LOCAL
    if (named := named_file(environ)) is not None:
        yield named, NAMED


def _from_file(
    path: str, kind: str, environ: Mapping[str, str], problems: list[TenureError] | None = None
) -> tuple[dict[str, Value], Source]:
    from tenure.core.errors import InvalidInput
    from tenure.core.toml_text import parsed
    from tenure.trust.risky_settings import section_of

    try:
        with open(path, "rb") as file:
            status, text = os.fstat(file.fileno()), file.read()
    except OSError as error:
        raise _unreadable(path, kind, error) from None
    if kind == NAMED:
        from tenure.trust.operator_file import check_operators

        check_operators(path, status, environ)
    try:
        content = parsed(path, text)
    except InvalidInput as error:
        raise BadConfig(error.message, error.hint) from None
    source = Source(path, kind, status, section_of(content))
    found = {}
    for key, given in _flat(content):
        if key.partition(".")[0] in SECTIONS and kind == SHARED:
            continue
        try:
            value = checked(path, key, given, is_shared=kind == SHARED)
        except BadConfig as error:
            _report(error, problems)
            continue
        if key in _PLACES and "://" not in value:
            value = os.path.join(source.root, os.path.expanduser(value))  # wherever the command is run
        found[key] = Value(value, path)
    return found, source


def _unreadable(path: str, kind: str, error: OSError) -> BadConfig:
    from tenure.store_folder import unreadable

    if kind == NAMED and isinstance(error, (FileNotFoundError, NotADirectoryError, IsADirectoryError)):
        return BadConfig(f"{NAMED} names {path}, and there is no such file", f"write it, or unset {NAMED}")
    what, hint = unreadable(path, error)
    return BadConfig(what, f"Give this user the right to read it, or unset {NAMED}." if kind == NAMED else hint)


def checked(path: str, key: str, given: Any, *, is_shared: bool) -> Any:
    """The value of a setting in a file; BadConfig where the file must not have it, or not so."""
    if key.partition(".")[0] in SECTIONS:
        raise BadConfig(f"{path}: {key} belongs in {SHARED}", "put it there; `tenure trust` allows it")
    if key in _NOT_SHARED and is_shared:
        hint = f"put it into TENURE_{key.upper().replace('.', '_')}, or .tenure/config.toml"
        raise BadConfig(f"{path}: a shared file must not {_NOT_SHARED[key]}", hint)
    setting = setting_of(key)
    if setting is None:
        from tenure.core.inputs import suggestion
        from tenure.core.named_settings import NAMED

        known = [*SETTINGS, *(name.replace("NAME", key.split(".")[1]) for name in NAMED if key.count(".") == 2)]
        raise BadConfig(f"{path}: there is no setting {key!r}{suggestion(key, known)}", "`tenure config` lists them")
    return _meant(f"{path}: {key}", key, given)


def _flat(content: Mapping[str, Any], prefix: str = "") -> list[tuple[str, Any]]:
    pairs: list[tuple[str, Any]] = []
    for key, value in content.items():
        # A quoted key with a dot in it is not the path of tables that it looks like.
        name = prefix + (f'"{key}"' if "." in key else key)
        pairs += _flat(value, f"{name}.") if isinstance(value, dict) else [(name, value)]
    return pairs


def _meant(where: str, key: str, given: Any, *, is_text: bool = False) -> Any:
    """What the setting's value means; BadConfig where it cannot be that."""
    from tenure.core import setting_values
    from tenure.core.errors import InvalidInput

    setting = setting_of(key)
    assert setting is not None
    read = setting_values.from_text if is_text else setting_values.from_toml
    try:
        return read(setting.type, setting.words, given)
    except InvalidInput as error:
        raise BadConfig(f"{where} is {given!r:.80}; it {error.message}") from None
