"""Seeded bugs in the statements and keys of stores: each leaves out the tenant at one place."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

TEST = "tests/stores/test_tenant_predicates.py::test_every_"
OF_MARIADB = f"{TEST}statement_of_mariadb_names_the_tenant"
OF_SQLITE = f"{TEST}statement_of_sqlite_names_the_tenant"
OF_VALKEY = f"{TEST}key_of_valkey_begins_with_the_tenant"

MARIADB = "stores/mariadb/statement_texts.py"
SQLITE = "stores/sqlite/transaction.py"
STATEMENTS = "stores/sql/statements.py"
KEYS = "stores/valkey/keys.py"

PREDICATES = (
    Mutant(
        "mariadb: ready tasks of every tenant",
        MARIADB,
        '(task_ready) WHERE tenant = ? AND project = ?"',
        '(task_ready) WHERE ? IS NOT NULL AND project = ?"',
        OF_MARIADB,
    ),
    Mutant(
        "mariadb: projects of every tenant",
        MARIADB,
        "FROM turn WHERE tenant = ? ORDER",
        "FROM turn WHERE ? IS NOT NULL ORDER",
        OF_MARIADB,
    ),
    Mutant(
        "mariadb: the claim of a receipt in any tenant",
        MARIADB,
        "ON c.tenant = t.tenant AND c.project",
        "ON c.project",
        OF_MARIADB,
    ),
    Mutant(
        "mariadb: the last time in any tenant's log",
        MARIADB,
        "FROM event WHERE tenant = ? ORDER BY tenant DESC",
        "FROM event WHERE ? IS NOT NULL ORDER BY tenant DESC",
        OF_MARIADB,
    ),
    Mutant(
        "sqlite: due tasks of every tenant",
        SQLITE,
        'DUE = "WHERE tenant = ? AND project',
        'DUE = "WHERE ? IS NOT NULL AND project',
        OF_SQLITE,
    ),
    Mutant(
        "sqlite: the next lane of any tenant",
        SQLITE,
        "WHERE tenant = ?1 AND project = ?2\n            AND lane >",
        "WHERE project = ?2\n            AND lane >",
        OF_SQLITE,
    ),
    Mutant(
        "the last event before which others are dropped is of any tenant",
        STATEMENTS,
        """WHERE "tenant" || \\'\\' = ? AND "project\"""",
        """WHERE ? IS NOT NULL AND "project\"""",
        OF_SQLITE,
    ),
    Mutant(
        "rows are deleted and changed without the tenant",
        STATEMENTS,
        "DELETE FROM {self.written} WHERE {self._this_row}",
        "DELETE FROM {self.written} WHERE ? IS NOT NULL AND {self._this_row.partition(' AND ')[2]}",
        (OF_SQLITE, OF_MARIADB),
    ),
    Mutant(
        "valkey: turns of every tenant are one",
        KEYS,
        'return b"%s:turn:%s" % (self.start, ',
        'return b"%s:turn:%s" % (b"{tenure}", ',
        OF_VALKEY,
    ),
    Mutant(
        "valkey: lanes of every tenant are one",
        KEYS,
        'return b"%s:lanes:%s" % (self.start, ',
        'return b"%s:lanes:%s" % (self.start.partition(b":")[0] + b"}", ',
        OF_VALKEY,
    ),
    Mutant(
        "valkey: marks of another tenant",
        "stores/valkey/store.py",
        'asked = [("HGET", self.keys_of(tenant).meta',
        'asked = [("HGET", self.keys_of("local").meta',
        OF_VALKEY,
    ),
)
