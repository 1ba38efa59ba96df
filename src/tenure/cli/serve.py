"""`serve`, `mcp`, `key …`: the engine over HTTP, its API keys, and the tools over standard input and output."""

from __future__ import annotations

import os
from argparse import Namespace
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from tenure.cli.answers import say
from tenure.cli.main import Answer, Run, Usage, answered, arg, options, shown
from tenure.cli.option_kinds import port, seconds
from tenure.cli.text_format import plain, table
from tenure.core import commands as c
from tenure.core import limits
from tenure.core import queries as q
from tenure.core.instants import format_instant
from tenure.core.outcomes import Outcome
from tenure.core.tenant_records import HOME

if TYPE_CHECKING:
    from socket import socket

    from tenure.client import Client
    from tenure.config import Settings, Value
    from tenure.engine import Engine
    from tenure.mcp.http import McpApp
    from tenure.server.assembly import Assembly


@options(
    arg("--host", metavar="ADDRESS", help="where to listen (127.0.0.1)"),
    arg("--port", type=port, metavar="N", help="on which port (7420)"),
    arg("--tls-cert", metavar="FILE", help="the certificate, for HTTPS"),
    arg("--tls-key", metavar="FILE", help="its private key"),
    arg("--open", action="store_true", help="open the dashboard in your browser"),
    arg("--workers", type=int, metavar="N", help="how many processes serve, on the one port (1)"),
    arg("--store-wait", type=float, metavar="SECONDS", help="how long to wait for an unavailable database (300)"),
)
def serve(run: Run, given: Namespace) -> int:
    """Serve the store and all its tenants over HTTP: the API, the dashboard, MCP and metrics, until stopped.

    On this machine your commands and the printed link sign you in: each start makes a token, kept
    in a private file of yours. Other users and other machines need API keys: `tenure key create`.
    """
    from tenure.cli.leading import place_of
    from tenure.cli.validation_verbs import validating_of
    from tenure.config import read_settings
    from tenure.server.serve import Site, serve_with_workers
    from tenure.server.serve import serve as serve_

    if given.tenant:
        raise Usage(
            f"serve: --tenant {given.tenant} does not limit the server: it serves every tenant of its store",
            "leave out --tenant; the key of a request picks its tenant",
        )
    names = ("host", "port", "tls_cert", "tls_key", "store_wait", "workers")
    flags = {f"serve.{name}": getattr(given, name) for name in names}
    settings = read_settings(run.folder, run.environ, {"project": given.project, **flags})
    client = _client(run, settings, warns=True)  # first: the project may be read from the store
    site = Site(
        settings,
        {"/mcp": lambda assembly: _mcp(assembly, settings)},
        [lambda info: validating_of(run, lambda text: info(text, part="validating"))],
        place_of(run), os.path.join(run.own_home.folder, "transcripts"),
    )  # fmt: skip
    count = _workers(settings)

    def announce(url: str, link: str | None) -> None:
        _announce(run, url, link, opens=given.open, workers=count)

    if count == 1:
        return serve_(client.engine, site, announce)
    client.close()

    def open_engine(listening: socket | None) -> Engine:
        vars(run).pop("client", None)  # each process has its own
        return _client(run, settings, listening).engine

    import tenure.mcp.http  # noqa: F401  # once for all workers

    try:
        return serve_with_workers(count, open_engine, site, announce)
    finally:
        vars(run).pop("client", None)  # it was closed before the workers began


def _workers(settings: Mapping[str, Value]) -> int:
    from tenure.config import BadConfig

    count = int(settings["serve.workers"].value)
    if not 1 <= count <= limits.WORKERS:
        raise BadConfig(f"serve.workers must be from 1 to {limits.WORKERS} (got {count})")
    return count


def _client(run: Run, settings: Settings, listening: socket | None = None, *, warns: bool = False) -> Client:
    """The store's client; waits for a server that is unavailable for a moment.

    Meanwhile probes and scrapes are answered, at `listening` or where the server will listen.
    """
    from tenure.client.transports.local import SET_ARTIFACTS, keeps_no_artifacts
    from tenure.engine.secrets import plain_values
    from tenure.server.logs import ServerLog
    from tenure.server.serve import waiting_server
    from tenure.server.store_wait import ended_by_signals, open_with_retries
    from tenure.stores.open_store import may_come_back

    log = ServerLog(settings["serve.log_level"].value, settings["serve.log_file"].value)
    try:
        with ended_by_signals(), waiting_server(settings, listening) as waiting:
            client = open_with_retries(
                lambda: _home_client(run), lambda away: may_come_back(run.own_home.url, away),
                settings["serve.store_wait"].value, log.warning, meanwhile=waiting.start,
            )  # fmt: skip
        if warns and (seen := plain_values.seen_in(client.engine)):
            log.warning("; ".join(plain_values.told(seen)), part="secrets")
        if warns and keeps_no_artifacts(run.artifacts, run.own_home.url):
            text = f"artifacts, and results over 1 MiB, are refused: {SET_ARTIFACTS}"
            log.warning(text, part="artifacts")
        return client
    finally:
        log.close()


def _home_client(run: Run) -> Client:
    """The client of the home tenant, whatever tenant other commands here would use."""
    if "client" not in vars(run):
        vars(run)["client"] = run.client_at(run.home.url, tenant=HOME)
    return run.client


def _announce(run: Run, url: str, link: str | None, *, opens: bool, workers: int) -> None:
    say(f"serving {run.own_home.shown} on {url}" + (f" by {workers} workers" if workers > 1 else ""))
    if link is not None and run.is_terminal:  # not into a log, which others may read
        say(f"dashboard: {link}")
    if opens:
        import webbrowser

        if not webbrowser.open(link or url):
            say("no browser could be opened; use the address above")


def _mcp(assembly: Assembly, settings: Mapping[str, Value]) -> McpApp:
    """The tools over HTTP, for signed-in callers."""
    from tenure.cli.answers import kept_crash
    from tenure.mcp.http import McpApp
    from tenure.mcp.remote_callers import RemoteCallers

    service = assembly.service
    project = settings["project"].value
    observers = (assembly.tool_ran, assembly.tool_read)
    callers = RemoteCallers(
        service.engine,
        service.threads.batcher,
        settings,
        project,
        *observers,
        engine_of=assembly.engines.find,
        batcher_of=assembly.tenants.batcher_of,
        is_apart=assembly.tenants.is_apart,
    )
    worker = assembly.worker
    app = McpApp(callers, lambda scope: scope["state"]["principal"], kept_crash, assembly.tool_claimed, worker)
    if worker is not None:
        worker.answer_requests(app.take_over)
    return app


@options()
def mcp(run: Run, given: Namespace) -> int:
    """Serve MCP over standard input and output, for one agent.

    Agent CLIs start it themselves; `tenure setup` writes the entry. It finds the store as every command does, else in
    the folders that the client works in, and may be started before there is one.
    """
    from tenure.mcp.early_replies import EarlyInput, recorded

    early = EarlyInput(recorded())  # answers the client's first requests while the next line loads the `mcp` package
    from tenure.cli.answers import kept_crash
    from tenure.mcp.callers import StartOptions
    from tenure.mcp.stdio_server import serve

    started_with = StartOptions(
        run.folder, run.environ, is_fixed=given.dir is not None, project=given.project, agent=given.agent,
        session=given.session, tenant=given.tenant,
    )  # fmt: skip
    return serve(started_with, kept_crash, early)


@options(
    arg("name", help="its name, as in ci or laptop-of-ann"),
    arg("--role", default="agent", metavar="ROLE", help="viewer, agent, member, admin or owner (agent)"),
    arg("--user", metavar="NAME", help="the person that it acts for (the key's name)"),
    arg("--for-agent", metavar="NAME", help="for role agent: the one agent it may act as"),
    arg("--only", action="append", default=[], metavar="PROJECT", help="good for this project (may be repeated)"),
    arg(
        "--can",
        action="append",
        default=[],
        metavar="CAPABILITY",
        help="checker: it may take and judge validations; leader: its agents may lead projects that let agents lead",
    ),
    arg("--expires", type=seconds, metavar="DURATION", help="its lifetime, as in 90d (no end)"),
)
def create_key(run: Run, given: Namespace) -> Answer:
    """Create an API key for `tenure serve`. It is shown once; the store keeps a digest of it."""
    for option, right in (("project", "--only"), ("agent", "--for-agent")):
        if getattr(given, option):
            raise Usage(
                f"key create: --{option} does not limit the key",
                f"`{right} {getattr(given, option)}` does; leave out --{option}",
            )
    command = c.CreateKey(
        name=given.name, role=given.role, user=given.user, agent=given.for_agent, projects=tuple(given.only),
        capabilities=tuple(given.can), expires_in=given.expires,
    )  # fmt: skip
    return _secret(run, run.client.do(command))


@options(arg("--all", action="store_true", help="also revoked and expired ones"))
def list_keys(run: Run, given: Namespace) -> Answer:
    """List the store's keys, without their secrets."""
    return shown(run.client.query(q.Keys(ended=given.all)), _keys)


@options(
    arg("key", help="its id, or its name"),
    arg("--grace", type=seconds, default=3600.0, metavar="DURATION", help="how long the old secret stays valid (1h)"),
)
def rotate_key(run: Run, given: Namespace) -> Answer:
    """Give a key a new secret. After a leak: --grace 0."""
    return _secret(run, run.client.do(c.RotateKey(key=given.key, grace=given.grace)))


@options(arg("key", help="its id, or its name"))
def revoke_key(run: Run, given: Namespace) -> Answer:
    """Revoke a key for good. Servers refuse it within two seconds."""
    return answered(run.client.do(c.RevokeKey(key=given.key)))


def _secret(run: Run, outcome: Outcome) -> Answer:
    if outcome.secret is None:
        return answered(outcome)
    # alone where a program reads it: KEY=$(tenure key create ci)
    note = f"\n  {outcome.message}; {outcome.hint}" if run.is_terminal else ""
    return answered(outcome, outcome.secret + note)


def _keys(found: list[dict[str, Any]]) -> str:
    rows = [
        (
            k["id"],
            plain(k["name"]),
            k["role"],
            ", ".join(k["capabilities"]),
            k["agent"],
            ", ".join(k["projects"]) or "all",
            k["status"],
            k["used_at"] and format_instant(k["used_at"])[:16],
            k["expires_at"] and format_instant(k["expires_at"])[:10],
        )
        for k in found
    ]
    return table(rows, ("key", "name", "role", "can", "agent", "projects", "status", "used", "expires")) or "no keys"
