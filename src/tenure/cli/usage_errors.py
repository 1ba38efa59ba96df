"""Errors of argparse about wrong arguments, in our words. Imported only where there are any."""

from __future__ import annotations

import re
from argparse import ZERO_OR_MORE, Action
from collections.abc import Sequence

_NEEDED = "the following arguments are required: "
_UNKNOWN = "unrecognized arguments: "
_NUMBER = re.compile(r"argument (?:\S+/)*(\S+): invalid (int|float) value: (.*)")
_NUMBERS = {"int": "a whole number", "float": "a number"}


def in_our_words(message: str, actions: Sequence[Action]) -> str:
    if message.startswith(_UNKNOWN):
        word = message.removeprefix(_UNKNOWN).split()[0]
        return f"{word} is not known here{_near(word, actions)}"
    if message.startswith(_NEEDED):
        return _NEEDED + ", ".join(_needed(message.removeprefix(_NEEDED).split(", "), actions))
    if found := _NUMBER.fullmatch(message):
        name, kind, value = found.groups()
        return f"{name} must be {_NUMBERS[kind]} (got {value})"
    return message


def _near(word: str, actions: Sequence[Action]) -> str:
    """Dashes left out: with them every short option would resemble every other."""
    from tenure.core.inputs import suggestion

    if not word.startswith("-"):
        return ""
    dashes = "--" if word.startswith("--") else "-"
    known = {name.lstrip("-"): name for action in actions for name in action.option_strings if name.startswith(dashes)}
    near = suggestion(word.partition("=")[0].lstrip("-"), known).removeprefix("; did you mean ").removesuffix("?")
    return f"; did you mean {known[near]}?" if near else ""


def _needed(names: Sequence[str], actions: Sequence[Action]) -> Sequence[str]:
    """Without those of which there may be none: argparse lists them too."""
    optional = {action.metavar or action.dest for action in actions if action.nargs == ZERO_OR_MORE}
    return [name for name in names if name not in optional]
