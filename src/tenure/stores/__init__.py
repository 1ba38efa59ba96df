"""Where state lives.

`port.py` is the contract; `memory`, `sqlite`, `postgres` and `mariadb` implement it; `sql` is shared by the SQL stores;
`open_store` opens the store of a URL. Stores import core and the port, and never each other. No rule lives here: a
store keeps rows, finds them and appends events; core decides what may happen to a row.

To add one: a module here that implements the port, its scheme in `open_store.py` (a third party: an entry point in the
group `tenure.stores`), and a subclass of `tenure.testing.StoreSuite`.
"""
