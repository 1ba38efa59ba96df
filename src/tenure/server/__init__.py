"""`tenure serve`: the engine over HTTP, for a team.

A request is authenticated, routed by the table in `client/routes.py`, decoded into a command or a query, run by the
gatherer or in a reading thread, and answered with the outcome. No rule lives here. `app.py` is the way of a request,
`service.py` all that one process has, `serving.py` starts and ends it.
"""
