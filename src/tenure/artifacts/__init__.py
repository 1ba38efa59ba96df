"""Where big outputs live: content kept under its SHA-256.

`port.py` is the contract; `memory`, `local` and `s3` implement it; `open_artifacts` opens the one of a URL; `placement`
writes an artifact into a folder under its name. They import core and the port, and never each other. The store's rows
have the task, the name and the readers of an artifact.

To add one: a module here that implements the port, its scheme in `open_artifacts.py` (a third party: an entry point in
the group `tenure.artifacts`), and a subclass of `tenure.testing.suites.artifact_suite.ArtifactSuite`.
"""
