"""A store of an older release is upgraded by an owner who is no superuser, with policies on and two tenants in it."""

import re
from contextlib import suppress
from pathlib import Path

import pytest

from tenure.core.errors import UnsafeRole
from tenure.core.records import Task
from tenure.engine import Context, Engine
from tenure.stores.postgres import Postgres, row_security
from tenure.testing.factories import Dice
from tests.servers.postgres import PostgresServer
from tests.servers.restricted import OWNER, ROLE, url_as
from tests.upgrades.old_stores import OldPostgres
from tests.upgrades.test_upgrade import RELEASES

OBJECTS = """
SELECT CASE c.relkind WHEN 'v' THEN 'VIEW' ELSE 'TABLE' END || ' ' || c.oid::regclass FROM pg_class AS c
WHERE c.relnamespace = %s::regnamespace AND c.relkind IN ('r', 'v')
UNION ALL SELECT 'FUNCTION ' || oid::regprocedure FROM pg_proc WHERE pronamespace = %s::regnamespace
"""


def counted(old: OldPostgres) -> dict[str, int]:
    """The tasks of each tenant."""
    return dict(old.ask(f"SELECT tenant, count(*) FROM {old.name}.task GROUP BY tenant"))


def give_to_the_owner(old: OldPostgres) -> None:
    for (thing,) in old.ask(OBJECTS, old.name, old.name):
        old.ask(f"ALTER {thing} OWNER TO {OWNER}")
    old.ask(f"ALTER SCHEMA {old.name} OWNER TO {OWNER}")


@pytest.mark.parametrize("release", RELEASES)
def test_every_migration_changes_the_rows_of_both_tenants(
    restricted: PostgresServer, tmp_path: Path, release: str
) -> None:
    old = OldPostgres(release, restricted, "p_" + re.sub(r"\W", "_", tmp_path.name)[-50:])
    try:
        before = counted(old)
        assert len(before) > 1, "the store has several tenants"
        give_to_the_owner(old)
        owner, url = url_as(OWNER, old.name), url_as(ROLE, old.name)
        with row_security.as_owner(owner) as (link, name):
            link.run([(text, ()) for text in row_security.policies(link, name)])
        with suppress(UnsafeRole):  # once it is upgraded
            Postgres(owner, clock=old.clock).close()
        row_security.run(owner, "on", ROLE)
        assert row_security.check(owner, None) == {ROLE: []}
        store = Postgres(url, clock=old.clock)
        seen = {}
        for tenant in before:
            assert Engine(store, Dice(1), Context(tenant=tenant)).verify() == []
            with store.begin(tenant, write=False) as tx:
                seen[tenant] = len(tx.find(Task, {}))
        assert seen == before
        assert store.check() == []
        store.close()
    finally:
        old.drop()
