"""The agents that people run, and what tenure does for them: recognising, setting up, starting, keeping receipts.

`known.py` is the table of the CLI agents; `identity.py` says who speaks; `receipts.py` keeps what a session holds.
`worktrees.py` gives a claim its own checkout, `landing.py` merges it into a branch behind the fence in `fences.py`.
May import client and below. To add an agent: a line in `known.py`, a recipe, a reader of its output.
"""
