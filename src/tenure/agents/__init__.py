"""Support for CLI agents: identity, setup, runner, receipts, worktrees.

`identity.py` has the table of the CLI agents and determines who runs a command; `receipts.py` keeps the receipts of a
session. `worktrees.py` creates a checkout for a claim, `land.py` merges it into a branch behind the fence
in `fences.py`. May import client and below. To add an agent: a line in `identity.py`, a recipe, a reader of its
output.
"""
