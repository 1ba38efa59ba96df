"""The agent CLIs as they are, before tenure has a part in it: what the rest of these tests stands on."""

from collections.abc import Callable

import pytest

from tests.agents.script import Refuse, Say, Shell
from tests.agents.stage import Stage


def test_the_agent_plays_the_script_by_the_rules_of_the_repository(stage: Callable[..., Stage]) -> None:
    agent = stage(Shell("echo a-word > written.txt"), Say("All done."))
    agent.trust()
    if agent.cli.name == "gemini":  # it reads GEMINI.md by default
        (agent.folder / ".gemini").mkdir()
        (agent.folder / ".gemini" / "settings.json").write_text('{"context": {"fileName": ["AGENTS.md"]}}')

    ran = agent.start("Do what the model says.")

    assert ran.code == 0, ran.err
    assert (agent.folder / "written.txt").exists(), agent.model.last.results
    assert "All done." in ran.out
    assert len(agent.model.last.results) == 1
    assert agent.model.last.model == agent.cli.model
    assert "Do what the model says." in agent.model.last.words
    assert "hippopotamus" in agent.model.last.words
    packages = [stray for stray in agent.model.strays if "opencode-ai" in stray]  # its plug-in types, see clis.py
    assert agent.model.strays == packages


@pytest.mark.every_agent
def test_a_refused_key_ends_in_an_exit_code(stage: Callable[..., Stage]) -> None:
    agent = stage(Refuse(401))
    agent.trust()

    ran = agent.start("Say hello.")

    assert ran.code != 0
    assert "401" in ran.out
