"""Transcripts over HTTP: line by line while an agent works, from its claim afterwards, and no other file."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest

from tenure.client import Client
from tests.servers.tenure import TenureServer


@pytest.fixture(scope="module")
def server() -> Iterator[TenureServer]:
    ours = TenureServer("")
    (ours.folder / ".tenure").mkdir(mode=0o700)
    ours.store = str(ours.folder / ".tenure" / "tenure.db")
    with Client(ours.store, "shop", create=True) as client:
        client.init()
    with ours as running:
        yield running


@pytest.fixture
def place(server: TenureServer) -> Path:
    """The folder in which `tenure run` would keep its files."""
    return server.folder / ".tenure"


@pytest.fixture
def client(server: TenureServer) -> Iterator[Client]:
    with Client(server.store, "shop", agent="ann", session="s") as beside:
        yield beside


def read(server: TenureServer, key: str, **query: int) -> dict[str, Any]:
    asked = "&".join(f"{name}={value}" for name, value in query.items())
    with urlopen(f"{server.url}/api/v1/projects/shop/tasks/{key}/transcript?{asked}") as answer:
        found: dict[str, Any] = json.load(answer)
        return found


def line(text: str, origin: str = "agent") -> str:
    return json.dumps({"at": 1.5, "from": origin, "text": text}) + "\n"


def test_only_new_lines_are_read_while_the_agent_works(server: TenureServer, place: Path, client: Client) -> None:
    key = str((client.add("Write the parser").task or {})["key"])
    receipt = str(client.claim(key).receipt)
    folder = place / "transcripts" / "shop" / key
    folder.mkdir(parents=True)
    file = folder / "gen-1.jsonl"
    file.write_text(line("I begin.") + line("starts", "runner") + '{"at": 2, "fro')
    first = read(server, key)
    assert [(one["from"], one["text"]) for one in first["lines"]] == [("agent", "I begin."), ("runner", "starts")]
    assert first["is_live"]
    with file.open("a") as more:
        more.write('m": "agent", "text": "half a line"}\n' + line("I go on."))
    second = read(server, key, after=first["next"])
    assert [one["text"] for one in second["lines"]] == ["half a line", "I go on."]
    client.submit(receipt, "done")
    assert read(server, key, after=second["next"]) == {
        "key": key, "generation": 1, "is_live": False, "next": second["next"], "lines": [],
    }  # fmt: skip


def test_another_projects_transcript_of_the_same_key_is_not_read(
    server: TenureServer, place: Path, client: Client
) -> None:
    key = str((client.add("Share a key").task or {})["key"])
    client.claim(key)
    folder = place / "transcripts" / "bank" / key
    folder.mkdir(parents=True)
    (folder / "gen-1.jsonl").write_text(line("the password"))
    assert read(server, key)["lines"] == []


def test_a_link_out_of_the_folder_is_not_followed(server: TenureServer, place: Path, client: Client) -> None:
    key = str((client.add("Read a secret").task or {})["key"])
    client.claim(key)
    secret = place.parent / "secret.jsonl"
    secret.write_text(line("the password"))
    folder = place / "transcripts" / "shop" / key
    folder.mkdir(parents=True)
    (folder / "gen-1.jsonl").symlink_to(secret)
    assert read(server, key)["lines"] == []


def test_a_generation_without_a_transcript_has_no_lines(server: TenureServer, client: Client) -> None:
    key = str((client.add("Say nothing").task or {})["key"])
    assert read(server, key) == {"key": key, "generation": 0, "is_live": False, "next": 0, "lines": []}
