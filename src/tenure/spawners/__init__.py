"""Spawners: the parts that start agents for a pool, on this machine or on another.

`port.py` is the contract; `local.py`, `gateway.py` and `command.py` are the spawners; `settings.py` reads them from
`[spawners.NAME]` and `[programs.NAME]`, and `open_spawner.py` opens one. May import config and below.
"""
