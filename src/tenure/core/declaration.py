"""What a command or query declares of itself: who decides it, who may send it, and the route that carries it.

The tables of roles, routes, handlers and OpenAPI are derived from these declarations.
"""

from __future__ import annotations

from typing import NamedTuple

PROJECT = "/projects/{project}"
TASK = PROJECT + "/tasks/{task}"


class Declaration(NamedTuple):
    theme: str  # the engine module that decides it: `runtime/handlers.py` or `reads/query_table.py` imports it
    role: str  # the lowest role that may send it
    method: str = ""  # "": no route carries it
    path: str = ""  # words in braces are its fields
    speaks_for: str | None = None  # the field that names the agent it is for; an agent speaks for itself alone
