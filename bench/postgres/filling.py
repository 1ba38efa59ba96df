"""Many tasks in little time: the rows of one that the engine made, copied inside the server with other names.

Nothing here knows the tables. Every row that names the model task is copied, column by column; ids, refs, sequences and
request ids become others of the same shape, and columns that the server fills by itself are left to it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import psycopg
from psycopg import sql
from psycopg.rows import dict_row

from tenure.core.ids import CROCKFORD

_ULID = re.compile(r"(?<![0-9A-Z])[0-9A-HJKMNP-TV-Z]{26}(?![0-9A-Z])")
_KEPT = 14  # characters of an id that stay: its time and some of its chance
_TEXTS = ("text", "character varying", "json", "jsonb")
# Columns in their order; what has a default or counts by itself is not ours to give.
_INDEXES = """
SELECT i.indexrelid::regclass::text, pg_get_indexdef(i.indexrelid) FROM pg_index AS i
  JOIN pg_class AS c ON c.oid = i.indrelid
 WHERE c.relnamespace = to_regnamespace(%s) AND NOT i.indisprimary
   AND NOT EXISTS (SELECT FROM pg_constraint AS k WHERE k.conindid = i.indexrelid)
"""
_LARGE = 20_000  # tasks at once: from here on rebuilding indexes is faster, unless the table is large already
_COLUMNS = """
SELECT table_name, column_name, data_type
  FROM information_schema.columns JOIN information_schema.tables USING (table_schema, table_name)
 WHERE table_schema = %s AND table_type = 'BASE TABLE'
   AND column_default IS NULL AND is_identity = 'NO' AND is_generated = 'NEVER'
 ORDER BY table_name, ordinal_position
"""


class Model(NamedTuple):
    """A task whose rows are copied. The models of a track have the sequences from 1 on."""

    project: str
    id: str
    track: str
    sequence: int
    tokens: tuple[str, ...] = ()  # request ids that its commands carried


def tables_of(link: psycopg.Connection[Any], schema: str) -> dict[str, dict[str, str]]:
    """Table → column → type."""
    found: dict[str, dict[str, str]] = {}
    for table, column, kind in link.execute(_COLUMNS, (schema,)):
        found.setdefault(table, {})[column] = kind
    return found


def copy_agents(url: str, schema: str, project: str, model: str, count: int) -> None:
    """`count` agents with a session each, like the one of that name: `model-1`, `model-2`, …"""
    with psycopg.connect(url, autocommit=True) as link, link.transaction():
        tables = tables_of(link, schema)
        for table in ("agent", "session"):
            columns = [
                sql.SQL("replace({0}, {1}, {1} || '-' || n)").format(sql.Identifier(name), model)
                if kind == "text" and name in ("id", "agent")
                else sql.Identifier(name)
                for name, kind in tables[table].items()
            ]
            link.execute(
                sql.SQL(
                    "INSERT INTO {0} ({1}) SELECT {2} FROM {0}, generate_series(1, {3}) AS n"
                    " WHERE project = {4} AND id IN ({5}, {6})"
                ).format(
                    sql.Identifier(schema, table),
                    sql.SQL(", ").join(map(sql.Identifier, tables[table])),
                    sql.SQL(", ").join(columns),
                    count, project, model, f"session-{model}",
                )
            )  # fmt: skip
            link.execute(sql.SQL("ANALYZE {}").format(sql.Identifier(schema, table)))


# Rows that name their task by its number: copied after `task_base`, which gives the numbers.
_BY_NUMBER = ("task_hot", "queue", "standing")


class Copier:
    """The rows of a model are read once, while the tables are small; `copy` may then be called again and again."""

    def __init__(self, url: str, schema: str, models: Sequence[Model]) -> None:
        self._link = psycopg.connect(url, autocommit=True, options="-c maintenance_work_mem=512MB")
        self._schema = schema
        self._models = models
        self._tables = tables_of(self._link, schema)
        self._filled: set[str] = set()
        self._ids = 0  # of all models together
        self._steps = Counter((model.project, model.track) for model in models)
        self._statements = [self._prepared(model) for model in models]
        self.copied = 0

    def copy(self, count: int) -> None:
        """`count` more tasks of each model."""
        indexes = []
        if count * len(self._models) >= _LARGE and count > self.copied:
            indexes = self._link.execute(_INDEXES, (f'"{self._schema}"',)).fetchall()
        with self._link.transaction():
            for name, _ in indexes:
                self._link.execute(f"DROP INDEX {name}".encode())
            for statements in self._statements:
                for statement in statements:
                    self._link.execute(statement, {"first": self.copied + 1, "last": self.copied + count})
            for model in self._models:
                self._link.execute(
                    sql.SQL('UPDATE {} SET last_sequence = last_sequence + %s WHERE project = %s AND id = %s').format(
                        sql.Identifier(self._schema, "track")
                    ),
                    (count, model.project, model.track),
                )  # fmt: skip
            for _, made in indexes:
                self._link.execute(made.encode())
        self.copied += count

    def settle(self) -> None:
        """What autovacuum would have done by and by."""
        for table in sorted(self._filled):
            self._link.execute(sql.SQL("VACUUM (ANALYZE) {}").format(sql.Identifier(self._schema, table)))

    def close(self) -> None:
        self._link.close()

    def _prepared(self, model: Model) -> list[sql.Composed]:
        own = model.id.removeprefix("task_")
        rows: list[tuple[str, dict[str, str], dict[str, Any]]] = []
        # A claim and a result with separate rows: those name their task by its id.
        give = sql.SQL("SELECT {}('local', %s, ARRAY[%s])").format(sql.Identifier(self._schema, "give_rows"))
        self._link.execute(give, (model.project, model.id))
        for table, columns in self._tables.items():
            if "project" not in columns:
                continue
            # Texts only: a row with the task's name in it is the task's.
            query = sql.SQL("SELECT * FROM {} AS t WHERE project = %s AND t::text LIKE %s").format(
                sql.Identifier(self._schema, table)
            )
            with self._link.cursor(row_factory=dict_row) as cursor:
                rows += [(table, columns, row) for row in cursor.execute(query, (model.project, f"%{own}%"))]
        (number,) = self._link.execute(
            sql.SQL("SELECT number FROM {} WHERE id = %s").format(sql.Identifier(self._schema, "task_base")),
            (model.id,),
        ).fetchone() or (0,)
        for table in _BY_NUMBER:
            query = sql.SQL("SELECT * FROM {} WHERE number = %s").format(sql.Identifier(self._schema, table))
            with self._link.cursor(row_factory=dict_row) as cursor:
                rows += [(table, self._tables[table], row) for row in cursor.execute(query, (number,))]
        rows.sort(key=lambda row: row[0] != "task_base")  # which gives the numbers
        self._filled |= {table for table, _, _ in rows}
        ids = {u for _, columns, row in rows for name in columns for u in _ULID.findall(str(row[name] or ""))}
        own_ids = {}
        for id in sorted(ids):
            own_ids[id] = id[:_KEPT] + CROCKFORD[self._ids // 32 % 32] + CROCKFORD[self._ids % 32]
            self._ids += 1
        return [self._copying(model, own_ids, *row) for row in rows]

    def _copying(
        self, model: Model, ids: Mapping[str, str], table: str, columns: dict[str, str], row: dict[str, Any]
    ) -> sql.Composed:
        sequence = sql.SQL("({} + n * {})").format(model.sequence, self._steps[model.project, model.track])
        drawn = sql.SQL("{}({})")
        source = sql.Literal(f'"{self._schema}".event_sequence_seq')
        # A block of one event draws its sequence; the copied claims do not say which it is.
        given = {
            "sequence": sequence, "grant_event": sql.SQL("NULL"), "result_event": sql.SQL("NULL"),
            "first": drawn.format(sql.SQL("nextval"), source), "last": drawn.format(sql.SQL("currval"), source),
        }  # fmt: skip
        columns = {name: kind for name, kind in columns.items() if (table, name) != ("task_base", "number")}
        if table in _BY_NUMBER:
            id = self._value(model, ids, sequence, model.id, "text")
            of_task = sql.SQL("(SELECT b.number FROM {} AS b WHERE b.id = {})")
            given["number"] = of_task.format(sql.Identifier(self._schema, "task_base"), id)
        values = [
            given.get(name) or self._value(model, ids, sequence, row[name], kind) for name, kind in columns.items()
        ]
        return sql.SQL("INSERT INTO {} ({}) SELECT {} FROM generate_series(%(first)s::bigint, %(last)s) AS n").format(
            sql.Identifier(self._schema, table),
            sql.SQL(", ").join(map(sql.Identifier, columns)),
            sql.SQL(", ").join(values),
        )

    def _value(
        self, model: Model, ids: Mapping[str, str], sequence: sql.Composable, value: Any, kind: str
    ) -> sql.Composable:
        if isinstance(value, list) and any(isinstance(item, str) for item in value):
            items = [self._value(model, ids, sequence, item, "text") for item in value]
            return sql.SQL("ARRAY[{}]").format(sql.SQL(", ").join(items))
        if not isinstance(value, str) or kind not in _TEXTS:
            return sql.Literal(value)
        made: sql.Composable = sql.SQL("{}::text").format(value)
        for id, head in ids.items():
            if id in value:
                made = sql.SQL("replace({}, {}, {} || lpad(n::text, 10, '0'))").format(made, id, head)
        for token in model.tokens:
            if token in value:
                made = sql.SQL("replace({}, {}, {} || lpad(n::text, 10, '0'))").format(made, token, token[:-10])
        digits = sql.SQL("{}::text").format(sequence)
        ref, inside = f"{model.track}-{model.sequence:03d}", f'"sequence":{model.sequence},'
        if inside in value:
            made = sql.SQL("replace({}, {}, '\"sequence\":' || {} || ',')").format(made, inside, digits)
        if ref in value:
            made = sql.SQL("replace({}, {}, {} || lpad({}, greatest(3, length({})), '0'))").format(
                made, ref, f"{model.track}-", digits, digits
            )
        return made if kind == "text" else sql.SQL("{}::{}").format(made, sql.SQL(kind))
