"""Real servers for the tests: found or installed, started once a session on free ports, ended whatever happens.

As root a server that is missing is installed with apt, and one that cannot be had fails its tests; for any other user
it is named and its tests are skipped. A module here has one class for its server; `fixtures.py` hands them out.
"""
