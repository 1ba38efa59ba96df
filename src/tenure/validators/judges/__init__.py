"""Ways to ask a model for its opinion: `anthropic`, `openai` (and all that speak like it), or a `command`.

A judge stands in trusted configuration, as `[judges.NAME]`; a contract only names it. To add a way: a module here with
a class that has `ask`, and its line in `configured.WAYS`.
"""
