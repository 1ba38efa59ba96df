"""An agent that knows only the command line: its own shell tool runs `tenure`, and no one had to join first."""

from collections.abc import Callable

import pytest

from tests.agents.script import Say, Shell
from tests.agents.stage import Stage
from tests.agents.views import at_work, session_of


@pytest.mark.every_agent
def test_the_agent_claims_and_completes_a_task_and_is_not_a_person(stage: Callable[..., Stage]) -> None:
    agent = stage(
        Shell("tenure claim"), Shell("tenure cancel A-002"), Shell("tenure done -s 'wrote it'"), Say("All done.")
    )
    tenure = at_work(agent, "Write a haiku", "Write a sonnet")
    agent.trust()

    ran = agent.start("Work on the next task.")

    assert ran.code == 0, ran.err
    (held,) = tenure("history", "A-001")
    assert (held["generation"], held["result_accepted"]) == (1, True), agent.model.last.results
    assert held["agent"].startswith(f"{agent.cli.name}-")
    session = session_of(agent.cli.name, ran)
    if session is None:
        assert held["session"].startswith(f"{agent.cli.name}-")  # and the pid of its process
    else:
        assert held["session"] == session
    assert tenure("show", "A-002")["state"] == "ready", "an agent may not cancel"
