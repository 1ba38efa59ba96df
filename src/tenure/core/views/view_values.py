"""Single values that several views share."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from tenure.core import graph, lifecycle, priority

Instant = int  # microseconds in rows and views; the wire spells them, by the rule of client/wire.py
State = Annotated[str, Meta(extra_json_schema={"enum": list(lifecycle.STATES)})]
Tier = Annotated[str, Meta(extra_json_schema={"enum": list(priority.TIERS)})]
OnFailure = Annotated[str, Meta(extra_json_schema={"enum": list(graph.ON_FAILURE)})]
Usd = Annotated[str, Meta(description="dollars, exact, as a decimal text")]
