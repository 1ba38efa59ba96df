"""A worker stalls, another takes over and finishes, the first wakes and completes: whose result stands, tool by tool.

Each case is one small script in `cases/`, written as the tool's own documentation says (`roster.py` has the page), and
runs in separate processes. The referee in `referee.py` does the same to all of them: it stops the first worker with
SIGSTOP, waits for the tool's own recovery, wakes the first with SIGCONT, and reads the tool's own records.

To add one: a module in `cases/`, an entry in `roster.py`.
"""

from __future__ import annotations


def main(argv: list[str]) -> int:
    from bench.zombies.telling import main as tell  # the cases' own processes import this package, and lack its needs

    return tell(argv)
