"""Stores under row-level security: tables of an owner who is no superuser, opened with a role that owns nothing."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from urllib.parse import urlencode

import psycopg

from tenure.core.errors import UnsafeRole
from tenure.stores.port import Clock
from tenure.stores.postgres import Postgres, row_security
from tests.servers.pgbouncer import BEHIND
from tests.servers.postgres import WHERE, PostgresServer, clean_schema, connections

OWNER, ROLE = "tenure_owner", "tenure_app"
POOLED = "restricted"  # the pooler's name of the database, for sessions with the role


def prepare(server: PostgresServer) -> None:
    """The two roles, as an administrator makes them once."""
    for statement in (f"CREATE ROLE {OWNER} LOGIN", f"CREATE ROLE {ROLE} LOGIN"):
        with suppress(psycopg.errors.DuplicateObject, psycopg.errors.UniqueViolation):
            server.ask(statement)
    server.ask(f"GRANT CREATE ON DATABASE postgres TO {OWNER}")


def url_as(role: str, schema: str, server: str | None = None) -> str:
    server = (server or os.environ[WHERE]).replace("tenure@", f"{role}@")
    return f"{server}{'&' if '?' in server else '?'}{urlencode({'schema': schema})}"


def restricted_schema(folder: Path) -> str:
    """The folder's own schema with policies on: clean when it is first asked for, later the same again."""
    note = folder / "restricted-schema"
    if not note.exists():
        schema = clean_schema("restricted")
        owner = url_as(OWNER, schema)
        with suppress(UnsafeRole):  # made by an earlier test
            Postgres(owner).close()
            row_security.run(owner, "on", ROLE)
        note.write_text(schema)
    return note.read_text()


def open_restricted(folder: Path, clock: Clock | None, *, pooled: bool = False) -> Postgres:
    """As `postgres.open_store`, with the role; `pooled`: through pgbouncer."""
    schema = restricted_schema(folder)
    if pooled:
        server = os.environ[BEHIND].replace("/postgres?", f"/{POOLED}?")
        return Postgres(url_as("tenure", schema, server), clock=clock, connections=connections(server))
    server = os.environ[WHERE].replace("tenure@", f"{ROLE}@")
    return Postgres(url_as(ROLE, schema), clock=clock, connections=connections(server))
