"""Pools: agents that the leader starts while tasks are ready."""

from __future__ import annotations

from typing import ClassVar

from tenure.core import limits
from tenure.core.commands.command import PROJECT, Command, Declaration

POOL = PROJECT + "/pools/{pool}"


class SetPool(Command, frozen=True, kw_only=True, tag="set_pool"):
    """Create or replace a pool. The leader starts up to `size` agents on ready tasks, and no more."""

    declaration: ClassVar = Declaration("pools", "admin", "PUT", POOL)

    pool: str
    program: str  # an agent or a command by its name in the leader's configuration
    spawner: str = "local"
    size: int = 1
    idle: float = limits.POOL_IDLE  # seconds that a process may live without a claim
    capabilities: tuple[str, ...] = ()
    types: tuple[str, ...] = ()
    tracks: tuple[str, ...] = ()
    models: tuple[str, ...] = ()


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
