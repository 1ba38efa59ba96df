"""Checks of a store in PostgreSQL: what its role may do, and whether its server is who it claims to be."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from tenure.cli.doctor.findings import Finding, error, first_of, note, ok, warning

if TYPE_CHECKING:
    from tenure.cli.doctor.doctor import Patient

INSECURE = warning(
    "database",
    "allow_insecure: nobody verifies who the server is, and others may read the traffic",
    "give the server a certificate, and take allow_insecure out of the store's URL",
)
PREPARE = "`tenure db rls on --role NAME` prepares a role that sees one tenant at a time"


def database(patient: Patient) -> Iterator[Finding]:
    if patient.client is None or patient.client.is_remote:
        return  # doctor on the server's host checks it
    url = patient.home.url
    if url.startswith(("mariadb://", "mysql://")):
        from tenure.stores.mariadb.address import parse

        if parse(url).is_insecure:
            yield INSECURE
    if not url.startswith(("postgresql://", "postgres://")):
        return
    from tenure.stores.postgres import Postgres, address

    store = patient.client.store
    if not isinstance(store, Postgres):
        return
    if address.parse(url).is_insecure:
        yield INSECURE
    role = store.standing()
    if role.policies:
        found = store.policy_findings()
        if found:
            yield error("database", first_of(found), f"as the owner, `tenure db rls on --role {role.role}` again")
        else:
            yield ok("database", f"{role.role} sees one tenant at a time")
    elif role.is_superuser or role.bypasses:
        yield warning("database", f"the role {role.role} {role.power}: no policy could restrict it", PREPARE)
    else:
        yield note("database", f"the role {role.role} owns its tables, and sees every tenant", PREPARE)
