"""A project as it was: the rows of an earlier moment, rebuilt from the log, for the queries that take `at`.

Replay gives the rows: every event up to the moment is applied in the order of the log, with the code that `verify`
compares the whole log by (`verify/replay.py`). The query then runs on these rows as on any others, in a unit of work
whose `now` is the moment. Nothing is written, and no query has code for the past.

What the log alone does not record is taken from elsewhere, or left out:

- **Archived tasks.** Events of an archived task are in its document. A task that was in the archive at the moment and
  has not changed since is taken as it is; the events of the others are merged into the log, by sequence. A task that
  was in the archive then and returned since is put back there, from the rows that `archive.returned` states.
- **Due, not yet written.** Reads show rows brought up to `now`, so the rebuilt rows are settled as well. Renewals are
  not logged: whether a lease had ended is read from the later event that reports it (`task.lease_expired`), or from the
  claim, if it is still the same. A lease that had not ended has no known end, and is shown without one.
- **Usage** has no events. A usage row counts if it last grew before the moment. So the usage of a claim that went on
  reporting after it is missing: see `past_budgets.py`.
- **Presence**: an agent was last seen with its last event.
- **Large values** are found by their hash, here or in archived documents.
- **Retention.** What it deleted is gone. A task is deleted only after it was archived for as long as the retention, so
  moments after that horizon lack only tasks that nobody saw in lists; earlier ones are refused (HISTORY_PRUNED).

Instants are those of the store's clock. Where a person has set it back (`clock.accepted`), an instant that happened
twice means the second time.

A new kind of row needs nothing here if its events restore it. One without events is missing in the past, unless it is
added to `rebuild.py`.
"""
