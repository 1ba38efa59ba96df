"""Several processes that serve one store on one port: `tenure serve --workers N`.

    supervisor.py     the parent: starts the workers, starts one again that died, ends them; has no store and no thread
    shared_table.py   memory that all of them share: rates, lockouts, sessions of the token's owner
    peers.py          calls from one worker to another, for what only one of them has: an MCP session, its counters
    added_metrics.py  the metrics of all of them as one page

Each worker is a whole server otherwise: it has its own batcher and its own feed, and one of them leads the store.
"""
