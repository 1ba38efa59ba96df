"""The wire formats of the model vendors, one module each.

A module has NAME, `read` (a request's body → what was asked), `whole` and `stream` (an answer → JSON, or the events of
a server-sent stream) and `error`. To add one: a module here and its path in `mock_model.DIALECTS`.
"""
