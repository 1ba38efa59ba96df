"""The map leads to files that are there, and leaves out no part of the package: a rule is found in two steps."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SOURCES = ROOT / "src" / "tenure"
MAP = (ROOT / "ARCHITECTURE.md").read_text("utf-8").partition("## The map")[2].partition("\n## ")[0]
RULES, PACKAGES = (part.splitlines()[1:] for part in MAP.partition("### Rules")[2].split("### Packages"))
NAMED = re.compile(r"`([^`]+)`")


def rows(part: list[str]) -> list[list[str]]:
    cells = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in part if line.startswith("|")]
    return cells[2:]  # behind the heading and its line


def is_path(name: str) -> bool:
    return name.endswith(("/", ".py"))


def rules() -> Iterator[tuple[str, str, str]]:
    """Each rule with a file and a name in it; a name belongs to the file before it."""
    for rule, places in rows(RULES):
        file = ""
        for name in NAMED.findall(places):
            if is_path(name):
                file = name
            else:
                yield rule, file, name


def packages() -> Iterator[str]:
    """The files and folders of the second table; a name without a folder lies in one that its row begins with."""
    for where, what in rows(PACKAGES):
        folders = [name for name in NAMED.findall(where) if is_path(name)]
        yield from folders
        for name in filter(is_path, NAMED.findall(what)):
            inside = [folder + name for folder in folders if (SOURCES / folder / name).exists()]
            yield inside[0] if inside else name


def test_every_file_of_the_map_is_there() -> None:
    named = {name for _, places in rows(RULES) for name in NAMED.findall(places) if is_path(name)} | set(packages())
    assert len(named) > 80
    assert [name for name in sorted(named) if not (SOURCES / name).exists()] == []


def test_every_rule_is_defined_in_the_file_that_the_map_names() -> None:
    found = list(rules())
    assert len({rule for rule, *_ in found}) >= 30
    missing = [
        (file, name)
        for _, file, name in found
        if not re.search(rf"^(def|class) {name}\b|^{name}\b.* = ", (SOURCES / file).read_text("utf-8"), re.MULTILINE)
    ]
    assert missing == []


def test_the_rules_of_tenants_seals_and_secrets_are_on_the_map() -> None:
    bold = {word for rule, _ in rows(RULES) for word in re.findall(r"\*\*([^*]+)\*\*", rule)}
    assert {"the fence", "no money twice", "tenants", "seals", "secrets"} <= bold


def test_every_part_of_the_package_is_on_the_map() -> None:
    named = {Path(place).parts[0] for place in packages()}
    assert {path.name for path in SOURCES.iterdir() if (path / "__init__.py").exists()} - named == set()
    engine = {Path(place).parts[1] for place in packages() if place.startswith("engine/")}
    assert {path.name for path in (SOURCES / "engine").iterdir() if (path / "__init__.py").exists()} - engine == set()


def layers() -> list[set[str]]:
    """The layers of the package from the top, as the linter checks them."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["importlinter"]["contracts"]
    (checked,) = (one["layers"] for one in contracts if one["id"] == "layers")
    return [set(re.findall(r"\w+", layer)) for layer in checked]


def test_both_pages_name_the_layers_that_the_linter_checks() -> None:
    (line,) = re.findall(r"^Imports go one way, `([^`]+)`", (ROOT / "ARCHITECTURE.md").read_text("utf-8"), re.MULTILINE)
    assert [set(layer.split(" | ")) for layer in line.split(" → ")] == layers()
    block = (ROOT / "AGENTS.md").read_text("utf-8").partition("## Layers")[2].split("```")[1]
    named = [re.match(r"\w+(?: \| \w+)*", line) for line in block.strip().splitlines()]
    assert [set(found[0].split(" | ")) for found in named if found] == layers()


def test_the_readme_leads_to_the_map() -> None:
    assert "(ARCHITECTURE.md)" in (ROOT / "README.md").read_text("utf-8")
