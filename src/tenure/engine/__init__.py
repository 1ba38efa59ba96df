"""The operations, run in batches inside one store transaction, and the duties that keep them prompt.

`Engine.run` takes commands and gives one outcome each: it begins a transaction, settles due rows, lets the handlers
decide with core's pure rules, saves rows and events together, and commits. `runtime/` is how a batch runs, `verbs/` the
commands, `reads/` the queries, `duties/` what the leader does; then the themes: `archive`, `artifacts`, `budgets`,
`checks`, `models`, `sources`, `verify`. May import core and the store port, never a store.

Inside, each command gets one of three kinds of reply (`runtime/unit_of_work.py`): an `Answer`, which is what the caller
gets, an outcome or an error; a `Deferred`, an answer that is built after the commit; and `RunAgain`, no answer yet.
What ends a transaction early is an exception named for its need: NeedsEvidence, NeedsMoreLocks. A `Context` has what
an engine works with; it is fixed when the engine is made.

To add a command: a struct with its declaration (theme, role, route) in core/commands/, a function in the module of its
theme and its line in that module's HANDLERS, a method of the client, a verb of the command line.
"""

from tenure.engine.runtime.context import Context, Random
from tenure.engine.runtime.engine import Engine
from tenure.engine.runtime.unit_of_work import Answer

__all__ = ["Answer", "Context", "Engine", "Random"]
