"""Secrets of tasks and templates: sealed before a handler, opened for the holder, hidden in what it writes."""
