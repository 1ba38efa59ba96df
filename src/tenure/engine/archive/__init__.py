"""Finished tasks in the archive: moved there, read back when somebody names them, deleted in time.

`mover.py` moves and prunes; `recall.py` brings a task back; `totals.py` keeps what is counted of tasks that are no
longer rows; `log_readers.py` keeps events that a reader of the log has not passed yet.
"""
