"""What a person sees of an agent's work: the answers of `tenure … --json`, and the session that an agent reports."""

import json
from collections.abc import Callable
from typing import Any

from tests.agents.codex_hooks import trust_hooks
from tests.agents.script import Step, Tool
from tests.agents.stage import Ran, Stage

# Where each CLI prints the session that it also gives to its shell; the others give none.
SESSION_LINES = {
    "claude": ("session_id", {}),
    "codex": ("thread_id", {"type": "thread.started"}),
    "copilot": ("sessionId", {"type": "result"}),
}


def at_work(stage: Stage, *titles: str) -> Callable[..., Any]:
    """A store in the stage's repository with these tasks; gives `tenure(verb, …)`, which answers as JSON does."""

    def tenure(*words: str) -> Any:
        ran = stage.run("tenure", *words, "--json")
        assert ran.code == 0, ran.out + ran.err
        return json.loads(ran.out)

    tenure("init")
    for title in titles:
        tenure("add", title)
    return tenure


def session_of(agent: str, ran: Ran) -> str | None:
    """The session that the agent printed; None for those whose commands cannot know it."""
    if agent not in SESSION_LINES:
        return None
    field, where = SESSION_LINES[agent]
    return next(line[field] for line in ran.lines if field in line and where.items() <= line.items())


def set_up(stage: Stage, *titles: str) -> Callable[..., Any]:
    """A store with these tasks, the agent's files, and what a person has to click once."""
    tenure = at_work(stage, *titles)
    tenure("setup", stage.cli.name)
    stage.trust()
    if stage.cli.name == "codex":
        assert trust_hooks(stage)
    return tenure


def looked_up(agent: str, *tools: str) -> tuple[Step, ...]:
    """Claude Code gives its model only the names of MCP tools; the model looks them up before it calls them."""
    if agent != "claude":
        return ()
    query = "select:" + ",".join(f"mcp__tenure__{name}" for name in tools)
    return (Tool("ToolSearch", {"query": query, "max_results": 9}),)
