"""Fetching the agent CLIs: what cannot be fetched is reported, and no partial installation is left."""

from pathlib import Path

import pytest

from tests.agents import install


@pytest.mark.agents
@pytest.mark.every_agent
def test_an_unavailable_registry_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(install, "PLACE", tmp_path)
    monkeypatch.setenv("npm_config_registry", "http://127.0.0.1:9/")
    monkeypatch.setenv("npm_config_cache", str(tmp_path / "cache"))
    (tmp_path / "gemini").mkdir()
    (tmp_path / "gemini" / "version").write_text("0.0.1")

    with pytest.raises(install.NotInstalled, match=r"npm could not fetch @google/gemini-cli@.*ECONNREFUSED") as raised:
        install.installed("gemini")

    assert "\n" not in str(raised.value)
    assert (tmp_path / "gemini" / "version").read_text() == "0.0.1", "what was there before stays"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["cache", "gemini", "lock"]


def test_without_node_it_says_what_brings_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(install, "PLACE", tmp_path)
    monkeypatch.setattr(install.importlib.util, "find_spec", lambda name: None)

    with pytest.raises(install.NotInstalled, match=r"node is missing.*`agents`"):
        install.installed("gemini")
