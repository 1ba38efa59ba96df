"""The package as an index shows it: a README whose links lead somewhere, and the documentation in the sources."""

from __future__ import annotations

import importlib.util
import re
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

import tenure
from tenure.stores.sql.migrations import read_migrations

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()
INTERFACE = ("hatchling", "hatchling.metadata", "hatchling.metadata.plugin", "hatchling.metadata.plugin.interface")
LINK = re.compile(r"\]\(([^)]+)\)")


@pytest.fixture
def packaged(monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str | None], str]:
    """The function of hatch_build.py; hatchling itself is only there while a package is built."""
    for name in INTERFACE:
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    monkeypatch.setattr(
        sys.modules["hatchling.metadata.plugin.interface"], "MetadataHookInterface", object, raising=False
    )
    spec = importlib.util.spec_from_file_location("hatch_build", ROOT / "hatch_build.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    made: Callable[[str, str | None], str] = module.packaged
    return made


def test_without_an_address_the_page_has_no_link_into_the_repository(
    packaged: Callable[[str, str | None], str],
) -> None:
    text = packaged(README, None)
    assert [target for target in LINK.findall(text) if ":" not in target] == []
    assert "./x " not in text
    assert "```sh\ntenure demo  " in text
    assert "## When not to use it" in text
    assert "## Documentation" in text
    assert [line for line in text.splitlines() if line.rstrip().endswith("·")] == []
    assert "\n\n\n" not in text


def test_with_an_address_every_link_leads_there(packaged: Callable[[str, str | None], str]) -> None:
    source = "https://git.example.org/team/tenure"
    text = packaged(README, source)
    assert (
        f"![The dashboard of tenure serve: a dag of twelve tasks with the states of each, live]({source}/raw/main/docs/"
        in text
    )
    assert [target for target in LINK.findall(text) if not target.startswith(f"{source}/")] == []
    assert "./x test" in text


def test_the_sources_of_a_release_have_the_documentation() -> None:
    included = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]["sdist"][
        "include"
    ]
    assert {"docs", "/*.md", "LICENSE", "hatch_build.py"} <= set(included)


def test_the_version_is_the_newest_that_the_changelog_and_the_migrations_know() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    versions = re.findall(r"^## (\d+\.\d+\.\d+)", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert project["version"] == tenure.__version__ == versions[0]
    stores = ROOT / "src" / "tenure" / "stores"
    for folder in stores.glob("*/migrations"):
        assert {step.since for step in read_migrations(folder)} <= set(versions), folder
    assert f"image: tenure:{versions[0]}\n" in (ROOT / "deploy" / "kubernetes" / "deployment.yaml").read_text()
