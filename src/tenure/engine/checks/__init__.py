"""Validation of submitted results: evidence collected outside of the transaction, verdicts, and what follows."""
