"""What every CLI agent has: a program, the words to start it without a terminal, and a reader of its output."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from typing import NamedTuple

from tenure.agents.runner.agent_output import Reader
from tenure.core.errors import TenureError


class NoProgram(TenureError):
    code = "NO_PROGRAM"


class Start(NamedTuple):
    """One start of an agent."""

    prompt: str  # path of the file with the prompt, which is its stdin too
    folder: str  # where it works
    beside: str  # how the paths of files begin that it shall write: beside its transcript
    model: str | None = None
    budget: str | None = None  # dollars that it may spend
    extra: tuple[str, ...] = ()  # words that the user added
    writable: tuple[str, ...] = ()  # folders outside of `folder` that it must be able to write

    def has(self, *options: str) -> bool:
        """Has the user said something about one of these options already?"""
        return any(word.partition("=")[0] in options for word in self.extra)


class Cli:
    """Subclassed once for each agent."""

    type: str
    program: str
    families: tuple[str, ...] = ()  # how the names of its models begin
    model_variable: str = ""  # of the environment, by which people choose its model; none where it knows none

    def arguments(self, start: Start) -> list[str]:
        """The words after the program's name, but for the user's own, which follow."""
        raise NotImplementedError

    def last_words(self) -> list[str]:
        """Words that must stand behind the user's own."""
        return []

    def takes(self, model: str) -> bool:
        """Could this agent be told to use that model? Tasks name models of any vendor."""
        return model.lower().startswith(self.families)

    def environment(self, start: Start) -> dict[str, str]:
        """What it needs in its environment beside what every agent gets."""
        return {}

    def reader(self, start: Start) -> Reader:
        raise NotImplementedError

    def command(self, path: str, start: Start) -> list[str]:
        return [path, *self.arguments(start), *start.extra, *self.last_words()]

    def found(self, environ: Mapping[str, str]) -> str:
        """The program's path; NoProgram where it is not installed."""
        path = shutil.which(self.program, path=environ.get("PATH"))
        if path is None:
            raise NoProgram(
                f"{self.program} is not installed, or not on the PATH", "install it, or name another with --agent"
            )
        return path
