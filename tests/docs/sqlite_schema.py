"""`schema.sql`: the tables that the SQLite migrations create, as SQLite reports them, under the migrations' checksums.

A store compares its file with this text when it is opened: see `tenure.stores.sqlite.store_file`.
"""

from tenure.stores.sqlite import schema, store_file


def page() -> str:
    steps = [(m.number, m.name, m.checksum, m.since) for m in schema.migrations()]
    return store_file.described(steps, schema.built(len(steps)))
