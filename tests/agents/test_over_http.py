"""Agents that have no store: the tools of a server, at its /mcp."""

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from tenure.client import Client
from tests.agents.clis import Cli
from tests.agents.script import Mcp, Say
from tests.agents.stage import Stage
from tests.agents.views import looked_up
from tests.server.mcp.conftest import Served

RECEIPT = re.compile(r"[A-Z]+-\d+@\d+:[0-9a-f]{40}")
HEADERS = {"Authorization": "Bearer olaf"}


def _json(server: Mapping[str, Any], under: str = "mcpServers") -> Callable[[str], str]:
    def text(url: str) -> str:
        named = {name: url if value == "URL" else value for name, value in server.items()}
        return json.dumps({under: {"tenure": named}})

    return text


# Where each of them reads the entry of a server that is there already, and how it is written.
ENTRIES: dict[str, tuple[str, Callable[[str], str]]] = {
    "claude": (".mcp.json", _json({"type": "http", "url": "URL", "headers": HEADERS})),
    "copilot": (".mcp.json", _json({"type": "http", "url": "URL", "headers": HEADERS, "tools": ["*"]})),
    "gemini": (".gemini/settings.json", _json({"httpUrl": "URL", "headers": HEADERS, "trust": True})),
    "opencode": ("opencode.json", _json({"type": "remote", "url": "URL", "headers": HEADERS, "enabled": True}, "mcp")),
    "codex": (
        ".codex/config.toml",
        lambda url: f'[mcp_servers.tenure]\nurl = "{url}"\nbearer_token_env_var = "TENURE_KEY"\nrequired = true\n',
    ),
}


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Served]:
    store = tmp_path / "store" / "tenure.db"
    store.parent.mkdir()
    with Client(str(store), create=True) as owner:
        owner.init()
        owner.add("Write a haiku")
    place = Served(store)
    place.start()
    yield place
    place.stop()


def last_receipt(results: Sequence[str]) -> str:
    found = RECEIPT.findall("\n".join(results))
    assert found, results
    return found[-1]


def test_a_task_is_claimed_and_finished_on_a_server(stage: Callable[..., Stage], cli: Cli, server: Served) -> None:
    agent = stage(
        *looked_up(cli.name, "claim", "finish"),
        Mcp("claim"),
        Mcp("finish", lambda results: {"receipt": last_receipt(results), "outcome": "done", "summary": "from afar"}),
        Say("All done."),
    )
    name, text = ENTRIES[cli.name]
    file = agent.folder / name
    file.parent.mkdir(exist_ok=True)
    file.write_text(text(server.url))
    agent.variables["TENURE_KEY"] = "olaf"
    agent.trust()

    ran = agent.start("Work on the task.")

    assert ran.code == 0, ran.err
    with Client(str(server.store)) as owner:
        (held,) = owner.history("A-001")
        assert (held["result_accepted"], held["user"]) == (True, "olaf"), agent.model.last.results
        assert held["agent"].startswith(f"{cli.name}-")
        assert [one["type"] for one in owner.agents()] == [cli.name]
