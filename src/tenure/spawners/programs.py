"""The programs that a pool may name: known agents, and `[programs.NAME]` of the trusted configuration."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from tenure.core.child_environments import ChildKind, for_child
from tenure.core.inputs import suggestion
from tenure.spawners.port import SpawnFailed, SpawnRequest

AGENTS = ("claude", "codex", "copilot", "gemini", "opencode")  # that `tenure run` knows by name


class Program(NamedTuple):
    """How `tenure run` starts an agent."""

    agent: str  # as `--agent` takes it
    folder: str  # where it works
    options: tuple[str, ...] = ()  # more words for `tenure run`


class Programs(NamedTuple):
    named: Mapping[str, Program]
    known: Sequence[str]  # agents that need no table; none for a gateway
    folder: str
    environ: Mapping[str, str]

    def find(self, name: str) -> Program:
        """Raises SpawnFailed for a program that the configuration does not name."""
        if name in self.named:
            return self.named[name]
        if name in self.known:
            return Program(name, self.folder)
        names = sorted({*self.named, *self.known})
        raise SpawnFailed(
            f"no program {name[:60]!r} is configured here{suggestion(name, names)}",
            f"[programs.NAME] names one; here: {', '.join(names) or 'none'}",
        )

    def command(self, request: SpawnRequest) -> list[str]:
        """The command of a child: it has no secret, since every user of a machine can read it."""
        program = self.find(request.program)
        # Each value in one word with its option: one that begins with `-` stays a value.
        words = [sys.executable, "-P", "-m", "tenure", "run", "--once"]
        words += [f"--spawn={request.spawn}", f"--task={request.key}", f"--name={request.agent}"]
        words += [f"--agent={program.agent}"]
        words += [f"--model={model}" for model in request.models if len(request.models) == 1]
        words += [f"--cap={capability}" for capability in request.capabilities]
        if any("\0" in word for word in words):
            raise SpawnFailed(f"spawn {request.spawn[:60]!r}: its names may not have the character NUL")
        return [*words, *program.options]

    def environment(self, request: SpawnRequest) -> dict[str, str]:
        return child_environment(self.environ, request)


def child_environment(environ: Mapping[str, str], request: SpawnRequest) -> dict[str, str]:
    """The environment of a child: the machine's, with the key and the place of its spawn."""
    kept = for_child(ChildKind.SPAWNED, environ)
    ours = {"TENURE_URL": request.url, "TENURE_PROJECT": request.project, "TENURE_SPAWN": request.spawn}
    return {**kept, **ours, **({"TENURE_KEY": request.token} if request.token else {})}
