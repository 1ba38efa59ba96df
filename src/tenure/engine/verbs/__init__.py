"""The commands, one module a theme: what each one checks, changes and answers.

Every function takes the unit of work and one command and returns an outcome, or raises. It decides by core's rules
only. A module lists its functions in HANDLERS; `runtime/handlers.py` imports it with its first command.
"""
