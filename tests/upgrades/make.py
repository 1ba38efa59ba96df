"""Make the fixture of a release: stores that its own code filled, as they lie on disk, for the next release to open.

    python tests/upgrades/make.py --source CHECKOUT_OF_THE_RELEASE --to tests/upgrades/0001

`--source` is a checkout (or an installation) of the released code: its `src/` is imported instead of this one. Writes
`sqlite.db.gz`, `postgres.sql.gz` (a plain dump of one schema) and `told.json`: receipts and answers that were handed
out. PostgreSQL is started for it; `pg_dump` must be of the same major version or newer, and of 15 so that 15 loads it.
"""

from __future__ import annotations

import argparse
import gzip
import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
SCHEMA = "tenure_upgrade_fixture"  # a name that stands nowhere else in the dump: the test puts its own in

ELSEWHERE = "elsewhere"  # where a store was last opened, the same in every run


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--source", type=Path, required=True, help="checkout of the released code")
    parser.add_argument("--to", type=Path, required=True, help="folder of the fixture")
    asked = parser.parse_args()
    source = (asked.source / "src").resolve()
    sys.path[:0] = [str(source), str(ROOT)]
    import tenure

    if not Path(tenure.__file__).is_relative_to(source):
        sys.exit(f"tenure comes from {tenure.__file__}, not from {source}")
    asked.to.mkdir(parents=True, exist_ok=True)
    told = {"sqlite": sqlite(asked.to), "postgres": postgres(asked.to)}
    (asked.to / "told.json").write_text(json.dumps(told, indent=1) + "\n")


def sqlite(target: Path) -> dict[str, Any]:
    import apsw

    from tenure.stores.sqlite import Sqlite
    from tests.upgrades.world import Dice

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "store.db")
        told = filled(lambda clock: Sqlite(str(path), clock=clock, random=Dice("epoch").token))
        copy = Path(folder, "copy.db")
        store = Sqlite(str(path))
        store.backup(str(copy))
        store.close()
        link = apsw.Connection(str(copy))
        link.execute(f"UPDATE meta SET place = '{ELSEWHERE}'")
        link.close()
        write(target / "sqlite.db.gz", copy.read_bytes())
    return told


def postgres(target: Path) -> dict[str, Any]:
    from tenure.stores.postgres import Postgres
    from tests.servers.postgres import PostgresServer, program
    from tests.upgrades.world import Dice

    server = PostgresServer()
    try:
        server.start()
        url = f"{server.url}?schema={SCHEMA}"
        told = filled(lambda clock: Postgres(url, clock=clock, random=Dice("epoch").token), also="acme")
        for table in ("meta", "epoch"):
            server.ask(f"UPDATE {SCHEMA}.{table} SET place = '{ELSEWHERE}'")
        server.ask(f"UPDATE {SCHEMA}.migration SET applied_at = '2026-01-01'")
        text = subprocess.run(
            [shutil.which("pg_dump") or program().parent / "pg_dump", f"--schema={SCHEMA}", "--no-owner",
             "--no-privileges", "--inserts", "--rows-per-insert=50", server.url],
            check=True, capture_output=True, text=True,
        ).stdout  # fmt: skip
    finally:
        server.stop()
    # what only psql understands, and a setting that older servers lack
    lines = [line for line in text.splitlines() if not line.startswith(("\\", "SET transaction_timeout"))]
    write(target / "postgres.sql.gz", "\n".join(lines).encode())
    return told


def filled(opening: Any, also: str | None = None) -> dict[str, Any]:
    """Fill a new store; `also`: for a second tenant too. What the test has to know of it."""
    from tenure.testing.clock import FakeClock
    from tests.upgrades.looks import looks
    from tests.upgrades.world import World, fast, fill

    clock = FakeClock()
    store = opening(clock)
    world = World(store, clock, "first")
    fill(world)
    if also is not None:
        fast(World(store, clock, "second", tenant=also))
    with store.begin("local", write=False) as tx:
        epoch = tx.epoch
    seen = looks(world.engine)
    store.close()
    told = {"now": clock.now, "epoch": epoch, "steps": store.schema, "looks": seen}
    return {**told, "receipts": world.receipts, "repeats": world.repeats}


def write(path: Path, content: bytes) -> None:
    with path.open("wb") as file, gzip.GzipFile("", "wb", 9, file, mtime=0) as packed:
        packed.write(content)


if __name__ == "__main__":
    main()
