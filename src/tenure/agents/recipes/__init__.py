"""Recipes: how each CLI agent is set up to use tenure, by files that it reads anyway.

A recipe is data: pieces (`pieces.py`), each of which knows how to get into one file and out again. `installation.py`
applies recipes; `setup_record.py` records each insertion, so that removal restores every file to the byte.

To add an agent: a line in `agents/identity.py`, a module here with `RECIPE`, its name in `NAMES`; the dialect of
its hooks goes into `agents/dialects.py`. May import client and below.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING

from tenure.agents.identity import KNOWN
from tenure.core.errors import InvalidInput

if TYPE_CHECKING:
    from tenure.agents.recipes.recipe import Recipe

NAMES = ("claude", "codex", "gemini", "opencode", "copilot")


def by_name(name: str) -> Recipe:
    if name in NAMES:
        found: Recipe = import_module(f"tenure.agents.recipes.{name}").RECIPE
        return found
    from tenure.agents.agent_types import plugged_in

    made = plugged_in(name)
    if made is None or made.recipe is None:
        raise InvalidInput(f"agent type {name!r} has no setup", f"there are: {', '.join(names())}")
    return made.recipe


def names() -> tuple[str, ...]:
    """The agents that can be set up: ours, then those of plug-ins with a recipe."""
    from tenure.agents import agent_types

    others = (name for name in agent_types.names() if (made := agent_types.plugged_in(name)) and made.recipe)
    return (*NAMES, *others)


def found_agents(root: str, environ: Mapping[str, str]) -> dict[str, str]:
    """Agents that are in use here, each with the evidence."""
    home = environ.get("HOME") or os.path.expanduser("~")
    found = {}
    for name in names():
        known = by_name(name)
        signs = [s for s in known.signs if os.path.lexists(os.path.join(root, s))]
        programs = [p for p in _programs(name) if shutil.which(p, path=environ.get("PATH"))]
        users = [f"~/{s}" for s in known.user_signs if os.path.isdir(os.path.join(home, s))]
        if signs or programs or users:
            found[name] = (signs + [f"`{p}` on the PATH" for p in programs] + users)[0]
    return found


def _programs(name: str) -> tuple[str, ...]:
    if name in KNOWN:
        return KNOWN[name].programs
    from tenure.agents.agent_types import plugged_in

    made = plugged_in(name)
    return made.known.programs if made else ()


def start_command(environ: Mapping[str, str], *, is_global: bool = False) -> tuple[str, ...]:
    """The command that starts tenure from other tools' settings.

    Files of a repository are committed, so they name `tenure`: an interpreter's path is good on one machine alone. A
    user's own files name this interpreter where `tenure` is not on the PATH.
    """
    return (sys.executable, "-m", "tenure") if is_global and not is_on_path(environ) else ("tenure",)


def is_on_path(environ: Mapping[str, str]) -> bool:
    """Whether other tools find `tenure`. A virtual environment does not count: it leaves the PATH when it ends."""
    found = shutil.which("tenure", path=environ.get("PATH"))
    inside = environ.get("VIRTUAL_ENV") or (sys.prefix if sys.prefix != sys.base_prefix else None)
    return bool(found and not (inside and os.path.abspath(found).startswith(os.path.abspath(inside) + os.sep)))
