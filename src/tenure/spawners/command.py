"""Agents started by a command of the configuration: ssh, docker, kubectl. No shell reads it.

`{spawn}`, `{agent}`, `{key}` and the other placeholders are replaced in each word of the template, so a value is never
split into words or read by a shell. ssh passes its words to the shell of the other machine: there `{agent:sh}` is the
quoted value. The key of the agent is in TENURE_KEY and is the one line of stdin;
it has no placeholder, because every user of the machine can read a command line.

Without `status` and `end` the command itself is the agent's process: `ssh host tenure run …` runs as long as the agent.
With them the command starts an agent elsewhere, prints its handle, and ends: `docker run --detach …`.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import NamedTuple

from tenure.core.child_environments import ChildKind, for_child
from tenure.core.errors import InvalidInput
from tenure.core.limits import SPAWN_SECONDS
from tenure.processes.bounded_run import CommandRun, NotRun, run
from tenure.spawners import children
from tenure.spawners.children import Child, Children, Exists
from tenure.spawners.port import Spawned, SpawnFailed, SpawnRequest, SpawnUnknown, State
from tenure.spawners.programs import child_environment

FIELDS = ("spawn", "tenant", "project", "pool", "agent", "task", "key", "label", "url", "program", "model")
_PLACEHOLDER = re.compile(r"\{([a-z]*)(:sh)?\}")
_HANDLE = re.compile(r"[\x21-\x7e]{1,200}")


class Templates(NamedTuple):
    start: tuple[str, ...]
    status: tuple[str, ...] = ()  # exit 0: `{handle}` runs; 1: it has ended; any other: unknown
    end: tuple[str, ...] = ()


def check_template(words: Sequence[str], known: Sequence[str], what: str) -> None:
    """Raises InvalidInput for a placeholder that is not known."""
    for word in words:
        for name, _ in _PLACEHOLDER.findall(word):
            if name not in known:
                hint = f"known are {', '.join('{' + one + '}' for one in known)}"
                if name in ("token", "secret"):
                    hint = "the key is in TENURE_KEY and on stdin; a command line is readable by every user"
                raise InvalidInput(f"{what}: there is no placeholder {{{name}}}", hint)


def filled(words: Sequence[str], values: Mapping[str, str]) -> list[str]:
    """The words with their values; `{name:sh}` is quoted for the shell of another machine."""

    def value(found: re.Match[str]) -> str:
        return shlex.quote(values[found[1]]) if found[2] else values[found[1]]

    return [_PLACEHOLDER.sub(value, word) for word in words]


class CommandSpawner:
    def __init__(self, templates: Templates, children: Children, *, folder: str, environ: Mapping[str, str]) -> None:
        """Raises InvalidInput for an unknown placeholder."""
        check_template(templates.start, FIELDS, "start")
        check_template(templates.status, ("handle",), "status")
        check_template(templates.end, ("handle", "graceful"), "end")
        self._templates, self._children = templates, children
        self._folder, self._environ = folder, environ

    def spawn(self, request: SpawnRequest, timeout: float) -> Spawned:
        values = {name: str(getattr(request, name)) for name in FIELDS if name != "model"}
        values["model"] = request.models[0] if request.models else ""
        argv = filled(self._templates.start, values)
        env = child_environment(self._environ, request)
        stdin = f"{request.token}\n".encode() if request.token else b""
        if self._templates.status:
            return self._printed(request.spawn, argv, env, stdin, timeout)
        process = self._children.start(request.spawn, argv, cwd=self._folder, env=env, seconds=timeout, stdin=stdin)
        return Spawned(handle=process.text)

    def _printed(self, spawn: str, argv: list[str], env: dict[str, str], stdin: bytes, timeout: float) -> Spawned:
        """Run the command to its end; its first line is the handle."""
        try:
            self._children.record(Child(spawn))
        except Exists:
            return self._recorded(spawn)
        except OSError as error:
            raise SpawnFailed(f"spawn {spawn} cannot be recorded: {error.strerror}") from None
        try:
            done = run(argv, cwd=self._folder, env=env, seconds=timeout, stdin=stdin, keep_stderr=False)
        except NotRun as error:
            self._children.forget(spawn)
            raise SpawnFailed(f"cannot start {argv[0]}: {error.message}") from None
        if done.limit is not None:
            raise SpawnUnknown(f"{argv[0]} did not end within {timeout:g} s")
        if done.exit != 0:
            self._children.forget(spawn)
            raise SpawnFailed(f"{argv[0]} ended with {done.exit}")
        handle = done.output.partition(b"\n")[0].decode(errors="replace").strip()
        if not _HANDLE.fullmatch(handle):
            raise SpawnUnknown(f"{argv[0]} printed no handle on its first line (got {handle[:60]!r})")
        with suppress(OSError):
            self._children.replace(Child(spawn, handle=handle))
        return Spawned(handle=handle)

    def _recorded(self, spawn: str) -> Spawned:
        known = self._children.find(spawn)
        if known is None or not known.handle:
            raise SpawnUnknown(f"spawn {spawn} was begun before, and its command has not printed a handle")
        return Spawned(handle=known.handle)

    def home(self) -> str:
        return self._children.home()

    def find(self, spawns: Sequence[str]) -> Mapping[str, Spawned | None]:
        """A command that has not printed its handle may have started an agent, or not."""
        found = self._children.found(spawns)
        if not self._templates.status:
            return children.processes_of(found)
        return {
            spawn: None if child is None else Spawned(handle=child.handle)
            for spawn, child in found.items()
            if child is None or child.handle
        }

    def status(self, handles: Sequence[str]) -> Mapping[str, State]:
        if not self._templates.status:
            return children.states_of(handles)
        return {handle: self._asked(handle) for handle in handles}

    def _asked(self, handle: str) -> State:
        try:
            done = self._run(self._templates.status, {"handle": handle})
        except SpawnUnknown:
            return "unknown"
        return "running" if done.exit == 0 else "ended" if done.exit == 1 else "unknown"

    def end(self, handle: str, graceful: bool) -> None:
        if not self._templates.status:
            children.end(handle, graceful)
            return
        done = self._run(self._templates.end, {"handle": handle, "graceful": "true" if graceful else "false"})
        if done.exit != 0 and self._asked(handle) != "ended":
            raise SpawnUnknown(f"{self._templates.end[0]} ended with {done.exit}")

    def _run(self, template: Sequence[str], values: Mapping[str, str]) -> CommandRun:
        argv = filled(template, values)
        try:
            done = run(argv, cwd=self._folder, env=for_child(ChildKind.PROGRAM, self._environ), seconds=SPAWN_SECONDS)
        except NotRun as error:
            raise SpawnUnknown(f"{argv[0]} did not run: {error.message}") from None
        if done.limit is not None:
            raise SpawnUnknown(f"{argv[0]} did not end within {SPAWN_SECONDS:g} s")
        return done

    def close(self) -> None:
        """The children live on."""
