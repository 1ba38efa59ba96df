"""Tampering with a sealed log is found: a slice of `./x reliability tamper`."""

from __future__ import annotations

import pytest

from tenure.engine.audit import sealer
from tests.reliability import tamper
from tests.sampling import places


@pytest.fixture(params=places("sqlite", "postgres"))
def kind(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr(sealer, "IN_SEAL", tamper.IN_SEAL)
    return str(request.param)


def test_every_tampering_is_found_and_no_untouched_log_is_accused(kind: str) -> None:
    with tamper.stores(kind) as opening:
        done, missed = tamper.tampered(opening, 4711, 60)
        assert (missed, tamper.untouched(opening, 12)) == ([], [])
    assert len(done) >= 12
