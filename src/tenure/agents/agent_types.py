"""Agent types of plug-ins: installed packages with an entry point in the group `tenure.agents`, under the type's name.

An entry point is an `AgentType`, or a callable that makes one. Looking for entry points takes as long as a whole
command, so the verbs that agents call all day do not: `setup` and `run` record in the user's state folder how the type
is recognised (`identity.record_types`), and later commands read that.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from tenure.agents.identity import KNOWN, Known
from tenure.core.errors import InvalidInput

if TYPE_CHECKING:
    from tenure.agents.recipes.recipe import Recipe
    from tenure.agents.runner.clis.cli import Cli

GROUP = "tenure.agents"


class AgentType(NamedTuple):
    """How an agent is recognised, set up and run; each of the last two may be missing."""

    known: Known
    recipe: Recipe | None = None
    cli: Callable[[], Cli] | None = None


def names() -> tuple[str, ...]:
    """The types that plug-ins bring, beside our own."""
    from importlib.metadata import entry_points

    return tuple(sorted({entry.name for entry in entry_points(group=GROUP)} - KNOWN.keys()))


def plugged_in(name: str) -> AgentType | None:
    """The type of that name; None where no plug-in has it."""
    from importlib.metadata import entry_points

    found = [entry for entry in entry_points(group=GROUP) if entry.name == name]
    if not found or name in KNOWN:
        return None
    try:
        made = found[0].load()
        made = made if isinstance(made, AgentType) else made()
    except Exception as error:
        raise InvalidInput(f"agent type {name!r}: its plug-in {found[0].value} failed: {error}") from error
    if not isinstance(made, AgentType) or made.known.type != name:
        raise InvalidInput(f"agent type {name!r}: its plug-in {found[0].value} is not an AgentType of that name")
    return made
