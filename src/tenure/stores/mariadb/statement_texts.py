"""The statement texts that are not made from a struct."""

from __future__ import annotations

from functools import cache
from typing import Any

from tenure.core.filters import Where
from tenure.core.records import KINDS, Claim, Row, Task
from tenure.stores.sql.codec import columns_of
from tenure.stores.sql.statements import Dialect, Statement, Table


class TaskTable(Table[Task]):
    """All tasks of some states are found by their index, whatever the server knows of the table by then."""

    def finding(
        self, tenant: str, where: Where, order: str, after: tuple[Any, str] | None, limit: int | None
    ) -> Statement:
        text, values = super().finding(tenant, where, order, after, limit)
        if limit is None and where.keys() == {"project", "state"}:
            text = text.replace(f"FROM {self.place}", f"FROM {self.place} FORCE INDEX (task_state)", 1)
        return text, values


def table_for(kind: type[Row], dialect: Dialect) -> Table[Any]:
    return TaskTable(Task, dialect) if kind is Task else Table(kind, dialect)


# The text search excludes nearly all rows before any JSON is parsed.
DIALECT = Dialect(
    contains="({} <> '[]' AND instr({}, ?) > 0 AND JSON_CONTAINS({}, ?))",
    contains_values=("json", "json"),
    row_values=False,
    tables=table_for,
)

# From a receipt's ref and generation to its claim, and to the claim's holder: every step is a lookup by a unique key.
_OF_RECEIPT = """FROM "task" AS t
STRAIGHT_JOIN "claim" AS c ON c.tenant = t.tenant AND c.project = t.project AND c.task = t.id{more}
WHERE t.tenant = ? AND t.project = ? AND t."ref" = ? AND c.generation = ?"""
_HOLDER = '\nSTRAIGHT_JOIN "{table}" AS h ON h.tenant = c.tenant AND h.project = c.project AND h.id = c."{table}"'


@cache
def of_receipt(kind: type[Row]) -> str:
    """The claim, agent or session of a receipt."""
    alias, more = ("c", "") if kind is Claim else ("h", _HOLDER.format(table=KINDS[kind].table))
    names = ", ".join(f'{alias}."{column.name}"' for column in columns_of(kind))
    return f"SELECT {names} {_OF_RECEIPT.format(more=more)}"


# Sessions are READ COMMITTED: each statement sees everything that was committed before it, and with the project's turn
# held no more can follow.
BEGIN_WRITE = "START TRANSACTION READ WRITE"
# One moment for all statements. The clock is read before: no lease that was renewed looks expired.
SNAPSHOT = "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ"
BEGIN_READ = "START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY"
CLOCK = "SELECT CAST(UNIX_TIMESTAMP(SYSDATE(6)) * 1000000 AS INTEGER)"

# In the given order, which must be the same for every transaction. The row stays after the commit. It is changed: a
# node of a cluster that meanwhile commits another's turn of the same project ends this transaction with a deadlock.
TURN, TURN_ROW = "INSERT INTO turn (tenant, project) VALUES ", "(?, ?)"
TURN_TAKEN = " ON DUPLICATE KEY UPDATE held = held + 1"
# After the turns. Held by every writer until its end: a new epoch and a breaking migration wait.
META = "SELECT breaking, epoch FROM meta"
META_SHARED = f"{META} LOCK IN SHARE MODE"
META_ALONE = f"{META} FOR UPDATE"
# Before an epoch begins in a cluster. A node compares what transactions at two nodes have written, not what they have
# read. Every writer has written a turn of its tenant, so this ends those at other nodes that began by the former epoch.
# One that makes the turn of a new project changes the tenant's first one too.
FIRST_TURN = ""  # a project's name that sorts before all others
TURNS_OF_TENANT = "UPDATE turn SET held = held + 1 WHERE tenant = ? ORDER BY project"
ALL_TURNS = "UPDATE turn SET held = held + 1 ORDER BY tenant, project"
HEAD = """
SELECT (SELECT epoch FROM epoch WHERE tenant = ?), (SELECT last FROM log_end),
    (SELECT "time" FROM event WHERE tenant = ? ORDER BY tenant DESC, "sequence" DESC LIMIT 1)
"""

_READY_INDEX = "FROM task FORCE INDEX (task_ready) WHERE tenant = ? AND project = ?"
_NEXT_LANE = f"(SELECT lane_hash {_READY_INDEX} AND lane_hash {{}} ORDER BY lane_hash LIMIT 1)"
# From the index alone.
_READY = f'SELECT band, "rank", "sequence", id, plain {_READY_INDEX} AND lane_hash = ?'
_IN_ORDER = 'ORDER BY band, "rank", "sequence", id LIMIT ?'
READY = f"{_READY} {_IN_ORDER}"
# The first tasks of each lane, with its name. One step in the index from lane to lane, however long a lane is: the
# server's planner would walk through all of them for a GROUP BY.
LANES = f"""BEGIN NOT ATOMIC
DECLARE tenure_lane BINARY(32) DEFAULT {_NEXT_LANE.format("IS NOT NULL")};
WHILE tenure_lane IS NOT NULL DO
    SELECT lane, band, "rank", "sequence", id, plain {_READY_INDEX} AND lane_hash = tenure_lane {_IN_ORDER};
    SET tenure_lane = {_NEXT_LANE.format("> tenure_lane")};
END WHILE;
END"""
# `>` of two rows, spelled out: only so the server reads ranges of the index.
READY_AFTER = f"""{_READY} AND (band > ? OR band = ? AND "rank" > ? OR band = ? AND "rank" = ? AND "sequence" > ?
    OR band = ? AND "rank" = ? AND "sequence" = ? AND id > ?) {_IN_ORDER}"""
DUE = "FORCE INDEX (task_due) WHERE tenant = ? AND project = ? AND due_at <= ? ORDER BY due_at, id LIMIT ?"
# Every project that was ever written to has its turn.
PROJECTS = "SELECT project FROM turn WHERE tenant = ? ORDER BY project"
NEXT_DUE = """
SELECT due_at FROM task FORCE INDEX (task_due) WHERE tenant = ? AND project = ? AND due_at IS NOT NULL
ORDER BY due_at LIMIT 1
"""

# In a block: how many rows its changes have touched. 1020 is the server's own "record has changed since last read". A
# variable hides a column of its name.
TOUCHED = "DECLARE tenure_touched INT DEFAULT 0;"
COUNT_TOUCHED = "SET tenure_touched = tenure_touched + ROW_COUNT();"
ALL_TOUCHED = (
    "IF tenure_touched <> %d THEN SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = 1020,"
    " MESSAGE_TEXT = 'a row is not as it was loaded'; END IF;"
)

# The last statements before COMMIT: the next transaction waits for it, so sequences are in the order of commits.
TAKE_SEQUENCES = "UPDATE log_end SET last = LAST_INSERT_ID(last + ?)"
SET_EPOCH = """
INSERT INTO epoch (tenant, epoch, place) VALUES (?, ?, ?)
ON DUPLICATE KEY UPDATE epoch = VALUES(epoch), place = VALUES(place)
"""
SETTLE_META = "UPDATE meta SET epoch = ?, place = ? WHERE place <> ?"
# A different epoch for each tenant: the receipts of one must not be valid for another. The mark of a move stays.
SETTLE_TENANTS = (
    "UPDATE epoch SET epoch = concat(left(md5(tenant || ?), 8), substr(epoch, 9)), place = ? WHERE place <> ?"
)
KEEP_OWN = "INSERT IGNORE INTO epoch (tenant, epoch, place) SELECT ?, epoch, place FROM meta"
BEGIN_META = "UPDATE meta SET epoch = ?, place = ?"
BEGIN_TENANTS = (
    "UPDATE epoch SET epoch = concat(left(md5(tenant || ?), 8), substr(epoch, 9)), place = ? WHERE tenant <> ?"
)
# Every project that was ever written to has its turn.
OTHER_TENANTS = "SELECT tenant FROM epoch WHERE tenant <> ? UNION SELECT tenant FROM turn WHERE tenant <> ?"
TENANTS_TO_SETTLE = """
SELECT tenant FROM epoch WHERE place <> ?
UNION SELECT tenant FROM turn WHERE (SELECT place FROM meta) <> ? AND tenant NOT IN (SELECT tenant FROM epoch)
"""
LOG_END = "SELECT last FROM log_end"
# One step in the key of the log for each tenant of the list, which is a JSON array.
MARKS = """
SELECT g.tenant, coalesce((SELECT e."sequence" FROM event AS e WHERE e.tenant = g.tenant
    ORDER BY e.tenant DESC, e."sequence" DESC LIMIT 1), 0)
FROM JSON_TABLE(?, '$[*]' COLUMNS (tenant VARCHAR(64) CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin PATH '$')) AS g
"""
