"""Relays: from the log to a sink, each event at least once, in order, none skipped.

A relay is one thread for each sink, in a process that leads. It is not a duty of the coordinator's thread: a
sink that hangs for ten seconds must not delay a lease. The loop reads a page below the log's safe end (`lock("log")`),
sends it, and moves the sink's row in a transaction that checks the leader's term.

The term fences the row, not the send. A relay whose lease is over by its own clock sends nothing more; the page of a
deposed relay may be sent again by its successor, with the same message ids. A crash between the acknowledgement and the
write of the row has the same effect. Nothing here takes a lock that a claim needs: a page is one read, and one write of
one row.

`leader_thread.py` is the loop, `page.py` reads the log and what envelopes need beside it, `relay.py` sends a page,
`announce.py` repeats the commands of tasks that stay ready, `lag.py` cuts off a sink that is too far behind,
`relay_verbs.py` has the commands and queries. `webhook_relay.py` and `webhook_verbs.py` are the same for webhooks,
`reader.py` with `hook_reader.py` and `notice_reader.py` for local hooks and notices.
"""
