"""Artifacts in a bucket of S3 or a compatible server: `s3://bucket/prefix?endpoint=https://…`.

A content's digest is known only at its end, so it is written to an unnamed file and sent when it is complete; an
interrupted one never reaches the bucket. Credentials come from the environment (AWS_ACCESS_KEY_ID …) or the machine,
never from the URL. Certificates are verified; plain HTTP is for this machine alone.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from types import TracebackType
from typing import IO, TYPE_CHECKING, Any, NamedTuple, Self, TypeVar
from urllib.parse import parse_qsl, urlsplit

import obstore
from obstore.exceptions import AlreadyExistsError, BaseError
from obstore.store import S3Store

from tenure.artifacts import port
from tenure.core import limits
from tenure.core.errors import InvalidInput, StoreUnavailable, close_all
from tenure.core.loopback import is_loopback

if TYPE_CHECKING:
    from obstore.store import ClientConfig, RetryConfig

AT_ONCE = 8 << 20  # bytes sent in one request, which alone can ask for "only if absent"
PART = 8 << 20  # bytes of a part beyond that
AT_A_TIME = 2  # parts, each of which is in memory
IN_MEMORY = 4 << 20  # bytes gathered before a file is made
YOUNG = limits.PUT_AGAIN
OPTIONS = ("endpoint", "region", "ca")
RETRIES: RetryConfig = {"max_retries": 5, "retry_timeout": timedelta(seconds=30)}

T = TypeVar("T")


class Address(NamedTuple):
    bucket: str
    prefix: str
    endpoint: str | None = None
    region: str | None = None
    ca: str | None = None  # a file of certificates to trust besides the system's


def parse(url: str) -> Address:
    parts = urlsplit(url)
    if parts.username is not None or parts.password is not None:
        raise InvalidInput(
            "artifacts: no key belongs into an s3:// URL", "Put it into AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY."
        )
    if not parts.hostname:
        raise InvalidInput("artifacts: an s3:// URL needs a bucket, as in s3://bucket/prefix")
    options = dict(parse_qsl(parts.query, keep_blank_values=True))
    for name in options:
        if name not in OPTIONS:
            raise InvalidInput(f"artifacts: {name[:40]!r} in an s3:// URL; known: {', '.join(OPTIONS)}")
    endpoint = options.get("endpoint")
    if endpoint is not None:
        _check_endpoint(endpoint)
    return Address(parts.hostname, parts.path.strip("/"), endpoint, options.get("region"), options.get("ca"))


def _check_endpoint(endpoint: str) -> None:
    at = urlsplit(endpoint)
    if at.scheme == "https" or (at.scheme == "http" and at.hostname is not None and is_loopback(at.hostname)):
        return
    raise InvalidInput(
        f"artifacts: endpoint {at.scheme}://{at.hostname}: keys and contents would be sent in the clear",
        "Use https://; plain http:// is for this machine alone.",
    )


class S3Artifacts:
    def __init__(self, url: str, *, part: str = "") -> None:
        """`part`: a prefix below that of the URL."""
        self.url = url
        address = parse(url)
        self._where = f"s3://{address.bucket}"
        given = {"endpoint": address.endpoint, "region": address.region}
        options: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
        self._store = S3Store(
            address.bucket,
            prefix="/".join(filter(None, (address.prefix, part))) or None,
            client_options=_client(address),
            retry_config=RETRIES,
            checksum_algorithm="SHA256",  # the server refuses bytes that were changed in transfer
            **options,
        )

    def begin(self, *, largest: int) -> _Writing:
        return _Writing(self, largest)

    def read(self, digest: str, *, start: int = 0, end: int | None = None) -> Iterator[bytes]:
        size = self.size(digest)
        if size is None:
            raise port.missing(digest)
        start, end = port.checked_range(digest, size, start, end)
        if start == end:  # an empty range is an error to HTTP
            return port.verified(digest, size, (), start, end)
        try:
            got = self._asked(lambda: obstore.get(self._store, digest, options={"range": (start, end)}))
        except FileNotFoundError:
            raise port.missing(digest) from None
        return port.verified(digest, size, self._pieces(got), start, end)

    def _pieces(self, got: obstore.GetResult) -> Iterator[bytes]:
        stream = iter(got.stream(min_chunk_size=port.PIECE))
        while (piece := self._asked(lambda: next(stream, None))) is not None:
            yield bytes(piece)

    def size(self, digest: str) -> int | None:
        found = self.found(digest)
        return None if found is None else found[0]

    def found(self, digest: str) -> tuple[int, float] | None:
        """Size and age."""
        port.checked_digest(digest)
        try:
            meta = self._asked(lambda: obstore.head(self._store, digest))
        except FileNotFoundError:
            return None
        return meta["size"], _age(meta["last_modified"])

    def send(self, digest: str, size: int, file: IO[bytes]) -> bool:
        """Send the complete content; returns whether it is new."""
        found = self.found(digest)
        is_new = found is None
        if found is not None and found[0] == size and found[1] < YOUNG:
            return False
        try:
            if size <= AT_ONCE and is_new:
                content = file.read()
                self._asked(lambda: obstore.put(self._store, digest, content, mode="create"))
            else:
                # The server joins the parts at the end, atomically; concurrent puts of one digest send equal bytes.
                in_parts = size > AT_ONCE
                self._asked(
                    lambda: obstore.put(
                        self._store, digest, file, use_multipart=in_parts, chunk_size=PART, max_concurrency=AT_A_TIME
                    )
                )
        except AlreadyExistsError:  # another was faster
            return False
        except FileNotFoundError as error:
            raise StoreUnavailable(f"{self._where}: there is no such bucket") from error
        return is_new

    def delete(self, digest: str) -> None:
        port.checked_digest(digest)
        try:
            self._asked(lambda: obstore.delete(self._store, digest))
        except FileNotFoundError:  # from some servers
            return

    def listed(self) -> Iterator[port.Listed]:
        pages = iter(obstore.list(self._store))
        while (page := self._asked(lambda: next(pages, None))) is not None:
            for meta in page:
                if port.is_digest(meta["path"]):
                    yield port.Listed(meta["path"], meta["size"], _age(meta["last_modified"]))

    def sweep(self) -> int:
        """Nothing to delete: a lifecycle rule of the bucket removes the hidden parts of interrupted uploads."""
        return 0

    def close(self) -> None:
        pass

    def _asked(self, ask: Callable[[], T]) -> T:
        try:
            return ask()
        except AlreadyExistsError:
            raise
        except BaseError as error:
            # The first line is the message; the rest is the library's debugging output.
            raise StoreUnavailable(f"{self._where}: {str(error).partition(chr(10))[0][:300]}") from error


class _Writing:
    def __init__(self, artifacts: S3Artifacts, largest: int) -> None:
        self._artifacts = artifacts
        self._measured = port.Measured(largest)
        self._file = tempfile.SpooledTemporaryFile(IN_MEMORY)  # noqa: SIM115 closed at the block's end

    def write(self, piece: bytes) -> None:
        self._measured.add(piece)
        try:
            self._file.write(piece)
        except OSError as error:
            self._measured.stop()
            raise StoreUnavailable(f"artifacts: {tempfile.gettempdir()}: {error.strerror or error}") from error

    def keep(self, expected: str | None = None) -> port.Kept:
        digest = self._measured.digest(expected)
        self._file.seek(0)
        is_new = self._artifacts.send(digest, self._measured.size, self._file)
        return port.Kept(digest, self._measured.size, is_new)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        close_all(self._measured.stop, self._file.close)


def _client(address: Address) -> ClientConfig:
    options: ClientConfig = {"timeout": "120s", "connect_timeout": "10s"}
    if address.endpoint is not None and address.endpoint.startswith("http://"):
        options["allow_http"] = True
    if address.ca is not None:
        from pathlib import Path

        try:
            options["root_certificate"] = Path(address.ca).read_bytes()
        except OSError as error:
            raise InvalidInput(f"artifacts: {address.ca}: {error.strerror}") from error
    return options


def _age(since: datetime) -> float:
    return max(0.0, (datetime.now(UTC) - since).total_seconds())
