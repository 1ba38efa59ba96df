"""The page on the MCP server, from its tools."""

from __future__ import annotations

import json

from tenure.mcp import server
from tenure.mcp.arguments import MOST_WAITED, schema
from tenure.mcp.http import IDLE
from tenure.mcp.replies import DIRECTIVES
from tenure.mcp.tools import TOOLS
from tests.docs.tables import table
from tests.mcp.tokens import tokens

HEAD = """\
# MCP

`tenure mcp` serves seven tools over standard input and output. Agent CLIs start it themselves, one process for each of
their sessions; an entry for it is all they need:

```json
{"mcpServers": {"tenure": {"command": "tenure", "args": ["mcp"]}}}
```

Codex begins its first turn after about a second, with or without the tools; `required = true` in its entry makes it
wait for them.

- **Who calls** is the same agent and session as in the agent's own shell, so that commands and tools see the same
  claims, and hooks renew what a tool has claimed. The role is always `agent`. `--agent`, `--session`, `TENURE_AGENT`
  and `TENURE_SESSION` say otherwise.
- **The store** is found from the folder it is started in, by `-C` or by `TENURE_URL`, as for every command; else in
  the folders that the client says it works in (its *roots*). It may be started before there is one: the tools say so,
  and work after `tenure init`.
- **Claims** get the lease of the setting `lease` unless another is asked for; every call that presents a receipt
  renews it. Claims outlive the server.

## Over HTTP

`tenure serve` has the same tools at `/mcp`, as streamable HTTP, for agents on any machine and without a process for
each. They sign in as for the API:

```
claude mcp add --transport http tenure https://tenure.example.com/mcp --header "Authorization: Bearer $TENURE_KEY"
```

- **Who calls** is the agent that the key is for; with a person's key, and on a loopback server that needs none, the
  header `Tenure-Agent`, else a name made from what the client calls itself. The session is the header
  `Tenure-Session`, else the connection. Nobody has more rights here than an agent.
- **The project** is `?project=NAME` behind the URL, the header `Tenure-Project`, the only one that the key is for, or
  the server's own.
- **Receipts** are the agent's to keep: none is written to the server's disk. `show` with `what=held` gives a connection
  its receipts again for as long as it lasts; one that is new is told what its session holds, without them.
- **Sessions** of the protocol stay with the process that began them and are forgotten after {hours} h of silence; a
  client that is told 404 begins a new one. The newer protocol, without a handshake, has none. There is no stream beside
  the answers (`GET` is 405), since there is nothing to send on it.
- **A claim that waits** costs no thread. Who hangs up is given nothing, or gives back what it was just given.
- **Working trees** are not looked at: `done.clean_tree` and `done.commit` are for agents on the machine itself.
"""

TOOLS_HEAD = """\

## Tools

Their names, descriptions and input schemas come to at most {cost} tokens. Durations are seconds. There are no output
schemas, which would cost as much again.
"""

RESULTS = """\

## Results

The structured content of a result is the [outcome](outcomes.md) as `--json` prints it, with the task cut down to what
its holder needs, and `next`: the way on. The text says the same, a line a field, for clients that show no structured
content to their model. Looks have their rows in `tasks`, `messages` or `generations`; errors are
`{"error": {"code", "message", "hint", "definite"}}`, with the codes of [errors](errors.md).

A result is marked as an error where the agent must change its course: a stale receipt, a refused result, bad input, a
name that is not there. That there is nothing to claim, or that another holds it, is an answer.

A `directive` other than `continue` asks something of the holder:

"""


def page() -> str:
    tools = [(name, tool.text, schema(tool.takes)) for name, tool in TOOLS.items()]
    cost = sum(tokens(f"{name} {text}") + tokens(json.dumps(made, separators=(",", ":"))) for name, text, made in tools)
    parts = [HEAD.replace("{hours}", f"{IDLE / 3600:g}"), TOOLS_HEAD.format(cost=cost)]
    for name, text, made in tools:
        required = made.get("required", ())
        rows = [
            (f"`{field}`" + (" (required)" if field in required else ""), _type(part), _meaning(part))
            for field, part in made["properties"].items()
        ]
        parts.append(f"\n### `{name}`\n\n{text}\n\n" + table(("argument", "type", "meaning"), rows))
    parts.append(
        f"\nA claim waits at most {MOST_WAITED:.0f} s, and no other call waits for it. One that the client cancels\n"
        "takes nothing; what it had just been given is given back.\n"
    )
    parts.append(RESULTS + table(("directive", "next"), [(f"`{d}`", text) for d, text in DIRECTIVES.items()]))
    parts.append(
        "\n## Resources and prompts\n\n"
        + table(
            ("name", "what it gives"),
            [
                ("`tenure://status`", "what `show` with `what=status` gives"),
                ("`tenure://task/{key}`", "what `show` gives for the task"),
                ("prompt `work`", "the working loop, below; with `task` it begins with that one"),
            ],
        )
        + f"\n```text\n{server.work(None)}```\n"
    )
    return "".join(parts)


def _type(part: dict[str, object]) -> str:
    return f"`{part['type']}`" + (" of `string`" if part["type"] == "array" else "")


def _meaning(part: dict[str, object]) -> str:
    if "enum" in part:
        return ", ".join(f"`{name}`" for name in part["enum"])  # type: ignore[attr-defined]
    return str(part.get("description", "")).replace("*", "\\*")
