"""`serve` and `mcp`: the engine over HTTP, and the tools over standard input and output."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Mapping
from typing import TYPE_CHECKING

from tenure.cli.main import Run, arg, options
from tenure.cli.terminal_output import say

if TYPE_CHECKING:
    from tenure.client import Client
    from tenure.config import Value
    from tenure.mcp.http import McpApp
    from tenure.server.assembly import Assembly


@options(
    arg("--host", metavar="ADDRESS", help="where to listen (127.0.0.1)"),
    arg("--port", type=int, metavar="N", help="on which port (7420)"),
    arg("--tls-cert", metavar="FILE", help="the certificate, for HTTPS"),
    arg("--tls-key", metavar="FILE", help="its private key"),
    arg("--store-wait", type=float, metavar="SECONDS", help="how long to wait for an unavailable PostgreSQL (300)"),
)
def serve(run: Run, given: Namespace) -> int:
    """Serve the store over HTTP: the API, the dashboard, MCP and metrics, until stopped.

    On this machine your commands and the printed link sign you in: each start makes a token, kept
    in a private file of yours. Other users and other machines need API keys: `tenure key create`.
    """
    from tenure.cli.validation_verbs import validating_of
    from tenure.config import read_settings
    from tenure.server.serve import serve as serve_

    flags = {f"serve.{name}": getattr(given, name) for name in ("host", "port", "tls_cert", "tls_key", "store_wait")}
    settings = read_settings(run.folder, run.environ, {"project": given.project, **flags})
    return serve_(
        _client(run, settings).engine, settings, lambda url, link: _say(run, url, link),
        {"/mcp": lambda assembly: _mcp(assembly, settings)},
        [lambda info: validating_of(run, lambda text: info(text, part="validating"))],
    )  # fmt: skip


def _client(run: Run, settings: Mapping[str, Value]) -> Client:
    """The store's client; waits for a server that is unavailable for a moment."""
    from tenure.server.logs import ServerLog
    from tenure.server.store_wait import ended_by_signals, open_with_retries
    from tenure.stores.open_store import may_come_back

    log = ServerLog(settings["serve.log_level"].value, settings["serve.log_file"].value)
    try:
        with ended_by_signals():
            return open_with_retries(
                lambda: run.client, lambda away: may_come_back(run.own_home.url, away),
                settings["serve.store_wait"].value, log.warning,
            )  # fmt: skip
    finally:
        log.close()


def _say(run: Run, url: str, link: str | None) -> None:
    say(f"serving {run.own_home.shown} on {url}")
    if link is not None and run.is_terminal:  # not into a log, which others may read
        say(f"dashboard: {link}")


def _mcp(assembly: Assembly, settings: Mapping[str, Value]) -> McpApp:
    """The tools over HTTP, for signed-in callers."""
    from tenure.cli.crash import kept_crash
    from tenure.mcp.http import McpApp
    from tenure.mcp.remote_callers import RemoteCallers

    service = assembly.service
    callers = RemoteCallers(service.engine, service.gatherer, settings, settings["project"].value, assembly.observe)
    return McpApp(callers, lambda scope: scope["state"]["principal"], kept_crash, service.claim_or_wait)


@options()
def mcp(run: Run, given: Namespace) -> int:
    """Serve MCP over standard input and output, for one agent.

    Agent CLIs start it themselves; `tenure setup` writes the entry. It finds the store as every command does, else in
    the folders that the client works in, and may be started before there is one.
    """
    from tenure.cli.crash import kept_crash
    from tenure.mcp.callers import StartOptions
    from tenure.mcp.stdio_server import serve

    started_with = StartOptions(
        run.folder, run.environ, is_fixed=given.dir is not None, project=given.project, agent=given.agent,
        session=given.session,
    )  # fmt: skip
    return serve(started_with, kept_crash)
