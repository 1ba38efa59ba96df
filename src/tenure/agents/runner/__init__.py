"""`tenure run`: claims tasks, starts CLI agents on them without a terminal, submits their results.

`runner.py` has the slots and the signals; `slot.py` runs one attempt (`attempt.py`) after another; `held_claim.py`
renews the lease in a thread; `conclusion.py` reports the end of an attempt to the store. `prompt.py` writes the prompt,
`clis/` start each CLI and read its output, `outbox.py` keeps finished work until the store has answered,
`attempt_files.py` keeps transcript and inputs, `neighbours.py` finds who else works in the checkout. Agents run below
`tenure.processes.supervisor`. May import client and below.

To add an agent: a module in `clis/` with a `Cli` and its line in `clis/__init__.py`.
"""
