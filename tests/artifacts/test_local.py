"""Artifacts in a folder keep the contract, stay private, and leave nothing behind a crash that is not swept."""

import os
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from tenure.artifacts.local import INCOMING, LocalArtifacts
from tenure.artifacts.port import Artifacts, put
from tenure.core.errors import StoreUnavailable
from tenure.testing.suites.artifact_suite import ArtifactSuite

WRITER = """
import sys
from tenure.artifacts.local import LocalArtifacts
with LocalArtifacts(sys.argv[1]).begin(largest=1000) as writing:
    writing.write(b"half")
    print("written", flush=True)
    sys.stdin.read()
"""


class TestLocal(ArtifactSuite):
    def open_artifacts(self, tmp_path: Path) -> Artifacts:
        return LocalArtifacts(tmp_path / "artifacts")

    def damage(self, artifacts: Artifacts, digest: str, content: bytes) -> None:
        assert isinstance(artifacts, LocalArtifacts)
        place(artifacts, digest).write_bytes(content)


def place(artifacts: LocalArtifacts, digest: str) -> Path:
    return artifacts.folder / digest[:2] / digest[2:4] / digest


@pytest.fixture
def artifacts(tmp_path: Path) -> LocalArtifacts:
    return LocalArtifacts(tmp_path / "deep" / "artifacts")


def test_only_the_user_can_read_them_whatever_the_umask(artifacts: LocalArtifacts) -> None:
    before = os.umask(0)
    try:
        put(artifacts, [b"private"], largest=100)
    finally:
        os.umask(before)
    modes = {path.is_dir(): stat.S_IMODE(path.stat().st_mode) for path in artifacts.folder.rglob("*")}
    assert modes == {True: 0o700, False: 0o600}
    assert stat.S_IMODE(artifacts.folder.stat().st_mode) == 0o700


def test_a_put_leaves_one_file_and_no_second_name(artifacts: LocalArtifacts) -> None:
    digest = put(artifacts, [b"one"], largest=100).digest
    assert [path for path in artifacts.folder.rglob("*") if path.is_file()] == [place(artifacts, digest)]
    assert place(artifacts, digest).stat().st_nlink == 1


def test_what_a_killed_writer_left_is_swept_and_a_living_ones_is_not(artifacts: LocalArtifacts) -> None:
    command = [sys.executable, "-c", WRITER, str(artifacts.folder)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as writer:
        assert writer.stdout is not None
        assert writer.stdout.readline() == b"written\n"
        assert artifacts.sweep() == 0
        writer.send_signal(signal.SIGKILL)
        writer.wait()
        assert len(list((artifacts.folder / INCOMING).iterdir())) == 1
        assert list(artifacts.listed()) == []
        put(artifacts, [b"next"], largest=100)  # the first put of a process sweeps
    assert list((artifacts.folder / INCOMING).iterdir()) == []
    assert len(list(artifacts.listed())) == 1


def test_a_link_in_the_place_of_a_content_is_not_followed(artifacts: LocalArtifacts, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("secret")
    digest = put(artifacts, [b"content"], largest=100).digest
    place(artifacts, digest).unlink()
    place(artifacts, digest).symlink_to(tmp_path / "secret")
    with pytest.raises(StoreUnavailable):
        artifacts.read(digest)
    put(artifacts, [b"content"], largest=100)
    assert b"".join(artifacts.read(digest)) == b"content"
    assert (tmp_path / "secret").read_text() == "secret"


def test_an_old_content_that_is_put_again_is_young(artifacts: LocalArtifacts) -> None:
    digest = put(artifacts, [b"old"], largest=100).digest
    os.utime(place(artifacts, digest), (0, 0))
    assert next(artifacts.listed()).age > 1e9
    put(artifacts, [b"old"], largest=100)
    assert next(artifacts.listed()).age < 600


def test_a_file_system_without_links_serves_too(artifacts: LocalArtifacts, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: Path, target: Path) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(Path, "hardlink_to", refuse)
    first, again = (put(artifacts, [b"same"], largest=100) for _ in range(2))
    assert (first.is_new, again.is_new) == (True, False)
    assert b"".join(artifacts.read(first.digest)) == b"same"


def test_a_folder_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StoreUnavailable, match="file"):
        put(LocalArtifacts(tmp_path / "file" / "artifacts"), [b"x"], largest=1)


def test_reading_that_nobody_goes_on_with_closes_its_file(artifacts: LocalArtifacts) -> None:
    digest = put(artifacts, [b"x" * 100], largest=100).digest
    opened = Path("/proc/self/fd" if Path("/proc/self/fd").is_dir() else "/dev/fd")
    before = len(list(opened.iterdir()))
    for _ in range(50):
        artifacts.read(digest)
        next(artifacts.read(digest))
    assert len(list(opened.iterdir())) <= before
