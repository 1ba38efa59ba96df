"""Which of tenure's variables a child process gets: a list of names for each kind of child, and nothing else of ours.

A variable whose name begins with TENURE_ is ours. Other variables are the machine's: a child keeps them, but for the
passwords of a server's own stores, which no spawned agent needs.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import Enum

OURS = "TENURE_"

_SHOWN = {"TENURE_STATE", "TENURE_DEBUG", "TENURE_NO_COLOR", "TENURE_DISPLAY_COLOUR", "TENURE_DISPLAY_UNICODE"}
_PLACE = {"TENURE_URL", "TENURE_PROJECT", "TENURE_TENANT", "TENURE_HOMES", "TENURE_ARTIFACTS"}
_VERBS = {
    "TENURE_LEASE", "TENURE_PRICES", "TENURE_TIERS", "TENURE_LOG_FILE", "TENURE_LOG_LEVEL", "TENURE_DONE_CLEAN_TREE",
    "TENURE_DONE_COMMIT", "TENURE_TASKS_MAX_ATTEMPTS", "TENURE_TASKS_ON_LOST", "TENURE_TASKS_PRIORITY",
}  # fmt: skip
_AGENTS = {
    "TENURE_AGENTS_AUTO_NAME", "TENURE_AGENTS_HEARTBEAT", "TENURE_AGENTS_STALE_AFTER", "TENURE_AGENTS_TYPE",
    "TENURE_HOOKS_GUARD_EDITS", "TENURE_HOOKS_KEEP_WORKING", "TENURE_SIGNING_KEY",
}  # fmt: skip
_RUNS = {"TENURE_RUN_AGENT", "TENURE_RUN_SIGN", "TENURE_RUN_ROUTE", "TENURE_RUN_TIMEOUT"}
# Of a store or bucket that the server alone opens; other programs of an agent's own work may need the same names.
_STORES = {
    "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "MYSQL_PWD", "PGPASSFILE", "PGPASSWORD",
    "REDISCLI_AUTH", "VALKEYCLI_AUTH",
}  # fmt: skip
_WITH_PASSWORD = re.compile(r"[a-z+]+://[^/@]*:[^/@]+@", re.IGNORECASE)


class ChildKind(Enum):
    """The kinds of child processes, each with the names of ours that it gets from its caller's environment."""

    AGENT = frozenset(_SHOWN | _PLACE | _VERBS | _AGENTS | {"TENURE_KEY", "TENURE_SPAWN"})  # and those of its claim
    SPAWNED = frozenset(_SHOWN | _VERBS | _AGENTS | _RUNS)  # another caller: its place and key are given by its spawn
    COMMAND = frozenset(_SHOWN | _PLACE)  # hooks after events, and notices
    CHECK = frozenset({"TENURE_STATE"})  # a validator's command, which names others itself
    PROGRAM = frozenset({""})  # git, ps, key services, commands of spawners: none of ours


def for_child(kind: ChildKind, environ: Mapping[str, str]) -> dict[str, str]:
    """The environment of a child of that kind: every child process gets its variables here."""
    kept = {name: value for name, value in environ.items() if not name.startswith(OURS) or name in kind.value}
    if kind is not ChildKind.AGENT and _WITH_PASSWORD.match(kept.get("TENURE_URL", "")):
        del kept["TENURE_URL"]  # an agent of an embedded store opens it itself
    return kept if kind is not ChildKind.SPAWNED else {name: kept[name] for name in kept if name not in _STORES}
