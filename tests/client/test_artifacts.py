"""Artifacts through the client, for each way to the work and each place that they may lie at."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from tenure import AsyncClient, Client
from tenure.client.transports.local import ProjectArtifacts
from tenure.core.errors import InvalidInput
from tenure.testing.suites.artifact_clients import ArtifactClientSuite
from tests.servers.postgres import url_of
from tests.servers.s3 import S3Server
from tests.servers.tenure import TenureServer


@pytest.fixture(scope="session")
def s3() -> Iterator[S3Server]:
    with S3Server() as server:
        yield server


class OnStore(ArtifactClientSuite):
    """A store of this machine, and a folder beside it."""

    artifacts: str | None = None

    def url(self, tmp_path: Path) -> str:
        return str(tmp_path / "store.db")

    def open_client(self, tmp_path: Path, agent: str = "ann") -> Client:
        return Client(self.url(tmp_path), "shop", agent=agent, artifacts=self.artifacts, create=True)

    def open_async(self, tmp_path: Path) -> AsyncClient:
        return AsyncClient(self.url(tmp_path), "shop", agent="ann", artifacts=self.artifacts, create=True)

    def damage(self, tmp_path: Path, digest: str, content: bytes) -> None:
        (tmp_path / "store.artifacts/local/shop" / digest[:2] / digest[2:4] / digest).write_bytes(content)


class InBucket(OnStore):
    @pytest.fixture(autouse=True)
    def bucket(self, s3: S3Server) -> None:
        self.s3, self.name = s3, s3.bucket()
        self.artifacts = s3.url(self.name, "kept")

    def damage(self, tmp_path: Path, digest: str, content: bytes) -> None:
        self.s3.client().put_object(Bucket=self.name, Key=f"kept/local/shop/{digest}", Body=content)


class Hosted(NamedTuple):
    """A server, and where its artifacts lie."""

    url: str
    folder: Path
    s3: S3Server
    bucket: str


@pytest.fixture(scope="module", params=["a folder", "a bucket"])
def hosted(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, s3: S3Server) -> Iterator[Hosted]:
    folder, bucket = tmp_path_factory.mktemp("hosted"), s3.bucket()
    Client(str(folder / "store.db"), "first", create=True).close()
    settings = {"TENURE_ARTIFACTS": s3.url(bucket, "kept")} if request.param == "a bucket" else {}
    with TenureServer(str(folder / "store.db"), settings=settings) as server:
        yield Hosted(server.url, folder, s3, bucket if settings else "")


NUMBERS = itertools.count(1)


class TestServed(ArtifactClientSuite):
    """The same over a server, which has the place; each test in a project of its own."""

    @pytest.fixture(autouse=True)
    def ground(self, hosted: Hosted) -> None:
        self.hosted, self.project = hosted, f"p{next(NUMBERS)}"

    def open_client(self, tmp_path: Path, agent: str = "ann") -> Client:
        return Client(self.hosted.url, self.project, agent=agent)

    def open_async(self, tmp_path: Path) -> AsyncClient:
        return AsyncClient(self.hosted.url, self.project, agent="ann")

    def damage(self, tmp_path: Path, digest: str, content: bytes) -> None:
        where = f"local/{self.project}"
        if self.hosted.bucket:
            key = f"kept/{where}/{digest}"
            self.hosted.s3.client().put_object(Bucket=self.hosted.bucket, Key=key, Body=content)
        else:
            (self.hosted.folder / "store.artifacts" / where / digest[:2] / digest[2:4] / digest).write_bytes(content)


class TestBesideTheStore(OnStore):
    pass


class TestInABucket(InBucket):
    pass


@pytest.mark.usefixtures("postgres")
class TestBehindPostgres(InBucket):
    def url(self, tmp_path: Path) -> str:
        return url_of(tmp_path)


# --- where they lie -----------------------------------------------------------------------------------------


def test_two_stores_in_one_folder_have_places_of_their_own(tmp_path: Path) -> None:
    urls = [ProjectArtifacts(None, str(tmp_path / name)).url for name in ("a.db", "b.db")]
    assert urls == [str(tmp_path / "a.artifacts"), str(tmp_path / "b.artifacts")]


def test_a_store_that_is_no_file_wants_a_place_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TENURE_ARTIFACTS", raising=False)
    with pytest.raises(InvalidInput, match="no artifact store is set") as told:
        ProjectArtifacts(None, "postgresql://host/db")("p")
    assert "s3://" in (told.value.hint or "")
    monkeypatch.setenv("TENURE_ARTIFACTS", "/srv/kept")
    assert ProjectArtifacts(None, "postgresql://host/db").url == "/srv/kept"


def test_projects_do_not_see_each_others_bytes(tmp_path: Path) -> None:
    places = ProjectArtifacts(None, str(tmp_path / "a.db"))
    from tenure.artifacts.port import put

    digest = put(places("one"), [b"mine"], largest=10).digest
    assert places("other").size(digest) is None
    assert places("One").size(digest) is None  # also where a file system takes the two names for one


def test_verify_tells_of_bytes_that_are_gone(tmp_path: Path) -> None:
    with Client(str(tmp_path / "store.db"), "shop", create=True) as client:
        client.init()
        client.add("Work")
        client.put_artifact(str(client.claim("A-001").receipt), "a", b"content")
        assert client.verify() == []
        (kept,) = (path for path in (tmp_path / "store.artifacts").rglob("*") if len(path.name) == 64)
        kept.unlink()
        assert ["gone" in finding for finding in client.verify()] == [True]
