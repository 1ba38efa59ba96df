"""Identifies the caller over MCP: the same agent and session as in the agent's own shell, if that can be known.

Claude Code, Copilot CLI, Gemini CLI and OpenCode give a server the same variables as a shell. Codex gives it an empty
environment, and sends its session's id with each call. The names that clients give themselves fill the gaps.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from tenure.agents import process_table
from tenure.agents.identity import KNOWN, Known, Who, marked, recognise

_SESSION_OF_CALL = {"codex": "sessionId"}  # the field in which a client sends its session with each call


class ClientInfo(NamedTuple):
    """The client of a call, and its session."""

    client: str  # the client's name for itself
    session: str | None = None


def client_info_of(client: str | None, meta: Mapping[str, Any] | None) -> ClientInfo:
    known = _known(client or "")
    session = (meta or {}).get(_SESSION_OF_CALL.get(known.type, "")) if known else None
    return ClientInfo(client or "", session if isinstance(session, str) and session else None)


def identify(
    client_info: ClientInfo, environ: Mapping[str, str], agent: str | None = None, session: str | None = None
) -> Who:
    """Who makes this call; always with the role agent. `agent` and `session` are the values of flags."""
    known = _known(client_info.client)
    seen = {**environ, "TENURE_ROLE": "agent"}
    if known is not None:
        for marker in known.markers:
            if marker != known.session:
                seen.setdefault(marker, "1")
        if known.session and client_info.session:
            seen[known.session] = client_info.session
    who = recognise(seen, agent, session)
    return who if marked(seen) else _unknown_client(who, client_info, seen, agent, session)


def kind_of(client: str) -> str:
    """A short name for a client: the known agent, else the client's name for itself."""
    known = _known(client)
    return known.type if known else re.sub(r"[^a-z0-9]+", "-", client.lower()).strip("-")[:40] or "mcp"


def type_of(client: str) -> str:
    known = _known(client)
    return known.type if known else "generic"


def _known(client: str) -> Known | None:
    """By a word of the name: `claude-code`, `codex-mcp-client`, `gemini-cli-mcp-client`, `opencode`, `copilot-cli`."""
    words = re.split(r"[^a-z0-9]+", client.lower())
    return next((agent for agent in KNOWN.values() if agent.type in words), None)


def _unknown_client(
    who: Who, client_info: ClientInfo, environ: Mapping[str, str], agent: str | None, session: str | None
) -> Who:
    """An unknown client: its process is the session, since it started this server for itself."""
    kind = kind_of(client_info.client)
    parent = process_table.look_up(os.getppid())
    if not (session or environ.get("TENURE_SESSION")) and parent is not None:
        who = who._replace(session=f"{kind}-{parent.pid}-{parent.start}", source="the client's process", process=parent)
    if not (agent or environ.get("TENURE_AGENT")):
        who = who._replace(agent=f"{kind}-{parent.pid if parent else os.getpid()}")
    return who._replace(type="generic")
