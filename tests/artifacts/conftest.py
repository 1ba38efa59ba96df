"""One S3 server for the tests of this folder."""

from collections.abc import Iterator

import pytest

from tests.servers.s3 import S3Server


@pytest.fixture(scope="session")
def s3() -> Iterator[S3Server]:
    with S3Server() as server:
        yield server
