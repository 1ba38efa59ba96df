"""`tenant …` and `member …`: the tenants of a deployment, and the people in one."""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Mapping
from typing import Any

from tenure.cli.answers import say
from tenure.cli.main import Answer, Run, Usage, answered, arg, options, shown
from tenure.cli.option_kinds import pair
from tenure.cli.projects import limit_changes, limit_text
from tenure.cli.text_format import Columns, ago, columns, plain, table
from tenure.core.outcomes import Outcome
from tenure.core.safe_text import shell_word

TENANT = arg("name", metavar="TENANT", help="the tenant")
USER = arg("user", metavar="USER", help="the person, as in the `sub` of their tokens and the `user` of their keys")
MOVE_STEPS = ("begin", "freeze", "copy", "switch", "open", "end")
ONLY = {"action": "append", "metavar": "PROJECT", "help": "in this project alone (may be repeated)"}


# --- tenants --------------------------------------------------------------------------------------------------


@options(
    arg("name", help="its name: a-z, 0-9 and hyphens, as in acme"),
    arg("--tier", default="default", metavar="TIER", help="of its limits: default or enterprise (default)"),
    arg("--isolation", default="logical", metavar="HOW",
        help="logical: in the tables of all; schema: in its own; instance: in its own store (logical)"),
    arg("--store", metavar="URL", help="of that store, which is sealed and shown nowhere; - reads it from stdin"),
    arg("--region", metavar="NAME", help="its home"),
)  # fmt: skip
def add_tenant(run: Run, given: Namespace) -> Answer:
    """Create a tenant. `--tenant NAME` works in it; nothing of it is visible elsewhere.

    Stores on a server (PostgreSQL, MariaDB, Valkey) keep several tenants, an SQLite file only `local`.
    """
    from tenure.client.transports.local import LocalTransport

    url = sys.stdin.readline().strip() if given.store == "-" else given.store
    how = {"tier": given.tier, "isolation": given.isolation, "store": url, "region": given.region}
    outcome = run.client.add_tenant(given.name, **how)
    transport = run.client.transport
    if outcome.ok and isinstance(transport, LocalTransport):
        transport.open_schemas(given.name)  # by whom may create it: a server's role may not
    if outcome.outcome == "EXISTS":
        return answered(
            outcome, f"{given.name}  exists: nothing was changed; see `tenure tenant show {shell_word(given.name)}`"
        )
    return _of_tenant(outcome)


@options(
    TENANT,
    arg("limits", nargs="*", type=pair, metavar="NAME=VALUE",
        help="as in max_concurrent_claims=500; NAME=default goes back to the tier's"),
    arg("--tier", metavar="TIER", help="default or enterprise"),
)  # fmt: skip
def tenant_limits(run: Run, given: Namespace) -> Answer:
    """Show the limits of a tenant, which count over all its projects; or change its tier, or single limits.

    A project may lower them with `tenure limits set`. Servers apply a change within two seconds.
    """
    if given.tier is None and not given.limits:
        return shown(run.client.tenant(given.name), _limits_text)
    outcome = run.client.change_tenant(given.name, tier=given.tier, limits=limit_changes(run.verb, given.limits))
    return answered(outcome, lambda: _limits_text(outcome.tenant or {})) if outcome.ok else answered(outcome)


def _limits_text(row: Mapping[str, Any]) -> str:
    if not row["limits"]:
        return f"{row['name']} has no limits"
    from tenure.core.tenant_limits import MEANINGS

    own = set(row["changed_limits"])
    lines = [
        (name, limit_text(name, value), "tenant" if name in own else row["tier"], MEANINGS[name].split(", in ")[0])
        for name, value in row["limits"].items()
    ]
    return table(lines, ("limit", "value", "from", "meaning"))


@options(TENANT, arg("-m", "--message", default="", metavar="TEXT", help="why"))
def close_tenant(run: Run, given: Namespace) -> Answer:
    """Close a tenant: nobody can use it, and it looks unknown. Its rows stay; `tenant reopen` undoes it."""
    return _of_tenant(run.client.close_tenant(given.name, given.message))


@options(TENANT)
def reopen_tenant(run: Run, given: Namespace) -> Answer:
    """Open a closed tenant again, as it was."""
    return _of_tenant(run.client.reopen_tenant(given.name))


def _of_tenant(outcome: Outcome) -> Answer:
    row = outcome.tenant
    if not outcome.ok or row is None:
        return answered(outcome)
    return answered(outcome, f"{outcome.outcome}: {row['name']} is {row['status']}")


@options(arg("-a", "--all", action="store_true", help="closed ones too"))
def list_tenants(run: Run, given: Namespace) -> Answer:
    """List the tenants of the deployment."""

    def text(found: list[dict[str, Any]]) -> str:
        now = run.client.now()
        wanted: Columns = {
            "tenant": "name",
            "state": "status",
            "tier": "tier",
            "created": lambda row: row["created_at"] and ago(row["created_at"], now),
            "by": lambda row: row["created_by"] and plain(row["created_by"]),
            "closed": lambda row: row["closed_at"] and ago(row["closed_at"], now),
            "why": lambda row: row["closed_for"] and plain(row["closed_for"]),
        }
        return columns(found, wanted, "no tenants")

    return shown(run.client.tenants(closed=given.all), text)


@options(TENANT)
def show_tenant(run: Run, given: Namespace) -> Answer:
    """Show one tenant: who created it, when and why it was closed."""

    def text(row: Mapping[str, Any]) -> str:
        now = run.client.now()
        lines = [f"{row['name']}  {row['status']}" + (f", tier {row['tier']}" if row["tier"] else "")]
        if row["isolation"] != "logical":
            place = f"the schema {row['schema']}" if row["schema"] else "its own store"
            lines.append(f"  isolation {row['isolation']}: in {place}")
        if row["region"]:
            lines.append(f"  region {plain(row['region'])}")
        if row["moving"]:
            lines.append(
                f"  {row['moving']}: a move is under way; `tenure tenant move {shell_word(row['name'])}` finishes it"
            )
        if row["created_at"]:
            lines.append(f"  created {ago(row['created_at'], now)} by {plain(row['created_by'])}")
        if row["closed_at"]:
            why = f": {plain(row['closed_for'])}" if row["closed_for"] else ""
            lines.append(f"  closed {ago(row['closed_at'], now)}{why}")
        return "\n".join(lines)

    return shown(run.client.tenant(given.name), text)


@options(
    TENANT,
    arg("--to", metavar="REGION|URL", help="its new region, or the URL of its new store; home: the store of all"),
    arg("--store", metavar="URL", help="the store in that region; - reads the URL from stdin, home: the store of all"),
    arg("--promoted", action="store_true", help="that store is a promoted standby of the former one: copy nothing"),
    arg("--call-off", action="store_true", help="leave the tenant where it is, if the move has not switched yet"),
)
def move_tenant(run: Run, given: Namespace) -> Answer:
    """Move a tenant with all its projects, keys and members to another store, while its agents work.

    Its writes are refused meanwhile with TENANT_MOVING, and clients send them again. Live claims end, with their
    attempt given back; earlier receipts are void (STALE_EPOCH), and results submitted with them are kept.

    A move that was interrupted is finished by the same command without --to. Until the new store is the tenant's home,
    --call-off ends it instead.
    """
    run.must_own()
    from tenure.client import tenant_move

    if given.call_off:
        if given.to or given.store or given.promoted:
            raise Usage("tenant move: --call-off has no other option")
        row = tenant_move.stay(run.home.url, given.name)
        return Answer({"tenant": row.id, "moves": row.moves, "moving": None}, f"{row.id} stays where it is")
    store = sys.stdin.readline().strip() if given.store == "-" else given.store

    def step(text: str) -> None:
        if not run.is_json:
            say(f"tenure: {text}: done" if text in MOVE_STEPS else f"tenure: {text}", sys.stderr)

    done = tenant_move.move_tenant(
        run.home.url, given.name, to=given.to, store=store, promoted=given.promoted, step=step
    )
    value = {
        "tenant": done.tenant, "move": done.number, "region": done.region, "rows": done.rows, "events": done.events,
        "epoch": done.epoch,
    }  # fmt: skip
    where = f" to region {plain(done.region)}" if done.region else ""
    return Answer(value, f"{done.tenant} has moved{where}: {done.rows} rows and {done.events} events were copied")


# --- members --------------------------------------------------------------------------------------------------


@options(
    USER,
    arg("--role", default="member", metavar="ROLE", help="viewer, member, admin or owner (member)"),
    arg("--only", default=[], **ONLY),
)
def invite_member(run: Run, given: Namespace) -> Answer:
    """Make a person a member of the tenant. An owner gives every role, an admin those up to member."""
    return _of_member(run.client.invite_member(given.user, given.role, projects=given.only))


@options(
    USER,
    arg("role", nargs="?", metavar="ROLE", help="viewer, member, admin or owner"),
    arg("--only", **ONLY),
    arg("--everywhere", action="store_true", help="in all projects again"),
)
def member_role(run: Run, given: Namespace) -> Answer:
    """Change the role or the projects of a member. Keys of theirs that reach further are revoked."""
    projects = () if given.everywhere else given.only
    return _of_member(run.client.change_member(given.user, given.role, projects=projects))


@options(USER)
def remove_member(run: Run, given: Namespace) -> Answer:
    """End a membership, and revoke the API keys of that person."""
    return _of_member(run.client.remove_member(given.user))


def _of_member(outcome: Outcome) -> Answer:
    row = outcome.member
    if not outcome.ok or row is None:
        return answered(outcome)
    where = f" in {', '.join(map(plain, row['projects']))}" if row["projects"] else ""
    note = f"\n  {outcome.message}" if outcome.message else ""
    is_what = _MEMBER.get(row["status"], "is {}").format(row["role"])
    return answered(outcome, f"{outcome.outcome}: {plain(row['user'])} {is_what}{where}{note}")


_MEMBER = {"invited": "is invited as {}", "left": "was {} and has left"}


@options(arg("-a", "--all", action="store_true", help="former ones too"))
def list_members(run: Run, given: Namespace) -> Answer:
    """List the members of the tenant."""

    def text(found: list[dict[str, Any]]) -> str:
        now = run.client.now()
        wanted: Columns = {
            "member": lambda row: plain(row["user"]),
            "state": "status",
            "role": "role",
            "projects": lambda row: ", ".join(map(plain, row["projects"])) or "all",
            "invited": lambda row: ago(row["invited_at"], now),
            "by": lambda row: plain(row["invited_by"]),
        }
        return columns(found, wanted, "no members")

    return shown(run.client.members(left=given.all), text)
