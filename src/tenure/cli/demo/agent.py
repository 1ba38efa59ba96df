"""One scripted agent of the demo, in its own process.

A line on its stdin starts it, and with --patient another one after its first task; it ends with its stdin, so that no
agent outlives its parent.
"""

from __future__ import annotations

import argparse
import os
import queue
import signal
import sys
import threading
import time

from tenure.client import Client


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("db")
    parser.add_argument("name")
    parser.add_argument("--lease", type=float, required=True)
    parser.add_argument("--work", type=float, required=True)
    parser.add_argument("--patient", action="store_true", help="wait for another line after the first task")
    parser.add_argument("--stall", action="store_true", help="stop in the middle of the first task; print its receipt")
    options = parser.parse_args(argv)
    words: queue.Queue[str] = queue.Queue()
    threading.Thread(target=_listen, args=(words,), daemon=True).start()
    with Client(options.db, "demo", agent=options.name, create=False) as client:
        client.register(type="scripted")
        return _work(client, options, words)


def _listen(words: queue.Queue[str]) -> None:
    for line in sys.stdin:
        words.put(line)
    os._exit(0)


def _work(client: Client, options: argparse.Namespace, words: queue.Queue[str]) -> int:
    words.get()
    while True:
        claim = client.claim(lease=options.lease, wait=30.0)
        if not claim.ok or claim.receipt is None or claim.task is None:
            return 0
        for percent in (25, 50):
            time.sleep(options.work / 4)
            client.progress(claim.receipt, percent)
        if options.stall:
            print(claim.receipt, flush=True)
            signal.pause()  # until it is killed
        time.sleep(options.work / 2)
        client.submit(claim.receipt, {"by": options.name}, f"{claim.task['title']}: done")
        if options.patient:
            options.patient = False
            words.get()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
