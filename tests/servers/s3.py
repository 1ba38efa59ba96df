"""An S3 server of our own: moto, in a thread, with an empty bucket for each that asks."""

from __future__ import annotations

import contextlib
import io
import itertools
import logging
import os
from types import TracebackType
from typing import Self
from urllib.parse import quote

CREDENTIALS = {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test", "AWS_DEFAULT_REGION": "us-east-1"}


class S3Server:
    """Its credentials are in the environment while it runs, where the client looks for them."""

    def __init__(self) -> None:
        from moto.server import ThreadedMotoServer

        logging.getLogger("werkzeug").setLevel(logging.ERROR)  # it would print each request
        self._server = ThreadedMotoServer(ip_address="127.0.0.1", port=0)
        self._before: dict[str, str | None] = {}
        self._numbers = itertools.count(1)
        self.endpoint = ""

    def start(self) -> None:
        for name, value in CREDENTIALS.items():
            self._before[name] = os.environ.get(name)
            os.environ[name] = value
        with contextlib.redirect_stdout(io.StringIO()):
            self._server.start()
        host, port = self._server.get_host_and_port()
        self.endpoint = f"http://{host}:{port}"

    def stop(self) -> None:
        self._server.stop()
        for name, value in self._before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value

    def bucket(self) -> str:
        """The name of a new, empty one."""
        name = f"bucket-{next(self._numbers)}"
        self.client().create_bucket(Bucket=name)
        return name

    def url(self, bucket: str, prefix: str = "") -> str:
        return f"s3://{bucket}/{prefix}?endpoint={quote(self.endpoint)}"

    def client(self):  # type: ignore[no-untyped-def] # boto3 has no types
        """Another way to the same server, to look behind the back of what is tested."""
        import boto3

        return boto3.client("s3", endpoint_url=self.endpoint)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
