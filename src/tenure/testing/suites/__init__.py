"""Suites that a third party subclasses to prove an adapter of its own.

    class TestMine(StoreSuite):
        def open_store(self, tmp_path, clock):
            return Mine(tmp_path / "store", clock=clock)

Every sentence of `tenure.stores.port` is a test here. A test that needs a feature is skipped where the store does not
declare it, never by the store's name.
"""
