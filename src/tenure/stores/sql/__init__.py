"""Shared by the SQL stores: how a struct becomes a row, the statement texts, migrations.

Every kind in `records.KINDS` is a table of that name; every field of its struct is a column of that name, in the
struct's order, behind a leading `tenant`. Text, integers, floats and bytes are stored as they are, bools as 0 and 1,
everything else as JSON text. So a new field is one line in the struct and one in a migration, and needs no SQL.

Invariants:
- Statement texts consist of names from the structs and of `?`, never of values: `statements.conditions` checks each
  field that a caller names against the struct.
- An update sets only the columns that changed. It does not touch an index none of whose columns changed; on a claim
  these are most of them.
- A published migration is never edited: its checksum is in every store that applied it.

`python -m tests.stores.columns` prints the columns that the migrations must give.
"""
