"""`prime` says where an agent stands, in at most 600 tokens, however much there is to say."""

from __future__ import annotations

from pathlib import Path

import pytest

from tenure.agents.session_brief import MOST, prime
from tenure.agents.tokens import estimate
from tenure.client import Client
from tenure.core.commands import NewTask, Send


@pytest.fixture
def client(tmp_path: Path) -> Client:
    client = Client(str(tmp_path / "store.db"), "default", agent="ann", session="s1", create=True)
    client.init()
    return client


def test_an_empty_project_is_said_in_a_sentence(client: Client) -> None:
    text = prime(client)
    assert "You are agent ann, in project default." in text
    assert "nothing is ready" in text
    assert "`tenure claim [TASK]`" in text


def test_a_held_task_comes_with_its_checkpoint_and_its_mail(client: Client) -> None:
    client.add("Write the parser")
    client.add("Write the printer", priority=5)
    granted = client.claim("A-001")
    assert granted.receipt is not None
    client.progress(granted.receipt, 40, "lexer done")
    client.checkpoint(granted.receipt, {"next_action": "write the tests", "files": ["a.py", "b.py"], "notes": "long"})
    client.register(type="claude")
    Client(client.store.url, "default", agent="bo", session="s2").send("are you there?", "ann")

    lines = prime(client).splitlines()

    held = lines.index("You hold:")
    assert lines[held + 1].startswith("- A-001-write-the-parser (generation 1, lease ")
    assert "at: lexer done" in lines[held + 1]
    assert lines[held + 2] == "  next action: write the tests"
    assert lines[held + 3] == "  files: a.py, b.py"
    assert "Mail, 1 unread; `tenure inbox` reads it:" in lines
    assert "- bo: are you there?" in lines
    assert "- A-002 (critical) Write the printer" in lines


def test_below_a_runner_it_teaches_neither_claims_nor_submits_and_lists_no_other_task(client: Client) -> None:
    client.add("Write the parser")
    client.add("Write the printer")
    client.claim("A-001")
    text = prime(client, has_runner=True)
    assert "- A-001-write-the-parser (generation 1, lease " in text
    assert "submits your last message as its result" in text
    assert "Write the printer" not in text
    assert "`tenure claim" not in text
    assert "end with" not in text


def test_another_sessions_tasks_are_not_mine(client: Client) -> None:
    client.add("Theirs")
    Client(client.store.url, "default", agent="ann", session="other").claim("A-001")
    assert "You hold:" not in prime(client)


@pytest.mark.parametrize("letter", ["x", "日", "-", "7", "\x1b[31m\n"])
def test_it_stays_within_its_budget_with_hundreds_of_tasks_and_mails(client: Client, letter: str) -> None:
    title = (f"{letter} " * 127)[:255]
    client.plan([NewTask(title=title, touches=()) for _ in range(500)])
    client.register(type="claude")
    other = Client(client.store.url, "default", agent="b" * 120, session="s2")
    for _ in range(6):
        granted = client.claim()
        assert granted.receipt is not None
        client.progress(granted.receipt, 1, letter * 160)
        client.checkpoint(granted.receipt, {"next_action": letter * 2000, "blockers": [letter * 300] * 5})
    other.batch([Send(project="default", sender=other.agent, text=letter * 4000, to="ann") for _ in range(100)])

    text = prime(client)

    assert estimate(text) <= MOST
    assert "You hold:" in text
    assert "Mail, 100 unread" in text
    assert "Ready, best first:\n- A-007" in text
    assert "`tenure done -s" in text
    assert "\x1b" not in text


def test_a_long_session_name_does_not_crowd_out_the_rest(tmp_path: Path) -> None:
    client = Client(str(tmp_path / "store.db"), "p" * 128, agent="a" * 128, session="s" * 128, create=True)
    client.init()
    assert estimate(prime(client)) <= MOST


def test_the_start_command_is_named_where_the_shell_may_not_find_it(client: Client) -> None:
    assert "run `/opt/bin/tenure` instead" in prime(client, start="/opt/bin/tenure")
