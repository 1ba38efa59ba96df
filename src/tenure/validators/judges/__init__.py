"""Transports to a judging model: `anthropic`, `openai` (and compatible endpoints), or a `command`.

A judge is in trusted configuration, as `[judges.NAME]`; a contract only names it. To add a transport: a module here
with a class that has `ask`, and its line in `judge_config.transport_for`.
"""
