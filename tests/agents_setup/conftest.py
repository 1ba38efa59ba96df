"""The command line's fixtures, here too, and a place to set up."""

from __future__ import annotations

from pathlib import Path

import pytest

from tenure.agents.recipes.recipe import SetupTarget
from tenure.client import Client
from tests.agents_setup.claude_code import Agent
from tests.cli.conftest import Tenure, add, bare, environ, tenure

__all__ = ["add", "agent", "bare", "environ", "owner", "place", "tenure"]


@pytest.fixture
def agent(tenure: Tenure) -> Agent:
    return Agent(tenure.folder)


@pytest.fixture
def owner(agent: Agent) -> Client:
    return agent.client(agent="ann", session="terminal", role="owner")


@pytest.fixture
def place(tmp_path: Path) -> SetupTarget:
    """An empty repository and an empty home."""
    for name in ("repo", "home"):
        (tmp_path / name).mkdir()
    return SetupTarget(str(tmp_path / "repo"), str(tmp_path / "home"), False, ("tenure",), {})
