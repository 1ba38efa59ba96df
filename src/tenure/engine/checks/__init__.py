"""Checks of what is handed in: what a transaction must not find out itself, who takes a check, what follows."""
