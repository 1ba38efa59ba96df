"""`key create|list|rotate|revoke`: the keys that people and agents sign in to a server with."""

from __future__ import annotations

from argparse import Namespace
from typing import Any

from tenure.cli.main import Answer, Run, answered, arg, options
from tenure.cli.option_kinds import seconds
from tenure.cli.text_format import plain, table
from tenure.client.wire import plain as wire
from tenure.core import commands as c
from tenure.core import queries as q
from tenure.core.instants import format_instant
from tenure.core.outcomes import Outcome


@options(
    arg("name", help="its name, as in ci or laptop-of-ann"),
    arg("--role", default="agent", metavar="ROLE", help="viewer, agent, member, admin or owner (agent)"),
    arg("--user", metavar="NAME", help="the user that its actions are attributed to (the key's name)"),
    arg("--for-agent", metavar="NAME", help="for role agent: the one agent it may act as"),
    arg("--only", action="append", default=[], metavar="PROJECT", help="good for this project (may be repeated)"),
    arg("--can", action="append", default=[], metavar="CAPABILITY", help="checker: it may take and judge validations"),
    arg("--expires", type=seconds, metavar="DURATION", help="its lifetime, as in 90d (no end)"),
)
def create(run: Run, given: Namespace) -> Answer:
    """Create an API key for `tenure serve`. It is shown once; the store keeps a digest of it."""
    command = c.CreateKey(
        name=given.name, role=given.role, user=given.user, agent=given.for_agent, projects=tuple(given.only),
        capabilities=tuple(given.can), expires_in=given.expires,
    )  # fmt: skip
    return _shown(run, run.client.do(command))


@options(arg("--all", action="store_true", help="also revoked and expired ones"))
def list_(run: Run, given: Namespace) -> Answer:
    """The store's keys, without their secrets."""
    found = run.client.query(q.Keys(ended=given.all))
    return Answer(wire(found), lambda: _table(found))


@options(
    arg("key", help="its id, or its name"),
    arg("--grace", type=seconds, default=3600.0, metavar="DURATION", help="how long the old secret stays valid (1h)"),
)
def rotate(run: Run, given: Namespace) -> Answer:
    """Give a key a new secret. After a leak: --grace 0."""
    return _shown(run, run.client.do(c.RotateKey(key=given.key, grace=given.grace)))


@options(arg("key", help="its id, or its name"))
def revoke(run: Run, given: Namespace) -> Answer:
    """Revoke a key for good. Servers refuse it within two seconds."""
    return answered(run.client.do(c.RevokeKey(key=given.key)))


def _shown(run: Run, outcome: Outcome) -> Answer:
    if outcome.secret is None:
        return answered(outcome)
    # alone where a program reads it: KEY=$(tenure key create ci)
    note = f"\n  {outcome.message}; {outcome.hint}" if run.is_terminal else ""
    return answered(outcome, outcome.secret + note)


def _table(found: list[dict[str, Any]]) -> str:
    rows = [
        (
            k["id"], plain(k["name"]), k["role"], ", ".join(k["capabilities"]), k["agent"],
            ", ".join(k["projects"]) or "all", k["status"], k["used_at"] and format_instant(k["used_at"])[:16],
            k["expires_at"] and format_instant(k["expires_at"])[:10],
        )
        for k in found
    ]  # fmt: skip
    return table(rows, ("key", "name", "role", "can", "agent", "projects", "status", "used", "expires")) or "no keys"
