"""The operations, run in batches inside one store transaction, and the loops that keep them true.

`Engine.run` takes commands and gives one outcome each: it begins a transaction, settles what is due, lets the
handlers decide with core's pure rules, saves rows and events together, and commits. One module holds the verbs of
one theme; `handlers.py` is the table of all. May import core and the store port, never a store.

To add a command: a struct in core/commands/, its role in core/roles.py, a function in the module of its theme and
its line in that module's HANDLERS.
"""

from tenure.engine.engine import Answer, Engine
from tenure.engine.work import Chance

__all__ = ["Answer", "Chance", "Engine"]
