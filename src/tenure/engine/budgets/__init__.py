"""Budgets: reserved with a claim, spent under it, given back at its end; how they are set and read."""
