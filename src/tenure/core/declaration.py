"""What a command or query declares: which module decides it, who may send it, and its route.

The tables of roles, routes, handlers and OpenAPI are derived from these declarations.
"""

from __future__ import annotations

from typing import NamedTuple

PROJECT = "/projects/{project}"
TASK = PROJECT + "/tasks/{task}"


class Declaration(NamedTuple):
    theme: str  # the engine module that decides it: `runtime/decision.py` or `reads/query_table.py` imports it
    role: str  # the lowest role that may send it
    method: str = ""  # "": no route carries it
    path: str = ""  # words in braces are its fields
    speaks_for: str | None = None  # the field that names its agent; an agent acts only for itself
