"""Recipes: how each CLI agent is set up to use tenure, by files that it reads anyway.

A recipe is data: pieces (`pieces.py`), each of which knows how to get into one file and out again. `installation.py`
applies recipes; `setup_record.py` records each insertion, so that removal restores every file to the byte.

To add an agent: a line in `agents/identity.py`, a module here with `RECIPE`, its name in `NAMES`; the dialect of
its hooks goes into `agents/dialects.py`. May import client and below.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tenure.agents.recipes.recipe import Recipe

NAMES = ("claude", "codex", "gemini", "opencode", "copilot")


def by_name(name: str) -> Recipe:
    from importlib import import_module

    found: Recipe = import_module(f"tenure.agents.recipes.{name}").RECIPE
    return found
