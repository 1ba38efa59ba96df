"""The page on the HTTP API: its walk is run against a real server, its table is the document's."""

from __future__ import annotations

import re
import tempfile
from pathlib import Path

from tenure.client import Client
from tenure.server.docs_page import operations
from tenure.server.openapi import document
from tenure.server.openapi.operations import THEMES
from tests.docs import sessions
from tests.docs.tables import table
from tests.servers import processes
from tests.servers.tenure import TenureServer

HERE = Path(__file__).parent
PORT = "localhost:7420"
FILE = "127.0.0.1-7420"  # of the token


def page() -> str:
    return walked((HERE / "http-api.md").read_text()) + routes()


def walked(text: str) -> str:
    """The page with the output of its commands; `$RECEIPT` is the receipt of the last claim."""
    with tempfile.TemporaryDirectory() as home:
        store = str(Path(home) / "tenure.db")
        Client(store, create=True).close()
        environ = sessions.environment(Path(home))
        processes.found_or_installed("curl")  # what the page calls
        server = TenureServer(store, settings={"TENURE_SERVE_AUTH": "auto", "HOME": home, "USER": "mia"})
        try:
            server.start()

            def play(block: re.Match[str]) -> str:
                return (
                    "```console\n"
                    + "".join(_played(line, server, Path(home), environ) for line in block[1].splitlines())
                    + "```"
                )

            return sessions.BLOCK.sub(play, text)
        finally:
            server.stop()


def _played(line: str, server: TenureServer, folder: Path, environ: dict[str, str]) -> str:
    command = (
        line.removeprefix("$ ").replace(PORT, f"127.0.0.1:{server.port}").replace(FILE, f"127.0.0.1-{server.port}")
    )
    if assigned := re.match(r"([A-Z]+)=", command):
        environ[assigned[1]] = sessions.run_raw(f'{command}; printf %s "${assigned[1]}"', folder, environ)
        return f"{line}\n"
    said = sessions.run_raw(command, folder, environ)
    for receipt in re.findall(r'"receipt": ?"([^"]+)"', said):
        environ["RECEIPT"] = receipt
    return f"{line}\n{_even(sessions.even(said, folder)).rstrip()}\n"


def _even(text: str) -> str:
    """What differs from run to run on this page alone."""
    for differs, always in (
        (r"\d{4}-\d\d-\d\dT[\d:.]+Z", "2026-03-01T12:00:00.000000Z"),
        (r"\bwp-([\w-]+)-[0-9a-f]{6}\b", r"wp-\1-9c4e1d"),
        (r"\bevt_[0-9A-Z]{26}", "evt_01…"),
        (r'("(?:request_)?trace_id":)"\w+"', r'\1"4bf9…"'),
        (r'("(?:retry_in|duration_ms)":)[\d.]+', r"\g<1>300"),
        (r'("sequence":|^id: )\d+', r"\g<1>42"),
    ):
        text = re.sub(differs, always, text, flags=re.M)
    return text


def routes() -> str:
    """All of them, by theme."""
    found: dict[str, list[tuple[str, ...]]] = {name: [] for name in THEMES}
    for method, path, says in operations(document()):
        role = says["x-tenure-role"] or "(open)"
        found[says["tags"][0]].append((f"`{method.upper()}`", f"`{path}`", role, says["summary"]))
    head = ("", "path", "role", "")
    return "".join(f"\n### {name.capitalize()}\n\n{table(head, rows)}" for name, rows in found.items())
