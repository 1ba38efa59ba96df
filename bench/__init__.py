"""Measurements: `./x bench NAME`. Not shipped, not part of the tests' verdict.

Absolute figures move with the machine and with its neighbours, so every figure that has a goal is a ratio to a
baseline that was measured in the same run, turn by turn with ours. Each run checks what it measured: a fast answer
that is wrong ends the run with an error.

To add one: a module or package here with a docstring, whose first line is its help, and `main(argv) -> int`.
"""
