"""The parts of `EngineSuite`: what must be true of the engine on every store, one theme a module.

Each part is a class of pytest tests over a `scene` (see `tenure.testing.factories`); at the end of each test the whole
store is verified, the log replayed, and searched for secrets. Imports the engine and the stores' port, no store.
To add one: a module here with a class on `Stage`, and its name in `tenure.testing.engine_suite`.
"""
