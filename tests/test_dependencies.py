"""What `./x` installs is pinned and hashed, and what may break with every minor has an upper bound."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from pathlib import Path

from packaging.requirements import Requirement

ROOT = Path(__file__).parent.parent
ENTRIES = [
    line
    for line in (ROOT / "constraints.txt").read_text().replace("\\\n", " ").splitlines()
    if not line.startswith("#")
]
VERSIONS = {line.split("==")[0]: line.split("==")[1].split()[0] for line in ENTRIES}


def test_every_locked_package_has_the_hashes_of_its_files() -> None:
    assert len(ENTRIES) > 50
    for entry in ENTRIES:
        assert re.fullmatch(r"[a-z0-9-]+==[^\s;]+( ; [^-]+?)?(\s+--hash=sha256:[0-9a-f]{64})+", entry), entry


def test_no_registry_is_named_in_the_lock() -> None:
    assert "://" not in (ROOT / "constraints.txt").read_text()
    assert "index-url" not in (ROOT / "constraints.txt").read_text()


def test_a_dependency_before_its_first_release_has_an_upper_bound() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    groups = [project["project"]["dependencies"], *project["project"]["optional-dependencies"].values()]
    groups += [[line for line in group if isinstance(line, str)] for group in project["dependency-groups"].values()]
    for requirement in (Requirement(line) for group in groups for line in group):
        version = VERSIONS[requirement.name.replace(".", "-")]
        if version.startswith("0."):
            assert any(part.operator == "<" for part in requirement.specifier), requirement
        assert requirement.specifier.contains(version), requirement


def test_what_serve_imports_is_part_of_a_plain_install() -> None:
    """`pip install tenure && tenure serve` works without an extra."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    plain = {Requirement(line).name.replace("-", "_") for line in project["dependencies"]} | {
        "jwt",
        "anyio",
    }  # anyio comes with Starlette
    found = set()
    for file in (ROOT / "src" / "tenure" / "server").rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Import):
                found |= {name.name.partition(".")[0] for name in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module:
                found.add(node.module.partition(".")[0])
    others = found - set(sys.stdlib_module_names) - {"tenure"}
    assert {"starlette", "uvicorn"} & others
    assert others <= plain, others - plain


def test_the_installer_takes_nothing_without_its_hash() -> None:
    door = (ROOT / "x").read_text()
    assert door.count('"--require-hashes"') == 2
    assert "--require-hashes" in (ROOT / "deploy" / "docker" / "Dockerfile").read_text()
