"""Who speaks over MCP: the same agent and session as in the agent's own shell, as far as that can be known.

Claude Code, Copilot CLI, Gemini CLI and OpenCode give a server the variables that they give a shell. Codex gives it an
empty environment, and its session's id with each call. What clients call themselves fills the gaps.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from tenure.agents import process_table
from tenure.agents.identity import Who, recognise
from tenure.agents.known_agents import KNOWN, Known, marked

_SESSION_OF_CALL = {"codex": "sessionId"}  # where a client tells its session with each call


class Caller(NamedTuple):
    """What a call says of who makes it."""

    client: str  # what the client calls itself
    session: str | None = None


def caller_of(client: str | None, meta: Mapping[str, Any] | None) -> Caller:
    known = _known(client or "")
    told = (meta or {}).get(_SESSION_OF_CALL.get(known.type, "")) if known else None
    return Caller(client or "", told if isinstance(told, str) and told else None)


def who_speaks(caller: Caller, environ: Mapping[str, str], agent: str | None = None, session: str | None = None) -> Who:
    """Who makes this call; always in the role of an agent. `agent` and `session` are what was given by flags."""
    known = _known(caller.client)
    seen = {**environ, "TENURE_ROLE": "agent"}
    if known is not None:
        for marker in known.markers:
            if marker != known.session:
                seen.setdefault(marker, "1")
        if known.session and caller.session:
            seen[known.session] = caller.session
    who = recognise(seen, agent, session)
    return who if marked(seen) else _stranger(who, caller, seen, agent, session)


def kind_of(client: str) -> str:
    """A word for a client: the agent that it is known as, else what it calls itself."""
    known = _known(client)
    return known.type if known else re.sub(r"[^a-z0-9]+", "-", client.lower()).strip("-")[:40] or "mcp"


def type_of(client: str) -> str:
    known = _known(client)
    return known.type if known else "generic"


def _known(client: str) -> Known | None:
    """By a word of the name: `claude-code`, `codex-mcp-client`, `gemini-cli-mcp-client`, `opencode`, `copilot-cli`."""
    words = re.split(r"[^a-z0-9]+", client.lower())
    return next((agent for agent in KNOWN.values() if agent.type in words), None)


def _stranger(who: Who, caller: Caller, environ: Mapping[str, str], agent: str | None, session: str | None) -> Who:
    """A client that is not known: its process is the session, since it started this server for itself."""
    kind = kind_of(caller.client)
    parent = process_table.look_up(os.getppid())
    if not (session or environ.get("TENURE_SESSION")) and parent is not None:
        who = who._replace(session=f"{kind}-{parent.pid}-{parent.start}", source="the client's process", process=parent)
    if not (agent or environ.get("TENURE_AGENT")):
        who = who._replace(agent=f"{kind}-{parent.pid if parent else os.getpid()}")
    return who._replace(type="generic")
