"""Seeded bugs: each breaks one guard, and some test must notice, on every store that the guard protects."""
