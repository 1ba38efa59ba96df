"""What the SQL stores share: how a struct becomes a row, which statement texts exist, how schemas grow.

Every kind in `records.KINDS` is a table of its own name; every field of its struct is a column of its own name, in the
struct's order, behind a leading `tenant`. Text, integers, floats and bytes are stored as they are, bools as 0 and 1,
all else as JSON text. So a new field is one line in the struct and one in a migration, and no SQL is written for it.

Invariants:
- Statement texts are made of names from the structs and of `?`, never of values: `clauses` checks each field that a
  caller names against the struct before it appears in a text.
- An update sets only the columns that changed. An index none of whose columns changed is not touched, which is
  most of them on a claim.
- A migration, once published, is never edited: its checksum is in every file that it made.

To see the column lists that a migration must give: `python -m tenure.stores.sql.columns`.
"""
