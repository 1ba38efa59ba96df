"""Checks of a store on a server: whether that is who it claims to be; in PostgreSQL, what the role may do."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from tenure.cli.doctor.findings import Finding, error, first_of, note, ok, warning
from tenure.core.safe_text import shell_word

if TYPE_CHECKING:
    from tenure.cli.doctor.doctor import Patient

PREPARE = "`tenure db rls on --role NAME` prepares a role that sees one tenant at a time"


def database(patient: Patient) -> Iterator[Finding]:
    if patient.client is None or patient.client.is_remote:
        return  # doctor on the server's host checks it
    from tenure.stores.open_store import is_insecure

    if is_insecure(patient.home.url):
        yield warning(
            "database",
            "allow_insecure: nobody verifies who the server is, and others may read the traffic",
            "give the server a certificate, and take allow_insecure out of the store's URL",
        )
    if not patient.home.url.startswith(("postgresql://", "postgres://")):
        return
    from tenure.stores.postgres import Postgres

    store = patient.client.store
    if not isinstance(store, Postgres):
        return
    role = store.standing()
    if role.policies:
        found = store.policy_findings()
        if found:
            yield error(
                "database", first_of(found), f"as the owner, `tenure db rls on --role {shell_word(role.role)}` again"
            )
        else:
            yield ok("database", f"{role.role} sees one tenant at a time")
    elif role.is_superuser or role.bypasses:
        yield warning("database", f"the role {role.role} {role.power}: no policy could restrict it", PREPARE)
    else:
        yield note("database", f"the role {role.role} owns its tables, and sees every tenant", PREPARE)
