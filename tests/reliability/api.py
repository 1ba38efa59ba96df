"""The HTTP API: thousands of requests made from its OpenAPI document, half of them broken, on a store with everything.

No answer is a server error; status, media type, headers and body are as the document says, with no field beside; what
breaks the document is refused; and at the end no promise of the store is broken.
"""

from __future__ import annotations

import argparse
import random
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tenure.client import Client
from tenure.server.openapi import document
from tests.reliability import results
from tests.server.api.fuzz import Fuzz
from tests.server.api.ground import names_of, served

MOST_SHOWN = 20


@contextmanager
def _store(on_postgres: bool) -> Iterator[str]:
    """The address of a new store."""
    if on_postgres:
        from tests.servers.postgres import PostgresServer

        with PostgresServer() as server:
            yield server.url
    else:
        with tempfile.TemporaryDirectory(prefix="tenure-proof-") as folder:
            yield str(Path(folder) / "tenure.db")


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="./x reliability api", description=(__doc__ or "").split("\n\n", maxsplit=1)[0]
    )
    parser.add_argument("--cases", type=int, default=5000)
    parser.add_argument("--postgres", action="store_true", help="on PostgreSQL instead of SQLite")
    parser.add_argument("--seed", type=int, default=None)
    options = parser.parse_args(argv)
    seed = random.randrange(1 << 32) if options.seed is None else options.seed
    began = time.monotonic()
    with _store(options.postgres) as store, served(store) as (server, rich):
        fuzz = Fuzz(server.url, document(), names_of(rich), seed)
        fuzz.run(options.cases)
        code = server.end()
        broken = [f"the server ended with {code}"] if code else []
        with Client(server.store, create=False) as client:
            broken += client.verify()
    reached = sum(any(status < 300 for status in seen) for seen in fuzz.reached.values())
    statuses = ", ".join(f"{count} × {status}" for status, count in sorted(fuzz.statuses.items()))
    print(
        f"seed {seed}: {fuzz.done} cases, {len(fuzz.reached)} operations ({reached} of them with effect),"
        f" {time.monotonic() - began:.0f} s\n{statuses}"
    )
    for finding in fuzz.findings[:MOST_SHOWN]:
        print(finding)
    for promise in broken:
        print(f"broken: {promise}")
    wrong = len(fuzz.findings) + len(broken)
    numbers: dict[str, results.Figure] = {
        "cases": fuzz.done,
        "operations": len(fuzz.reached),
        "with_effect": reached,
        "findings": wrong,
    }
    results.tell("api", numbers, variant="postgres" if options.postgres else "")
    print("every answer was as the document says" if not wrong else f"FAILED: {wrong} findings")
    return 1 if wrong else 0
