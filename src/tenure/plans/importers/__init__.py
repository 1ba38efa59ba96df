"""Importers: read the work of another tool into items, of which `item_plan` makes a plan.

`port.py` is the contract. Those shipped here are listed in `registry.py`; others announce an `Importer` as an entry
point of the group `tenure.importers`, named as `tenure import NAME` calls it, and prove it with the suite
`tenure.testing.suites.importers`.
"""
