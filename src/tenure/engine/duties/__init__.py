"""What the leader does without being asked: sweeps, schedules, triggers, the archive, retention.

`election.py` has the table of duties and the transactions that fence them by the leader's term; `coordinator.py` is
the thread that runs them. A duty writes only through the engine it is given, which checks the term in each write.
"""
