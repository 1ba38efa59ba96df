"""Every program that the tests start is part of a bare Debian, or is installed by `tests/servers/processes.py`."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from tests.servers.processes import PACKAGES

HERE = Path(__file__).parent
# Of Debian's essential packages.
ESSENTIAL = {"apt-get", "bash", "chroot", "cp", "mount", "nsenter", "sh", "sleep", "true", "umount", "unshare"}
AGENTS = {"codex"}  # `tests/agents/install.py` brings them
STARTS = {"run", "Popen", "check_output", "check_call", "call", "create_subprocess_exec"}


def started(tree: ast.AST) -> Iterator[str]:
    """The programs that a file names where it starts a process."""
    for node in ast.walk(tree):
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in STARTS):
            continue
        if not (isinstance(node.func.value, ast.Name) and node.func.value.id in ("subprocess", "asyncio")):
            continue
        first = node.args[0] if node.args else None
        word = first.elts[0] if isinstance(first, ast.List) and first.elts else first
        if isinstance(word, ast.Constant) and isinstance(word.value, str):
            yield word.value


def test_every_program_that_a_test_starts_is_installed_where_it_is_missing() -> None:
    unknown = [
        f"{file.relative_to(HERE)}: {program}"
        for file in sorted(HERE.rglob("*.py"))
        for program in started(ast.parse(file.read_text()))
        if program.removeprefix("/bin/") not in ESSENTIAL | AGENTS | PACKAGES.keys()
    ]
    assert unknown == []
