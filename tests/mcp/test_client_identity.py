"""Who calls over MCP is the same agent, in the same session, as in the agent's own shell."""

from __future__ import annotations

import os

import pytest

from tenure import process_table
from tenure.agents.identity import recognise
from tenure.mcp.callers import ClientInfo, client_info_of, identify
from tenure.process_table import Process

CODEX = {"sessionId": "01a1dfb3-a572", "threadId": "other"}


@pytest.fixture
def tree(monkeypatch: pytest.MonkeyPatch) -> dict[str, Process]:
    """Agent processes above this one, by name; none unless a test puts one in."""
    above: dict[str, Process] = {}
    monkeypatch.setattr(
        process_table, "nearest", lambda programs, pid=None: next((above[p] for p in programs if p in above), None)
    )
    return above


@pytest.mark.parametrize(
    ("client", "environ", "type"),
    [
        ("claude-code", {"CLAUDECODE": "1", "CLAUDE_CODE_SESSION_ID": "7334e224"}, "claude"),
        ("copilot-cli", {"COPILOT_AGENT_SESSION_ID": "77f9b210"}, "copilot"),
        ("gemini-cli-mcp-client", {"GEMINI_CLI": "1"}, "gemini"),
        ("opencode", {"OPENCODE": "1"}, "opencode"),
    ],
)
def test_a_client_that_hands_its_variables_on_is_the_one_of_its_shell(
    tree: dict[str, Process], client: str, environ: dict[str, str], type: str
) -> None:
    tree[type] = Process(50, 1, 999, (type,))
    who = identify(client_info_of(client, {"progressToken": 1}), environ)
    assert who == recognise(environ)
    assert (who.type, who.role) == (type, "agent")


def test_codex_tells_its_session_with_each_call_and_nothing_by_its_environment(tree: dict[str, Process]) -> None:
    tree["codex"] = Process(50, 1, 999, ("codex",))
    in_shell = recognise({"CODEX_SESSION_ID": "01a1dfb3-a572", "USER": "ann"})
    over_mcp = identify(client_info_of("codex-mcp-client", CODEX), {"USER": "ann"})
    assert over_mcp == in_shell
    assert over_mcp.session == "01a1dfb3-a572"
    assert over_mcp.agent == "codex-a572"


def test_the_name_of_the_client_says_the_type_where_the_environment_does_not(tree: dict[str, Process]) -> None:
    tree["gemini"] = Process(60, 1, 77, ("gemini",))
    who = identify(ClientInfo("gemini-cli-mcp-client"), {"USER": "ann"})
    assert (who.type, who.session, who.agent) == ("gemini", "gemini-60-77", "gemini-6077")


def test_an_agent_started_by_another_is_the_inner_one(tree: dict[str, Process]) -> None:
    tree["codex"] = Process(70, 60, 78, ("codex",))
    outer = {"CLAUDECODE": "1", "CLAUDE_CODE_SESSION_ID": "outer"}
    who = identify(client_info_of("codex-mcp-client", CODEX), outer)
    assert (who.type, who.session) == ("codex", "01a1dfb3-a572")


def test_an_unknown_client_is_a_session_of_its_own_by_its_process(tree: dict[str, Process]) -> None:
    parent = process_table.look_up(os.getppid())
    assert parent is not None
    who = identify(ClientInfo("Some Editor/2"), {"USER": "ann"})
    assert (who.role, who.type) == ("agent", "generic")
    assert who.session == f"some-editor-2-{parent.pid}-{parent.start}"
    assert who.agent == f"some-editor-2-{parent.pid}"
    assert who.process == parent


@pytest.mark.parametrize("client", ["Some Editor", "claude-code", ""])
def test_what_was_named_holds(tree: dict[str, Process], client: str) -> None:
    by_flag = identify(ClientInfo(client), {}, "ann", "s1")
    by_environ = identify(ClientInfo(client), {"TENURE_AGENT": "ann", "TENURE_SESSION": "s1"})
    assert [(who.agent, who.session, who.role) for who in (by_flag, by_environ)] == [("ann", "s1", "agent")] * 2


def test_nothing_in_the_environment_makes_a_caller_more_than_an_agent(tree: dict[str, Process]) -> None:
    assert identify(ClientInfo("x"), {"TENURE_ROLE": "owner"}).role == "agent"


@pytest.mark.parametrize("meta", [None, {}, {"sessionId": 7}, {"sessionId": ""}, {"sessionId": None}])
def test_a_session_that_is_none_is_not_taken(meta: dict[str, object] | None) -> None:
    assert client_info_of("codex-mcp-client", meta).session is None


def test_only_a_client_that_is_known_to_tell_its_session_is_believed() -> None:
    assert client_info_of("claude-code", CODEX).session is None
    assert client_info_of(None, CODEX) == ClientInfo("")
