"""The operations, run in batches inside one store transaction, and the duties that keep them prompt.

`Engine.run` takes commands and gives one outcome each: it begins a transaction, settles due rows, lets the handlers
decide with core's pure rules, saves rows and events together, and commits. `runtime/` is how a batch runs, `verbs/` the
commands, `reads/` the queries, `duties/` what the leader does; then the themes: `archive`, `artifacts`, `budgets`,
`checks`, `models`, `sources`, `verify`. May import core and the store port, never a store.

To add a command: a struct with its declaration (theme, role, route) in core/commands/, a function in the module of its
theme and its line in that module's HANDLERS, a method of the client, a verb of the command line.
"""

from tenure.engine.runtime.engine import Answer, Engine
from tenure.engine.runtime.unit_of_work import Random

__all__ = ["Answer", "Engine", "Random"]
