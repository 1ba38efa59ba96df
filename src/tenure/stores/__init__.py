"""Where state lives.

`port.py` is the contract; `memory` and `sqlite` fulfil it; `sql` is what SQL stores share; `opening.open_store` turns a
URL into a store. Stores import core and the port, and never each other. No rule lives here: a store keeps rows,
finds them and appends events; what may happen to a row is decided in core.

To add one: a module here that fulfils the port, its scheme in `opening.py` (a third party: an entry point in the group
`tenure.stores`), and a subclass of `tenure.testing.StoreSuite`.
"""
