"""Made-up requests: no answer is a server error, and each is as the document says."""

from __future__ import annotations

import pytest

from tenure.server.openapi import document
from tests.engine.rich_scene import Rich
from tests.server.api.fuzz import Fuzz
from tests.server.api.ground import names_of
from tests.servers.tenure import TenureServer

CASES = 100  # three times as many with --all; `./x reliability api` sends thousands


def test_requests_made_from_the_document_are_answered_as_it_says(
    rich_server: tuple[TenureServer, Rich], pytestconfig: pytest.Config
) -> None:
    server, rich = rich_server
    cases = CASES * 3 if pytestconfig.getoption("--all") else CASES
    fuzz = Fuzz(server.url, document(), names_of(rich), number=1)
    fuzz.run(cases)
    assert [str(finding) for finding in fuzz.findings] == []
    assert fuzz.done >= cases * 0.8
    assert {200, 400, 404, 409} <= set(fuzz.statuses)  # they reach the rules, not only the checks before them
