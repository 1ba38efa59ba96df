"""The command line: turns arguments into commands and outcomes into text. Holds no rule.

The outermost layer; may import anything. To add a verb: a line in `verbs.py`, a function with its options in the
module of its noun.
"""
