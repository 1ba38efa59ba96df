"""Pools: agents that the leader starts while tasks are ready."""

from __future__ import annotations

from typing import ClassVar

from tenure.core.commands.command import PROJECT, Command, Declaration

POOL = PROJECT + "/pools/{pool}"


class SetPool(Command, frozen=True, kw_only=True, tag="set_pool"):
    """Create or change a pool, which starts up to `size` agents on ready tasks; omitted fields stay as they are."""

    declaration: ClassVar = Declaration("pools", "admin", "PUT", POOL)

    pool: str
    program: str | None = None  # an agent or a command by its name in the leader's configuration; a new pool needs it
    spawner: str | None = None  # of a new pool: `local`
    size: int | None = None  # of a new pool: 1
    idle: float | None = None  # seconds that a process may live without a claim; of a new pool: 60
    capabilities: tuple[str, ...] | None = None
    types: tuple[str, ...] | None = None  # empty: all
    tracks: tuple[str, ...] | None = None
    models: tuple[str, ...] | None = None


class PausePool(Command, frozen=True, kw_only=True, tag="pause_pool"):
    """Start nothing more; running agents finish their tasks."""

    declaration: ClassVar = Declaration("pools", "admin", "POST", POOL + "/pause")

    pool: str
    reason: str = ""


class ResumePool(Command, frozen=True, kw_only=True, tag="resume_pool"):
    """Start agents again, at once."""

    declaration: ClassVar = Declaration("pools", "admin", "POST", POOL + "/resume")

    pool: str


class RemovePool(Command, frozen=True, kw_only=True, tag="remove_pool"):
    """Remove a pool. Agents that have not claimed yet claim nothing; the others finish their tasks."""

    declaration: ClassVar = Declaration("pools", "admin", "POST", POOL + "/remove")

    pool: str
