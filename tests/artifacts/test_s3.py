"""Artifacts in a bucket keep the contract; keys come from the environment, and go over plain HTTP nowhere else."""

from pathlib import Path

import pytest

from tenure.artifacts import s3 as module
from tenure.artifacts.port import Artifacts, put
from tenure.artifacts.s3 import S3Artifacts, parse
from tenure.core.errors import InvalidInput, StoreAway
from tenure.testing.suites.artifacts import ArtifactSuite
from tests.servers.s3 import S3Server


class TestS3(ArtifactSuite):
    @pytest.fixture(autouse=True)
    def bucket(self, s3: S3Server) -> None:
        self.server, self.name = s3, s3.bucket()

    def open_artifacts(self, tmp_path: Path) -> Artifacts:
        return S3Artifacts(self.server.url(self.name, "some/where"))

    def damage(self, artifacts: Artifacts, digest: str, content: bytes) -> None:
        self.server.client().put_object(Bucket=self.name, Key=f"some/where/{digest}", Body=content)


def uploads(server: S3Server, bucket: str) -> int:
    return len(server.client().list_multipart_uploads(Bucket=bucket).get("Uploads", ()))


def test_a_large_content_goes_in_parts_and_leaves_none(s3: S3Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "AT_ONCE", 1 << 20)
    monkeypatch.setattr(module, "PART", 5 << 20)
    bucket = s3.bucket()
    kept = put(S3Artifacts(s3.url(bucket)), [b"x" * (1 << 20)] * 11, largest=1 << 30)
    found = s3.client().head_object(Bucket=bucket, Key=kept.digest)
    assert found["ETag"].strip('"').endswith("-3")
    assert uploads(s3, bucket) == 0
    again = put(S3Artifacts(s3.url(bucket)), [b"x" * (1 << 20)] * 11, largest=1 << 30)
    assert (kept.is_new, again.is_new) == (True, False)


def test_an_old_content_is_put_again_and_a_young_one_is_not(s3: S3Server, monkeypatch: pytest.MonkeyPatch) -> None:
    artifacts = S3Artifacts(s3.url(s3.bucket()))
    put(artifacts, [b"same"], largest=10)
    sent = list[object]()
    before = module.obstore.put
    monkeypatch.setattr(module.obstore, "put", lambda *args, **more: (sent.append(args), before(*args, **more)))
    assert put(artifacts, [b"same"], largest=10).is_new is False
    assert sent == []
    monkeypatch.setattr(module, "YOUNG", 0.0)
    assert put(artifacts, [b"same"], largest=10).is_new is False
    assert len(sent) == 1


def test_other_objects_of_the_bucket_are_left_alone(s3: S3Server) -> None:
    bucket = s3.bucket()
    s3.client().put_object(Bucket=bucket, Key="p/somebody-elses", Body=b"x")
    s3.client().put_object(Bucket=bucket, Key="other/" + "a" * 64, Body=b"x")
    artifacts = S3Artifacts(s3.url(bucket, "p"))
    kept = put(artifacts, [b"ours"], largest=10)
    assert [each.digest for each in artifacts.listed()] == [kept.digest]


def test_parts_of_a_bucket_do_not_see_each_other(s3: S3Server) -> None:
    url = s3.url(s3.bucket(), "p")
    one, other = S3Artifacts(url, part="one"), S3Artifacts(url, part="other")
    digest = put(one, [b"mine"], largest=10).digest
    assert other.size(digest) is None
    assert put(other, [b"mine"], largest=10).is_new


def test_a_bucket_that_is_not_there_is_told(s3: S3Server) -> None:
    with pytest.raises(StoreAway, match="no-such-bucket"):
        put(S3Artifacts(s3.url("no-such-bucket")), [b"x"], largest=1)


def test_a_server_that_is_away_is_told_in_one_line(monkeypatch: pytest.MonkeyPatch, s3: S3Server) -> None:
    monkeypatch.setattr(module, "RETRIES", {"max_retries": 0})
    with pytest.raises(StoreAway) as told:
        put(S3Artifacts("s3://bucket?endpoint=http://127.0.0.1:1"), [b"x"], largest=1)
    assert "\n" not in told.value.message
    assert "AWS" not in told.value.message


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("s3://key:secret@bucket/p", "no key belongs"),
        ("s3:///p", "needs a bucket"),
        ("s3://bucket?endpoint=http://storage.example.com", "in the clear"),
        ("s3://bucket?endpoint=ftp://localhost", "in the clear"),
        ("s3://bucket?secret_access_key=x", "known: endpoint"),
        ("s3://bucket?allow_invalid_certificates=true", "known: endpoint"),
        ("s3://bucket?ca=/no/such/file", "No such file"),
    ],
)
def test_urls_that_would_give_something_away_are_refused(url: str, why: str) -> None:
    with pytest.raises(InvalidInput, match=why) as told:
        S3Artifacts(url)
    assert "secret@" not in told.value.message


def test_an_address_has_a_prefix_and_options() -> None:
    address = parse("s3://bucket/a/b/?endpoint=https://minio.example.com:9000&region=eu-1")
    assert address == ("bucket", "a/b", "https://minio.example.com:9000", "eu-1", None)
