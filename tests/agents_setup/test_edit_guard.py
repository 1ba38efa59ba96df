"""Before an edit: denied when the session's claim is lost, or the file is another's, if the project wants that."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tenure.client import Client
from tests.agents_setup.claude_code import Agent


def denied(answer: dict[str, Any]) -> str:
    said = answer.get("hookSpecificOutput", {})
    assert not said or said["permissionDecision"] == "deny"
    return str(said.get("permissionDecisionReason", ""))


def test_edits_are_guarded_only_where_the_project_wants_it(agent: Agent, owner: Client) -> None:
    agent.client(agent="bo", session="other").reserve("src/**")
    edit = {"tool_name": "Edit", "tool_input": {"file_path": "src/a.py"}}
    assert agent("PreToolUse", **edit) == {}
    agent.wants("guard_edits")
    assert "src/a.py is held by agent bo (src/**)" in denied(agent("PreToolUse", **edit))


@pytest.mark.parametrize(
    ("tool", "given"),
    [
        ("Edit", {"file_path": "{root}/src/a.py"}),
        ("Write", {"file_path": "src/new.py", "content": "x"}),
        ("NotebookEdit", {"notebook_path": "src/n.ipynb"}),
        ("edit", {"filePath": "{root}/src/a.py"}),
        ("create", {"path": "src/a.py"}),
        ("write_file", {"file_path": "./docs/../src/a.py"}),
        (
            "apply_patch",
            {"command": "*** Begin Patch\n*** Add File: free.py\n*** Update File: src/a.py\n*** End Patch"},
        ),
        ("apply_patch", "*** Begin Patch\n*** Update File: b.py\n*** Move to: src/b.py\n*** End Patch"),
        ("Bash", {"command": "apply_patch <<'E'\n*** Begin Patch\n*** Delete File: src/a.py\n*** End Patch\nE"}),
    ],
)
def test_a_file_that_anothers_claim_touches_is_denied_to_every_editing_tool(
    agent: Agent, owner: Client, tool: str, given: Any
) -> None:
    agent.wants("guard_edits")
    owner.add("theirs", touches=("src/**",))
    agent.client(agent="bo", session="other").claim("A-001")
    given = json.loads(json.dumps(given).replace("{root}", str(agent.folder)))
    why = denied(agent("PreToolUse", tool_name=tool, tool_input=given))
    assert "is held by agent bo for A-001-theirs (src/**)" in why


@pytest.mark.parametrize(
    ("tool", "given"),
    [
        ("Edit", {"file_path": "docs/a.md"}),
        ("Edit", {"file_path": "/etc/hosts"}),
        ("Read", {"file_path": "src/a.py"}),
        ("Bash", {"command": "cat src/a.py"}),
        ("Edit", {"file_path": 3}),
        ("Edit", None),
        ("Edit", [1]),
    ],
)
def test_other_files_and_other_tools_are_not_denied(agent: Agent, owner: Client, tool: str, given: Any) -> None:
    agent.wants("guard_edits")
    agent.client(agent="bo", session="other").reserve("src/**")
    assert agent("PreToolUse", tool_name=tool, tool_input=given) == {}


def test_ones_own_files_are_not_denied(agent: Agent, owner: Client) -> None:
    agent.wants("guard_edits")
    owner.add("mine", touches=("src/**",))
    agent.claim()
    agent.client().reserve("docs/**")
    for file in ("src/a.py", "docs/a.md"):
        assert agent("PreToolUse", tool_name="Edit", tool_input={"file_path": file}) == {}


def test_a_session_that_has_lost_its_claim_may_not_edit_until_it_moves_on(agent: Agent, owner: Client) -> None:
    agent.wants("guard_edits")
    edit = {"tool_name": "Edit", "tool_input": {"file_path": "free.py"}}
    owner.add("one")
    owner.add("two")
    assert agent("PreToolUse", **edit) == {}  # it holds nothing, and has lost nothing
    agent.claim("A-001")
    assert agent("PreToolUse", **edit) == {}
    agent.taken_over("A-001")
    assert "you no longer hold A-001-one" in denied(agent("PreToolUse", **edit))
    agent("PostToolUse")  # which ends the receipt
    assert "you no longer hold A-001-one" in denied(agent("PreToolUse", **edit))
    receipt = agent.claim("A-002")
    assert agent("PreToolUse", **edit) == {}
    agent.receipts.settle(receipt, agent.client().submit(receipt))
    assert agent("PreToolUse", **edit) == {}


def test_leaving_ends_the_denials(agent: Agent, owner: Client) -> None:
    agent.wants("guard_edits")
    owner.add("one")
    agent.claim()
    agent.taken_over("A-001")
    edit = {"tool_name": "Edit", "tool_input": {"file_path": "free.py"}}
    assert denied(agent("PreToolUse", **edit))
    agent.receipts.forget()  # as `tenure leave` does
    assert agent("PreToolUse", **edit) == {}


def test_a_file_in_a_linked_worktree_counts_as_the_same_file(agent: Agent, owner: Client) -> None:
    agent.wants("guard_edits")
    agent.client(agent="bo", session="other").reserve("src/**")
    tree = agent.home / "worktrees" / "x"
    (tree / "src").mkdir(parents=True)
    (tree / ".git").write_text("gitdir: elsewhere\n")
    why = denied(agent("PreToolUse", tool_name="Edit", tool_input={"file_path": str(tree / "src/a.py")}))
    assert "src/a.py is held by agent bo" in why
