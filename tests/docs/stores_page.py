"""`stores.md`: what each store promises, from the features that it declares, and how fast it is, from the benchmark."""

from __future__ import annotations

from bench import recorded
from bench.report import Figure
from tenure.core import limits
from tenure.stores import port
from tenure.stores.mariadb import Mariadb
from tenure.stores.memory import Memory
from tenure.stores.postgres import Postgres
from tenure.stores.sqlite import Sqlite
from tenure.stores.valkey import Valkey
from tests.docs.tables import table

STORES = {"memory": Memory, "SQLite": Sqlite, "PostgreSQL": Postgres, "MariaDB": Mariadb, "Valkey, Redis": Valkey}
PROMISES = {
    port.DURABLE: "an acknowledged write survives kill -9 and a power cut",
    port.PROCESSES: "several processes use it at once",
    port.WAKE_UPS: "a commit of one process wakes those of others that wait for work",
    port.WRITERS: "projects are written to at the same time",
    port.TENANTS: "several tenants",
    port.SNAPSHOTS: "a read never has to be repeated",
    port.FAST_PATH: "claims, renewals and results in one round trip",
    port.BACKUP: "`tenure db backup`",
    port.HOST_CLOCK: "its time is the host's clock; elsewhere the server's",
}
FACTS: list[tuple[str, ...]] = [
    ("URL", "`memory://`", "a path", "`postgresql://`", "`mariadb://`", "`valkey://`, `redis://`"),
    ("install", "`tenure`", "`tenure`", "`tenure[postgres]`", "`tenure[mariadb]`", "`tenure[redis]`"),
    ("needs", "nothing", "a disk of this machine", f"PostgreSQL {limits.POSTGRES_OLDEST // 10_000}",
        f"MariaDB {limits.MARIADB_OLDEST // 100}.{limits.MARIADB_OLDEST % 100}", "Valkey 7.2, Redis 7"),
    (
        "settings that lose commits", "", "none", "are yours to avoid", "are refused",
        "are named by `doctor`; then it is not durable",
    ),
    (
        "after a failover", "", "no replicas", "nothing is lost on a synchronous standby",
        "commits may be lost; begin an epoch by hand", "commits may be lost; a new epoch begins by itself",
    ),
    ("tenants kept apart by", "the program", "there is one",
        "the program; also row-level security, own tables, own store",
        "the program; also own store", "the program; also own store"),
    ("backed up by", "", "`tenure db backup`", "`pg_dump`", "`mariadb-dump`", "`BGSAVE`"),
    ("where the data is", "memory", "one file", "disk", "disk", "memory, and a log on disk"),
    ("how-to", "", "[back up](../how-to/back-up.md)", "[PostgreSQL](../how-to/run-on-postgres.md)",
     "[MariaDB](../how-to/run-on-mariadb.md)", "[Valkey](../how-to/run-on-valkey.md)"),
]  # fmt: skip
CHOICE = """\
- **One machine**: SQLite. Nothing to install, nothing to run.
- **Several machines, or many teams**: PostgreSQL. It has been tested longest, and keeps many tenants.
- **Your team already runs MariaDB**: MariaDB. The same promises; commits to the log wait for each other.
- **Your team already runs Valkey or Redis**, and the work fits into memory: Valkey. Read first what a
  failover may lose.
- **Tests**: memory.
"""


def page() -> str:
    names = tuple(STORES)
    promises = [
        (text, *("yes" if feature in store.features else "" for store in STORES.values()))
        for feature, text in PROMISES.items()
    ]
    return (
        "# Which store\n\nEvery command works the same on each of them, and `tenure db copy` moves projects in every "
        f"direction.\n\n{CHOICE}\n## Promises\n\nAs each store declares them, and the shipped suites test them; Valkey "
        "with the settings of [its page](../how-to/run-on-valkey.md#settings-of-the-server).\n\n"
        + table(("", *names), promises)
        + f"\n## Side by side\n\n{table(('', *names), FACTS)}\n"
        + "MySQL 8 is untested: `mysql://` opens MariaDB alone. Connections of a process: at most "
        + f"{limits.POOL:,}.\n"
        + _speed()
    )


def _speed() -> str:
    found = {record.name: record for record in recorded.here()}.get("stores")
    if found is None:
        return ""
    rates: dict[str, dict[str, Figure]] = {}
    memory = ""
    for figure in found.figures:
        store, _, what = figure.name.partition(": ")
        if figure.unit == "bytes":
            memory = f"\nValkey keeps {figure.value / 1000:.1f} kB of memory for a task of this benchmark.\n"
        else:
            rates.setdefault(store, {}).setdefault(what, figure)
    whats = list(next(iter(rates.values())))
    rows = [(store, *(f"{ours[what].value:,.0f}" for what in whats)) for store, ours in rates.items()]
    return (
        "\n## Speed\n\nTasks a second by one process, all stores in one run on one disk, every commit synced; only "
        f"their ratios mean something elsewhere. `{found.command}`, {found.date}, {found.machine}.\n\n"
        + table(("", *whats), rows)
        + "\nThe ordinary path is what PostgreSQL does for tasks that are not plain.\n"
        + memory
    )
