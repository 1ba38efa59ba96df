"""The MCP server costs those who start it, and nobody else."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tenure.client import Client

# -S leaves out what site-packages' own .pth files import; the path is handed in instead.
START = f"import sys; sys.path[:] = {sys.path!r}\n"
SERVERS_OWN = {"mcp", "mcp_types", "pydantic", "anyio", "asyncio", "starlette", "tenure.mcp", "tenure.cli.serve"}


def loaded_by(script: str, folder: Path) -> set[str]:
    script = f"{START}{script}\nprint('\\n'.join(['', '--', *sys.modules]))"
    words = [sys.executable, "-S", "-c", script]
    done = subprocess.run(words, capture_output=True, text=True, check=False, cwd=folder)
    assert done.returncode == 0, done.stderr
    return set(done.stdout.split("\n--\n")[1].split())


def test_a_claim_on_the_command_line_loads_nothing_of_it(owner: Client, folder: Path) -> None:
    owner.add("x")
    loaded = loaded_by("from tenure.cli.main import main\nassert main(['claim', '--json']) == 0", folder)
    assert {"tenure.cli.main", "tenure.cli.claim", "apsw"} <= loaded
    assert loaded & SERVERS_OWN == set()


def test_the_tools_themselves_are_made_without_the_protocol(folder: Path) -> None:
    """So that the reference page, and whoever else asks for the schemas, need not load it."""
    loaded = loaded_by("import tenure.mcp.tools", folder)
    assert "tenure.mcp.arguments" in loaded
    assert loaded & (SERVERS_OWN - {"tenure.mcp"}) == set()
