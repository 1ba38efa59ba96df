"""The commands, one module per theme: what each command checks, changes and returns.

Every function takes the unit of work and one command and returns an outcome, or raises. It decides by core's rules
only. A module lists its functions in HANDLERS; `runtime/decision.py` imports it with its first command.
"""
