"""From a URL to artifacts."""

from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from tenure.artifacts.local import LocalArtifacts
from tenure.artifacts.memory import MemoryArtifacts
from tenure.artifacts.open_artifacts import open_artifacts
from tenure.artifacts.port import Artifacts, put
from tenure.core.errors import InvalidInput


@pytest.mark.parametrize("shape", ["{}", "file://{}"])
def test_a_path_is_a_folder_with_a_part_for_each_tenant(tmp_path: Path, shape: str) -> None:
    url = shape.format(tmp_path / "a b") if shape == "{}" else shape.format(str(tmp_path / "a b").replace(" ", "%20"))
    artifacts = open_artifacts(url)
    assert isinstance(artifacts, LocalArtifacts)
    assert artifacts.folder == tmp_path / "a b" / "local"
    assert open_artifacts(url, tenant="acme").url == str(tmp_path / "a b" / "acme")


@pytest.mark.parametrize("tenant", ["..", ".", "../other", "a/b", "", "x" * 300, "ü", "~x"])
def test_no_tenants_name_leads_into_another_part(tmp_path: Path, tenant: str) -> None:
    artifacts = open_artifacts(str(tmp_path), tenant=tenant)
    assert isinstance(artifacts, LocalArtifacts)
    assert artifacts.folder.parent == tmp_path
    assert artifacts.folder.name.startswith("~")
    assert put(artifacts, [b"x"], largest=1).is_new


def test_memory_is_a_scheme() -> None:
    assert isinstance(open_artifacts("memory://"), MemoryArtifacts)


@pytest.mark.parametrize("url", ["file://", "file://relative", ""])
def test_a_url_without_a_whole_path_is_refused(url: str) -> None:
    with pytest.raises(InvalidInput, match="absolute path"):
        open_artifacts(url)


def test_an_unknown_scheme_is_told_with_those_that_are_known() -> None:
    with pytest.raises(InvalidInput, match="no artifacts have the scheme 'gopher'") as told:
        open_artifacts("gopher://x")
    assert told.value.hint == "There are: file, memory, s3."


class Plugged(MemoryArtifacts):
    def __init__(self, url: str, *, part: str) -> None:
        super().__init__(f"{url}#{part}")


def test_a_plug_in_brings_its_scheme(monkeypatch: pytest.MonkeyPatch) -> None:
    entry = EntryPoint("plugged", f"{__name__}:Plugged", "tenure.artifacts")
    monkeypatch.setattr("importlib.metadata.entry_points", lambda group: [entry] if group == entry.group else [])
    monkeypatch.setattr(EntryPoint, "load", lambda self: Plugged)
    opened: Artifacts = open_artifacts("plugged://there", tenant="acme")
    assert opened.url == "plugged://there#acme"
