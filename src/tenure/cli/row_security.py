"""`db rls`: row-level security of a store in PostgreSQL."""

from __future__ import annotations

from argparse import Namespace
from typing import TYPE_CHECKING

from tenure.cli.main import Answer, Run, arg, options
from tenure.config import without_password
from tenure.core.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

ON, OFF, CHECK = "on", "off", "check"


@options(
    arg("action", choices=(ON, OFF, CHECK), help="turn it on, turn it off, or list its faults"),
    arg("--role", metavar="NAME", help="the database role of servers and commands; created if missing"),
    arg("--print", action="store_true", dest="only_print", help="print the SQL of on or off, without running it"),
)
def rls(run: Run, given: Namespace) -> Answer:
    """Separate tenants in the database: PostgreSQL shows a role the rows of one tenant at a time.

    Runs as the owner of the tables: with TENURE_OWNER_URL, or else the store's URL. Afterwards servers and commands
    open the store with the role; the owner, superusers and roles with BYPASSRLS are refused. It can be run again.
    """
    run.must_own()
    owner, named = run.environ.get("TENURE_OWNER_URL"), run.setting("url")
    url = owner or run.home.url
    other = next((one for one in (named, url) if one and not one.startswith(("postgresql://", "postgres://"))), None)
    if other is not None:
        raise InvalidInput(
            f"{without_password(other)}: row-level security needs a store in PostgreSQL",
            "In other stores the program alone separates tenants; see the how-to on separating tenants.",
        )
    from tenure.stores.postgres import row_security

    if owner and named:
        row_security.check_owner(owner, named)
    if given.action == CHECK:
        return _checked(row_security.check(url, given.role), without_password(url))
    if given.only_print:
        texts = row_security.planned(url, given.action, given.role)
        return Answer({"statements": list(texts)}, _script(texts))
    texts = row_security.run(url, given.action, given.role)
    value = {"store": without_password(url), "row_level_security": given.action, "role": given.role}
    if given.action == OFF:
        return Answer(value, "row-level security is off; the roles and what they may do stay")
    lines = [f"row-level security is on: {given.role} sees one tenant at a time, and appends to the log"]
    if any(text.startswith("CREATE ROLE") for text in texts):
        lines.append(f"{given.role} has no password yet: set one with psql's \\password {given.role}")
    lines.append(f"open the store as {given.role} from now on; running servers go on as before until they start again")
    return Answer(value, "\n".join(lines))


def _script(texts: Sequence[str]) -> str:
    return "\n".join(["BEGIN;", *(f"{text};" for text in texts), "COMMIT;"])


def _checked(found: Mapping[str, Sequence[str]], store: str) -> Answer:
    if not found:
        hint = "`tenure db rls on --role tenure_app` turns it on"
        lines = [f"no role besides the owner may write: row-level security was never turned on\n  {hint}"]
    else:
        lines = [line for findings in found.values() for line in findings]
    value = {"store": store, "ok": not lines, "roles": list(found), "findings": lines}
    text = "\n".join(lines) or f"no errors found: {', '.join(found)} sees one tenant at a time"
    return Answer(value, text, 10 if lines else 0)
