"""A spawn request with every field."""

from __future__ import annotations

from tenure.spawners.port import SpawnContext, SpawnRequest
from tenure.testing.suites.spawner import TOKEN

REQUEST = SpawnRequest(
    spawn="s-1", tenant="acme", project="shop", pool="coders", agent="coders-1", task="t-1", key="B-003",
    label="task:B-003:Add the cart", offer_seconds=120.0, url="http://127.0.0.1:1", program="bot", token=TOKEN,
    context=SpawnContext(title="Add the cart", description="With tests", input={"a": 1}, checkpoint={"step": 2}),
    models=("opus",), capabilities=("python",),
)  # fmt: skip
