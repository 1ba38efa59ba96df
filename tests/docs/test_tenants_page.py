"""The page on tenants has the limits of the tiers."""

from __future__ import annotations

import re
from pathlib import Path

from tenure.core.tenant_limits import TIERS

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "run-for-many-teams.md"


def test_the_page_has_the_limits_of_each_tier() -> None:
    rows = re.findall(r"^\| `(\w+)`[^|]*\| (\d+) \| (\d+) \|$", PAGE.read_text(), re.MULTILINE)
    assert {name: (int(low), int(high)) for name, low, high in rows} == {
        name: (value, TIERS["enterprise"][name]) for name, value in TIERS["default"].items()
    }
