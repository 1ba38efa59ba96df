"""Completion in real shells: TAB is pressed in a terminal, and the store has names that a shell would run."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from tenure.cli import completion
from tenure.cli.main import function_of
from tenure.cli.verbs import VERBS
from tenure.client import Client
from tenure.core.records import Agent, Brief, Dag, Project, Task, Track, replace
from tenure.stores.port import Change
from tests.cli.conftest import Tenure
from tests.cli.terminal import TAKE_TERMINAL
from tests.servers.processes import end_with_us, found_or_installed

PATIENCE = 20.0
PROMPT = "ready>"
# Versions before the rule for new names stored some of these, and a store may have been written past the program.
HOSTILE = (
    "$(touch PWNED1)", "`touch PWNED2`", "$(touch${IFS}PWNED3)", "${IFS}touch${IFS}PWNED4", "'$(touch PWNED5)'",
    '"$(touch PWNED6)"', ";touch PWNED7;", "|touch PWNED8", "&touch PWNED9&", "<(touch PWNED10)", "a b c", "-rf",
    "~root",
    "*", "?[a-z]", "größe", "!!", "\\$(touch PWNED11)", "x\ntouch PWNED12\n", "$'\\x24(touch PWNED13)'", "#touch",
    "q'uote", 'q"uote', "{touch,PWNED14}", "=ls", "%1", "^a^b", "new\n$(touch PWNED15)",
)  # fmt: skip
_OF_STORE = frozenset(
    {"track", "project", "agent", "holder", "by", "from", "AGENT", "for-agent", "to", "task", "TASK", "after", "parent",
     "needs", "TENANT", "tenant", "only", "dag"}
)  # fmt: skip


def places() -> dict[str, list[str]]:
    """By what is completed there, the beginnings of command lines: each verb and option that offers a store's names."""
    found: dict[str, list[str]] = {
        "project": ["tenure list --project "], "agent": ["tenure claim --agent "], "tenant": ["tenure list --tenant "],
    }  # fmt: skip
    for verb, told in VERBS.items():
        for names, settings in getattr(function_of(told.where), "declared", ()):
            known = (max(names, key=len).lstrip("-"), settings.get("dest"), settings.get("metavar"))
            kind = next((one for one in known if one in completion._KINDS), None)
            if kind in _OF_STORE and not settings.get("choices") and settings.get("type") is not int:
                option = f"{names[0]} " if names[0].startswith("-") else ""
                found.setdefault(str(kind), []).append(f"tenure {verb} {option}")
    return found


class Shell:
    """An interactive shell in a terminal. Keys wait in the terminal until it reads them."""

    def __init__(self, argv: list[str], environ: dict[str, str], folder: Path) -> None:
        ours, theirs = pty.openpty()
        self._ours, self._count, self.seen = ours, 0, ""
        self._process = subprocess.Popen(
            [sys.executable, "-c", TAKE_TERMINAL, *argv],
            stdin=theirs, stdout=theirs, stderr=theirs, cwd=folder, env=environ, start_new_session=True,
            preexec_fn=end_with_us(),  # noqa: PLW1509 - it calls the kernel and nothing of Python's
        )  # fmt: skip
        os.close(theirs)

    def press(self, keys: str) -> None:
        os.write(self._ours, keys.encode())

    def run(self, line: str) -> str:
        """What is shown up to the end of the line's output."""
        self._count += 1
        start = len(self.seen)
        self.press(f"{line}\nprintf '<%s>\\n' {self._count}\n")
        return self._until_prompt(f"<{self._count}>", start)

    def completed(self, line: str) -> str:
        """TAB is pressed three times behind the line, which is given up then; what was shown meanwhile."""
        self._count += 1
        start = len(self.seen)
        self.press(f"{line}\t\t\t")
        self.press(f"\x15printf '<%s>\\n' {self._count}\n")
        return self._until_prompt(f"<{self._count}>", start)

    def _until_prompt(self, text: str, start: int) -> str:
        """Up to the prompt behind the text: what is typed before that is not a key of the line editor."""
        deadline = time.monotonic() + PATIENCE
        while PROMPT not in self.seen[start:].rpartition(text)[2] or text not in self.seen[start:]:
            assert time.monotonic() < deadline, f"never shown: {text}\n{self.seen[start:]}"
            self._read(1.0)
        return self.seen[start:]

    def _read(self, seconds: float) -> None:
        if select.select([self._ours], [], [], seconds)[0]:
            with suppress(OSError):
                self.seen += os.read(self._ours, 65536).decode(errors="replace")

    def close(self) -> None:
        self._process.kill()
        self._process.wait()
        os.close(self._ours)


@pytest.fixture
def planted(tenure: Tenure) -> Tenure:
    """A store with hostile names of agents, projects, tracks, dags and tasks."""
    with Client(str(tenure.folder / ".tenure" / "tenure.db"), "default", agent="ann") as client:
        client.add("A first task")
        client.register()
        rows: list[Any] = []
        for name in HOSTILE:
            rows.append(Agent(project="default", id=name, registered_at=1, last_seen=1))
            rows.append(Project(project=name, id=name, created_at=1))
            rows.append(Track(project="default", id=name, name=name))
            rows.append(Dag(project="default", id=name, title=name, created_at=1))
        with client.store.begin("local", write=True) as tx:
            (task,) = tx.find(Task, {"project": "default"})
            (brief,) = tx.find(Brief, {"project": "default"})
            for n, name in enumerate(HOSTILE):
                rows += [replace(task, id=f"task_{n}", key=name, ref=name), replace(brief, id=f"task_{n}")]
            tx.save([Change(None, row) for row in rows])
    return tenure


SETTING_UP = {
    "bash": "PS1='ready''> '; bind 'set completion-query-items 0'; bind 'set page-completions off'; "
    "bind 'set bell-style none'; eval \"$(tenure completion bash)\"",
    "zsh": "PS1='ready''> '; LISTMAX=100000; autoload -U compinit; compinit -u; unsetopt beep; "
    'eval "$(tenure completion zsh)"',
    "fish": "function fish_prompt; echo 'ready''> '; end; tenure completion fish | source",
}
# By day the one whose completion runs in the shell itself.
SHELLS = ["bash", *(pytest.param(name, marks=pytest.mark.nightly) for name in ("zsh", "fish"))]
STARTS = {"bash": ("--norc", "--noprofile", "-i"), "zsh": ("-f", "-i"), "fish": ("--no-config", "-i")}


@contextmanager
def shell_of(planted: Tenure, name: str) -> Iterator[Shell]:
    program = str(found_or_installed(name))
    bin_folder = planted.folder / "bin"
    bin_folder.mkdir(exist_ok=True)
    launcher = bin_folder / "tenure"
    launcher.write_text(f'#!/bin/sh\nexec "{sys.executable}" -P -m tenure "$@"\n')
    launcher.chmod(0o755)
    environ = planted.environ | {
        "PATH": f"{bin_folder}:{planted.environ['PATH']}", "TERM": "xterm", "LC_ALL": "C.UTF-8", "HISTFILE": "",
    }  # fmt: skip
    shell = Shell([program, *STARTS[name]], environ, planted.folder)
    try:
        shell.run(SETTING_UP[name])
        yield shell
    finally:
        shell.close()


def created(folder: Path) -> list[str]:
    return sorted(str(path) for path in folder.rglob("*PWNED*"))


@pytest.mark.parametrize("name", SHELLS)
def test_no_name_is_run_at_any_place_where_tab_is_pressed(planted: Tenure, name: str) -> None:
    """In bash every verb and option that offers names of a store; in the others one of each kind of name."""
    every = places()
    assert len(every) >= 15
    lines = [line for kind in every.values() for line in (kind if name == "bash" else kind[:1])]
    with shell_of(planted, name) as shell:
        seen = {line: shell.completed(line) for line in lines}
    assert created(planted.folder) == []
    silent = {line for line, shown in seen.items() if "touch" not in shown}
    assert silent <= WITHOUT, silent


# What is offered there: names of tenants, of which this store has one, of files, and of limits.
WITHOUT = {
    "tenure list --tenant ", "tenure artifact put ", "tenure plan export ",
    *(f"tenure tenant {verb} " for verb in ("show", "limits", "move", "close", "reopen")),
}  # fmt: skip


@pytest.mark.parametrize("name", SHELLS)
def test_a_name_that_is_inserted_is_one_word_of_the_command(planted: Tenure, name: str) -> None:
    """All but its last character is typed, TAB adds the rest, and the command gets the name as it is."""
    missed = []
    with shell_of(planted, name) as shell:
        for wanted in HOSTILE:
            if not wanted.isprintable() or len(wanted) < 2 or wanted.startswith("-"):
                continue  # a line break is not offered, and an option is what it looks like
            typed = re.sub(r"([^A-Za-z0-9öß])", r"\\\1", wanted[:-1])
            shown = shell.run(f"tenure agent show {typed}\t --json")
            if f'"name":{json.dumps(wanted, ensure_ascii=False)}'.replace(" ", "") not in shown.replace(" ", ""):
                missed.append((wanted, shown))
    assert created(planted.folder) == []
    assert missed == []


def test_inside_of_quotes_that_the_user_has_opened_only_plain_names_are_offered(planted: Tenure) -> None:
    with shell_of(planted, "bash") as shell:
        for quote in ("'", '"'):
            shown = shell.completed(f"tenure agent show {quote}")
            assert "touch" not in shown
            assert "ann" in shown  # the only one that is plain
    assert created(planted.folder) == []


def test_names_of_members_are_not_offered_to_a_shell(tenure: Tenure) -> None:
    tenure("member", "invite", "ann@example.com")
    assert tenure("completion", "bash", "--words", "member", "role", "ann").out == ""


def test_words_are_read_as_a_shell_reads_them() -> None:
    for word, meant in (
        ("a\\ b", "a b"),
        ("'a b", "a b"),
        ('"a\\"b"', 'a"b'),
        ("'a\\'", "a\\"),
        ("a'b'\"c\"", "abc"),
        ("", ""),
    ):
        assert completion.unquoted(word) == meant
