"""Real servers for tests and measurements: found or installed, started on free ports, stopped also after a failure.

For root, a missing server is installed with apt. If that fails, `processes.Unavailable` is raised; `fixtures.py` turns
it into a failure for root, who could have installed the server, and into a skip for any other user.
Each module has one class for its server, with `start` and `stop`; it works in a `with` statement too.
"""
