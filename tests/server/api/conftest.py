"""A rich project behind a real server that is open, as on one's own machine."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.engine.rich_scene import Rich
from tests.server.api.ground import served
from tests.servers.tenure import TenureServer


@pytest.fixture(scope="session")
def rich_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[TenureServer, Rich]]:
    with served(str(tmp_path_factory.mktemp("api") / "tenure.db")) as served_:
        yield served_


@pytest.fixture
def api(rich_server: tuple[TenureServer, Rich]) -> str:
    return rich_server[0].url
