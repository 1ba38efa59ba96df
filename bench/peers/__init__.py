"""Drain, enqueue and pick-up of other queues, of a plain loop and of tenure, all in one run against the raw limit.

Each peer is one small module in `tools/` with the interface of `speaking.Tool`. It runs in separate processes with
the packages of `requirements.txt` (installed by `install.py` into a venv apart) and talks in JSON lines: nothing of
theirs is imported into ours.

To add one: a module in `tools/`, a line in `roster.py`, its package and version in `requirements.txt`.
"""

from __future__ import annotations


def main(argv: list[str]) -> int:
    from bench.peers.measuring import (
        main as measure,
    )  # the peers' own processes import this package, and lack its needs

    return measure(argv)
