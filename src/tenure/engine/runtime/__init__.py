"""How a batch runs: one store transaction, settled first, one outcome for each command.

`engine.py` begins the transaction and lets handlers decide; `unit_of_work.py` holds the rows they read and change and
the events they append; `effects.py` brings due rows up to `now` before anything is decided; `batcher.py` batches single
commands of many callers; `fast_path/` runs claim, renew and complete as one statement each where the store can;
`optimistic.py` decides when that is tried first. `decision.py` finds the function of a command.

To add a mechanism here, explain in its docstring why no existing one does.
"""
