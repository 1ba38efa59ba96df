"""Spawners: the parts that start agents for a pool, on this machine or on another.

`port.py` is the contract; `local.py`, `gateway.py` and `command.py` are the spawners, `children.py` the processes on
this machine, `programs.py` what may be started, `gateway_wire.py` the JSON of gateways. `settings.py` reads
`[spawners.NAME]`, `[programs.NAME]` and `[gateway]`. May import config and below.
"""
