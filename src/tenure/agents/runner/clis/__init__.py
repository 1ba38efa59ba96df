"""CLI agents that run without a terminal: how each is started and its output read. One module each."""

from __future__ import annotations

import shlex

from tenure.agents.runner.clis.cli import Cli
from tenure.core.errors import InvalidInput

KNOWN = {
    "claude": "tenure.agents.runner.clis.claude_cli:Claude",
    "codex": "tenure.agents.runner.clis.codex_cli:Codex",
    "gemini": "tenure.agents.runner.clis.gemini_cli:Gemini",
    "opencode": "tenure.agents.runner.clis.opencode_cli:OpenCode",
    "copilot": "tenure.agents.runner.clis.copilot_cli:Copilot",
}


def cli_for(text: str) -> tuple[Cli, tuple[str, ...]]:
    """The agent that `--agent` names, and the words that the user adds to its own: `claude --effort high`.

    Any other text is a command, split as a shell would and run without one.
    """
    try:
        words = tuple(shlex.split(text))
    except ValueError as error:
        raise InvalidInput(f"--agent {text!r}: {error}", "mind the quotes") from None
    if not words:
        raise InvalidInput("--agent: is empty", f"one of {', '.join(KNOWN)}, or a command")
    if words[0] not in KNOWN:
        from tenure.agents.agent_types import plugged_in
        from tenure.agents.runner.clis.command_cli import Command

        made = plugged_in(words[0])
        return (Command(words), ()) if made is None or made.cli is None else (made.cli(), words[1:])
    from importlib import import_module

    module, _, name = KNOWN[words[0]].partition(":")
    cli: Cli = getattr(import_module(module), name)()
    return cli, words[1:]
