"""`tenure run`: claims tasks, starts CLI agents on them without a terminal, hands in what they made.

`runner.py` has the slots and the signals; `slot.py` is one place where agents work, one after another; `holding.py`
keeps a lease in a thread of its own; `keeper.py` is the process above each agent, `keeping.py` the runner's end of it.
`prompt.py` says what an agent is told, `clis/` how each CLI is started and its output read, `outbox.py` keeps finished
work until the store has answered, `transcripts.py` what an agent said. May import client and below.

To add an agent: a module in `clis/` with a `Cli` and its line in `clis/__init__.py`.
"""
