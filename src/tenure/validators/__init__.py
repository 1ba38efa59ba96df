"""Validators of output contracts: `json-schema`, `regex`, `test-pass`, `llm-judge`.

`port.py` is the contract; `known.py` the table of names, which third parties extend with entry points in the group
`tenure.validators`. A validator gets the settings of the output contract and the output, and returns a verdict; it
knows neither task nor store. Checks that could take long run in another process, with a limit:

- `schemas`, `patterns`: in `workers`, a few processes that run `checker.py`, for one second;
- `commands`: a named command of trusted configuration, below `tenure.processes.supervisor`;
- `llm_judge`: the score of a model, by one of the transports in `judges/`.

They import core and processes. To add one: a module here that fulfils the port, a line in `known.py`, and a subclass of
`tenure.testing.suites.validators.ValidatorSuite`.
"""
