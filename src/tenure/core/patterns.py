"""Regular expressions that are compiled at their first use: a start uses few of those that its modules define."""

from __future__ import annotations

import re
from typing import Any


class _Pattern:
    def __init__(self, text: str, flags: int) -> None:
        self._given = text, flags

    def __getattr__(self, name: str) -> Any:
        found = getattr(re.compile(*self._given), name)
        setattr(self, name, found)  # from here on as cheap as a compiled one
        return found


def pattern(text: str, flags: int = 0) -> re.Pattern[str]:
    """As `re.compile`; a text that is not valid raises at the first use."""
    return _Pattern(text, flags)  # type: ignore[return-value]  # it has the attributes of one
