"""The queries: what each one answers, from rows brought up to `now`. They write nothing.

A module lists its functions in READS; `query_table.py` imports it with its first query.
"""
