"""The command line. So far one verb: `demo`, a team at work on a real store.

Thin: it turns arguments into commands and outcomes into text, and holds no rule. The outermost layer; may import
anything. To add a verb: a module here with `main(argv) -> int` and its line in VERBS.
"""
