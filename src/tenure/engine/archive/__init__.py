"""The archive of finished tasks: moved there, read back on request, deleted when their time is over.

`mover.py` moves and prunes; `recall.py` brings a task back; `totals.py` keeps the counts of tasks that no longer have
rows; `log_readers.py` keeps events that a reader of the log has not passed yet.
"""
