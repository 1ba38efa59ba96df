"""What `daemon` and `run` do while their process leads; `serve` has its own assembly."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tenure.agents.leader_process import LeaderProcess, Place, fleet_here, messaging_here
from tenure.locations import FOLDER
from tenure.server.coordinator import Note, coordinator_of

if TYPE_CHECKING:
    from tenure.cli.main import Run
    from tenure.engine import Engine


def place_of(run: Run) -> Place:
    """The repository that the store belongs to, else the working folder."""
    home = run.home
    is_here = os.path.basename(home.folder) == FOLDER
    return Place(home.root if is_here else run.folder, run.project, run.environ)


def leader_of(run: Run, engine: Engine, say: Callable[[str], object], **settings: Any) -> LeaderProcess:
    """The coordinator and everything beside it, not started. `settings` are those of the coordinator."""

    def report(note: Note) -> None:
        if note.level == "error":
            say(f"{note.message}; retrying")

    from tenure.engine.fleet.offers import Address

    settings.setdefault("lease", run.setting("leader.lease"))
    coordinator, place = coordinator_of(engine, tell=report, **settings), place_of(run)
    fleet = fleet_here(run.settings, place, lambda: Address(run.home.url), say)
    copies = run.setting("copies.every")
    return LeaderProcess(coordinator, messaging_here(run.settings, say), place, fleet, say=say, copies=copies)
