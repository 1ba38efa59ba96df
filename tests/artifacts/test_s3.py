"""Artifacts in a bucket keep the contract; keys come from the environment, and go over plain HTTP nowhere else."""

import ssl
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from tenure.artifacts import s3 as module
from tenure.artifacts.port import Artifacts, put
from tenure.artifacts.s3 import S3Artifacts, parse
from tenure.core.errors import InvalidInput, StoreUnavailable
from tenure.testing.suites.artifact_suite import ArtifactSuite
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
    with pytest.raises(StoreUnavailable, match="no-such-bucket"):
        put(S3Artifacts(s3.url("no-such-bucket")), [b"x"], largest=1)


def test_a_server_that_is_away_is_told_in_one_line(monkeypatch: pytest.MonkeyPatch, s3: S3Server) -> None:
    monkeypatch.setattr(module, "RETRIES", {"max_retries": 0})
    with pytest.raises(StoreUnavailable) as told:
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


# --- certificates ---


class Silent(BaseHTTPRequestHandler):
    """Has nothing."""

    def do_HEAD(self) -> None:
        self.send_response(404)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def secured(tmp_path: Path) -> Iterator[tuple[str, Path]]:
    """An endpoint with a certificate that nobody else knows, and the file that it is in."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .sign(key, hashes.SHA256())
    )
    pem = tmp_path / "certificate.pem"
    pem.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    no_password = serialization.NoEncryption()
    (tmp_path / "key.pem").write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, no_password)
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pem, tmp_path / "key.pem")
    with ThreadingHTTPServer(("127.0.0.1", 0), Silent) as server:
        server.handle_error = lambda *_: None  # type: ignore[method-assign] # who does not trust it hangs up
        server.socket = context.wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        try:
            yield f"s3://bucket?endpoint=https://localhost:{server.server_port}", pem
        finally:
            server.shutdown()
            thread.join()


def test_a_certificate_that_nobody_vouches_for_is_refused(
    secured: tuple[str, Path], s3: S3Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "RETRIES", {"max_retries": 0})
    url, pem = secured
    with pytest.raises(StoreUnavailable):
        S3Artifacts(url).size("a" * 64)
    assert S3Artifacts(f"{url}&ca={pem}").size("a" * 64) is None  # the same, for one who was told of it
