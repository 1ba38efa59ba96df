"""Real servers, for tests and measurements: found or installed, started on free ports, ended whatever happens.

As root a server that is missing is installed with apt. One that cannot be had raises `processes.Unavailable`; for tests
`fixtures.py` makes that a failure where root runs them, since root could have had it, and a skip for anybody else.
A module here has one class for its server, with `start` and `stop`, and for use in a `with`.
"""
