"""One scripted agent of the demo, in a process of its own."""

from __future__ import annotations

import argparse
import signal
import sys
import time

from tenure.client import Client


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("what", choices=("work", "submit"))
    parser.add_argument("db")
    parser.add_argument("name")
    parser.add_argument("lease", type=float)
    parser.add_argument("work", type=float)
    parser.add_argument("--stall", action="store_true")
    parser.add_argument("--receipt", default="")
    options = parser.parse_args(argv)
    with Client(options.db, "demo", agent=options.name) as client:
        if options.what == "submit":
            outcome = client.submit(options.receipt, {"by": options.name}, "what I had when I died")
            print(f"{outcome.outcome}: {outcome.message}")
            return 0
        return _work(client, options)


def _work(client: Client, options: argparse.Namespace) -> int:
    while True:
        claim = client.claim(lease=options.lease, wait=30.0)
        if not claim.ok or claim.receipt is None or claim.task is None:
            return 0
        time.sleep(options.work / 2)
        client.progress(claim.receipt, 50, "half-way")
        if options.stall:
            print(claim.receipt, flush=True)
            signal.pause()  # until it is killed
        time.sleep(options.work / 2)
        client.submit(claim.receipt, {"by": options.name}, f"{claim.task['title']}: done")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
