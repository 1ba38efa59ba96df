"""Is the output good? What an output contract names: `json-schema`, `regex`, `test-pass`, `llm-judge`.

`port.py` is the contract; `known.py` the table of names, which third parties extend with entry points in the group
`tenure.validators`. A validator gets the settings of the output contract and the output, and gives a verdict; it knows
neither task nor store. What could take long or never end does so in another process, with a limit that ends it:

- `schemas`, `patterns`: in `workers`, a few processes that run `checker.py`, for one second;
- `commands`: a named command of trusted configuration, kept by `keeper.py`, which leaves nothing of it behind;
- `judging`: a model's opinion, by one of the ways in `judges/`.

They import core alone. To add one: a module here that fulfils the port, a line in `known.py`, and a subclass of
`tenure.testing.suites.validators.ValidatorSuite`.
"""
