"""Seeded bugs of what is sent again, of modes, readers of the log, and agents that an operator has stopped."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

REPEATS = (
    Mutant(
        "a reservation keeps its mode",
        "engine/reserving.py",
        "[replace(mine[p], mode=mode) for p",
        "[mine[p] for p",
    ),
    Mutant(
        "a mode is raised without a look at others",
        "engine/reserving.py",
        "    if other is not None:",
        "    if other is not None and not (cmd.receipt and cmd.mode == 'exclusive' and other.mode == 'shared'):",
    ),
)
