"""`schema.sql`: the tables that the SQLite migrations create, as SQLite reports them, under the migrations' checksums.

A store compares its file with this text when it is opened, and creates a new file from it: see
`tenure.stores.sqlite.store_file`. The last part are the rows that the migrations leave in a new file.
"""

import apsw

from tenure.stores.sqlite import schema, store_file


def page() -> str:
    steps = [(m.number, m.name, m.checksum, m.since) for m in schema.migrations()]
    connection = apsw.Connection(":memory:")
    for migration in schema.migrations():
        connection.execute(migration.text).fetchall()
    rows = connection.execute(
        "SELECT quote(tbl), quote(idx), quote(stat) FROM sqlite_stat1 ORDER BY tbl, idx"
    ).fetchall()
    connection.close()
    listed = ",\n".join(f"    ({', '.join(row)})" for row in rows)
    filled = f"INSERT INTO sqlite_stat1 (tbl, idx, stat) VALUES\n{listed};\n"
    return store_file.described(steps, schema.built(len(steps))) + store_file.STATISTICS + filled
