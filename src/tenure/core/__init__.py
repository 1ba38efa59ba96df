"""The rules: what may happen to tasks, claims, graphs, agents and leaders, as pure functions over frozen rows.

No I/O, no clock, no randomness: time, ids and random numbers are arguments. `lifecycle` has the one table of moves,
`claims` the fence, `settle` what falls due, `graph` dependencies and dags, `priority` the order of the claim,
`eligibility` who may claim what, `retry` failures. `records` are the rows, `commands` and `queries` the input,
`outcomes` and `errors` the answers. Imports nothing of tenure but itself. To add a rule: here, and nowhere else.
"""
