"""`tenure serve`: the engine over HTTP, for a team.

A request is authenticated, routed by the table in `client/routes.py`, decoded into a command or a query, run by the
batcher or in a reader thread, and answered with the outcome. No rule is decided here. `app.py` handles a request,
`service.py` holds the parts of one process, `serve.py` starts and ends it.
"""
