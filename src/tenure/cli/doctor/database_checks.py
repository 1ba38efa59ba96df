"""Checks of a store on a server: whether it is who it claims to be, and what our role may do in PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from tenure.cli.doctor.findings import Finding, error, first_of, note, ok, warning

if TYPE_CHECKING:
    from tenure.cli.doctor.doctor import Patient

PREPARE = "`tenure db rls on --role NAME` prepares a role that sees one tenant at a time"


def is_insecure(url: str) -> bool:
    """Whether the store's server is beyond this machine, and may be another than it claims to be."""
    scheme = url.partition("://")[0]
    if scheme in ("postgresql", "postgres"):
        from tenure.stores.postgres import address

        return address.parse(url).is_insecure
    if scheme in ("mariadb", "mysql"):
        from tenure.stores.mariadb import address as of_mariadb

        return of_mariadb.parse(url).is_insecure
    if scheme in ("valkey", "redis"):
        from tenure.stores.valkey import address as of_valkey

        return of_valkey.parse(url).is_insecure
    return False


def database(patient: Patient) -> Iterator[Finding]:
    if patient.client is None or patient.client.is_remote:
        return  # doctor on the server's host checks it
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
            yield error("database", first_of(found), f"as the owner, `tenure db rls on --role {role.role}` again")
        else:
            yield ok("database", f"{role.role} sees one tenant at a time")
    elif role.is_superuser or role.bypasses:
        yield warning("database", f"the role {role.role} {role.power}: no policy could restrict it", PREPARE)
    else:
        yield note("database", f"the role {role.role} owns its tables, and sees every tenant", PREPARE)
