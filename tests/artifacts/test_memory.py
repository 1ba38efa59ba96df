"""Artifacts in memory keep the contract."""

from pathlib import Path

from tenure.artifacts.memory import MemoryArtifacts
from tenure.artifacts.port import Artifacts
from tenure.testing.suites.artifact_suite import ArtifactSuite


class TestMemory(ArtifactSuite):
    def setup_method(self) -> None:
        self.opened = MemoryArtifacts()

    def open_artifacts(self, tmp_path: Path) -> Artifacts:
        return self.opened

    def damage(self, artifacts: Artifacts, digest: str, content: bytes) -> None:
        self.opened._contents[digest] = self.opened._contents[digest]._replace(bytes=content)
