"""The rules: what may happen to tasks, claims, graphs, agents and leaders, as pure functions over frozen rows.

No I/O, no clock, no randomness: time, ids and chance are handed in. `lifecycle` has the one table of moves, `claims`
the fence, `settle` what time brings, `graph` dependencies and dags, `priority` the order of the claim, `eligibility`
who may take what, `retry` failures. `records` are the rows, `commands` the questions, `outcomes` and `errors` the
answers. Imports nothing of tenure but itself. To add a rule: here, and nowhere else.
"""
