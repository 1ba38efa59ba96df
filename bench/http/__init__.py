"""`tenure serve`, one process: single claims and claims of 50 over HTTP, and 10,000 agents that wait for work.

    measuring.py   the parts of a run, their rounds, the figures
    load.py        the callers: one process, raw connections, no more Python for each answer than it takes to read it
    bare.py        the same application without an engine: what HTTP, routing and JSON cost by themselves

Ratios only: single claims against the bare route, claims of 50 against the same commands in this process.
"""

from __future__ import annotations


def main(argv: list[str]) -> int:
    from bench.http.measuring import main as measure  # needs packages that may not be installed

    return measure(argv)
