"""What a count decodes: nothing where an index has the number."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tenure.core import commands as c
from tenure.stores.valkey import finding
from tenure.testing.clock import FakeClock
from tenure.testing.factories import PROJECT, Scene
from tests.servers.valkey import open_store

CROWD, FEW = 60, 20


@pytest.mark.usefixtures("valkey")
def test_a_claim_under_its_limits_decodes_no_live_claim(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = FakeClock()
    store = open_store(tmp_path, clock)
    scene = Scene(store, clock)
    scene.do(c.DefineProject, limits={"max_concurrent_claims": 1000})
    scene.do(c.Register, agent="ann", max_concurrent_tasks=1000)
    new = c.Add(project=PROJECT, task=c.NewTask(title="t"))
    scene.run(*[new] * (CROWD + 1))
    scene.next("ann", n=CROWD)
    rows: list[Any] = []
    decode = finding.decoded

    def counted(*arguments: Any) -> Any:
        rows.append(decode(*arguments))
        return rows[-1]

    monkeypatch.setattr(finding, "decoded", counted)
    assert scene.next("ann", session="t").outcome == "GRANTED"
    assert 0 < len(rows) <= FEW
    store.close()
