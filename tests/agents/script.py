"""What the mock model plays: a list of steps, written once and spoken in every dialect.

A step names what to do (`Shell`, `Mcp`, `Say`), not the tool's name: each agent CLI calls its shell and its MCP
tools otherwise, so the name is looked up among the tools that the CLI offers with its request.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

Results = Sequence[str]  # what the calls so far gave back, in order
Arguments = Mapping[str, Any] | Callable[[Results], Mapping[str, Any]]


class NoSuchTool(AssertionError):
    """The script calls a tool that this agent CLI does not offer to its model."""


@dataclass(frozen=True)
class Usage:
    """Tokens of one answer, each kind counted once; a dialect adds them up as its vendor does."""

    fresh: int = 100
    cached: int = 40
    output: int = 20


@dataclass(frozen=True)
class Say:
    text: str


@dataclass(frozen=True)
class Shell:
    """Run a command in the agent's own shell tool."""

    command: str | Callable[[Results], str]


@dataclass(frozen=True)
class Mcp:
    """Call a tool of an MCP server that the agent has connected."""

    tool: str
    arguments: Arguments = field(default_factory=dict)
    server: str = "tenure"


@dataclass(frozen=True)
class Tool:
    """Call a tool of the agent by its own name, which is another one in every CLI."""

    name: str
    arguments: Arguments = field(default_factory=dict)


@dataclass(frozen=True)
class Refuse:
    """Answer with an HTTP error, always, or the first few times."""

    status: int
    times: int | None = None
    retry_after: int | None = None


@dataclass(frozen=True)
class Wait:
    """Say nothing until the test is over: the agent waits for its model, and may be killed meanwhile."""


Step = Say | Shell | Mcp | Tool | Refuse | Wait


@dataclass(frozen=True)
class Offered:
    """A tool as the request offers it; some dialects put the tools of an MCP server into a namespace."""

    name: str
    namespace: str = ""
    description: str = ""


@dataclass(frozen=True)
class Asked:
    """One request, read out of its dialect."""

    dialect: str
    model: str
    system: str
    said: tuple[str, ...]
    tools: tuple[Offered, ...]
    results: tuple[str, ...]
    is_stream: bool
    body: Mapping[str, Any]

    @property
    def words(self) -> str:
        """Everything the model was shown as text: instructions, reminders, prompt."""
        return "\n".join((self.system, *self.said))

    @property
    def tool_names(self) -> tuple[str, ...]:
        return tuple(each.namespace + each.name for each in self.tools)


@dataclass(frozen=True)
class Call:
    id: str
    name: str
    namespace: str
    arguments: Mapping[str, Any]


@dataclass(frozen=True)
class Answer:
    """What the model says back: a text, or one call."""

    id: str
    usage: Usage
    text: str = ""
    call: Call | None = None


# Every argument beyond the command is one that the CLI's schema requires.
SHELLS: dict[str, Callable[[str], dict[str, Any]]] = {
    "Bash": lambda command: {"command": command, "description": "run a command"},
    "bash": lambda command: {"command": command, "description": "run a command"},
    "exec_command": lambda command: {"cmd": command},
    "shell_command": lambda command: {"command": command},
    "run_shell_command": lambda command: {"command": command, "description": "run a command"},
}


def chosen_call(step: Shell | Mcp | Tool, asked: Asked, number: int) -> Call:
    """The call of `step` by the names that this request offers; NoSuchTool names what there is."""
    if isinstance(step, Shell):
        offered = next((each for each in asked.tools if each.name in SHELLS), None)
        command = step.command(asked.results) if callable(step.command) else step.command
        arguments: Mapping[str, Any] = SHELLS[offered.name](command) if offered else {}
    else:
        offered = next((each for each in asked.tools if _is_meant(step, each)), None)
        arguments = step.arguments(asked.results) if callable(step.arguments) else step.arguments
    if offered is None:
        raise NoSuchTool(f"{step} is not among the tools offered: {', '.join(asked.tool_names)}")
    return Call(f"call_{number}", offered.name, offered.namespace, arguments)


def _is_meant(step: Mcp | Tool, offered: Offered) -> bool:
    if isinstance(step, Tool):
        return offered.name == step.name
    before, found, after = (offered.namespace + offered.name).rpartition(step.server)
    return bool(found) and after.strip("_-.") == step.tool and before.strip("_-.") in {"", "mcp"}


def as_text(content: Any) -> str:
    """The text inside a content value of any dialect: a string, a block, a list of blocks, or plain JSON."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "\n".join(as_text(each) for each in content)
    if isinstance(content, Mapping):
        for key in ("text", "output", "content"):
            if key in content:
                return as_text(content[key])
        return json.dumps(content)
    return "" if content is None else json.dumps(content)
