"""One plug-in of each kind, as an installed package brings them."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tenure.agents.agent_types import AgentType
from tenure.agents.identity import Known
from tenure.agents.recipes.recipe import Recipe, instructions
from tenure.agents.runner.clis.command_cli import Command
from tenure.artifacts.local import LocalArtifacts
from tenure.cli.main import Answer, Run, arg, options
from tenure.sinks.port import Message
from tenure.stores.sqlite import Sqlite
from tenure.validators.port import Output, Verdict


@options(arg("where", help="to which environment"))
def deploy(run: Run, given: Namespace) -> Answer:
    """Add the task of a deployment."""
    outcome = run.client.add(f"Deploy to {given.where}")
    return Answer({"key": (outcome.task or {})["key"]}, f"deploying to {given.where}")


class Robot(Command):
    type = "robot"
    program = "robot"

    def __init__(self) -> None:
        super().__init__(("robot",))


def robot() -> AgentType:
    known = Known("robot", "Robot", ("ROBOT",), "ROBOT_SESSION", ("robot",))
    recipe = Recipe("robot", lambda target, _: [instructions(target)], lambda target: [], (".robot",), ())
    return AgentType(known, recipe, Robot)


class Store(Sqlite):
    def __init__(self, url: str, *, clock: Any = None) -> None:
        super().__init__(url.partition("://")[2], clock=clock)


class Polite:
    name = "polite"
    is_quick = True

    def check_settings(self, settings: Mapping[str, Any]) -> None:
        """Takes none."""

    def judge(self, settings: Mapping[str, Any], output: Output) -> Verdict:
        said = "please" in str(output.data)
        return Verdict(said, () if said else ("say please",))


class Artifacts(LocalArtifacts):
    def __init__(self, url: str, *, part: str) -> None:
        super().__init__(Path(url.partition("://")[2]) / part)


class Sink:
    """Appends the names of messages to a file."""

    def __init__(self, url: str) -> None:
        self._path = Path(url.partition("://")[2].partition("?")[0])

    def send(self, messages: Sequence[Message], timeout: float) -> int:
        with self._path.open("a", encoding="utf-8") as file:
            file.writelines(f"{message.name}\n" for message in messages)
        return len(messages)

    def identity(self) -> str:
        return str(self._path.exists())

    def lag(self) -> int | None:
        return None

    def close(self) -> None:
        """Nothing is open."""
