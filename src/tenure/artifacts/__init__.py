"""Where big outputs live: content kept under its own SHA-256.

`port.py` is the contract; `memory`, `local` and `s3` fulfil it; `opening.open_artifacts` turns a URL into one of them;
`placing` writes an artifact into a folder under its name. They import core and the port, and never each other.
Which task an artifact belongs to, what it is called and who may read it is in the store's rows, not here.

To add one: a module here that fulfils the port, its scheme in `opening.py` (a third party: an entry point in the group
`tenure.artifacts`), and a subclass of `tenure.testing.suites.artifacts.ArtifactSuite`.
"""
