"""Sinks: where events go. Brokers, webhooks, local commands, mail.

The database is the authority; a sink carries. Delivery is at least once, in the order of the log: a relay reads a page
of committed events, sends it, and then moves its cursor (`engine/relay`). A message that comes again has the same
`message_id`, and whatever a message asks for is decided by a claim in the store. So a sink may be slow, down or wiped
without any task being lost or done twice.

`port.py` is the contract, `envelope.py` the message, `names.py` its subjects and routing keys; one module a sink.
"""
